"""Stamps as they come: the usual period, gaps, and signals on an even grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_interp_spline

from friction_estimator.errors import InputError
from friction_estimator.types import FloatArray, IntArray

LONGEST_BRIDGE = 3.5
"""Two lost samples in a row are bridged, in periods; what is longer is a gap that nothing crosses."""

EVEN = 0.02
"""Steps between stamps that vary less than this, in periods (RMS), count as even; slow drift of a clock may add up."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Samples without a gap between them.

    Attributes
    ----------
    start, stop : first sample and the one after the last
    jitter : RMS deviation of the steps between stamps from whole periods, in periods
    missing : how many samples were lost and are bridged
    """

    start: int
    stop: int
    jitter: float
    missing: int

    @property
    def even(self) -> bool:
        """Whether the samples may be used as they are, with the lost ones filled in."""
        return self.jitter < EVEN


def usual_period(time: FloatArray) -> float:
    """Time between two samples (N,), as most of them have it [s].

    Raises
    ------
    InputError
        When there are fewer than two samples.
    """
    if time.size < 2:
        raise InputError(f"{time.size} samples make no motion")
    steps = np.diff(time)
    median = float(np.median(steps))
    return float(np.mean(steps[np.abs(steps - median) < 0.5 * median]))  # the clock may count coarsely


def find_stretches(time: FloatArray, period: float) -> tuple[Stretch, ...]:
    """Where the samples (N,), strictly increasing in time [s], have no gap between them."""
    gaps = np.flatnonzero(np.diff(time) > LONGEST_BRIDGE * period) + 1
    edges = np.concatenate([[0], gaps, [time.size]])
    return tuple(
        _stretch(int(start), time[start:stop], period) for start, stop in zip(edges[:-1], edges[1:], strict=True)
    )


def _stretch(start: int, time: FloatArray, period: float) -> Stretch:
    steps = np.diff(time) / period
    whole = np.diff(places(time, period))
    jitter = float(np.sqrt(np.mean((steps - whole) ** 2))) if steps.size else 0.0
    return Stretch(start, start + time.size, jitter, int(whole.sum()) - steps.size)


def longest_stretch(time: FloatArray, period: float) -> Stretch:
    """The stretch without a gap that has most samples."""
    return max(find_stretches(time, period), key=lambda stretch: stretch.stop - stretch.start)


def even_times(time: FloatArray, stretch: Stretch, period: float) -> FloatArray:
    """Stamps (K,) of one stretch of the stamps (N,) at a constant rate [s]: as they are where they are even."""
    own = time[stretch.start : stretch.stop]
    if not stretch.even:
        return own[0] + period * np.arange(int((own[-1] - own[0]) / period + 1e-6) + 1)
    place = places(own, period)
    return np.asarray(np.interp(np.arange(place[-1] + 1), place, own))


def evenly(signal: FloatArray, time: FloatArray, stretch: Stretch, period: float, smooth: bool) -> FloatArray:
    """Samples (K, ...) of one stretch of a signal (N, ...) at :func:`even_times`, recorded ones to the last bit."""
    own, samples = time[stretch.start : stretch.stop], signal[stretch.start : stretch.stop]
    if not stretch.even:
        return at_times(even_times(time, stretch, period), own, samples, smooth)
    if not stretch.missing:
        return samples
    place = places(own, period)
    filled = at_times(np.arange(place[-1] + 1, dtype=float), place.astype(float), samples, smooth)
    filled[place] = samples
    return filled


def places(time: FloatArray, period: float) -> IntArray:
    """Number (N,) of each stamp (N,) on a grid of the period, counted step by step so that a drift does not add up."""
    return np.concatenate([[0], np.cumsum(np.maximum(np.rint(np.diff(time) / period), 1.0))]).astype(np.intp)


def at_times(grid: FloatArray, time: FloatArray, signal: FloatArray, smooth: bool) -> FloatArray:
    """Signal (N, ...) at other times (K,): by a cubic spline where it is smooth, else along straight lines.

    A torque may jump, where a spline overshoots; a position may not, where straight lines break its second derivative.
    Between a number and NaN is NaN.
    """
    if smooth and time.size > 3:
        return np.asarray(make_interp_spline(time, signal, k=3)(grid))
    after = np.clip(np.searchsorted(time, grid), 1, time.size - 1)
    weight = (grid - time[after - 1]) / (time[after] - time[after - 1])
    weight = weight.reshape(-1, *[1] * (signal.ndim - 1))
    return np.asarray((1.0 - weight) * signal[after - 1] + weight * signal[after])
