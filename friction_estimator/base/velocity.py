"""Velocity of the IMU in the world: the accelerometer between the samples, the standing legs in the long run.

Legs that are not rigid, velocities that are not the slope of the positions and noisy encoders all give a velocity by
the legs that oscillates, which no datasheet mentions. An accelerometer has no such errors, but drifts. So the noise
of the legs is measured: their velocity is compared with what the accelerometer has predicted since the last sample, and
errors that last longer than a sample weigh accordingly. That takes time to learn; a standing sole that seems to turn
shows at once that it rolls, or that joints are wrong.

What the accelerometer lacks in the long run is the error of the tilt, which lets gravity appear along the ground.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.base.attitude import ACCELERATION_TIME
from friction_estimator.compiled import kernel
from friction_estimator.config import Config
from friction_estimator.linear_algebra import Vector, cross, matrix_from_quaternion, product, quaternion_exp, turned
from friction_estimator.types import GRAVITY, BoolArray, FloatArray

ACCELERATION_ERROR_TIME = 1.0
"""Correlation time of the tilt error, seen as an error of the acceleration [s]: about two steps."""
_FIRST_VARIANCE = 10.0
"""Variance of the velocity before the first sample [m^2/s^2]: nothing is known."""
_FIRST_SQUARE = 1e-4
"""Mean squared innovation before the first sample [m^2/s^2]."""
_NOISE_TIME = 1.0
"""Time over which the noise of the legs' velocity is measured [s]: about two steps."""
_TURNING_TIME = 0.1
"""A leg whose standing sole has seemed to turn stays uncertain for this long [s]."""
_LEVEL_TIME = 0.02
"""Time over which the tilt by accelerometer and legs is averaged [s]: longer than the vibration of an impact."""
_LEAST_PART = 0.05
"""Part of the innovation's variance that always counts as noise of the legs: less cannot be separated from the
prediction."""
_LONGEST = 0.98
"""Largest correlation of successive innovations."""
_TINY = 1e-300
"""Denominators below this are zero."""

# Rows of the state (12, 3) of :class:`InertialVelocity`, one column a world axis
VELOCITY, VARIANCE, _ERROR, _COVARIANCE, _ERROR_VARIANCE, _PRIOR_ERROR_VARIANCE = range(6)
_ACCELERATION, _TURNING, _SQUARE, _PRODUCT, _INNOVATION, _LEVEL = range(6, 12)


@kernel
def _times(J: FloatArray, first: int, v: FloatArray) -> Vector:
    """Product of three rows of a Jacobian (6, nv) with a velocity (nv,): a call of BLAS costs more."""
    x, y, z = 0.0, 0.0, 0.0
    for j in range(v.size):
        x += J[first, j] * v[j]
        y += J[first + 1, j] * v[j]
        z += J[first + 2, j] * v[j]
    return x, y, z


@kernel
def imu_velocity_by_legs(
    load: FloatArray,
    standing: BoolArray,
    rotation_base_to_world: FloatArray,
    foot_jacobian: FloatArray,
    foot_rotation_to_base: FloatArray,
    generalised_velocity: FloatArray,
) -> Vector:
    """Velocity of the IMU origin that keeps the standing soles at rest, weighted by load, world axes [m/s].

    ``generalised_velocity`` has the IMU at rest: in the world the IMU moves against the motion of a standing sole.

    Parameters
    ----------
    load : (k,) normal forces, positive in sum over the standing feet
    standing : (k,), at least one
    """
    total, x, y, z = 0.0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            part = load[foot]
            total += part
            sole = turned(foot_rotation_to_base[foot], _times(foot_jacobian[foot], 0, generalised_velocity))
            x, y, z = x - part * sole[0], y - part * sole[1], z - part * sole[2]
    return turned(rotation_base_to_world, (x / total, y / total, z / total))


@kernel
def imu_velocity_by_turning(
    load: FloatArray,
    standing: BoolArray,
    rotation_base_to_world: FloatArray,
    foot_jacobian: FloatArray,
    foot_rotation_to_base: FloatArray,
    foot_position_in_base: FloatArray,
    generalised_velocity: FloatArray,
    imu: FloatArray,
) -> Vector:
    """Mean square of the velocity that turning soles may hide from the legs, world axes [m^2/s^2].

    A standing sole should not turn. What it seems to turn by, ``w``, it rolls, or some joint of its leg is measured
    wrong: the IMU is then faster than the legs show by ``w`` times a lever of at most the leg,
    ``w x (r_imu - r_sole)``.

    Parameters
    ----------
    load, standing : as in :func:`imu_velocity_by_legs`
    imu : (3,) position of the IMU in the base [m]
    """
    total, x, y, z = 0.0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            part, sole = load[foot], foot_position_in_base[foot]
            total += part
            turning = turned(foot_rotation_to_base[foot], _times(foot_jacobian[foot], 3, generalised_velocity))
            lever = imu[0] - sole[0], imu[1] - sole[1], imu[2] - sole[2]
            hidden = turned(rotation_base_to_world, cross(turning, lever))
            x, y, z = x + part * hidden[0] ** 2, y + part * hidden[1] ** 2, z + part * hidden[2] ** 2
    return x / total, y / total, z / total


@kernel
def predict_velocity(
    s: FloatArray,
    accelerated: BoolArray,
    acceleration: Vector,
    fresh: bool,
    error_variance: Vector,
    dt: float,
    tuning: FloatArray,
) -> None:
    """Advance the state (12, 3) of :class:`InertialVelocity` by ``dt`` [s], in place.

    Parameters
    ----------
    accelerated : (1,) True where ``s`` holds the acceleration of the last sample
    acceleration : of the IMU origin, world axes, now [m/s^2]; not read while the IMU is silent, ``fresh`` False
    error_variance : of its lasting error [m^2/s^4]
    """
    white_variance, error_time, silent_std, silent_time = tuning[0], tuning[1], tuning[2], tuning[3]
    if not fresh:
        for i in range(3):
            s[VARIANCE, i] += 2.0 * silent_std * silent_std * silent_time * dt
            s[_COVARIANCE, i] = 0.0
        accelerated[0] = False
        return
    if not accelerated[0]:  # the attitude has been found anew
        for row in (_ERROR, _COVARIANCE, _ERROR_VARIANCE, _PRIOR_ERROR_VARIANCE, _LEVEL):
            for i in range(3):
                s[row, i] = 0.0
    keep = math.exp(-dt / error_time)
    for i in range(3):
        before = s[_ACCELERATION, i] if accelerated[0] else acceleration[i]
        s[VELOCITY, i] += dt * (0.5 * (before + acceleration[i]) + s[_ERROR, i])
        known = s[_ERROR_VARIANCE, i]
        s[VARIANCE, i] += 2.0 * dt * s[_COVARIANCE, i] + dt * dt * (known + white_variance)
        s[_COVARIANCE, i] = keep * (s[_COVARIANCE, i] + dt * known)
        grown = (1.0 - keep * keep) * error_variance[i]
        s[_ERROR_VARIANCE, i] = keep * keep * known + grown
        s[_PRIOR_ERROR_VARIANCE, i] = keep * keep * s[_PRIOR_ERROR_VARIANCE, i] + grown
        s[_ERROR, i] *= keep
        s[_ACCELERATION, i] = acceleration[i]
    accelerated[0] = True


@kernel
def correct_velocity(s: FloatArray, velocity: Vector, dt: float, least_noise: FloatArray, tuning: FloatArray) -> None:
    """Use the velocity by the legs [m/s], and learn how noisy it is, at least ``least_noise`` (3,) [m^2/s^2]."""
    new = -math.expm1(-dt / tuning[4])
    for i in range(3):
        innovation = velocity[i] - s[VELOCITY, i]
        s[_SQUARE, i] += new * (innovation * innovation - s[_SQUARE, i])
        s[_PRODUCT, i] += new * (innovation * s[_INNOVATION, i] - s[_PRODUCT, i])
        s[_INNOVATION, i] = innovation
        rho = min(max(s[_PRODUCT, i] / max(s[_SQUARE, i], _TINY), 0.0), _LONGEST)
        white = max(s[_SQUARE, i] - s[VARIANCE, i], _LEAST_PART * s[_SQUARE, i])
        noise = max(white * (1.0 + rho) / (1.0 - rho) + 1e-12, least_noise[i])
        spread = s[VARIANCE, i] + noise
        gain, error_gain = s[VARIANCE, i] / spread, s[_COVARIANCE, i] / spread
        s[VELOCITY, i] += gain * innovation
        s[_ERROR, i] += error_gain * innovation
        s[_ERROR_VARIANCE, i] -= error_gain * s[_COVARIANCE, i]
        s[_COVARIANCE, i] *= 1.0 - gain
        s[VARIANCE, i] *= 1.0 - gain


@kernel
def step_velocity(
    s: FloatArray,
    accelerated: BoolArray,
    tuning: FloatArray,
    rotation: FloatArray,
    specific_force: FloatArray,
    covariance: FloatArray,
    standing: BoolArray,
    normal_force: FloatArray,
    foot_jacobian: FloatArray,
    foot_rotation_to_base: FloatArray,
    foot_position_in_base: FloatArray,
    generalised_velocity: FloatArray,
    dt: float,
    fresh: bool,
    imu: FloatArray,
) -> None:
    """Advance the state of :class:`InertialVelocity` by one sample, in place.

    Parameters
    ----------
    rotation, specific_force, covariance : (3, 3), (3,), (3, 3) of the attitude
    standing, normal_force : (k,), (k,) [N]
    imu : (3,) its position in the base [m]
    """
    turning_time, level_time, bias_variance = tuning[5], tuning[6], tuning[7]
    if dt > 0.0:
        x, y, z = turned(rotation, specific_force)
        error_variance = (  # a tilt about y lets gravity appear along x, one about x along y
            bias_variance + GRAVITY**2 * covariance[1, 1],
            bias_variance + GRAVITY**2 * covariance[0, 0],
            bias_variance,
        )
        predict_velocity(s, accelerated, (x, y, z - GRAVITY), fresh, error_variance, dt, tuning)
    load, total = np.maximum(normal_force, 0.0), 0.0
    for foot in range(standing.size):
        if standing[foot]:
            total += load[foot]
    if total > 0.0:
        turning = imu_velocity_by_turning(
            load, standing, rotation, foot_jacobian, foot_rotation_to_base, foot_position_in_base, generalised_velocity,
            imu,
        )  # fmt: skip
        for i in range(3):
            s[_TURNING, i] = max(turning[i], s[_TURNING, i] * math.exp(-dt / turning_time))
        legs = imu_velocity_by_legs(
            load, standing, rotation, foot_jacobian, foot_rotation_to_base, generalised_velocity
        )
        correct_velocity(s, legs, dt, s[_TURNING], tuning)
    for i in range(2):
        s[_LEVEL, i] -= math.expm1(-dt / level_time) * (s[_ERROR, i] - s[_LEVEL, i])


@kernel
def _levelling(s: FloatArray, along: int, tilt_variance: float, bias_variance: float) -> tuple[float, float]:
    """Tilt [rad] that explains the error along an axis, and the factor by which its standard deviation falls."""
    gravity = GRAVITY**2 * tilt_variance
    part = gravity / max(gravity + bias_variance, _TINY)
    prior = s[_PRIOR_ERROR_VARIANCE, along]
    learned = (prior - s[_ERROR_VARIANCE, along]) / max(prior, _TINY)
    return part * s[_LEVEL, along] / GRAVITY, math.sqrt(1.0 - part * min(max(learned, 0.0), 1.0))


@kernel
def level_attitude(
    s: FloatArray, rotation: FloatArray, covariance: FloatArray, tuning: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rotation and covariance (3, 3) without the tilt that explains the error of the acceleration, ``e = g x tilt``.

    The tilt's share of the error is its share of the variance; the covariance falls as that of the error. The error is
    averaged over ``_LEVEL_TIME``, since noise of the legs must not shake the trunk.
    """
    by_x, scale_y = _levelling(s, 0, covariance[1, 1], tuning[7])  # an error along x is a tilt about y,
    by_y, scale_x = _levelling(s, 1, covariance[0, 0], tuning[7])  # one along y a tilt about x
    scale, levelled = (scale_x, scale_y, 1.0), np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            levelled[i, j] = scale[i] * scale[j] * covariance[i, j]
    return product(matrix_from_quaternion(quaternion_exp((-by_y, by_x, 0.0))), rotation), levelled


class InertialVelocity:
    """Kalman filter of ``x = [v, e]`` on each world axis, with measured noise of the legs.

    ``dv/dt = a + e`` with the measured acceleration ``a``, of which white noise and the Gauss-Markov error ``e`` (tilt
    error, accelerometer bias) are wrong. The legs see ``v`` with the variance

        R = max(<r^2> - P_vv, <r^2> / 20) (1 + rho) / (1 - rho)

    of innovations ``r``: their mean square less that of the prediction, as in eqs. 21-23 but over a time and not over
    samples; ``rho`` is the correlation of successive innovations, since errors that last are not averaged out. It is
    at least what :func:`imu_velocity_by_turning` gave within ``_TURNING_TIME``.

    Parameters
    ----------
    config : ``base_state``, ``attitude`` and ``sensors``

    Attributes
    ----------
    state : (12, 3) of the three axes, rows as named at the top of this file
    accelerated : (1,) True where the state holds the acceleration of the last sample
    sole_speed_variance : how fast standing soles creep, which lasts and shows in no innovation [m^2/s^2]
    tuning : parameters of the kernels
    """

    def __init__(self, config: Config) -> None:
        base, attitude, sensors = config.base_state, config.attitude, config.sensors
        self.sole_speed_variance = base.sole_speed_std**2
        bias_variance = attitude.acceleration_bias_std**2 + sensors.specific_force_bias_std**2
        self._first_variance, self._first_square = _FIRST_VARIANCE, _FIRST_SQUARE
        self.tuning = np.array(
            [
                attitude.vibration_std**2 + sensors.specific_force_std**2,
                ACCELERATION_ERROR_TIME,
                attitude.acceleration_std,
                ACCELERATION_TIME,
                _NOISE_TIME,
                _TURNING_TIME,
                _LEVEL_TIME,
                bias_variance,
            ]
        )
        self.reset()

    def reset(self) -> None:
        """Begin anew: unknown velocity."""
        self.state = np.zeros((12, 3))
        self.state[VARIANCE], self.state[_SQUARE] = self._first_variance, self._first_square
        self.accelerated: BoolArray = np.zeros(1, dtype=bool)
