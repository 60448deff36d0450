"""Zero-phase low-pass, derivatives behind it, and the parallel filter of both sides of the equation of motion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import butter, sosfilt, sosfiltfilt

from friction_estimator.errors import InputError
from friction_estimator.types import FloatArray, IntArray

if TYPE_CHECKING:
    from friction_estimator.identification.recording.motion import Motion

_CENTRAL = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""First derivative, exact for polynomials up to degree 8: true to 1 % up to a fifth of the sampling rate."""

HALF_STENCIL = _CENTRAL.size // 2
_FORGOTTEN_SHARE = 1e-2  # of its largest value: what an impulse response may still be at the edge
ORDER = 4
"""Of one pass of the Butterworth low-pass."""
_HIGHEST = 0.45
"""Highest cut-off of a low-pass, in sampling rates."""


def low_pass(signal: FloatArray, period: float, cutoff_hz: float) -> FloatArray:
    """Butterworth low-pass forward and backward along the first axis (Egle 2021, §7.1.2; Hamon et al. 2010, §IV.B).

    Parameters
    ----------
    signal : (N, ...)
    period : between two samples [s]
    cutoff_hz : where both passes together leave half of the power (-3 dB) [Hz]

    Returns
    -------
    filtered : (N, ...), wrong within :func:`_low_pass_edge` samples of both ends
    """
    sos = _design(period, cutoff_hz)
    pad = min(_low_pass_edge(period, cutoff_hz), signal.shape[0] - 1)
    return np.asarray(sosfiltfilt(sos, signal, axis=0, padlen=pad))


@cache
def _low_pass_edge(period: float, cutoff_hz: float) -> int:
    """How many samples at each end the ends themselves disturb."""
    slowest = 2.0 * math.pi * cutoff_hz * period * math.sin(math.pi / (2 * ORDER))  # decay of its slowest pole
    impulse = np.zeros(math.ceil(20.0 / slowest))
    impulse[0] = 1.0
    response = np.abs(sosfilt(_design(period, cutoff_hz), impulse))
    return int(np.flatnonzero(response > _FORGOTTEN_SHARE * response.max())[-1]) + 1


@cache  # a design takes longer than its use, and an identification needs the same few a hundred times
def _design(period: float, cutoff_hz: float) -> FloatArray:
    if not 0.0 < cutoff_hz * period <= _HIGHEST:
        raise InputError(
            f"a cut-off of {cutoff_hz:g} Hz cannot be used at {1.0 / period:g} Hz; "
            f"give one between 0 and {_HIGHEST / period:g} Hz"
        )
    one_pass = math.tan(math.pi * cutoff_hz * period) / (math.sqrt(2.0) - 1.0) ** (0.5 / ORDER)
    return np.asarray(butter(ORDER, 2.0 / math.pi * math.atan(one_pass), output="sos"))


def central_difference(signal: FloatArray, period: float) -> FloatArray:
    """Time derivative of a signal (N, ...) along the first axis, wrong within ``HALF_STENCIL`` samples of both ends."""
    padded = np.pad(signal, [(HALF_STENCIL, HALF_STENCIL)] + [(0, 0)] * (signal.ndim - 1), mode="edge")
    count = signal.shape[0]
    terms = [c * padded[k : k + count] for k, c in enumerate(_CENTRAL) if c]
    return np.asarray(sum(terms) / period)


def derivative_edge(period: float, cutoff_hz: float) -> int:
    """How many samples at each end of the results of :func:`derive` are wrong."""
    return _low_pass_edge(period, cutoff_hz) + 2 * HALF_STENCIL


def derive(
    position: FloatArray, velocity: FloatArray | None, period: float, cutoff_hz: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Band-limited position, velocity and acceleration (N, n), from the measured velocity (N, n) where it is given.

    Low-pass with this cut-off [Hz], then central differences (Hamon et al. 2010, §IV.B; Egle 2021, §7.1.2).
    """
    smooth = low_pass(position, period, cutoff_hz)
    speed = central_difference(smooth, period) if velocity is None else low_pass(velocity, period, cutoff_hz)
    return smooth, speed, central_difference(speed, period)


_BLOCK_COLUMNS = 64  # columns filtered at once: bounds the memory
FULL_BAND = 0.8
"""Cut-off of a low-pass in Nyquist frequencies of the samples that are kept, at most: that of MATLAB's `decimate`."""


@dataclass(frozen=True, slots=True)
class ParallelFilter:
    """Low-pass and decimation for all columns of one motion, see :func:`make_parallel_filter`."""

    stretches: tuple[tuple[int, int], ...]  # first sample and the one after the last of every stretch without a gap
    period: float  # between two samples [s]
    cutoff_hz: float  # -3 dB frequency [Hz]
    decimate: int  # every how manieth sample is kept
    kept: IntArray  # (K,) which samples of the motion are kept: edges cut, decimated

    def apply(self, columns: FloatArray) -> FloatArray:
        """Filter and decimate columns (N, ...), N samples of the motion, to (K, ...).

        Raises
        ------
        InputError
            When a value is not finite: it would spread.
        """
        if not np.isfinite(columns).all():
            raise InputError("a column to be filtered has values that are not finite; leave its samples or joint out")
        flat = columns.reshape(columns.shape[0], -1)
        filtered, shown = np.zeros((self.kept.size, flat.shape[1])), np.flatnonzero(flat.any(axis=0))
        for start, stop in self.stretches:
            rows = np.flatnonzero((self.kept >= start) & (self.kept < stop))
            for first in range(0, shown.size if rows.size else 0, _BLOCK_COLUMNS):
                block = shown[first : first + _BLOCK_COLUMNS]
                smooth = low_pass(flat[start:stop, block], self.period, self.cutoff_hz)
                filtered[rows[:, None], block] = smooth[self.kept[rows] - start]
        return filtered.reshape(self.kept.size, *columns.shape[1:])


def decimation(period: float, cutoff_hz: float) -> int:
    """Decimation factor behind a low-pass of this cut-off [Hz], for samples of this period [s]."""
    return max(1, int(FULL_BAND * 0.5 / (period * cutoff_hz) + 1e-9))


def make_parallel_filter(motion: Motion, cutoff_hz: float | None = None) -> ParallelFilter:
    """Filter of one motion, decimated so that its cut-off is at most 0.8 of the new Nyquist frequency.

    Parameters
    ----------
    motion : its stamps show the gaps
    cutoff_hz : -3 dB frequency [Hz]; None: ``motion.parallel_hz``

    Raises
    ------
    InputError
        When the cut-off does not fit the rate, or no stretch is longer than the edges.
    """
    cutoff_hz = motion.parallel_hz if cutoff_hz is None else cutoff_hz
    if not cutoff_hz > 0.0:
        raise InputError(f"{motion.name}: a parallel filter needs a cut-off above zero, it is {cutoff_hz:g} Hz")
    factor = decimation(motion.period, cutoff_hz)
    edge = _low_pass_edge(motion.period, cutoff_hz)
    stretches = motion.stretches
    kept = np.concatenate([np.arange(start + edge, stop - edge, factor) for start, stop in stretches]).astype(np.intp)
    if not kept.size:
        longest = max(stop - start for start, stop in stretches) * motion.period
        raise InputError(
            f"{motion.name}: a parallel filter of {cutoff_hz:g} Hz cuts {2 * edge * motion.period:.3g} s off, "
            f"the longest stretch has {longest:.3g} s"
        )
    return ParallelFilter(stretches, motion.period, cutoff_hz, factor, kept)
