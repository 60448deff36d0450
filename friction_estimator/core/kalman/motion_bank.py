"""Stationary filters of all joints side by side, one for each way in which a joint may move."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import SensorNoise
from friction_estimator.core.kalman.motion_models import MotionModels, StationaryFilters, stationary_filters
from friction_estimator.core.types import FloatArray

_FINEST_POSITION = 1e-7
"""Encoders are not believed beyond this, nor is the integrator of a simulator [rad]."""


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


class MotionBank:
    """Stationary filters of all joints, at the period of the moment.

    Parameters
    ----------
    models : the filters, m
    noise : of the joint positions and velocities
    """

    def __init__(self, models: MotionModels, noise: SensorNoise) -> None:
        self._models = models
        self._count = models.jerk_densities.size + models.acceleration_densities.size
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

    def _begin(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """States (m, 3, n) with the first reading."""
        state = np.zeros((self._count, 3, position.size))
        state[:, 0] = position
        if math.isfinite(self._velocity_std):
            state[:, 1] = velocity
        return state

    def _at_first(self, state: FloatArray) -> JointMotion:
        """What the first reading says, of the states that begin with it."""
        n = state.shape[2]
        std = self._velocity_std if math.isfinite(self._velocity_std) else 1.0
        return JointMotion(state[0, 0], state[0, 1], np.zeros(n), np.full(n, std))

    def _advance(
        self, state: FloatArray, position: FloatArray, velocity: FloatArray, dt: float
    ) -> tuple[FloatArray, FloatArray, StationaryFilters]:
        """From states (m, 3, n) before a reading to those after, squared distances (m, n) of the reading, filters."""
        filters = self._filters_for(dt)
        scale = np.array([1.0, dt, dt * dt])[:, None]
        scaled = filters.transition @ (state * scale)
        innovation = np.stack((position, velocity * dt)) - scaled[:, :2]
        scaled += filters.gain @ innovation
        return scaled / scale, (innovation * (filters.information @ innovation)).sum(axis=1), filters

    @staticmethod
    def _mixed(state: FloatArray, weight: FloatArray, velocity_variance: FloatArray) -> JointMotion:
        """Mean of the bank, and the spread about it: states (m, 3, n), weights (m, n), variances (m,)."""
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
            self._filters[key] = stationary_filters(self._models, self._position_std, self._velocity_std, period)
        return self._filters[key]
