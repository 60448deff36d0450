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

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import AttitudeConfig, SensorNoise
from friction_estimator.linear_algebra import (
    bounded,
    is_covariance,
    matrix_from_quaternion,
    product,
    quaternion_exp,
    quaternion_from_rpy,
    quaternion_product,
    rotation_between,
    skew,
    solve_positive,
    turned,
    yaw_from_quaternion,
)
from friction_estimator.types import GRAVITY, Attitude, FloatArray

_UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3.0
"""Variance of an angle that may have any value [rad^2]."""
ACCELERATION_TIME = 0.2
"""Correlation time of the trunk's linear acceleration [s]: a fraction of a step."""
IMU_GAP_RATE = 0.5
"""Standard deviation of the trunk's angular rate while the IMU sends nothing [rad/s]."""
_LEAST_VARIANCE = 1e-12
"""Lower bound on variances that are inverted, in the square of the unit."""


@kernel
def gravity_transition(x: FloatArray, gyro: FloatArray, dt: float, acceleration_time: float) -> FloatArray:
    """Jacobian (12, 12) of the prediction of ``x = [g, a, b_a, b_w]``: g and a turn by the gyroscope less its bias."""
    turn = matrix_from_quaternion(quaternion_exp(-dt * (gyro - x[9:])))
    by_bias = skew(x[:3])
    keep = math.exp(-dt / acceleration_time)
    jacobian = np.zeros((12, 12))
    for i in range(3):
        for j in range(3):
            jacobian[i, j] = turn[i, j]
            jacobian[i, 9 + j] = -dt * by_bias[i, j]
            jacobian[3 + i, 3 + j] = keep * turn[i, j]
        jacobian[6 + i, 6 + i] = jacobian[9 + i, 9 + i] = 1.0
    return jacobian


@kernel
def predict_gravity(
    x: FloatArray,
    P: FloatArray,
    gyro: FloatArray,
    dt: float,
    acceleration_time: float,
    acceleration_std: float,
    gyro_std: float,
    bias_walk: float,
) -> None:
    """Advance state (12,) and covariance (12, 12) of the gravity filter by ``dt`` [s], in place.

    Only the first six rows of the Jacobian F differ from the identity: ``P = F P F^T`` is done with these.
    """
    F = gravity_transition(x, gyro, dt, acceleration_time)
    moved, rows = np.zeros(6), np.zeros((6, 12))
    for i in range(6):
        first = 0 if i < 3 else 3
        for k in range(first, first + 3):
            moved[i] += F[i, k] * x[k]
            for j in range(12):
                rows[i, j] += F[i, k] * P[k, j]
        if i < 3:
            for k in range(9, 12):
                for j in range(12):
                    rows[i, j] += F[i, k] * P[k, j]
    for i in range(6):
        x[i] = moved[i]
        for j in range(6, 12):
            P[i, j] = P[j, i] = rows[i, j]
    for i in range(6):
        for j in range(i, 6):
            first = 0 if j < 3 else 3
            value = 0.0
            for k in range(first, first + 3):
                value += rows[i, k] * F[j, k]
            if j < 3:
                for k in range(9, 12):
                    value += rows[i, k] * F[j, k]
            P[i, j] = P[j, i] = value
    for axis in range(3):
        P[axis, axis] += (GRAVITY * gyro_std * dt) ** 2
        P[3 + axis, 3 + axis] += acceleration_std**2 * -math.expm1(-2.0 * dt / acceleration_time)
        P[9 + axis, 9 + axis] += bias_walk**2 * dt


@kernel("V M V f8")
def correct_gravity(x: FloatArray, P: FloatArray, specific_force: FloatArray, noise_variance: float) -> None:
    """Use an accelerometer reading (3,) = a - g + b_a, in place; then restore the length of gravity.

    Impacts are not gated out: gravity is the mean of the specific force only if all its peaks count.
    """
    measured, S, innovation = np.empty((3, 12)), np.empty((3, 3)), np.empty(3)
    for i in range(3):
        innovation[i] = specific_force[i] - (x[3 + i] - x[i] + x[6 + i])
        for j in range(12):
            measured[i, j] = P[3 + i, j] - P[i, j] + P[6 + i, j]
    for i in range(3):
        for j in range(3):
            S[i, j] = measured[i, 3 + j] - measured[i, j] + measured[i, 6 + j]
        S[i, i] += noise_variance + _LEAST_VARIANCE
    gain, _ = solve_positive(S, measured)  # transposed
    for a in range(3):
        for i in range(12):
            x[i] += gain[a, i] * innovation[a]
            for j in range(12):
                P[i, j] -= gain[a, i] * measured[a, j]
    length = math.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)
    for i in range(3):
        x[i] *= GRAVITY / length


@kernel("M V M")
def tilt_covariance(rotation: FloatArray, gravity: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariance (2, 2) [rad^2] of the tilt about the horizontal world axes, ``d theta = g x d g / |g|^2``."""
    turn = product(rotation, skew(gravity)) / GRAVITY**2
    return product(product(turn, covariance), turn.T)[:2, :2].copy()


@kernel("V")
def roll_pitch(gravity: FloatArray) -> tuple[float, float]:
    """Roll and pitch of the base [rad] from gravity in base axes: ``g = R^T [0, 0, -9.81]``."""
    x, y, z = -gravity[0], -gravity[1], -gravity[2]
    return math.atan2(y, z), math.atan2(-x, math.hypot(y, z))


@kernel
def predict_quaternion_covariance(
    P: FloatArray, yaw_with_bias: FloatArray, gyro_std: float, bias_variance: float, dt: float
) -> None:
    """Grow the covariance (3, 3) of the quaternion's error by ``dt`` [s], in place."""
    for axis in range(3):
        P[axis, axis] += (gyro_std * dt) ** 2 + bias_variance * dt * dt
    P[2, 2] += 2.0 * dt * yaw_with_bias[0]
    yaw_with_bias[0] += dt * bias_variance


@kernel
def correct_quaternion(q: FloatArray, P: FloatArray, measured: FloatArray, covariance: FloatArray) -> None:
    """Use a measured quaternion (4,) and the covariance (2, 2) of its tilt, in place; no yaw is in it."""
    innovation = rotation_between(q, measured)
    rows, S, turn = P[:2].copy(), np.empty((2, 2)), np.zeros(3)
    for i in range(2):
        for j in range(2):
            S[i, j] = rows[i, j] + covariance[i, j]
        S[i, i] += _LEAST_VARIANCE
    gain, _ = solve_positive(S, rows)  # transposed
    for a in range(2):
        for i in range(3):
            turn[i] += gain[a, i] * innovation[a]
            for j in range(3):
                P[i, j] -= gain[a, i] * rows[a, j]
    product = quaternion_product(quaternion_exp(turn), q)
    length = math.sqrt(product[0] ** 2 + product[1] ** 2 + product[2] ** 2 + product[3] ** 2)
    for i in range(4):
        q[i] = product[i] / length


@kernel("V M V M V V V f8 f8 M")
def attitude_output(
    x: FloatArray,
    P: FloatArray,
    q: FloatArray,
    P_q: FloatArray,
    angular_acceleration: FloatArray,
    gyro: FloatArray,
    specific_force: FloatArray,
    gyro_std: float,
    silent_variance: float,
    out: FloatArray,
) -> bool:
    """Write the fields of :class:`Attitude` into the rows of ``out`` (12, 3), in the order of :func:`_attitude`.

    Returns
    -------
    False where the state has become useless: not finite, or no covariance
    """
    rotation = matrix_from_quaternion(q)
    tilt = tilt_covariance(rotation, x[:3], P)
    for i in range(3):
        for j in range(3):
            out[i, j] = rotation[i, j]
            out[3 + i, j] = P_q[i, j] + (tilt[i, j] if i < 2 and j < 2 else 0.0)
            out[6 + i, j] = P[9 + i, 9 + j]
        out[3 + i, i] += silent_variance
        out[6 + i, i] += gyro_std**2
        out[9, i] = gyro[i] - x[9 + i]
        out[10, i] = angular_acceleration[i]
        out[11, i] = specific_force[i]
    return bounded(x) and is_covariance(P) and is_covariance(P_q) and bounded(out)


@kernel("V M V M V V V M V V f8 f8 f8 f8 f8 f8 f8 M")
def advance_attitude(
    x: FloatArray,
    P: FloatArray,
    q: FloatArray,
    P_q: FloatArray,
    yaw_with_bias: FloatArray,
    angular_acceleration: FloatArray,
    last_gyro: FloatArray,
    imu_to_base: FloatArray,
    angular_velocity: FloatArray,
    accelerometer: FloatArray,
    dt: float,
    acceleration_time: float,
    acceleration_std: float,
    reading_variance: float,
    gyro_std: float,
    bias_walk: float,
    cutoff: float,
    out: FloatArray,
) -> bool:
    """Use one IMU sample in IMU axes: both filters in place, the differentiated gyroscope behind its low-pass.

    Returns
    -------
    That of :func:`attitude_output`
    """
    gyro, specific_force = turned(imu_to_base, angular_velocity), turned(imu_to_base, accelerometer)
    mean_gyro, rate = np.empty(3), np.empty(3)
    for i in range(3):
        mean_gyro[i] = 0.5 * (gyro[i] + last_gyro[i])
    predict_gravity(x, P, mean_gyro, dt, acceleration_time, acceleration_std, gyro_std, bias_walk)
    correct_gravity(x, P, specific_force, reading_variance)
    for i in range(3):
        rate[i] = dt * (mean_gyro[i] - x[9 + i])
    product = quaternion_product(q, quaternion_exp(rate))
    for i in range(4):
        q[i] = product[i]
    predict_quaternion_covariance(P_q, yaw_with_bias, gyro_std, max(P[9, 9], P[10, 10], P[11, 11]), dt)
    roll, pitch = roll_pitch(x[:3])
    measured = quaternion_from_rpy(roll, pitch, yaw_from_quaternion(q))
    correct_quaternion(q, P_q, measured, tilt_covariance(matrix_from_quaternion(q), x[:3], P))
    part = -math.expm1(-2.0 * math.pi * cutoff * dt)
    for i in range(3):
        angular_acceleration[i] += part * ((gyro[i] - last_gyro[i]) / dt - angular_acceleration[i])
        last_gyro[i] = gyro[i]
    return attitude_output(x, P, q, P_q, angular_acceleration, gyro, specific_force, gyro_std, 0.0, out)


def _attitude(sound: bool, out: FloatArray) -> Attitude:
    if not sound:
        raise FloatingPointError("the state of its filter was not finite")
    return Attitude(out[0:3], out[9], out[10], out[11], out[3:6], out[6:9])


class AttitudeEstimator:
    """The attitude stage: gyroscope and accelerometer in, attitude and base rates out.

    The gravity filter has the state ``x = [g (3), a (3), b_a (3), b_w (3)]`` in base axes: gravity, linear acceleration
    of the trunk as a first-order Gauss-Markov process, biases of accelerometer and gyroscope. The quaternion filter has
    the covariance of the error ``theta`` in ``R_true = exp(theta) R``, world axes, since a quaternion has four
    numbers but three degrees of freedom; between samples only the gyroscope adds to that error.

    Parameters
    ----------
    config, noise : tuning and sensor noise
    rotation_imu_to_base : (3, 3) A_I^b of eq. 6

    Attributes
    ----------
    gravity_state, gravity_covariance : (12,), (12, 12) of the gravity filter
    quaternion, quaternion_covariance : (4,) base to world ``(w, x, y, z)``, (3, 3) [rad^2]
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise, rotation_imu_to_base: FloatArray) -> None:
        first_std = math.hypot(config.acceleration_std, config.vibration_std)
        self._first_stds = first_std, config.acceleration_std, config.acceleration_bias_std, config.gyro_bias_std
        self._gyro_std = noise.angular_velocity_std
        self._reading_variance = noise.specific_force_std**2 + config.vibration_std**2
        self._imu_to_base = rotation_imu_to_base
        self._tuning = (
            ACCELERATION_TIME,
            config.acceleration_std,
            self._reading_variance,
            self._gyro_std,
            config.gyro_bias_walk,
            config.angular_acceleration_cutoff,
        )
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample; yaw is zero there."""
        self._running = False
        self._silent_for = 0.0
        self.gravity_state, self.gravity_covariance = np.zeros(12), np.zeros((12, 12))
        self.quaternion, self.quaternion_covariance = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros((3, 3))
        self._yaw_with_bias = np.zeros(1)
        self._angular_acceleration, self._last_gyro = np.zeros(3), np.zeros(3)

    @property
    def gyro_bias(self) -> FloatArray:
        """Bias of the gyroscope, base axes (3,) [rad/s]."""
        return self.gravity_state[9:]

    def step(self, angular_velocity: FloatArray, specific_force: FloatArray, dt: float, fresh: bool = True) -> Attitude:
        """Use one IMU sample (IMU axes) and return the attitude of the base.

        The readings are turned to base axes first, the inverse of eq. 6: so the yaw at the start is zero
        for the base, and no mounting of the IMU brings the roll and pitch angles near their singularity.

        While the IMU is silent (``fresh`` False) the last attitude stays, ever less certain. With the first new reading
        the tilt is found anew, and the yaw is the last known.

        Raises
        ------
        FloatingPointError
            When the state is no longer finite; :meth:`reset` mends it.
        """
        if fresh and self._running and self._silent_for == 0.0 and dt > 0.0:
            out = np.empty((12, 3))
            sound = advance_attitude(
                self.gravity_state,
                self.gravity_covariance,
                self.quaternion,
                self.quaternion_covariance,
                self._yaw_with_bias,
                self._angular_acceleration,
                self._last_gyro,
                self._imu_to_base,
                angular_velocity,
                specific_force,
                dt,
                *self._tuning,
                out,
            )
            return _attitude(sound, out)
        gyro, specific_force = self._imu_to_base @ angular_velocity, self._imu_to_base @ specific_force
        if not fresh:
            self._silent_for += dt
            self._angular_acceleration[:] = 0.0
        elif not self._running:
            self._start(gyro, specific_force, np.zeros(3), 0.0, 0.0)
        elif self._silent_for > 0.0:
            variance = float(self.quaternion_covariance[2, 2]) + self._silent_variance()
            self._start(gyro, specific_force, self.gyro_bias.copy(), yaw_from_quaternion(self.quaternion), variance)
        return self._output(gyro, specific_force)

    def _start(
        self, gyro: FloatArray, specific_force: FloatArray, gyro_bias: FloatArray, yaw: float, yaw_variance: float
    ) -> None:
        """Split the first reading by the prior-weighted pseudo-inverse; the tilt follows from gravity."""
        length = float(np.linalg.norm(specific_force))
        up = specific_force / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])
        self.gravity_state = np.concatenate((-GRAVITY * up, np.zeros(6), gyro_bias))
        self.gravity_covariance = np.diag(np.maximum(np.repeat(self._first_stds, 3) ** 2, _LEAST_VARIANCE))
        correct_gravity(self.gravity_state, self.gravity_covariance, specific_force, self._reading_variance)
        gravity = self.gravity_state[:3]
        self.quaternion = quaternion_from_rpy(*roll_pitch(gravity), yaw)
        self.quaternion_covariance = np.diag([0.0, 0.0, yaw_variance])
        rotation = matrix_from_quaternion(self.quaternion)
        self.quaternion_covariance[:2, :2] = tilt_covariance(rotation, gravity, self.gravity_covariance)
        self._yaw_with_bias[:] = 0.0
        self._angular_acceleration[:] = 0.0
        self._last_gyro[:] = gyro
        self._running, self._silent_for = True, 0.0

    def _silent_variance(self) -> float:
        return (IMU_GAP_RATE * self._silent_for) ** 2

    def _output(self, gyro: FloatArray, specific_force: FloatArray) -> Attitude:
        out = np.empty((12, 3))
        sound = attitude_output(
            self.gravity_state,
            self.gravity_covariance,
            self.quaternion,
            self.quaternion_covariance,
            self._angular_acceleration,
            gyro,
            specific_force,
            self._gyro_std,
            self._silent_variance(),
            out,
        )
        if not self._running:
            out[3:6] = _UNKNOWN_ANGLE_VARIANCE * np.eye(3)
        return _attitude(sound, out)
