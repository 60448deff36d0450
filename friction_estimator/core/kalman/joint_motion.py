"""Joint velocities from encoders: Kalman filters of different agility, and how probable each of them is.

A walking joint rests for a second and then swings with 20 rad/s^2. One constant-acceleration Kalman filter is either
too noisy for the first or too slow for the second. Here several run side by side, all with their stationary gains:
interacting multiple models (Bar-Shalom, Li & Kirubarajan 2001, section 11.6.6). A joint now and then begins to move in
another way, so that none is ever ruled out; each filter starts a period from the mean of all that it may have been.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.config import KalmanConfig, SensorNoise
from friction_estimator.core.kalman.motion_bank import JointMotion, MotionBank
from friction_estimator.core.kalman.motion_models import MotionModels
from friction_estimator.core.types import FloatArray


class JointMotionFilter(MotionBank):
    """Interacting multiple models of all joints.

    Parameters
    ----------
    config : ``jerk_densities``, ``acceleration_densities``, ``motion_change_time``
    noise : of the joint positions and velocities
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._change_time = config.motion_change_time
        models = MotionModels(np.array(config.jerk_densities), np.array(config.acceleration_densities))
        super().__init__(models, noise)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """Use one reading of positions and velocities (n,)."""
        if self._state is None or dt == 0.0:
            self._probability: FloatArray = np.full((self._count, position.size), 1.0 / self._count)
            self._state = self._begin(position, velocity)
            return self._at_first(self._state)
        changed = -math.expm1(-dt / self._change_time)
        same = (1.0 - changed) * self._probability
        prior = same + changed / self._count
        mean = (self._probability[:, None] * self._state).sum(axis=0)
        state = mean + (same / prior)[:, None] * (self._state - mean)
        self._state, distance, filters = self._advance(state, position, velocity, dt)
        log_likelihood = -0.5 * (distance + filters.log_determinant[:, None])
        posterior = prior * np.exp(log_likelihood - log_likelihood.max(axis=0))
        self._probability = posterior / posterior.sum(axis=0)
        return self._mixed(self._state, self._probability, filters.velocity_variance / dt**2)
