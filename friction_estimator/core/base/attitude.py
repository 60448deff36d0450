"""Attitude of the trunk from the IMU: two filters that feed each other (Hashlamon & Erbatur 2014, section 3, fig. 2).

    accelerometer ─► gravity Kalman filter ─► roll, pitch ─► "measured quaternion" ─► quaternion EKF ─► attitude
                       ▲       │                                 ▲        gyroscope ─┘ ▲    │
                   gyroscope   └──────────────── gyro bias ──────┼─────────────────────┘    │
                                                                 └────────── yaw ───────────┘

The paper refers to its reference 61 for the equations; those below are ours, and add to its description: the gyro bias
is a state of the gravity filter, the accelerometer carries vibration beside the linear acceleration, and the gravity
estimate keeps its known length. The tilt of the EKF cannot be better known than that of the gravity filter, since both
rest on the same gyroscope: the published covariance is the sum of both.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.base.rotations import (
    matrix_from_quaternion,
    quaternion_exp,
    quaternion_from_rpy,
    quaternion_right_matrix,
    rotation_between,
    skew,
    yaw_from_quaternion,
)
from friction_estimator.core.config import AttitudeConfig, SensorNoise
from friction_estimator.core.linear_algebra import kalman_gain
from friction_estimator.core.types import GRAVITY, Attitude, FloatArray

_I2, _I3 = np.eye(2), np.eye(3)
_I12 = np.eye(12)
_UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3.0
"""Of an angle that may be any [rad^2]."""


class GravityFilter:
    """Kalman filter of gravity, linear acceleration and the biases of both sensors, all in base axes.

    State ``x = [g (3), a (3), b_a (3), b_w (3)]``; the accelerometer reads ``f = a - g + b_a`` and vibration. Between
    samples ``g`` turns with the gyroscope less its bias ``b_w``, ``a`` is a first-order Gauss-Markov process, and the
    biases stay.
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise) -> None:
        self._config = config
        self._noise = noise
        self._measurement = np.hstack((-_I3, _I3, _I3, np.zeros((3, 3))))
        self.state = np.zeros(12)
        self.covariance = np.zeros((12, 12))

    def start(self, specific_force: FloatArray, gyro_bias: FloatArray) -> None:
        """Split the first reading by the prior-weighted pseudo-inverse, gravity having its known length."""
        config = self._config
        length = float(np.linalg.norm(specific_force))
        up = specific_force / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])
        stds = (
            math.hypot(config.acceleration_std, config.vibration_std),
            config.acceleration_std,
            config.acceleration_bias_std,
            config.gyro_bias_std,
        )
        self.state = np.concatenate((-GRAVITY * up, np.zeros(6), gyro_bias))
        self.covariance = np.diag(np.maximum(np.repeat(stds, 3) ** 2, 1e-12))
        self.correct(specific_force)

    def transition(self, gyro: FloatArray, dt: float) -> FloatArray:
        """Jacobian of the prediction at the present state, (12, 12)."""
        turn = matrix_from_quaternion(quaternion_exp(-dt * (gyro - self.gyro_bias)))
        jacobian = _I12.copy()
        jacobian[:3, :3] = turn
        jacobian[:3, 9:] = -dt * skew(self.gravity)
        jacobian[3:6, 3:6] = math.exp(-dt / self._config.acceleration_time) * turn
        return jacobian

    def predict(self, gyro: FloatArray, dt: float) -> None:
        """Advance by ``dt`` [s] with the gyroscope reading (3,) [rad/s]."""
        config = self._config
        jacobian = self.transition(gyro, dt)
        state = self.state.copy()
        state[:3] = jacobian[:3, :3] @ self.state[:3]
        state[3:6] = jacobian[3:6, 3:6] @ self.state[3:6]
        self.state = state
        covariance = jacobian @ self.covariance @ jacobian.T
        diagonal = covariance.ravel()[::13]
        diagonal[:3] += (GRAVITY * self._noise.angular_velocity_std * dt) ** 2
        diagonal[3:6] += config.acceleration_std**2 * -math.expm1(-2.0 * dt / config.acceleration_time)
        diagonal[9:] += config.gyro_bias_walk**2 * dt
        self.covariance = covariance

    def correct(self, specific_force: FloatArray) -> None:
        """Use one accelerometer reading (3,) [m/s^2], then restore the length of gravity."""
        measured = self._measurement @ self.covariance
        innovation_covariance = measured @ self._measurement.T
        # Impacts are not gated out: gravity is the mean of the specific force only if all its peaks count.
        innovation_covariance.ravel()[::4] += self._noise.specific_force_std**2 + self._config.vibration_std**2 + 1e-12
        gain = kalman_gain(innovation_covariance, measured)
        innovation = specific_force - (self.state[3:6] - self.state[:3] + self.state[6:9])
        self.state = self.state + gain @ innovation
        self.covariance = self.covariance - gain @ measured
        gravity = self.state[:3]
        gravity *= GRAVITY / math.sqrt(float(gravity @ gravity))

    @property
    def gravity(self) -> FloatArray:
        """Gravity in base axes (3,) [m/s^2]."""
        return self.state[:3]

    @property
    def gyro_bias(self) -> FloatArray:
        """Bias of the gyroscope (3,) [rad/s]."""
        return self.state[9:]

    def roll_pitch(self) -> tuple[float, float]:
        """Roll and pitch of the base [rad]: ``g = R^T [0, 0, -9.81]``."""
        x, y, z = (-self.gravity).tolist()
        return math.atan2(y, z), math.atan2(-x, math.hypot(y, z))

    def tilt_covariance(self, rotation: FloatArray) -> FloatArray:
        """Covariance of the tilt about the horizontal world axes, ``d theta = g x d g / |g|^2``, (2, 2) [rad^2]."""
        turn = (rotation @ skew(self.gravity))[:2] / GRAVITY**2
        return np.asarray(turn @ self.covariance[:3, :3] @ turn.T)


class QuaternionFilter:
    """Extended Kalman filter of the quaternion ``(w, x, y, z)``.

    The covariance is that of the error ``theta`` in ``R_true = exp(theta) R``, world axes: a quaternion has four
    numbers but three degrees of freedom. Between samples only the gyroscope adds to the error.

    Attributes
    ----------
    quaternion : (4,) base to world
    covariance : (3, 3) [rad^2]
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise) -> None:
        self._config = config
        self._noise = noise
        self.start(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros((2, 2)))

    def start(self, quaternion: FloatArray, tilt_covariance: FloatArray, yaw_variance: float = 0.0) -> None:
        """Begin at a quaternion (4,); the yaw of the first one is zero by definition."""
        self.quaternion = quaternion
        self.covariance = np.zeros((3, 3))
        self.covariance[:2, :2] = tilt_covariance
        self.covariance[2, 2] = yaw_variance
        self._yaw_with_bias = 0.0

    def predict(self, rate: FloatArray, bias_variance: float, dt: float) -> None:
        """Turn by the bias-free rate (3,) [rad/s] for ``dt`` [s].

        What is left of the bias, of variance ``bias_variance`` [rad^2/s^2], moves the yaw steadily; the tilt is
        corrected before that counts.
        """
        self.quaternion = quaternion_right_matrix(quaternion_exp(dt * rate)) @ self.quaternion
        covariance = self.covariance.copy()
        diagonal = covariance.ravel()[::4]
        diagonal += (self._noise.angular_velocity_std * dt) ** 2 + bias_variance * dt * dt
        diagonal[2] += 2.0 * dt * self._yaw_with_bias
        self._yaw_with_bias += dt * bias_variance
        self.covariance = covariance

    def correct(self, measured: FloatArray, tilt_covariance: FloatArray) -> None:
        """Use a measured quaternion (4,) and the covariance (2, 2) of its tilt; no yaw is in it."""
        innovation = rotation_between(self.quaternion, measured)[:2]
        rows = self.covariance[:2]
        gain = kalman_gain(rows[:, :2] + tilt_covariance + 1e-12 * _I2, rows)
        self.covariance = self.covariance - gain @ rows
        quaternion = quaternion_right_matrix(self.quaternion) @ quaternion_exp(gain @ innovation)
        self.quaternion = quaternion / math.sqrt(float(quaternion @ quaternion))


class AttitudeEstimator:
    """The attitude stage: gyroscope and accelerometer in, attitude and base rates out.

    Parameters
    ----------
    config, noise : tuning and sensor noise
    rotation_imu_to_base : (3, 3) A_I^b of eq. 6
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise, rotation_imu_to_base: FloatArray) -> None:
        self._config = config
        self._noise = noise
        self._imu_to_base = rotation_imu_to_base
        self.gravity_filter = GravityFilter(config, noise)
        self.quaternion_filter = QuaternionFilter(config, noise)
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next sample; yaw is zero there."""
        self._running = False
        self._silent_for = 0.0
        self._angular_acceleration = np.zeros(3)

    def step(self, angular_velocity: FloatArray, specific_force: FloatArray, dt: float, fresh: bool = True) -> Attitude:
        """Use one IMU sample (IMU axes) and return the attitude of the base.

        The readings are turned to base axes first, which is eq. 6 the other way round: so the yaw at the start is zero
        for the base, and no mounting of the IMU brings the roll and pitch angles near their singularity.

        While the IMU is silent (``fresh`` False) the last attitude stays, ever less certain. When it speaks again the
        tilt is found anew, and the yaw is the last known.
        """
        gyro, specific_force = self._imu_to_base @ angular_velocity, self._imu_to_base @ specific_force
        if not fresh:
            self._silent_for += dt
            self._angular_acceleration = np.zeros(3)
        elif not self._running:
            self._start(gyro, specific_force, np.zeros(3), 0.0, 0.0)
        elif self._silent_for > 0.0:
            yaw = yaw_from_quaternion(self.quaternion_filter.quaternion)
            variance = float(self.quaternion_filter.covariance[2, 2]) + self._silent_variance()
            self._start(gyro, specific_force, self.gravity_filter.gyro_bias, yaw, variance)
        elif dt > 0.0:
            self._advance(gyro, specific_force, dt)
        return self._output(gyro, specific_force)

    def _start(
        self, gyro: FloatArray, specific_force: FloatArray, gyro_bias: FloatArray, yaw: float, yaw_variance: float
    ) -> None:
        self.gravity_filter.start(specific_force, gyro_bias)
        quaternion = quaternion_from_rpy(*self.gravity_filter.roll_pitch(), yaw)
        tilt_covariance = self.gravity_filter.tilt_covariance(matrix_from_quaternion(quaternion))
        self.quaternion_filter.start(quaternion, tilt_covariance, yaw_variance)
        self._angular_acceleration = np.zeros(3)
        self._last_gyro = gyro
        self._running, self._silent_for = True, 0.0

    def _silent_variance(self) -> float:
        return (self._config.silent_rate * self._silent_for) ** 2

    def _advance(self, gyro: FloatArray, specific_force: FloatArray, dt: float) -> None:
        gravity_filter, quaternion_filter = self.gravity_filter, self.quaternion_filter
        mean_gyro = 0.5 * (gyro + self._last_gyro)
        gravity_filter.predict(mean_gyro, dt)
        gravity_filter.correct(specific_force)
        bias_variance = float(gravity_filter.covariance.ravel()[::13][9:].max())
        quaternion_filter.predict(mean_gyro - gravity_filter.gyro_bias, bias_variance, dt)
        roll, pitch = gravity_filter.roll_pitch()
        measured = quaternion_from_rpy(roll, pitch, yaw_from_quaternion(quaternion_filter.quaternion))
        rotation = matrix_from_quaternion(quaternion_filter.quaternion)
        quaternion_filter.correct(measured, gravity_filter.tilt_covariance(rotation))
        part = -math.expm1(-2.0 * math.pi * self._config.angular_acceleration_cutoff * dt)
        self._angular_acceleration = self._angular_acceleration + part * (
            (gyro - self._last_gyro) / dt - self._angular_acceleration
        )
        self._last_gyro = gyro

    def _output(self, gyro: FloatArray, specific_force: FloatArray) -> Attitude:
        gravity_filter = self.gravity_filter
        rotation = matrix_from_quaternion(self.quaternion_filter.quaternion)
        if self._running:
            covariance = self.quaternion_filter.covariance.copy()
            covariance[:2, :2] += gravity_filter.tilt_covariance(rotation)
            covariance.ravel()[::4] += self._silent_variance()
        else:
            covariance = _UNKNOWN_ANGLE_VARIANCE * _I3
        rate_covariance = gravity_filter.covariance[9:, 9:] + self._noise.angular_velocity_std**2 * _I3
        return Attitude(
            rotation_base_to_world=rotation,
            angular_velocity=gyro - gravity_filter.gyro_bias,
            angular_acceleration=self._angular_acceleration,
            specific_force=specific_force,
            covariance=covariance,
            rate_covariance=rate_covariance,
        )
