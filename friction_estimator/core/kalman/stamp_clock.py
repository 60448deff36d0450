"""Time between samples, when stamps are noisier than the sampling.

A driver that samples evenly but stamps when it finds the time makes positions seem to jump by velocity times the error
of the stamp, thousands of times an encoder's noise. Whether stamps or sampling are uneven shows in third differences of
the positions, which know nothing of the stamps: small ones mean that the sampling is even.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.core.types import FloatArray

_BLOCK = 200
_UNEVEN = 0.05
"""Intervals that differ by more than this part of their median are uneven."""
_TELLING = 10.0
"""The fastest joint must make the uneven sampling show so many times more than the encoder's noise."""
_EVEN = 0.3
"""Part of what uneven sampling would show, below which the sampling is even."""
_GAP = 1.8
"""Intervals longer than so many medians are missing samples."""
_MISSING = 1.7
"""The clock counts a second period only beyond so many: a stamp late is likelier than a sample missing."""
_FOLLOW = 0.03
"""Part of its distance to the stamps that the clock makes good in a sample."""
_SMOOTH = 0.2
_TO_STD = 1.0 / (0.6745 * math.sqrt(20.0))


class StampClock:
    """Replaces intervals by whole periods while stamps are found to be noisy.

    Parameters
    ----------
    joints : n
    position_std : noise of the encoders [rad]
    """

    def __init__(self, joints: int, position_std: float) -> None:
        self._positions = np.empty((_BLOCK, joints))
        self._steps = np.empty(_BLOCK)
        self._position_std = position_std
        self._even_sampling = True
        self.reset()

    def reset(self) -> None:
        """Begin a new block; until it is full, stamps are believed."""
        self._row = 0
        self._period = self._behind = 0.0

    def interval(self, dt: float, position: FloatArray) -> float:
        """Interval to believe [s], for a stamped one and the positions (n,) at its end; zero stays zero."""
        if dt <= 0.0:
            return dt
        self._positions[self._row], self._steps[self._row] = position, dt
        self._row += 1
        if self._row == _BLOCK:
            self._row = 0
            self._judge()
        if self._period == 0.0:
            return dt
        behind = self._behind + dt
        periods = 1 if behind < _MISSING * self._period else round(behind / self._period)
        interval = self._period * periods + _FOLLOW * self._behind
        self._behind = behind - interval
        return interval

    def _judge(self) -> None:
        """Set the period when stamps are uneven but the sampling is not."""
        period = float(np.median(self._steps))
        if np.ptp(self._steps) <= _UNEVEN * period:
            self._period = 0.0
            return
        period = float(self._steps[self._steps < _GAP * period].mean())
        speed = np.median(np.abs(np.diff(self._positions, axis=0)), axis=0) / period
        fastest = int(speed.argmax())
        expected = float(speed[fastest]) * float(self._steps.std()) / math.sqrt(2.0)
        shown = _TO_STD * float(np.median(np.abs(np.diff(self._positions[:, fastest], n=3))))
        if expected > _TELLING * self._position_std:
            self._even_sampling = shown < _EVEN * expected
        if not self._even_sampling:
            self._period = 0.0
        elif self._period == 0.0:
            self._period, self._behind = period, 0.0
        else:
            self._period += _SMOOTH * (period - self._period)
