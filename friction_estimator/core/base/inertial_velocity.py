"""Velocity of the IMU in the world: the accelerometer between the samples, the standing legs in the long run.

Legs that are not rigid, velocities that are not the slope of the positions and noisy encoders all make the legs tell a
velocity that oscillates; none of it is known beforehand. An accelerometer has no such errors, but drifts. So the noise
of the legs is measured: what they say is compared with what the accelerometer has predicted since the last sample, and
errors that last longer than a sample weigh accordingly. That takes time to learn; a standing sole that seems to turn
shows at once that it rolls, or that joints are wrong.

What the accelerometer lacks in the long run is the error of the tilt, which lets gravity appear along the ground.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from friction_estimator.core.base.leg_velocity import imu_velocity_by_legs, imu_velocity_by_turning
from friction_estimator.core.base.rotations import matrix_from_quaternion, quaternion_exp
from friction_estimator.core.config import Config
from friction_estimator.core.types import GRAVITY, Attitude, BoolArray, Dynamics, FloatArray, SensorFrame

_LEAST_PART = 0.05
"""Of the innovation's variance that is always noise of the legs: less cannot be told from that of the prediction."""
_LONGEST = 0.98
"""Correlation of successive innovations, at most."""


class InertialVelocity:
    """Kalman filter of ``x = [v, e]`` on each world axis, with measured noise of the legs.

    ``dv/dt = a + e`` with the measured acceleration ``a``, of which white noise and the Gauss-Markov error ``e`` (tilt
    error, accelerometer bias) are wrong. The legs see ``v`` with the variance

        R = max(<r^2> - P_vv, <r^2> / 20) (1 + rho) / (1 - rho)

    of innovations ``r``: their mean square less that of the prediction, as in eqs. 21-23 but over a time and not over
    samples; ``rho`` is the correlation of successive innovations, since errors that last are not averaged out. It is
    never less than what :func:`imu_velocity_by_turning` says, or has said within ``base_state.turning_time``.

    Parameters
    ----------
    config : ``base_state``, ``attitude`` and ``sensors``
    imu_position_in_base : (3,) [m]

    Attributes
    ----------
    velocity : (3,) of the IMU origin, world axes [m/s]
    variance : (3,) of the filter [m^2/s^2]
    """

    def __init__(self, config: Config, imu_position_in_base: FloatArray) -> None:
        self._config = config.base_state
        self._imu = imu_position_in_base
        self._attitude = config.attitude
        self._white_variance = config.attitude.vibration_std**2 + config.sensors.specific_force_std**2
        self._bias_variance = config.attitude.acceleration_bias_std**2 + config.sensors.specific_force_bias_std**2
        self.reset()

    def _forget_error(self) -> None:
        self._error, self._covariance = np.zeros(3), np.zeros(3)
        self._error_variance, self._prior_error_variance = np.zeros(3), np.zeros(3)
        self._level = np.zeros(2)

    def reset(self) -> None:
        """Begin anew: unknown velocity."""
        self.velocity = np.zeros(3)
        self.variance = np.full(3, self._config.initial_covariance)
        self._forget_error()
        self._acceleration: FloatArray | None = None
        self._turning = np.zeros(3)
        self._square = np.full(3, self._config.measurement_noise)
        self._product, self._innovation = np.zeros(3), np.zeros(3)

    @property
    def published_variance(self) -> FloatArray:
        """Variance of the velocity, (3,) [m^2/s^2]; what standing soles creep lasts, and no innovation shows it."""
        return self.variance + self._config.sole_speed_std**2

    def step(self, attitude: Attitude, standing: BoolArray, dynamics: Dynamics, frame: SensorFrame) -> None:
        """Advance by one sample."""
        R, load = attitude.rotation_base_to_world, np.maximum(frame.wrenches[:, 2], 0.0)
        if frame.dt > 0.0:
            acceleration = R @ attitude.specific_force
            acceleration[2] -= GRAVITY
            error_variance = np.full(3, self._bias_variance)
            # a tilt about y lets gravity appear along x, one about x along y
            error_variance[0] += GRAVITY**2 * attitude.covariance[1, 1]
            error_variance[1] += GRAVITY**2 * attitude.covariance[0, 0]
            self.predict(acceleration if frame.imu_fresh else None, error_variance, frame.dt)
        if load[standing].sum() > 0.0:
            turning = imu_velocity_by_turning(load, standing, R, dynamics, self._imu)
            self._turning = np.maximum(turning, self._turning * math.exp(-frame.dt / self._config.turning_time))
            self.correct(imu_velocity_by_legs(load, standing, R, dynamics), frame.dt, self._turning)
        self._level = self._level - math.expm1(-frame.dt / self._config.level_time) * (self._error[:2] - self._level)

    def levelled(self, attitude: Attitude) -> Attitude:
        """Attitude without the tilt that explains the error of the acceleration, ``e = g x tilt`` and bias.

        Of the error that part is tilt which is its part of the variance; the covariance falls as that of the error.
        Averaged over ``base_state.level_time``, since noise of the legs must not shake the trunk.
        """
        gravity = GRAVITY**2 * attitude.covariance.diagonal()[1::-1]
        part = gravity / np.maximum(gravity + self._bias_variance, 1e-300)
        y, x = part * self._level / GRAVITY
        prior = self._prior_error_variance[:2]
        learned = (prior - self._error_variance[:2]) / np.maximum(prior, 1e-300)
        left = np.sqrt(1.0 - part * np.clip(learned, 0.0, 1.0))
        scale = np.array([left[1], left[0], 1.0])
        return replace(
            attitude,
            rotation_base_to_world=matrix_from_quaternion(quaternion_exp(np.array([-x, y, 0.0])))
            @ attitude.rotation_base_to_world,
            covariance=attitude.covariance * np.outer(scale, scale),
        )

    def predict(self, acceleration: FloatArray | None, error_variance: FloatArray, dt: float) -> None:
        """Advance by ``dt`` [s].

        Parameters
        ----------
        acceleration : (3,) of the IMU origin, world axes, now [m/s^2]; None while the IMU is silent
        error_variance : (3,) of its lasting error [m^2/s^4]
        """
        if acceleration is None:
            std, time = self._attitude.acceleration_std, self._attitude.acceleration_time
            self.variance = self.variance + 2.0 * std * std * time * dt
            self._covariance = np.zeros(3)
        else:
            if self._acceleration is None:  # the attitude has been found anew
                self._forget_error()
            before = acceleration if self._acceleration is None else self._acceleration
            self.velocity = self.velocity + dt * (0.5 * (before + acceleration) + self._error)
            self._spread(error_variance, dt)
        self._acceleration = acceleration

    def _spread(self, error_variance: FloatArray, dt: float) -> None:
        """Covariance of ``[v, e]``."""
        known = self._error_variance
        keep = math.exp(-dt / self._config.acceleration_error_time)
        self.variance = self.variance + 2.0 * dt * self._covariance + dt * dt * (known + self._white_variance)
        self._covariance = keep * (self._covariance + dt * known)
        self._error_variance = keep * keep * known + (1.0 - keep * keep) * error_variance
        self._prior_error_variance = keep * keep * self._prior_error_variance + (1.0 - keep * keep) * error_variance
        self._error = keep * self._error

    def correct(self, velocity: FloatArray, dt: float, least_noise: FloatArray | float = 0.0) -> None:
        """Use what the legs say (3,) [m/s], and learn how noisy they are, though not less than so (3,) [m^2/s^2]."""
        innovation = velocity - self.velocity
        noise = np.maximum(self._noise(innovation, dt), least_noise)
        spread = self.variance + noise
        gain, error_gain = self.variance / spread, self._covariance / spread
        self.velocity = self.velocity + gain * innovation
        self._error = self._error + error_gain * innovation
        self._error_variance = self._error_variance - error_gain * self._covariance
        self._covariance = self._covariance * (1.0 - gain)
        self.variance = self.variance * (1.0 - gain)

    def _noise(self, innovation: FloatArray, dt: float) -> FloatArray:
        new = -math.expm1(-dt / self._config.velocity_noise_time)
        self._square = self._square + new * (innovation**2 - self._square)
        self._product = self._product + new * (innovation * self._innovation - self._product)
        self._innovation = innovation
        rho = np.clip(self._product / np.maximum(self._square, 1e-300), 0.0, _LONGEST)
        white = np.maximum(self._square - self.variance, _LEAST_PART * self._square)
        return np.asarray(white * (1.0 + rho) / (1.0 - rho) + 1e-12)
