"""Joint velocities from encoders: a bank of Kalman filters of different agility, of which the likelier ones count.

A walking joint rests for a second and then swings with 20 rad/s^2. One constant-acceleration Kalman filter is either
too noisy for the first or too slow for the second. Here several run side by side, each with a white jerk of another
density, all with their stationary gains; every joint weighs them by how well they have predicted its last readings
(multiple-model estimation: Bar-Shalom, Li & Kirubarajan 2001, section 11.6, with a fading memory).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_are

from friction_estimator.core.config import KalmanConfig, SensorNoise
from friction_estimator.core.types import FloatArray

TRANSITION = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
WHITE_JERK = np.array([[1 / 20, 1 / 8, 1 / 6], [1 / 8, 1 / 3, 1 / 2], [1 / 6, 1 / 2, 1.0]])
_FINEST_POSITION = 1e-7
"""Encoders are not believed beyond this, nor is the integrator of a simulator [rad]."""
_IGNORED = 1e6
"""Standard deviation of a reading that carries nothing, in units of that of the position."""


@dataclass(frozen=True, slots=True)
class JointMotion:
    """Filtered motion of the joints.

    Attributes
    ----------
    position, velocity, acceleration : (n,) [rad, rad/s, rad/s^2]
    velocity_std : (n,) standard deviation of the velocity [rad/s]
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    velocity_std: FloatArray


@dataclass(frozen=True, slots=True)
class StationaryFilters:
    """Stationary Kalman filters of ``m`` jerk densities at one period, for the state ``[q, dq dt, ddq dt^2]``.

    Attributes
    ----------
    gain : (m, 3, 2)
    information : (m, 2, 2) inverse of the innovation covariance
    log_determinant : (m,) of the innovation covariance
    velocity_variance : (m,) of ``dq dt``, after the correction
    """

    gain: FloatArray
    information: FloatArray
    log_determinant: FloatArray
    velocity_variance: FloatArray


def reading_noise(position_std: float, velocity_std: float, dt: float) -> FloatArray:
    """Covariance (2, 2) of a reading ``[q, dq dt]``, in units of the variance of the position."""
    return np.diag([1.0, min((velocity_std * dt / position_std) ** 2, _IGNORED**2)])


def stationary_filters(densities: FloatArray, position_std: float, velocity_std: float, dt: float) -> StationaryFilters:
    """Solve the Riccati equation of every jerk density.

    Parameters
    ----------
    densities : (m,) of the white jerk [rad^2/s^5]
    position_std, velocity_std : of the readings [rad, rad/s]; an infinite velocity_std ignores the velocity
    dt : period [s]
    """
    C = np.eye(2, 3)
    R = reading_noise(position_std, velocity_std, dt)
    gains, innovations, variances = [], [], []
    for density in densities:
        Q = density * dt**5 / position_std**2 * WHITE_JERK
        P = solve_discrete_are(TRANSITION.T, C.T, Q, R)
        S = C @ P @ C.T + R
        K = np.linalg.solve(S, C @ P).T
        gains.append(K)
        innovations.append(S * position_std**2)
        variances.append((P - K @ C @ P)[1, 1] * position_std**2)
    S = np.array(innovations)
    return StationaryFilters(np.array(gains), np.linalg.inv(S), np.linalg.slogdet(S)[1], np.array(variances))


class JointMotionFilter:
    """The bank for all joints.

    Parameters
    ----------
    config : ``jerk_densities``, ``motion_memory``
    noise : of the joint positions and velocities
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._densities = np.array(config.jerk_densities)
        self._memory = config.motion_memory
        self.retune(noise)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Other gains from now on, for this noise."""
        self._position_std = max(noise.position_std, _FINEST_POSITION)
        self._velocity_std = math.inf if noise.velocity_cutoff > 0.0 else noise.velocity_std
        self._filters: dict[int, StationaryFilters] = {}

    def reset(self) -> None:
        """Begin at rest with the next reading."""
        self._state: FloatArray | None = None

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """Use one reading of positions and velocities (n,)."""
        if self._state is None or dt == 0.0:
            self._state = np.zeros((self._densities.size, 3, position.size))
            self._state[:, 0] = position
            if math.isfinite(self._velocity_std):
                self._state[:, 1] = velocity
            self._log_likelihood = np.zeros((self._densities.size, position.size))
            rest = np.full(position.size, self._velocity_std if math.isfinite(self._velocity_std) else 1.0)
            return JointMotion(position, self._state[0, 1], np.zeros(position.size), rest)
        filters = self._filters_for(dt)
        scale = np.array([1.0, dt, dt * dt])[:, None]
        state = TRANSITION @ (self._state * scale)
        innovation = np.stack((position, velocity * dt)) - state[:, :2]
        state += filters.gain @ innovation
        self._state = state / scale
        distance = (innovation * (filters.information @ innovation)).sum(axis=1)
        keep = math.exp(-dt / self._memory)
        self._log_likelihood = keep * self._log_likelihood - 0.5 * (distance + filters.log_determinant[:, None])
        return self._mixed(self._state, self._log_likelihood, filters.velocity_variance / dt**2)

    @staticmethod
    def _mixed(state: FloatArray, log_likelihood: FloatArray, velocity_variance: FloatArray) -> JointMotion:
        """Mean of the bank, and the spread about it: states (b, 3, n), likelihoods (b, n), variances (b,)."""
        weight = np.exp(log_likelihood - log_likelihood.max(axis=0))
        weight /= weight.sum(axis=0)
        position, velocity, acceleration = (weight[:, None] * state).sum(axis=0)
        spread = velocity_variance[:, None] + (state[:, 1] - velocity) ** 2
        return JointMotion(position, velocity, acceleration, np.sqrt((weight * spread).sum(axis=0)))

    @staticmethod
    def _nearby_period(dt: float) -> tuple[int, float]:
        """Number and length [s] of the period near this one for which gains are computed."""
        key = round(10.0 * math.log(dt))
        return key, math.exp(0.1 * key)

    def _filters_for(self, dt: float) -> StationaryFilters:
        """Filters of a period near this one: gains hardly change within a tenth."""
        key, period = self._nearby_period(dt)
        if key not in self._filters:
            self._filters[key] = stationary_filters(self._densities, self._position_std, self._velocity_std, period)
        return self._filters[key]
