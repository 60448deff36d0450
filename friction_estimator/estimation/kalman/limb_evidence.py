"""What the newest seconds of windows show of the states of a limb, whatever was learned before."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.kalman.limb_state import LimbStateLayout, LimbWindow
from friction_estimator.estimation.kalman.window_dynamics import CORRELATION_TIME
from friction_estimator.types import FloatArray

SECONDS = 4
"""Number of newest seconds that are kept [s]."""


class Balance(NamedTuple):
    """Information (n, n) and product (n,) of changes of the states, and weighted square of so many numbers."""

    information: FloatArray
    product: FloatArray
    square: float
    numbers: int


class LimbEvidence:
    """Normal equations ``sum [G y]^T R^-1 [G y]`` of the balance of momentum over blocks of windows.

    With ``y = G x + noise`` x are the states of law and calibration. A block is as long as errors of the motion last.

    Parameters
    ----------
    layout : of the state
    """

    def __init__(self, layout: LimbStateLayout) -> None:
        self._layout, self._states = layout, slice(layout.first.law, layout.size)
        self._sums: deque[FloatArray] = deque(maxlen=SECONDS + 1)  # the last second is not complete
        self._counts: deque[int] = deque(maxlen=SECONDS + 1)
        self.begin_second()
        self.interrupt()

    def begin_second(self) -> None:
        """Another second begins."""
        self._sums.append(np.zeros((self._states.stop - self._states.start + 1,) * 2))
        self._counts.append(0)

    def interrupt(self) -> None:
        """The next window does not follow the one before."""
        self._duration = -1.0

    def add(self, window: LimbWindow, model_error_variance: FloatArray) -> None:
        """Use a window; ``model_error_variance`` (m,) is that of the motors [(N m)^2]."""
        T = window.duration
        if self._duration < 0.0:
            self._begin(window)
            return
        self._duration += T
        self._columns += T * window.force_columns
        self._impulse += T * window.force
        self._noise += T * T * window.force_variance
        if self._duration < CORRELATION_TIME - 0.5 * T:
            return
        friction = self._columns[:, self._layout["model_error"]]
        R = self._noise + window.momentum_covariance + (friction * model_error_variance) @ friction.T
        row = np.column_stack((self._columns[:, self._states], self._impulse - window.momentum))
        products = row.T @ np.linalg.solve(R, row)
        if np.isfinite(products).all():
            self._sums[-1] += products
            self._counts[-1] += len(row)
        self._begin(window)

    def _begin(self, window: LimbWindow) -> None:
        """Begin a block at the end of a window."""
        self._duration, self._columns = 0.0, np.zeros_like(window.force_columns)
        self._impulse, self._noise = window.momentum.copy(), window.momentum_covariance.copy()

    def balance(self, state: FloatArray, covariance: FloatArray, seconds: int) -> Balance:
        """Integrate the states out, which were known before: (size,), (size, size), over the newest seconds.

        With L and b, the sums of ``G^T R^-1 G`` and ``G^T R^-1 y``, and x ~ N(x0, P0), changes of the states have the
        information ``J = (1 + L P0)^-1 L`` and the product ``d = (1 + L P0)^-1 (b - L x0)``. The torque delay is here
        one of the motor torques alone, without the wrenches.
        """
        x, P = state[self._states], covariance[self._states, self._states]
        sums = np.sum(list(self._sums)[-seconds - 1 :], axis=0)
        L, b = sums[:-1, :-1], sums[:-1, -1]
        residual = b - L @ x
        marginal = np.linalg.solve(np.eye(x.size) + L @ P, np.column_stack((L, residual)))
        square = float(sums[-1, -1] - x @ (b + residual) - residual @ P @ marginal[:, -1])
        J, d, places = marginal[:, :-1], marginal[:, -1], np.arange(-self._states.start, x.size)
        late, wrenches = places[self._layout["torque_delay"]], places[self._layout["wrench_delay"]]
        J[:, late] -= J[:, wrenches].sum(axis=1, keepdims=True)
        J[late] -= J[wrenches].sum(axis=0)
        d[late] -= d[wrenches].sum()
        return Balance(J, d, square, sum(list(self._counts)[-seconds - 1 :]))
