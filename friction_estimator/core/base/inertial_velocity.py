"""Velocity of the IMU in the world: the accelerometer between the samples, the standing legs in the long run.

Legs that are not rigid, velocities that are not the slope of the positions and noisy encoders all make the legs tell a
velocity that oscillates; none of it is known beforehand. An accelerometer has no such errors, but drifts. So the noise
of the legs is measured: what they say is compared with what the accelerometer has predicted since the last sample, and
errors that last longer than a sample weigh accordingly.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.types import GRAVITY, Attitude, BoolArray, Dynamics, FloatArray, SensorFrame

_LEAST_PART = 0.05
"""Of the innovation's variance that is always noise of the legs: less cannot be told from that of the prediction."""
_LONGEST = 0.98
"""Correlation of successive innovations, at most."""


def imu_velocity_by_legs(
    load: FloatArray, standing: BoolArray, rotation_base_to_world: FloatArray, dynamics: Dynamics
) -> FloatArray:
    """Velocity of the IMU origin that keeps the standing soles at rest, weighted by load, world axes, (3,) [m/s].

    ``dynamics.velocity`` has the IMU at rest: what a sole does there, the IMU does the other way round in the world.

    Parameters
    ----------
    load : (k,) normal forces, positive in sum over the standing feet
    standing : (k,), at least one
    """
    share = load[standing] / load[standing].sum()
    sole = dynamics.foot_jacobian[standing, :3] @ dynamics.velocity
    in_base = (dynamics.foot_rotation_to_base[standing] @ sole[..., None])[..., 0]
    return np.asarray(-rotation_base_to_world @ (share @ in_base))


class InertialVelocity:
    """Kalman filter of ``x = [v, e]`` on each world axis, with measured noise of the legs.

    ``dv/dt = a + e`` with the measured acceleration ``a``, of which white noise and the Gauss-Markov error ``e`` (tilt
    error, accelerometer bias) are wrong. The legs see ``v`` with the variance

        R = max(<r^2> - P_vv, <r^2> / 20) (1 + rho) / (1 - rho)

    of innovations ``r``: their mean square less that of the prediction, as in eqs. 21-23 but over a time and not over
    samples; ``rho`` is the correlation of successive innovations, since errors that last are not averaged out.

    Parameters
    ----------
    config : ``base_state``, ``attitude`` and ``sensors``

    Attributes
    ----------
    velocity : (3,) of the IMU origin, world axes [m/s]
    variance : (3,) of the filter [m^2/s^2]
    """

    def __init__(self, config: Config) -> None:
        self._config = config.base_state
        self._attitude = config.attitude
        self._white_variance = config.attitude.vibration_std**2 + config.sensors.specific_force_std**2
        self._bias_variance = config.attitude.acceleration_bias_std**2 + config.sensors.specific_force_bias_std**2
        self.reset()

    def reset(self) -> None:
        """Begin anew: unknown velocity."""
        self.velocity = np.zeros(3)
        self.variance = np.full(3, self._config.initial_covariance)
        self._error, self._covariance = np.zeros(3), np.zeros(3)
        self._error_variance = np.zeros(3)
        self._acceleration: FloatArray | None = None
        self._square = np.full(3, self._config.measurement_noise)
        self._product, self._innovation = np.zeros(3), np.zeros(3)

    @property
    def published_variance(self) -> FloatArray:
        """Variance of the velocity, (3,) [m^2/s^2]; what standing soles creep lasts, and no innovation shows it."""
        return self.variance + self._config.sole_speed_std**2

    def step(
        self, attitude: Attitude, standing: BoolArray, dynamics: Dynamics, frame: SensorFrame
    ) -> FloatArray | None:
        """Advance by one sample; returns what the legs alone say (3,) [m/s], None without standing feet."""
        R, load = attitude.rotation_base_to_world, np.maximum(frame.wrenches[:, 2], 0.0)
        if frame.dt > 0.0:
            acceleration = R @ attitude.specific_force
            acceleration[2] -= GRAVITY
            error_variance = np.full(3, self._bias_variance)
            # a tilt about y lets gravity appear along x, one about x along y
            error_variance[0] += GRAVITY**2 * attitude.covariance[1, 1]
            error_variance[1] += GRAVITY**2 * attitude.covariance[0, 0]
            self.predict(acceleration if frame.imu_fresh else None, error_variance, frame.dt)
        if not load[standing].sum() > 0.0:
            return None
        legs = imu_velocity_by_legs(load, standing, R, dynamics)
        self.correct(legs, frame.dt)
        return legs

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
        else:
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
        self._error = keep * self._error

    def correct(self, velocity: FloatArray, dt: float) -> None:
        """Use what the legs say (3,) [m/s], and learn how noisy they are."""
        innovation = velocity - self.velocity
        noise = self._noise(innovation, dt)
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
