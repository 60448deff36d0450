"""Attitude of the trunk from the IMU: two filters that feed each other (Hashlamon & Erbatur 2014, section 3, fig. 2).

    accelerometer ─► gravity Kalman filter ─► roll, pitch ─► "measured quaternion" ─► quaternion EKF ─► attitude
                       ▲       │                                 ▲        gyroscope ─┘ ▲    │
                   gyroscope   └──────────────── gyro bias ──────┼─────────────────────┘    │
                                                                 └────────── yaw ───────────┘

The paper refers to its reference 61 for the equations; those below are ours, and add to its description: the gyro bias
is a state of the gravity filter, the accelerometer carries vibration besides the linear acceleration, and the gravity
estimate keeps its known length. The tilt of the EKF cannot be better known than that of the gravity filter, since both
rest on the same gyroscope: the published covariance is the sum of both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from friction_estimator.config import AttitudeConfig, SensorNoise
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import RecordTemplate, buffered, buffered_zeros, record, zeros
from friction_estimator.linear_algebra import (
    Quaternion,
    Triple,
    cross,
    is_bounded,
    is_covariance,
    matrix_from_quaternion,
    matvec_3x3,
    quaternion_exp,
    quaternion_from_rpy,
    quaternion_product,
    rotation_between,
    solve_positive,
    yaw_from_quaternion,
)
from friction_estimator.types import GRAVITY, Attitude, FloatArray, Matrix, Vector

_UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3.0
"""Variance of an angle that may have any value [rad^2]."""
ACCELERATION_TIME = 0.2
"""Correlation time of the trunk's linear acceleration [s]: a fraction of a step."""
VIBRATION_STD = 1.0
"""Standard deviation of trunk accelerations that last for one sample only, from impacts and vibration [m/s^2]."""
ACCELERATION_BIAS_STD, GYRO_BIAS_WALK = 0.02, 1e-5
"""Accelerometer bias at the start [m/s^2], and random walk of the gyroscope bias [rad/s/sqrt(s)]."""
IMU_GAP_RATE = 0.5
"""Standard deviation of the trunk's angular rate while the IMU sends nothing [rad/s]."""
_MEAN_TIME, _MAX_MEAN_ACCELERATION = 1.0, 1.5
"""Time constant of the mean horizontal acceleration of the trunk [s], and its largest true value [m/s^2]. A larger one
means that the tilt is wrong by more than asin(1.5 / 9.81), 9 degrees. Simulated walks, pushed or uneven, reach 0.4."""
_GRAVITY_TOLERANCE = 1.0
"""The tilt is found anew from a specific force whose magnitude differs from gravity by less than this [m/s^2]."""
_INVALID, _VALID, _TILT_WRONG = range(3)
"""Results of :func:`_step_attitude`."""
_FAILED = "the state of its filter was not finite"
_MIN_VARIANCE = 1e-12
"""Lower bound on variances that are inverted, in the square of the unit."""
_EMPTY: RecordTemplate[Attitude] = RecordTemplate(zeros(
    Attitude, rotation_base_to_world=(3, 3), angular_velocity=3, angular_acceleration=3, specific_force=3,
    covariance=(3, 3), rate_covariance=(3, 3),
))  # fmt: skip
RATE, SPECIFIC_FORCE = _EMPTY.slots("angular_velocity"), _EMPTY.slots("specific_force")
ANGULAR_ACCELERATION = _EMPTY.slots("angular_acceleration")
"""Where these fields are in the buffer of an :class:`Attitude`."""


@record
class AttitudeState(NamedTuple):
    """State of both filters."""

    # (12,) `x = [g, a, b_a, b_w]` of the gravity filter, base axes: gravity, linear acceleration of the trunk as
    # a first-order Gauss-Markov process, biases of accelerometer and gyroscope
    gravity: Vector
    gravity_covariance: Matrix  # (12, 12)
    quaternion: Vector  # (4,) base to world `(w, x, y, z)`
    # (3, 3) of the error `theta` in `R_true = exp(theta) R`, world axes [rad^2], since a quaternion has four
    # numbers but three degrees of freedom; between samples only the gyroscope adds to that error
    quaternion_covariance: Matrix
    yaw_with_bias: Vector  # (1,) covariance of yaw and gyroscope bias [rad^2/s]
    mean_acceleration: Vector  # (3,) low-passed horizontal acceleration, base axes [m/s^2]
    angular_acceleration: Vector  # (3,) differentiated and low-passed gyroscope, base axes [rad/s^2]
    gyro: Vector  # (3,) its last reading, base axes [rad/s]


@record
class AttitudeTuning(NamedTuple):
    """Constants of both filters: mounting and noise of the IMU, acceleration of the trunk."""

    imu_to_base: Matrix  # (3, 3) A_I^b of eq. 6
    acceleration_std: float  # of the trunk's linear acceleration [m/s^2]
    reading_variance: float  # of an accelerometer reading, with vibration [m^2/s^4]
    # of the gyroscope, and of the random walk of its bias [rad/s], [rad/s/sqrt(s)]
    gyro_std: float
    bias_walk: float
    cutoff: float  # of the angular acceleration's low-pass [Hz]


@kernel
def predict_gravity(x: FloatArray, P: FloatArray, tuning: AttitudeTuning, gyro: Triple | FloatArray, dt: float) -> None:
    """Advance ``x = [g, a, b_a, b_w]`` (12,) and its covariance (12, 12) by ``dt`` [s], in place.

    Gravity g, acceleration a [m/s^2] and the biases of accelerometer and gyroscope are in base axes. The gyroscope less
    its bias turns g and a by T, and a decays: ``P = F P F^T + Q`` with the Jacobian

        F = [T, 0, 0, -dt [g]x; 0, exp(-dt/tau) T, 0, 0; 0, 0, 1, 0; 0, 0, 0, 1]

    Parameters
    ----------
    gyro : (3,) reading of the gyroscope, base axes [rad/s]
    """
    T = matrix_from_quaternion(
        quaternion_exp((-dt * (gyro[0] - x[9]), -dt * (gyro[1] - x[10]), -dt * (gyro[2] - x[11])))
    )
    keep, g, a = math.exp(-dt / ACCELERATION_TIME), (x[0], x[1], x[2]), (x[3], x[4], x[5])
    rows = np.empty((6, 12))  # of F P
    for j in range(12):
        by_bias = cross(g, (P[9, j], P[10, j], P[11, j]))
        for i in range(3):
            rows[i, j] = T[i, 0] * P[0, j] + T[i, 1] * P[1, j] + T[i, 2] * P[2, j] - dt * by_bias[i]
            rows[3 + i, j] = keep * (T[i, 0] * P[3, j] + T[i, 1] * P[4, j] + T[i, 2] * P[5, j])
    for i in range(6):
        by_bias = cross(g, (rows[i, 9], rows[i, 10], rows[i, 11]))
        for j in range(3):
            P[i, j] = P[j, i] = T[j, 0] * rows[i, 0] + T[j, 1] * rows[i, 1] + T[j, 2] * rows[i, 2] - dt * by_bias[j]
            P[i, 3 + j] = P[3 + j, i] = keep * (T[j, 0] * rows[i, 3] + T[j, 1] * rows[i, 4] + T[j, 2] * rows[i, 5])
        for j in range(6, 12):
            P[i, j] = P[j, i] = rows[i, j]
    g, a = matvec_3x3(T, g), matvec_3x3(T, a)
    for i in range(3):
        x[i], x[3 + i] = g[i], keep * a[i]
    for axis in range(3):
        P[axis, axis] += (GRAVITY * tuning.gyro_std * dt) ** 2
        P[3 + axis, 3 + axis] += tuning.acceleration_std**2 * -math.expm1(-2.0 * dt / ACCELERATION_TIME)
        P[9 + axis, 9 + axis] += tuning.bias_walk**2 * dt


@kernel
def correct_gravity(x: FloatArray, P: FloatArray, specific_force: Triple | FloatArray, noise_variance: float) -> None:
    """Correct by an accelerometer reading (3,) = a - g + b_a, base axes [m/s^2], in place; restore the length of g.

    ``x`` and ``P`` are those of :func:`predict_gravity`, ``noise_variance`` [m^2/s^4] is that of the reading. Impacts
    are not gated out: gravity is the mean of the specific force only if all its peaks count.
    """
    measured, S = np.empty((3, 12)), np.empty((3, 3))
    for i in range(3):
        for j in range(12):
            measured[i, j] = P[3 + i, j] - P[i, j] + P[6 + i, j]
    for i in range(3):
        for j in range(3):
            S[i, j] = measured[i, 3 + j] - measured[i, j] + measured[i, 6 + j]
        S[i, i] += noise_variance + _MIN_VARIANCE
    gain, _ = solve_positive(S, measured)  # transposed
    innovation = (
        specific_force[0] - (x[3] - x[0] + x[6]),
        specific_force[1] - (x[4] - x[1] + x[7]),
        specific_force[2] - (x[5] - x[2] + x[8]),
    )
    for i in range(12):
        for a in range(3):
            x[i] += gain[a, i] * innovation[a]
        for j in range(12):
            P[i, j] -= gain[0, i] * measured[0, j] + gain[1, i] * measured[1, j] + gain[2, i] * measured[2, j]
    length = math.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)
    for i in range(3):
        x[i] *= GRAVITY / length


@kernel
def _add_to_mean_acceleration(mean: FloatArray, x: FloatArray, specific_force: Triple, dt: float) -> float:
    """Low-pass the horizontal part of ``f + g`` (3,) [m/s^2], base axes, in place.

    Returns
    -------
    Magnitude of the mean [m/s^2]
    """
    up = 0.0
    for i in range(3):
        up += x[i] * (specific_force[i] + x[i]) / GRAVITY**2
    part, square = -math.expm1(-dt / _MEAN_TIME), 0.0
    for i in range(3):
        mean[i] += part * (specific_force[i] + x[i] - up * x[i] - mean[i])
        square += mean[i] ** 2
    return math.sqrt(square)


@kernel
def tilt_covariance(rotation: FloatArray, gravity: FloatArray, covariance: FloatArray) -> Triple:
    """Variance about x, covariance, variance about y [rad^2] of the tilt about the world axes.

    ``d theta = g x d g / |g|^2``, for a gravity (3,) in base axes of which ``covariance`` (3, 3 or more) holds.
    """
    x, y = cross(rotation[0], gravity), cross(rotation[1], gravity)  # rows of R [g]x
    by_x, by_y = matvec_3x3(covariance, x), matvec_3x3(covariance, y)
    scale = 1.0 / GRAVITY**4
    return (
        scale * (x[0] * by_x[0] + x[1] * by_x[1] + x[2] * by_x[2]),
        scale * (x[0] * by_y[0] + x[1] * by_y[1] + x[2] * by_y[2]),
        scale * (y[0] * by_y[0] + y[1] * by_y[1] + y[2] * by_y[2]),
    )


@kernel
def roll_pitch(gravity: FloatArray) -> tuple[float, float]:
    """Roll and pitch of the base [rad] from gravity in base axes: ``g = R^T [0, 0, -9.81]``."""
    x, y, z = -gravity[0], -gravity[1], -gravity[2]
    return math.atan2(y, z), math.atan2(-x, math.hypot(y, z))


@entry_point
def _initialize_attitude(state: AttitudeState, tuning: AttitudeTuning, specific_force: Vector, yaw: float) -> None:
    """Use the first accelerometer reading (3,), base axes; begin the quaternion with a yaw and the tilt by gravity."""
    x, P, q, P_q = state.gravity, state.gravity_covariance, state.quaternion, state.quaternion_covariance
    correct_gravity(x, P, specific_force, tuning.reading_variance)
    roll, pitch = roll_pitch(x)
    q[0], q[1], q[2], q[3] = quaternion_from_rpy(roll, pitch, yaw)
    P_q[0, 0], P_q[0, 1], P_q[1, 1] = tilt_covariance(matrix_from_quaternion(q), x, P)
    P_q[1, 0] = P_q[0, 1]


@kernel
def predict_quaternion_covariance(
    P: FloatArray, yaw_with_bias: FloatArray, gyro_std: float, bias_variance: float, dt: float
) -> None:
    """Grow the covariance (3, 3) of the quaternion's error by ``dt`` [s], in place.

    Parameters
    ----------
    yaw_with_bias : (1,) covariance of the yaw with the gyroscope's bias about the vertical, in place [rad^2/s]
    gyro_std : noise of a reading of the gyroscope [rad/s]
    bias_variance : of its bias, each axis [rad^2/s^2]
    """
    for axis in range(3):
        P[axis, axis] += (gyro_std * dt) ** 2 + bias_variance * dt * dt
    P[2, 2] += 2.0 * dt * yaw_with_bias[0]
    yaw_with_bias[0] += dt * bias_variance


@kernel
def correct_quaternion(q: FloatArray, P: FloatArray, measured: Quaternion, tilt: Triple) -> None:
    """Correct ``q`` and the covariance ``P`` (3, 3) of its error by the tilt of ``measured``, in place."""
    innovation = rotation_between(q, measured)
    rows, S = P[:2].copy(), np.empty((2, 2))
    S[0, 0], S[1, 1] = rows[0, 0] + tilt[0] + _MIN_VARIANCE, rows[1, 1] + tilt[2] + _MIN_VARIANCE
    S[0, 1], S[1, 0] = rows[0, 1] + tilt[1], rows[1, 0] + tilt[1]
    gain, _ = solve_positive(S, rows)  # transposed
    for i in range(3):
        for j in range(3):
            P[i, j] -= gain[0, i] * rows[0, j] + gain[1, i] * rows[1, j]
    turn = (
        gain[0, 0] * innovation[0] + gain[1, 0] * innovation[1],
        gain[0, 1] * innovation[0] + gain[1, 1] * innovation[1],
        gain[0, 2] * innovation[0] + gain[1, 2] * innovation[1],
    )
    w, x, y, z = quaternion_product(quaternion_exp(turn), q)
    length = math.sqrt(w * w + x * x + y * y + z * z)
    q[0], q[1], q[2], q[3] = w / length, x / length, y / length, z / length


@entry_point
def _write_attitude(
    state: AttitudeState,
    gyro_std: float,
    gyro: Vector,
    specific_force: Vector,
    silent_variance: float,
    out: Attitude,
) -> bool:
    """Write the attitude.

    Parameters
    ----------
    gyro, specific_force : (3,) readings, base axes
    silent_variance : of each angle, by silence of the IMU [rad^2]

    Returns
    -------
    False where the state has become useless: not finite, or no covariance
    """
    x, P, P_q = state.gravity, state.gravity_covariance, state.quaternion_covariance
    rotation = matrix_from_quaternion(state.quaternion)
    for i in range(3):
        for j in range(3):
            out.rotation_base_to_world[i, j] = rotation[i, j]
            out.covariance[i, j] = P_q[i, j]
            out.rate_covariance[i, j] = P[9 + i, 9 + j]
        out.covariance[i, i] += silent_variance
        out.rate_covariance[i, i] += gyro_std**2
        out.angular_velocity[i] = gyro[i] - x[9 + i]
        out.angular_acceleration[i] = state.angular_acceleration[i]
        out.specific_force[i] = specific_force[i]
    xx, xy, yy = tilt_covariance(rotation, x, P)
    out.covariance[0, 0] += xx
    out.covariance[0, 1] += xy
    out.covariance[1, 0] += xy
    out.covariance[1, 1] += yy
    is_valid = is_bounded(x) and is_bounded(rotation) and is_bounded(out.angular_acceleration)
    return is_valid and is_covariance(P) and is_covariance(P_q)


@entry_point
def _step_attitude(
    state: AttitudeState,
    tuning: AttitudeTuning,
    angular_velocity: Vector,
    accelerometer: Vector,
    dt: float,
    out: Attitude,
) -> int:
    """Use one IMU sample in IMU axes: both filters in place, the differentiated gyroscope behind its low-pass.

    Returns
    -------
    ``_INVALID`` where :func:`_write_attitude` is False; ``_TILT_WRONG`` where the accelerometer has contradicted the
    tilt, and shows it now; else ``_VALID``
    """
    x, P, q, P_q = state.gravity, state.gravity_covariance, state.quaternion, state.quaternion_covariance
    gyro, force = matvec_3x3(tuning.imu_to_base, angular_velocity), matvec_3x3(tuning.imu_to_base, accelerometer)
    last = state.gyro
    mean_gyro = 0.5 * (gyro[0] + last[0]), 0.5 * (gyro[1] + last[1]), 0.5 * (gyro[2] + last[2])
    predict_gravity(x, P, tuning, mean_gyro, dt)
    correct_gravity(x, P, force, tuning.reading_variance)
    impossible = _add_to_mean_acceleration(state.mean_acceleration, x, force, dt) > _MAX_MEAN_ACCELERATION
    turn = dt * (mean_gyro[0] - x[9]), dt * (mean_gyro[1] - x[10]), dt * (mean_gyro[2] - x[11])
    q[0], q[1], q[2], q[3] = quaternion_product(q, quaternion_exp(turn))
    predict_quaternion_covariance(P_q, state.yaw_with_bias, tuning.gyro_std, max(P[9, 9], P[10, 10], P[11, 11]), dt)
    roll, pitch = roll_pitch(x)
    measured = quaternion_from_rpy(roll, pitch, yaw_from_quaternion(q))
    correct_quaternion(q, P_q, measured, tilt_covariance(matrix_from_quaternion(q), x, P))
    part = -math.expm1(-2.0 * math.pi * tuning.cutoff * dt)
    for i in range(3):
        state.angular_acceleration[i] += part * ((gyro[i] - last[i]) / dt - state.angular_acceleration[i])
        last[i], out.specific_force[i] = gyro[i], force[i]
    if not _write_attitude(state, tuning.gyro_std, last, out.specific_force, 0.0, out):
        return _INVALID
    length = math.sqrt(force[0] ** 2 + force[1] ** 2 + force[2] ** 2)
    return _TILT_WRONG if impossible and abs(length - GRAVITY) < _GRAVITY_TOLERANCE else _VALID


class AttitudeEstimator:
    """The attitude stage: gyroscope and accelerometer in, attitude and base rates out.

    Parameters
    ----------
    config, noise : tuning and sensor noise
    rotation_imu_to_base : (3, 3) A_I^b of eq. 6

    Attributes
    ----------
    contradicted : True where the newest sample showed that gyroscope and accelerometer contradict each other, so that
        the tilt was found anew
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise, rotation_imu_to_base: FloatArray) -> None:
        first_std = math.hypot(config.acceleration_std, VIBRATION_STD)
        self._first_stds = first_std, config.acceleration_std, ACCELERATION_BIAS_STD, config.gyro_bias_std
        tuning = AttitudeTuning(
            rotation_imu_to_base, config.acceleration_std, noise.specific_force_std**2 + VIBRATION_STD**2,
            noise.angular_velocity_std, GYRO_BIAS_WALK, config.angular_acceleration_cutoff,
        )  # fmt: skip
        self._tuning_buffer, self._tuning = buffered(tuning)
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample; yaw is zero there."""
        self._running, self._silent_for, self.contradicted = False, 0.0, False
        self._buffer, self._state = _initial_state()

    @property
    def gyro_bias(self) -> FloatArray:
        """Bias of the gyroscope, base axes (3,) [rad/s]."""
        return self._state.gravity[9:]

    def step(self, angular_velocity: FloatArray, specific_force: FloatArray, dt: float, fresh: bool = True) -> Attitude:
        """Attitude of the base after an IMU sample in IMU axes, (3,) [rad/s] and (3,) [m/s^2].

        The readings are turned to base axes first, the inverse of eq. 6: so the yaw at the start is zero
        for the base, and no mounting of the IMU brings the roll and pitch angles near their singularity.

        While the IMU is silent (``fresh`` False) the last attitude stays, ever less certain. With the first new reading
        the tilt is found anew, and the yaw is the last known. The same is done when the accelerometer shows for a
        second that the tilt is wrong: one of both sensors was wrong before, so the yaw may be wrong by as much, and the
        gyro bias is that of the start.

        Raises
        ------
        FloatingPointError
            When the state is no longer finite; call :meth:`reset` then.
        """
        self.contradicted = False
        out: Any = _EMPTY.new()
        buffer = out.buffer
        if fresh and self._running and self._silent_for == 0.0 and dt > 0.0:
            result = _step_attitude(self._buffer, self._tuning_buffer, angular_velocity, specific_force, dt, buffer)
            self.contradicted = result == _TILT_WRONG
            if result == _INVALID:
                raise FloatingPointError(_FAILED)
            if result == _VALID:
                return out
        state, to_base = self._state, self._tuning.imu_to_base
        gyro, specific_force = to_base @ angular_velocity, to_base @ specific_force
        if not fresh:
            self._silent_for += dt
            state.angular_acceleration[:] = 0.0
        elif not self._running:
            self._start(gyro, specific_force, np.zeros(3), 0.0, 0.0)
        elif self._silent_for > 0.0 or self.contradicted:
            variance = float(state.quaternion_covariance[2, 2]) + self._silent_variance()
            bias = self.gyro_bias.copy()
            if self.contradicted:
                up = -state.gravity[:3]
                variance += math.atan2(np.linalg.norm(np.cross(up, specific_force)), up @ specific_force) ** 2
                bias[:] = 0.0
            self._start(gyro, specific_force, bias, yaw_from_quaternion(state.quaternion), variance)
        silent = self._silent_variance()
        is_valid = _write_attitude(self._buffer, self._tuning.gyro_std, gyro, specific_force, silent, buffer)
        if not self._running:
            out.covariance[:] = _UNKNOWN_ANGLE_VARIANCE * np.eye(3)
        if not is_valid:
            raise FloatingPointError(_FAILED)
        return out

    def _start(
        self, gyro: FloatArray, specific_force: FloatArray, gyro_bias: FloatArray, yaw: float, yaw_variance: float
    ) -> None:
        """Split the first reading by the prior-weighted pseudo-inverse; the tilt follows from gravity."""
        length = float(np.linalg.norm(specific_force))
        up = specific_force / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])
        self._buffer, state = _initial_state()
        self._state = state
        state.gravity[:3], state.gravity[9:] = -GRAVITY * up, gyro_bias
        np.fill_diagonal(state.gravity_covariance, np.maximum(np.repeat(self._first_stds, 3) ** 2, _MIN_VARIANCE))
        state.quaternion_covariance[2, 2], state.gyro[:] = yaw_variance, gyro
        _initialize_attitude(self._buffer, self._tuning_buffer, specific_force, yaw)
        self._running, self._silent_for = True, 0.0

    def _silent_variance(self) -> float:
        return (IMU_GAP_RATE * self._silent_for) ** 2


def _initial_state() -> tuple[FloatArray, AttitudeState]:
    buffer, state = buffered_zeros(
        AttitudeState, gravity=12, gravity_covariance=(12, 12), quaternion=4, quaternion_covariance=(3, 3),
        yaw_with_bias=1, mean_acceleration=3, angular_acceleration=3, gyro=3,
    )  # fmt: skip
    state.quaternion[0] = 1.0
    return buffer, state
