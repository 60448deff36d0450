"""Parallel filtering: the same low-pass and decimation for both sides of the equation (Hamon et al. 2010, §IV.B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.filters import low_pass, low_pass_edge
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.types import FloatArray, IntArray

ORDER = 4
_BLOCK = 64  # columns filtered at once: bounds the memory
FULL_BAND = 0.8
"""Cut-off of a low-pass in Nyquist frequencies of the samples that are kept, at most: that of MATLAB's `decimate`."""


@dataclass(frozen=True, slots=True)
class ParallelFilter:
    """One filter for all columns of one motion.

    Attributes
    ----------
    stretches : first sample and the one after the last of every stretch without a gap
    period : between two samples [s]
    cutoff_hz : -3 dB frequency [Hz]
    decimate : every how manieth sample is kept
    kept : (K,) which samples of the motion are kept: edges cut, decimated
    """

    stretches: tuple[tuple[int, int], ...]
    period: float
    cutoff_hz: float
    decimate: int
    kept: IntArray

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
        filtered = np.empty((self.kept.size, flat.shape[1]))
        for start, stop in self.stretches:
            rows = np.flatnonzero((self.kept >= start) & (self.kept < stop))
            for block in range(0, flat.shape[1] if rows.size else 0, _BLOCK):
                part = flat[start:stop, block : block + _BLOCK]
                smooth = low_pass(part, self.period, self.cutoff_hz, ORDER)
                filtered[rows, block : block + _BLOCK] = smooth[self.kept[rows] - start]
        return filtered.reshape(self.kept.size, *columns.shape[1:])


def make_parallel_filter(motion: Motion, cutoff_hz: float | None = None, decimate: int | None = None) -> ParallelFilter:
    """Design the filter of one motion.

    Parameters
    ----------
    motion : its stamps say where the gaps are
    cutoff_hz : -3 dB frequency [Hz]; None: ``motion.parallel_hz``
    decimate : keep every how manieth sample; None: as few as the cut-off allows, 0.8 of the new Nyquist frequency

    Raises
    ------
    InputError
        When the cut-off or the factor does not fit the rate, or no stretch is longer than the edges.
    """
    cutoff_hz = motion.parallel_hz if cutoff_hz is None else cutoff_hz
    if not cutoff_hz > 0.0:
        raise InputError(f"{motion.name}: a parallel filter needs a cut-off above zero, it is {cutoff_hz:g} Hz")
    allowed = max(1, int(FULL_BAND * 0.5 / (motion.period * cutoff_hz) + 1e-9))
    factor = allowed if decimate is None else decimate
    if not 1 <= factor <= allowed:
        raise InputError(f"at {cutoff_hz:g} Hz every 1st to {allowed}th sample can be kept, not every {factor}th")
    edge = low_pass_edge(motion.period, cutoff_hz, ORDER)
    stretches = motion.stretches
    kept = np.concatenate([np.arange(start + edge, stop - edge, factor) for start, stop in stretches]).astype(np.intp)
    if not kept.size:
        longest = max(stop - start for start, stop in stretches) * motion.period
        raise InputError(
            f"{motion.name}: a parallel filter of {cutoff_hz:g} Hz cuts {2 * edge * motion.period:.3g} s off, "
            f"the longest stretch has {longest:.3g} s"
        )
    return ParallelFilter(stretches, motion.period, cutoff_hz, factor, kept)
