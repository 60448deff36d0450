"""Minimum-jerk moves, one after another: the building block of feet, load share and heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from friction_estimator.types import FloatArray


def minimum_jerk(s: FloatArray) -> FloatArray:
    """``10 s^3 - 15 s^4 + 6 s^5``: from 0 to 1 with zero velocity and acceleration at both ends."""
    return s**3 * (10.0 + s * (6.0 * s - 15.0))


@dataclass(frozen=True, slots=True)
class MoveSequence:
    """A quantity that rests, except for minimum-jerk moves that do not overlap.

    Attributes
    ----------
    starts : (m,) start of each move, increasing [s]
    durations : (m,) [s]
    values : (m + 1, d) value before the first and after each move
    """

    starts: FloatArray
    durations: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, first: Sequence[float], moves: Sequence[tuple[float, float, Sequence[float]]]) -> MoveSequence:
        """Build from the first value and ``(start, duration, value afterwards)`` of each move."""
        return cls(
            np.array([move[0] for move in moves]),
            np.array([move[1] for move in moves]),
            np.array([first, *(move[2] for move in moves)], dtype=float),
        )

    def progress(self, time: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Which move each time belongs to, -1 before the first, and how far it has come, 0 to 1."""
        if not self.starts.size:
            return np.full(time.shape, -1), np.ones(time.shape)
        index = np.searchsorted(self.starts, time, side="right") - 1
        s: FloatArray = np.clip((time - self.starts[index]) / self.durations[index], 0.0, 1.0)
        s[index < 0] = 1.0
        return index, s

    def __call__(self, time: FloatArray) -> FloatArray:
        """Values (N, d) at times (N,)."""
        index, s = self.progress(time)
        before = self.values[np.maximum(index, 0)]
        after = self.values[index + 1]
        return before + minimum_jerk(s)[:, None] * (after - before)
