"""Quantiles of the newest values of a quantity that arrives at 1 kHz, at the cost of one array write a value."""

from __future__ import annotations

import numpy as np


class RecentValues:
    """Ring of the newest values.

    Parameters
    ----------
    size : how many are kept
    """

    def __init__(self, size: int = 4096) -> None:
        self._values = np.zeros(size)
        self._size = size
        self._count = 0

    def add(self, value: float) -> None:
        """Keep one value."""
        self._values[self._count % self._size] = value
        self._count += 1

    def take_quantiles(self, *levels: float) -> tuple[float, ...]:
        """Quantiles of the values since the call before (at most ``size`` of them), NaN when there were none."""
        values = self._values[: min(self._count, self._size)]
        self._count = 0
        if not len(values):
            return (float("nan"),) * len(levels)
        return tuple(float(value) for value in np.quantile(values, levels))
