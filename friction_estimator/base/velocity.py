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
from typing import NamedTuple

import numpy as np

from friction_estimator.base.attitude import ACCELERATION_BIAS_STD, ACCELERATION_TIME, VIBRATION_STD
from friction_estimator.base.soles import CorrectedAttitude, Support
from friction_estimator.config import Config
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import (
    Triple,
    cross,
    is_bounded,
    matmul_3x3,
    matrix_from_quaternion,
    matvec_3x3,
    quaternion_exp,
)
from friction_estimator.types import GRAVITY, BoolArray, Dynamics, Flags, FloatArray, Vector

ACCELERATION_ERROR_TIME = 1.0
"""Correlation time of the tilt error, seen as an error of the acceleration [s]: about two steps."""
SOLE_SPEED_STD = 0.003
"""Standard deviation of the speed at which standing soles creep, which lasts and shows in no innovation [m/s]."""
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
_MIN_NOISE_SHARE = 0.05
"""Part of the innovation's variance that always counts as noise of the legs: less cannot be separated from the
prediction."""
_MAX_CORRELATION = 0.98
"""Largest correlation of successive innovations."""
_MIN_VARIANCE = 1e-12
"""Added to the variance of the legs' velocity, so that it is never zero [m^2/s^2]."""
_MIN_DENOMINATOR = 1e-300
"""Denominators below this are zero."""


@record
class InertialVelocity(NamedTuple):
    """Kalman filter of ``x = [v, e]`` on each world axis, with measured noise of the legs.

    ``dv/dt = a + e`` with the measured acceleration ``a``, of which white noise and the Gauss-Markov error ``e`` (tilt
    error, accelerometer bias) are wrong. The legs see ``v`` with the variance

        R = max(<r^2> - P_vv, <r^2> / 20) (1 + rho) / (1 - rho)

    of innovations ``r``: their mean square less that of the prediction, as in Hashlamon & Erbatur 2014, eqs. 21-23,
    but over a time and not over samples; ``rho`` is the correlation of successive innovations, since errors that last
    are not averaged out. It is at least what :func:`hidden_velocity_square` gave within ``_TURNING_TIME``.
    """

    # (3,) v, P_vv, e, P_ve, P_ee
    velocity: Vector
    variance: Vector
    error: Vector
    velocity_error_covariance: Vector
    error_variance: Vector
    prior_error_variance: Vector  # (3,) P_ee without the legs
    acceleration: Vector  # (3,) of the last sample [m/s^2]
    turning: Vector  # (3,) mean squared velocity that turning soles may hide [m^2/s^2]
    # (3,) <r^2>, <r r_before>, r
    mean_square: Vector
    lagged_square: Vector
    innovation: Vector
    level: Vector  # (3,) the error e, averaged
    accelerated: Flags  # (1,) True where `acceleration` is that of the last sample
    # of the acceleration, and while the IMU is silent
    white_variance: float
    silent_std: float
    bias_variance: float  # of the accelerometer [m^2/s^4]


def new_velocity(config: Config) -> InertialVelocity:
    """State of the velocity filter before the first sample: the velocity is unknown."""
    sensors = config.sensors
    constants = (
        VIBRATION_STD**2 + sensors.specific_force_std**2,
        config.attitude.acceleration_std,
        ACCELERATION_BIAS_STD**2 + sensors.specific_force_bias_std**2,
    )
    state = InertialVelocity._make((*np.zeros((12, 3)), np.zeros(1, dtype=bool), *constants))
    state.variance[:], state.mean_square[:] = _FIRST_VARIANCE, _FIRST_SQUARE
    return state


@kernel
def velocity_is_bounded(state: InertialVelocity) -> bool:
    """Whether all numbers of the state are finite and plausible."""
    is_valid = True
    for values in (
        state.velocity, state.variance, state.error, state.velocity_error_covariance, state.error_variance,
        state.prior_error_variance, state.acceleration, state.turning, state.mean_square, state.lagged_square,
        state.innovation, state.level,
    ):  # fmt: skip
        is_valid = is_valid and is_bounded(values)
    return is_valid


@kernel
def _jacobian_times_velocity(J: FloatArray, first: int, v: FloatArray) -> Triple:
    """Product of three rows of a Jacobian (6, nv) with a velocity (nv,): a call of BLAS costs more."""
    x, y, z = 0.0, 0.0, 0.0
    for j in range(v.size):
        x += J[first, j] * v[j]
        y += J[first + 1, j] * v[j]
        z += J[first + 2, j] * v[j]
    return x, y, z


@kernel
def imu_velocity_by_legs(
    load: FloatArray, standing: BoolArray, rotation_base_to_world: FloatArray, dynamics: Dynamics
) -> Triple:
    """Velocity of the IMU origin that keeps the standing soles at rest, weighted by load, world axes [m/s].

    ``dynamics.velocity`` has the IMU at rest: in the world the IMU moves against the motion of a standing sole.

    Parameters
    ----------
    load : (k,) normal forces, positive in sum over the standing feet
    standing : (k,), at least one
    """
    J, rotation = dynamics.foot_jacobian, dynamics.foot_rotation_to_base
    total, x, y, z = 0.0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            part = load[foot]
            total += part
            sole = matvec_3x3(rotation[foot], _jacobian_times_velocity(J[foot], 0, dynamics.velocity))
            x, y, z = x - part * sole[0], y - part * sole[1], z - part * sole[2]
    return matvec_3x3(rotation_base_to_world, (x / total, y / total, z / total))


@kernel
def hidden_velocity_square(
    load: FloatArray, standing: BoolArray, rotation_base_to_world: FloatArray, dynamics: Dynamics, imu: FloatArray
) -> Triple:
    """Square of the velocity that a turning sole hides from the legs, mean over the soles, world axes [m^2/s^2].

    A standing sole should not turn. What it seems to turn by, ``w``, it rolls, or some joint of its leg is measured
    wrong: the IMU is then faster than the legs show by ``w`` times a lever of at most the leg,
    ``w x (r_imu - r_sole)``.

    Parameters
    ----------
    load, standing : as in :func:`imu_velocity_by_legs`
    imu : (3,) position of the IMU in the base [m]
    """
    J, rotation = dynamics.foot_jacobian, dynamics.foot_rotation_to_base
    total, x, y, z = 0.0, 0.0, 0.0, 0.0
    for foot in range(standing.size):
        if standing[foot]:
            part, sole = load[foot], dynamics.foot_position_in_base[foot]
            total += part
            turning = matvec_3x3(rotation[foot], _jacobian_times_velocity(J[foot], 3, dynamics.velocity))
            lever = imu[0] - sole[0], imu[1] - sole[1], imu[2] - sole[2]
            hidden = matvec_3x3(rotation_base_to_world, cross(turning, lever))
            x, y, z = x + part * hidden[0] ** 2, y + part * hidden[1] ** 2, z + part * hidden[2] ** 2
    return x / total, y / total, z / total


@kernel
def predict_velocity(
    state: InertialVelocity, acceleration: Triple, fresh: bool, error_variance: Triple, dt: float
) -> None:
    """Advance the state by ``dt`` [s], in place.

    Parameters
    ----------
    acceleration : of the IMU origin, world axes, now [m/s^2]; not read while the IMU is silent, ``fresh`` False
    error_variance : of its lasting error [m^2/s^4]
    """
    if not fresh:
        for i in range(3):
            state.variance[i] += 2.0 * state.silent_std * state.silent_std * ACCELERATION_TIME * dt
            state.velocity_error_covariance[i] = 0.0
        state.accelerated[0] = False
        return
    if not state.accelerated[0]:  # the attitude has been found anew
        for values in (
            state.error,
            state.velocity_error_covariance,
            state.error_variance,
            state.prior_error_variance,
            state.level,
        ):
            values[:] = 0.0
    keep = math.exp(-dt / ACCELERATION_ERROR_TIME)
    for i in range(3):
        before = state.acceleration[i] if state.accelerated[0] else acceleration[i]
        state.velocity[i] += dt * (0.5 * (before + acceleration[i]) + state.error[i])
        error_variance_before = state.error_variance[i]
        state.variance[i] += 2.0 * dt * state.velocity_error_covariance[i] + dt * dt * (
            error_variance_before + state.white_variance
        )
        state.velocity_error_covariance[i] = keep * (state.velocity_error_covariance[i] + dt * error_variance_before)
        grown = (1.0 - keep * keep) * error_variance[i]
        state.error_variance[i] = keep * keep * error_variance_before + grown
        state.prior_error_variance[i] = keep * keep * state.prior_error_variance[i] + grown
        state.error[i] *= keep
        state.acceleration[i] = acceleration[i]
    state.accelerated[0] = True


@kernel
def correct_velocity(state: InertialVelocity, velocity: Triple, dt: float, least_noise: FloatArray) -> None:
    """Correct by the velocity from the legs [m/s]; adapt its variance (3,), at least ``least_noise`` [m^2/s^2]."""
    new = -math.expm1(-dt / _NOISE_TIME)
    for i in range(3):
        innovation = velocity[i] - state.velocity[i]
        state.mean_square[i] += new * (innovation * innovation - state.mean_square[i])
        state.lagged_square[i] += new * (innovation * state.innovation[i] - state.lagged_square[i])
        state.innovation[i] = innovation
        rho = min(max(state.lagged_square[i] / max(state.mean_square[i], _MIN_DENOMINATOR), 0.0), _MAX_CORRELATION)
        white = max(state.mean_square[i] - state.variance[i], _MIN_NOISE_SHARE * state.mean_square[i])
        noise = max(white * (1.0 + rho) / (1.0 - rho) + _MIN_VARIANCE, least_noise[i])
        innovation_variance = state.variance[i] + noise
        gain, error_gain = (
            state.variance[i] / innovation_variance,
            state.velocity_error_covariance[i] / innovation_variance,
        )
        state.velocity[i] += gain * innovation
        state.error[i] += error_gain * innovation
        state.error_variance[i] -= error_gain * state.velocity_error_covariance[i]
        state.velocity_error_covariance[i] *= 1.0 - gain
        state.variance[i] *= 1.0 - gain


@kernel
def step_velocity(
    state: InertialVelocity,
    attitude: CorrectedAttitude,
    specific_force: FloatArray,
    support: Support,
    dynamics: Dynamics,
    imu: FloatArray,
    dt: float,
    fresh: bool,
) -> None:
    """Advance the state by one sample, in place.

    Parameters
    ----------
    specific_force : (3,) at the IMU origin, base axes [m/s^2]
    imu : (3,) position of the IMU in the base [m]
    dt, fresh : time since the last sample [s]; False while the IMU is silent
    """
    rotation, tilt_covariance = attitude.rotation_base_to_world, attitude.covariance
    if dt > 0.0:
        x, y, z = matvec_3x3(rotation, specific_force)
        error_variance = (  # a tilt about y lets gravity appear along x, one about x along y
            state.bias_variance + GRAVITY**2 * tilt_covariance[1, 1],
            state.bias_variance + GRAVITY**2 * tilt_covariance[0, 0],
            state.bias_variance,
        )
        predict_velocity(state, (x, y, z - GRAVITY), fresh, error_variance, dt)
    standing, load, total = support.standing, np.maximum(support.normal_force, 0.0), 0.0
    for foot in range(standing.size):
        if standing[foot]:
            total += load[foot]
    if total > 0.0:
        turning = hidden_velocity_square(load, standing, rotation, dynamics, imu)
        for i in range(3):
            state.turning[i] = max(turning[i], state.turning[i] * math.exp(-dt / _TURNING_TIME))
        correct_velocity(state, imu_velocity_by_legs(load, standing, rotation, dynamics), dt, state.turning)
    for i in range(2):
        state.level[i] -= math.expm1(-dt / _LEVEL_TIME) * (state.error[i] - state.level[i])


@kernel
def _tilt_by_axis(state: InertialVelocity, along: int, tilt_variance: float) -> tuple[float, float]:
    """Tilt [rad] that explains the error along an axis, and the factor by which its standard deviation falls."""
    gravity = GRAVITY**2 * tilt_variance
    part = gravity / max(gravity + state.bias_variance, _MIN_DENOMINATOR)
    prior = state.prior_error_variance[along]
    learned = (prior - state.error_variance[along]) / max(prior, _MIN_DENOMINATOR)
    return part * state.level[along] / GRAVITY, math.sqrt(1.0 - part * min(max(learned, 0.0), 1.0))


@kernel
def level_attitude(state: InertialVelocity, attitude: CorrectedAttitude) -> CorrectedAttitude:
    """Attitude without the tilt that explains the error of the acceleration, ``e = g x tilt``.

    The part of the error that is tilt is the part of its variance that is tilt; the covariance falls as that of the
    error. The error is averaged over ``_LEVEL_TIME``, since noise of the legs must not shake the trunk.
    """
    covariance = attitude.covariance
    tilt_y, scale_y = _tilt_by_axis(state, 0, covariance[1, 1])  # an error along x is a tilt about y,
    tilt_x, scale_x = _tilt_by_axis(state, 1, covariance[0, 0])  # one along y a tilt about x
    scale, levelled = (scale_x, scale_y, 1.0), np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            levelled[i, j] = scale[i] * scale[j] * covariance[i, j]
    rotation = matmul_3x3(
        matrix_from_quaternion(quaternion_exp((-tilt_x, tilt_y, 0.0))), attitude.rotation_base_to_world
    )
    return CorrectedAttitude(rotation, attitude.angular_velocity, levelled, attitude.rate_covariance)
