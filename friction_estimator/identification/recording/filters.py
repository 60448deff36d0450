"""Zero-phase filters, differentiators, and the low-pass that both sides of the equation of motion pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from scipy.signal import butter, savgol_coeffs, savgol_filter, sosfilt, sosfiltfilt

from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import Motion
from friction_estimator.types import FloatArray, IntArray

_CENTRAL = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""First derivative, exact for polynomials up to degree 8: true to 1 % up to a fifth of the sampling rate."""

HALF_STENCIL = _CENTRAL.size // 2
_FORGOTTEN = 1e-2  # of its largest value: what an impulse response may still be at the edge
HIGHEST = 0.45
"""Highest cut-off of a low-pass, in sampling rates."""


def low_pass(signal: FloatArray, period: float, cutoff_hz: float, order: int) -> FloatArray:
    """Butterworth low-pass forward and backward along the first axis (Egle 2021, §7.1.2; Hamon et al. 2010, §IV.B).

    Parameters
    ----------
    signal : (N, ...)
    period : between two samples [s]
    cutoff_hz : where both passes together leave half of the power (-3 dB) [Hz]
    order : of one pass

    Returns
    -------
    filtered : (N, ...), wrong within :func:`low_pass_edge` samples of both ends
    """
    sos = _design(period, cutoff_hz, order)
    pad = min(low_pass_edge(period, cutoff_hz, order), signal.shape[0] - 1)
    return np.asarray(sosfiltfilt(sos, signal, axis=0, padlen=pad))


@cache
def low_pass_edge(period: float, cutoff_hz: float, order: int) -> int:
    """How many samples at each end the ends themselves disturb."""
    slowest = 2.0 * math.pi * cutoff_hz * period * math.sin(math.pi / (2 * order))  # decay of its slowest pole
    impulse = np.zeros(math.ceil(20.0 / slowest))
    impulse[0] = 1.0
    response = np.abs(sosfilt(_design(period, cutoff_hz, order), impulse))
    return int(np.flatnonzero(response > _FORGOTTEN * response.max())[-1]) + 1


@cache  # a design takes longer than its use, and an identification needs the same few a hundred times
def _design(period: float, cutoff_hz: float, order: int) -> FloatArray:
    if not 0.0 < cutoff_hz * period <= HIGHEST:
        raise InputError(
            f"a cut-off of {cutoff_hz:g} Hz cannot be used at {1.0 / period:g} Hz; "
            f"give one between 0 and {HIGHEST / period:g} Hz"
        )
    one_pass = math.tan(math.pi * cutoff_hz * period) / (math.sqrt(2.0) - 1.0) ** (0.5 / order)
    return np.asarray(butter(order, 2.0 / math.pi * math.atan(one_pass), output="sos"))


def central_difference(signal: FloatArray, period: float) -> FloatArray:
    """First derivative (N, ...) along the first axis, wrong within ``HALF_STENCIL`` samples of both ends."""
    padded = np.pad(signal, [(HALF_STENCIL, HALF_STENCIL)] + [(0, 0)] * (signal.ndim - 1), mode="edge")
    count = signal.shape[0]
    terms = [c * padded[k : k + count] for k, c in enumerate(_CENTRAL) if c]
    return np.asarray(sum(terms) / period)


def savitzky_golay(signal: FloatArray, period: float, half_window: int, order: int, derivative: int) -> FloatArray:
    """Value or derivative of the polynomial through a moving window (Egle 2021, eqs. 7.1-7.8), along the first axis.

    Returns
    -------
    filtered : (N, ...), wrong within ``half_window`` samples of both ends
    """
    window = 2 * half_window + 1
    return np.asarray(savgol_filter(signal, window, order, deriv=derivative, delta=period, axis=0, mode="nearest"))


def half_window(period: float, cutoff_hz: float, order: int) -> int:
    """Half the window of a Savitzky-Golay filter that leaves half of the power (-3 dB) at a frequency.

    The longest window is taken whose power response is still at least a half there; one sample more than the order
    needs at the least.
    """
    if not 0.0 < cutoff_hz * period <= HIGHEST:
        _design(period, cutoff_hz, 1)
    smallest = order // 2 + 1
    guess = max(smallest, int(0.5 * ((order + 1) / (2.0 * cutoff_hz * period) + 4.6) / 3.2))
    while _power(guess + 1, order, cutoff_hz * period) >= 0.5:
        guess += 1
    return guess


def _power(half: int, order: int, cycles: float) -> float:
    """Power response at a frequency in cycles a sample."""
    taps = savgol_coeffs(2 * half + 1, order)
    return float(np.abs(taps @ np.exp(-2j * math.pi * cycles * np.arange(-half, half + 1))) ** 2)


METHODS = ("butterworth", "savitzky_golay")

Derived = tuple[FloatArray, FloatArray, FloatArray]


class Differentiator(Protocol):
    """Turns even samples into band-limited position, velocity and acceleration."""

    @property
    def edge(self) -> int:
        """How many samples at each end are wrong."""

    @property
    def reason(self) -> str:
        """What it does, in a sentence."""

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """Position, velocity and acceleration (N, n); from the measured velocity (N, n) where it is given."""


def make_differentiator(method: str, period: float, cutoff_hz: float, order: int) -> Differentiator:
    """Differentiator with its -3 dB frequency [Hz] for samples of this period [s]."""
    if method == "butterworth":
        return Butterworth(period, cutoff_hz, order)
    return SavitzkyGolay(period, cutoff_hz, order, half_window(period, cutoff_hz, order))


@dataclass(frozen=True, slots=True)
class Butterworth:
    """Butterworth forward and backward, then central differences (Hamon et al. 2010, §IV.B; Egle 2021, §7.1.2)."""

    period: float
    cutoff_hz: float
    order: int

    @property
    def edge(self) -> int:
        """See the protocol."""
        return low_pass_edge(self.period, self.cutoff_hz, self.order) + 2 * HALF_STENCIL

    @property
    def reason(self) -> str:
        """See the protocol."""
        return (
            f"Butterworth of order {self.order} forward and backward, central differences, "
            f"{self.edge * self.period:.3g} s cut off at each edge"
        )

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """See the protocol."""
        smooth = low_pass(position, self.period, self.cutoff_hz, self.order)
        if velocity is None:
            speed = central_difference(smooth, self.period)
        else:
            speed = low_pass(velocity, self.period, self.cutoff_hz, self.order)
        return smooth, speed, central_difference(speed, self.period)


@dataclass(frozen=True, slots=True)
class SavitzkyGolay:
    """Polynomials through moving windows (Egle 2021, §7.1.1)."""

    period: float
    cutoff_hz: float
    order: int
    edge: int

    @property
    def reason(self) -> str:
        """See the protocol."""
        return (
            f"Savitzky-Golay of order {self.order}, window of {2 * self.edge + 1} samples, "
            f"{self.edge * self.period:.3g} s cut off at each edge"
        )

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """See the protocol."""

        def fit(signal: FloatArray, derivative: int) -> FloatArray:
            return savitzky_golay(signal, self.period, self.edge, self.order, derivative)

        if velocity is None:
            return fit(position, 0), fit(position, 1), fit(position, 2)
        return fit(position, 0), fit(velocity, 0), fit(velocity, 1)


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


def make_parallel_filter(motion: Motion, cutoff_hz: float | None = None) -> ParallelFilter:
    """Design the filter of one motion; of the samples as few stay as it allows, 0.8 of the new Nyquist frequency.

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
    factor = max(1, int(FULL_BAND * 0.5 / (motion.period * cutoff_hz) + 1e-9))
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
