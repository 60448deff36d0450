"""Attitude of the trunk from the IMU: two filters that feed each other (Hashlamon & Erbatur 2014, section 3, fig. 2).

    accelerometer ─► gravity Kalman filter ─► roll, pitch ─► "measured quaternion" ─► quaternion EKF ─► attitude
                          ▲                                      ▲        gyroscope ─┘      │
                          └────────── gyro bias ─────────────────┴── yaw ───────────────────┘

The paper refers to its reference 61 for the equations; those below are ours. Two things are added to the description:
the gyro bias is a state of the EKF, and the gravity estimate keeps its known length.
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
    yaw_from_quaternion,
)
from friction_estimator.core.config import AttitudeConfig, SensorNoise
from friction_estimator.core.linear_algebra import kalman_gain
from friction_estimator.core.types import GRAVITY, Attitude, FloatArray

_I2, _I3 = np.eye(2), np.eye(3)
_I6 = np.eye(6)


class GravityFilter:
    """Linear Kalman filter of gravity, linear acceleration and accelerometer bias, all in the IMU frame.

    State ``x = [g (3), a (3), b (3)]``; the accelerometer reads ``f = a - g + b``. Between samples ``g`` turns with the
    gyroscope, ``a`` is a first-order Gauss-Markov process and ``b`` is constant.
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise) -> None:
        self._config = config
        self._noise = noise
        self._measurement = np.hstack((-_I3, _I3, _I3))
        self.state = np.zeros(9)
        self.covariance = np.zeros((9, 9))

    def start(self, specific_force: FloatArray) -> None:
        """Split the first reading by the prior-weighted pseudo-inverse, gravity having its known length."""
        length = float(np.linalg.norm(specific_force))
        up = specific_force / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])
        prior = np.zeros(9)
        prior[:3] = -GRAVITY * up
        variances = np.repeat(
            [self._config.acceleration_std**2, self._config.acceleration_std**2, self._config.acceleration_bias_std**2],
            3,
        )
        self.covariance = np.diag(np.maximum(variances, 1e-12))
        self.state = prior
        self.correct(specific_force)

    def predict(self, angular_velocity: FloatArray, bias_variance: float, dt: float) -> None:
        """Advance by ``dt`` [s] with the bias-free gyroscope reading (3,) [rad/s].

        What is left of the gyro bias lasts; its variance [rad^2/s^2] enters as white noise of the same power over
        ``acceleration_time``, which keeps the filter listening to the accelerometer.
        """
        config = self._config
        turn = matrix_from_quaternion(quaternion_exp(-dt * angular_velocity))
        decay = math.exp(-dt / config.acceleration_time)
        transition = np.zeros((9, 9))
        transition[:3, :3] = turn
        transition[3:6, 3:6] = decay * turn
        transition[6:, 6:] = _I3
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T
        diagonal = self.covariance.ravel()[::10]
        rate_variance = self._noise.angular_velocity_std**2 * dt + bias_variance * 2.0 * config.acceleration_time
        diagonal[:3] += GRAVITY**2 * rate_variance * dt
        diagonal[3:6] += config.acceleration_std**2 * (1.0 - decay * decay)

    def correct(self, specific_force: FloatArray) -> None:
        """Use one accelerometer reading (3,) [m/s^2], then restore the length of gravity."""
        measured = self._measurement @ self.covariance
        innovation_covariance = measured @ self._measurement.T
        # Impacts are not gated out: gravity is the mean of the specific force only if all its peaks count.
        innovation_covariance.ravel()[::4] += self._noise.specific_force_std**2 + self._config.vibration_std**2 + 1e-12
        innovation = specific_force - (self.state[3:6] - self.state[:3] + self.state[6:])
        gain = kalman_gain(innovation_covariance, measured)
        self.state = self.state + gain @ innovation
        self.covariance = self.covariance - gain @ measured
        gravity = self.state[:3]
        gravity *= GRAVITY / math.sqrt(float(gravity @ gravity))

    @property
    def gravity(self) -> FloatArray:
        """Gravity in the IMU frame (3,) [m/s^2]."""
        return self.state[:3]

    def roll_pitch(self) -> tuple[float, float]:
        """Roll and pitch of the IMU [rad]: ``g_imu = R^T [0, 0, -9.81]``."""
        x, y, z = (-self.gravity).tolist()
        return math.atan2(y, z), math.atan2(-x, math.hypot(y, z))


class QuaternionFilter:
    """Extended Kalman filter of the quaternion ``(w, x, y, z)`` and the gyro bias.

    The covariance is that of the error state ``[theta (3), bias (3)]`` with ``R_true = exp(theta) R``, theta in world
    axes: a quaternion has four numbers but three degrees of freedom, and a 4 x 4 covariance of it is singular.

    Attributes
    ----------
    quaternion : (4,) IMU to world
    gyro_bias : (3,) [rad/s]
    covariance : (6, 6)
    """

    def __init__(self, config: AttitudeConfig, noise: SensorNoise) -> None:
        self._config = config
        self._noise = noise
        self.start(np.array([1.0, 0.0, 0.0, 0.0]), 0.0)

    def start(self, quaternion: FloatArray, angle_std: float) -> None:
        """Begin at a quaternion (4,) whose tilt is known to ``angle_std`` [rad]; yaw is zero by definition."""
        self.quaternion = quaternion
        self.gyro_bias = np.zeros(3)
        self.covariance = np.diag([angle_std**2] * 2 + [0.0] + [self._config.gyro_bias_std**2] * 3)

    def transition(self, dt: float) -> FloatArray:
        """Jacobian of the error state over one prediction, (6, 6)."""
        jacobian = _I6.copy()
        jacobian[:3, 3:] = -dt * matrix_from_quaternion(self.quaternion)
        return jacobian

    def predict(self, gyro: FloatArray, dt: float) -> None:
        """Turn by the gyroscope reading (3,) [rad/s] for ``dt`` [s]."""
        jacobian = self.transition(dt)
        turn = quaternion_exp(dt * (gyro - self.gyro_bias))
        self.quaternion = quaternion_right_matrix(turn) @ self.quaternion
        covariance = jacobian @ self.covariance @ jacobian.T
        diagonal = covariance.ravel()[::7]
        diagonal[:3] += (self._noise.angular_velocity_std * dt) ** 2
        diagonal[3:] += self._config.gyro_bias_walk**2 * dt
        self.covariance = covariance

    def correct(self, measured: FloatArray, tilt_variance: float) -> None:
        """Use a measured quaternion (4,) and the variance of its tilt [rad^2]; its yaw is our own and corrects none."""
        innovation = rotation_between(self.quaternion, measured)[:2]
        rows = self.covariance[:2]
        gain = kalman_gain(rows[:, :2] + tilt_variance * _I2, rows)
        correction = gain @ innovation
        self.covariance = self.covariance - gain @ rows
        quaternion = quaternion_right_matrix(self.quaternion) @ quaternion_exp(correction[:3])
        self.quaternion = quaternion / math.sqrt(float(quaternion @ quaternion))
        self.gyro_bias = self.gyro_bias + correction[3:]


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
        self._angular_acceleration = np.zeros(3)

    def step(self, angular_velocity: FloatArray, specific_force: FloatArray, dt: float, fresh: bool = True) -> Attitude:
        """Use one IMU sample (IMU axes) and return the attitude of the base (eq. 6).

        While the IMU is silent (``fresh`` False) the last attitude stays, with its covariance.
        """
        if fresh and not self._running:
            self._start(specific_force)
            self._last_gyro = angular_velocity
        elif fresh and dt > 0.0:
            self._advance(angular_velocity, specific_force, dt)
        return self._output(angular_velocity, specific_force)

    def _start(self, specific_force: FloatArray) -> None:
        self.gravity_filter.start(specific_force)
        roll, pitch = self.gravity_filter.roll_pitch()
        angle_std = self._config.acceleration_std / GRAVITY
        self.quaternion_filter.start(quaternion_from_rpy(roll, pitch, 0.0), angle_std)
        self._running = True

    def _advance(self, gyro: FloatArray, specific_force: FloatArray, dt: float) -> None:
        gravity_filter, quaternion_filter = self.gravity_filter, self.quaternion_filter
        mean_gyro = 0.5 * (gyro + self._last_gyro)
        bias_variance = float(quaternion_filter.covariance[3, 3] + quaternion_filter.covariance[4, 4]) / 2.0
        gravity_filter.predict(mean_gyro - quaternion_filter.gyro_bias, bias_variance, dt)
        gravity_filter.correct(specific_force)
        quaternion_filter.predict(mean_gyro, dt)
        roll, pitch = gravity_filter.roll_pitch()
        measured = quaternion_from_rpy(roll, pitch, yaw_from_quaternion(quaternion_filter.quaternion))
        quaternion_filter.correct(measured, self._tilt_variance(dt))
        part = -math.expm1(-2.0 * math.pi * self._config.angular_acceleration_cutoff * dt)
        self._angular_acceleration = self._angular_acceleration + part * (
            (gyro - self._last_gyro) / dt - self._angular_acceleration
        )
        self._last_gyro = gyro

    def _tilt_variance(self, dt: float) -> float:
        """Variance of the measured tilt, if it were white [rad^2].

        The gravity estimate is the accelerometer smoothed over the filter's own memory, so its errors last. What counts
        is their power at low frequency, that of the linear acceleration: ``2 tau sigma^2 / dt`` as white noise.
        """
        config = self._config
        return 2.0 * config.acceleration_time * config.acceleration_std**2 / (GRAVITY**2 * dt)

    def _output(self, gyro: FloatArray, specific_force: FloatArray) -> Attitude:
        quaternion_filter = self.quaternion_filter
        rotation_imu_to_world = matrix_from_quaternion(quaternion_filter.quaternion)
        to_base = self._imu_to_base
        return Attitude(
            rotation_base_to_world=rotation_imu_to_world @ to_base.T,
            angular_velocity=to_base @ (gyro - quaternion_filter.gyro_bias),
            angular_acceleration=to_base @ self._angular_acceleration,
            specific_force=to_base @ specific_force,
            covariance=quaternion_filter.covariance[:3, :3],
        )
