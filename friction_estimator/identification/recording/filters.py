"""Zero-phase filters: Butterworth forward and backward, Savitzky-Golay, central differences."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import butter, savgol_coeffs, savgol_filter, sosfilt, sosfiltfilt

from friction_estimator.errors import InputError
from friction_estimator.types import FloatArray

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


def low_pass_edge(period: float, cutoff_hz: float, order: int) -> int:
    """How many samples at each end the ends themselves disturb."""
    slowest = 2.0 * math.pi * cutoff_hz * period * math.sin(math.pi / (2 * order))  # decay of its slowest pole
    impulse = np.zeros(math.ceil(20.0 / slowest))
    impulse[0] = 1.0
    response = np.abs(sosfilt(_design(period, cutoff_hz, order), impulse))
    return int(np.flatnonzero(response > _FORGOTTEN * response.max())[-1]) + 1


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
