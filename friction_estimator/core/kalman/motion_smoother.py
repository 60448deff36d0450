"""Joint velocities in hindsight: the bank of motion filters, each corrected backward in time by what came later.

Every filter of the bank is stationary, and so is its Rauch-Tung-Striebel smoother: one constant gain (Rauch, Tung &
Striebel 1965, eq. 3.28). The filters are weighed by how well they have predicted the readings before and after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from friction_estimator.core.config import KalmanConfig, SensorNoise
from friction_estimator.core.kalman.motion_bank import JointMotion, MotionBank
from friction_estimator.core.kalman.motion_models import TRANSITION, WHITE_JERK, MotionModels, reading_noise
from friction_estimator.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class StationarySmoothers:
    """Stationary Rauch-Tung-Striebel smoothers of ``b`` jerk densities, for the state ``[q, dq dt, ddq dt^2]``.

    Attributes
    ----------
    gain : (b, 3, 3) from the correction of the next state to that of this one
    velocity_variance : (b,) of the smoothed ``dq dt``
    """

    gain: FloatArray
    velocity_variance: FloatArray


def stationary_smoothers(
    densities: FloatArray, position_std: float, velocity_std: float, dt: float
) -> StationarySmoothers:
    """Gains and covariances from the Riccati equation of every jerk density; parameters as of the filters."""
    C, R = np.eye(2, 3), reading_noise(position_std, velocity_std, dt)
    gains, variances = [], []
    for density in densities:
        Q = density * dt**5 / position_std**2 * WHITE_JERK
        P_predicted = solve_discrete_are(TRANSITION.T, C.T, Q, R)
        S = C @ P_predicted @ C.T + R
        P = P_predicted - P_predicted @ C.T @ np.linalg.solve(S, C @ P_predicted)
        A = np.linalg.solve(P_predicted, TRANSITION @ P).T
        smoothed = solve_discrete_lyapunov(A, P - A @ P_predicted @ A.T)
        gains.append(A)
        variances.append(smoothed[1, 1] * position_std**2)
    return StationarySmoothers(np.array(gains), np.array(variances))


@dataclass(frozen=True, slots=True)
class _Filtered:
    """What the bank said after a reading: state (b, 3, n), log-likelihood (b, n) of the readings so far, faded."""

    dt: float
    state: FloatArray
    log_likelihood: FloatArray


class MotionSmoother(MotionBank):
    """The bank, forward and backward; the models do not interact, so that every filter has its own smoother.

    Readings go in with :meth:`step`; :meth:`smoothed` gives what all of them say about the oldest ones.

    Parameters
    ----------
    config : ``jerk_densities``, ``motion_memory``
    noise : of the joint positions and velocities
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._memory = config.motion_memory
        super().__init__(MotionModels(np.array(config.jerk_densities), np.zeros(0)), noise)

    def retune(self, noise: SensorNoise) -> None:
        """Other gains, backward too."""
        super().retune(noise)
        self._smoothers: dict[int, StationarySmoothers] = {}

    def reset(self) -> None:
        """Forget all readings."""
        super().reset()
        self._filtered: list[_Filtered] = []

    def __len__(self) -> int:
        """Readings that have not been handed out."""
        return len(self._filtered)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> None:
        """Use one reading."""
        if self._state is None or dt == 0.0:
            self._state = self._begin(position, velocity)
            self._log_likelihood: FloatArray = np.zeros((self._count, position.size))
        else:
            self._state, distance, filters = self._advance(self._state, position, velocity, dt)
            newest = -0.5 * (distance + filters.log_determinant[:, None])
            self._log_likelihood = math.exp(-dt / self._memory) * self._log_likelihood + newest
        self._filtered.append(_Filtered(dt, self._state, self._log_likelihood))

    def smoothed(self, count: int) -> list[JointMotion]:
        """Hand out the oldest ``count`` instants, smoothed with all readings there are."""
        filtered = self._filtered
        result: list[JointMotion] = []
        state = filtered[-1].state
        later = np.zeros_like(filtered[-1].log_likelihood)
        for index in range(len(filtered) - 1, -1, -1):
            now = filtered[index]
            if index < len(filtered) - 1:
                state, later = self._back(now, filtered[index + 1], state, later)
            if index < count:
                result.append(self._motion(now, state, now.log_likelihood + later))
        del filtered[:count]
        return result[::-1]

    def _back(
        self, now: _Filtered, after: _Filtered, state: FloatArray, later: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """From the smoothed state and the likelihood of later readings at the instant after, to those now."""
        dt, keep = after.dt, math.exp(-after.dt / self._memory)
        scale = np.array([1.0, dt, dt * dt])[:, None]
        scaled = now.state * scale
        correction = state * scale - TRANSITION @ scaled
        smoothed = (scaled + self._smoothers_for(dt).gain @ correction) / scale
        newest = after.log_likelihood - keep * now.log_likelihood
        return smoothed, keep * (later + newest)

    def _motion(self, now: _Filtered, state: FloatArray, log_likelihood: FloatArray) -> JointMotion:
        if now.dt == 0.0:
            return self._at_first(now.state)
        variance = self._smoothers_for(now.dt).velocity_variance / now.dt**2
        weight = np.exp(log_likelihood - log_likelihood.max(axis=0))
        return self._mixed(state, weight / weight.sum(axis=0), variance)

    def _smoothers_for(self, dt: float) -> StationarySmoothers:
        key, period = self._nearby_period(dt)
        if key not in self._smoothers:
            self._smoothers[key] = stationary_smoothers(
                self._models.jerk_densities, self._position_std, self._velocity_std, period
            )
        return self._smoothers[key]
