"""Whole periods in place of noisy stamps.

A driver that samples evenly but stamps when it finds the time makes positions seem to jump by velocity
times the error of the stamp. Where the sampling is as uneven as the stamps, third differences of the positions are
those of the stamps times the velocity; where it is even, they have nothing in common. A regression over all joints
decides, with readings of coarse encoders, too.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.motion.sensor_monitor import BLOCK_LENGTH, MAX_JITTER, NEGLIGIBLE_NOISE, STRIDE
from friction_estimator.types import FloatArray

_EVEN_SAMPLING, _MIN_INFORMATION = 0.5, 100.0
"""Part of the stamps' unevenness that the positions show, below which the sampling is even; and the least inverse
variance of this part at which that is decided."""
_FORGETTING_FACTOR = 0.8
"""Weight of the earlier blocks in the regression when a block is added."""
_SPAN = 10
"""Number of intervals over which the period of noisy stamps is measured: only the stamps at both ends add noise."""
_TWO_PERIODS = 1.7
"""Number of periods above which an interval counts as two: a late stamp is likelier than a missing sample."""
_PHASE_GAIN = 0.03
"""Part of the phase error to the stamps that the clock corrects in a sample."""
_PERIOD_GAIN = 0.2
"""Weight of the newest block in the period."""


class StampClock:
    """Replaces intervals by whole periods while stamps are found to be noisy.

    Parameters
    ----------
    joints : n
    """

    def __init__(self, joints: int) -> None:
        self._positions = np.empty((BLOCK_LENGTH, joints))
        self._steps = np.empty(BLOCK_LENGTH)
        self._correlation, self._information = 0.0, 0.0
        self._even_sampling = True
        self.reset()

    def reset(self) -> None:
        """Begin a new block; until it is full, stamps are used as they are."""
        self._row = 0
        self._period = self._phase_error = 0.0

    def interval(self, dt: float, position: FloatArray) -> float:
        """Interval to use in place of the stamped one, ``dt`` [s], which ends at positions (n,); zero stays zero."""
        if dt <= 0.0:
            return dt
        self._positions[self._row], self._steps[self._row] = position, dt
        self._row += 1
        if self._row == BLOCK_LENGTH:
            self._row = 0
            self._measure_period()
        if self._period == 0.0:
            return dt
        behind = self._phase_error + dt
        periods = 1 if behind < _TWO_PERIODS * self._period else round(behind / self._period)
        interval = self._period * periods + _PHASE_GAIN * self._phase_error
        self._phase_error = behind - interval
        return interval

    def _measure_period(self) -> None:
        """Set the period when stamps are uneven but the sampling is not."""
        if np.ptp(self._steps) <= MAX_JITTER * self._steps.mean():
            self._period = 0.0
            return
        period = self._usual_period()
        self._regress(period)
        if self._information > _MIN_INFORMATION:
            self._even_sampling = self._correlation < _EVEN_SAMPLING * self._information
        if not self._even_sampling:
            self._period = 0.0
        elif self._period == 0.0:
            self._period, self._phase_error = period, 0.0
        else:
            self._period += _PERIOD_GAIN * (period - self._period)

    def _regress(self, period: float) -> None:
        """Add a block to the regression that shows whether samples are even although their stamps jitter.

        Third differences of the positions follow those of the stamps, times the velocity, where the samples jitter too.
        """
        width = 2 * STRIDE + 3
        velocity = (self._positions[width:] - self._positions[:-width]) / (width * period)
        third = np.diff(self._positions, n=3, axis=0)[STRIDE:-STRIDE]
        whole = self._steps < _TWO_PERIODS * period
        stamps = np.diff(self._steps, n=2)[1 + STRIDE : -STRIDE]
        usable = (whole[1:-2] & whole[2:-1] & whole[3:])[STRIDE:-STRIDE]
        expected = np.where(usable[:, None], velocity * stamps[:, None], 0.0)
        weight = 1.0 / np.maximum((third**2).mean(axis=0), NEGLIGIBLE_NOISE[0] ** 2)
        self._correlation = _FORGETTING_FACTOR * self._correlation + float((weight * expected * third).sum())
        self._information = _FORGETTING_FACTOR * self._information + float((weight * expected**2).sum())

    def _usual_period(self) -> float:
        """Period of the intervals: from spans without a missing sample, which would make them longer."""
        shortest = _TWO_PERIODS * float(np.median(self._steps))
        stamps, gaps = np.cumsum(self._steps), np.cumsum(self._steps > shortest)
        whole = gaps[_SPAN:] == gaps[:-_SPAN]
        if whole.any():
            spans: FloatArray = stamps[_SPAN:] - stamps[:-_SPAN]
            return float(np.median(spans[whole])) / _SPAN
        return float(self._steps[self._steps <= shortest].mean())
