"""A limb filter that writes down what happens to it, so that it can be gone through backward."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.config import KalmanConfig
from friction_estimator.core.kalman.adjoint import Considered, Measured, Mixed, Moved, Record, Scaled, Snapshot
from friction_estimator.core.kalman.limb_filter import LimbFilter, LimbWindow
from friction_estimator.core.kalman.limb_state import LimbState
from friction_estimator.core.linear_algebra import kalman_gain
from friction_estimator.core.types import FloatArray


class TracedLimbFilter(LimbFilter):
    """The filter, with records.

    More noise, be it for a blow, a change or wear, needs no record: it shows in the covariances alone.

    Parameters
    ----------
    layout, config, bounds : as of :class:`LimbFilter`

    Attributes
    ----------
    records : since the start, or since they were last taken away
    output : rows of the state that a snapshot keeps: mismatch and law
    """

    def __init__(self, layout: LimbState, config: KalmanConfig, bounds: FloatArray) -> None:
        self.records: list[Record] = []
        self.output = slice(layout.mismatch.start, layout.law.stop)
        super().__init__(layout, config, bounds)

    def close(self, time: float) -> None:
        """Keep the output as it is now."""
        rows = self.output
        self.records.append(Snapshot(time, rows, self.state[rows].copy(), self.covariance[rows].copy()))

    def restart(self) -> None:
        """Momentum and mismatch are forgotten."""
        super().restart()
        self.records.append(Scaled(slice(0, self.layout.law.start), 0.0))

    def begin(self, momentum: FloatArray, momentum_covariance: FloatArray) -> None:
        """The momentum is forgotten, and measured: nothing of it tells about the time before."""
        super().begin(momentum, momentum_covariance)
        self.records.append(Scaled(self.layout.momentum, 0.0))

    def weigh_empty_foot(self, foot: int, reading: FloatArray, variance: FloatArray) -> None:
        """A reading of the sensor's bias."""
        rows = self.layout.foot(self.layout.foot_bias, foot)
        if self.layout.prior_std[rows].any():
            P = self.covariance[rows].copy()
            S = P[:, rows] + np.diag(np.maximum(variance, 1e-12))
            self.records.append(Measured(rows, reading - self.state[rows], S, kalman_gain(S, P)))
        super().weigh_empty_foot(foot, reading, variance)

    def _predict(self, window: LimbWindow, frozen: bool) -> None:
        self.records.append(Mixed(self.layout.momentum, window.duration * window.force_columns))
        super()._predict(window, frozen)

    def _age_mismatch(self, duration: float) -> None:
        self.records.append(Scaled(self.layout.mismatch, math.exp(-duration / self._config.mismatch_time)))
        super()._age_mismatch(duration)

    def _correct(self, innovation: FloatArray, S: FloatArray, frozen: bool) -> None:
        rows = self.layout.momentum
        gain = kalman_gain(S, self.covariance[rows])
        if frozen:
            gain[self.layout.learned] = 0.0
            self.records.append(Considered(rows, gain))
        else:
            self.records.append(Measured(rows, innovation, S, gain))
        super()._correct(innovation, S, frozen)

    def _hold_bounds(self) -> None:
        law, before = self.layout.law, self.state.copy()
        super()._hold_bounds()
        moved = self.state - before
        if moved.any():
            direction: FloatArray = np.linalg.lstsq(self.covariance[:, law], moved, rcond=None)[0].astype(float)
            self.records.append(Moved(law, direction))
