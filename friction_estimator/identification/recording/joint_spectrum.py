"""What the spectrum of one joint shows: motion, vibration, noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import welch

from friction_estimator.identification.recording.filters import HIGHEST
from friction_estimator.types import FloatArray

FLAT = 2.0
"""A low-pass of order 4 changes amplitudes by less than 1 % up to its cut-off divided by this."""

_MOVES = (20.0, 3.0)  # position and velocity over their RMS noise
_BITS = 20  # that a motion must span, where the signal comes in steps
_TRAVEL, _MOTION = 0.999, 0.95  # of the variances of position and velocity
_HARMONICS, _STRANGE = 3.0, 0.01  # of the motion, and what may be none of it
_FLOOR_FROM = 0.1  # of the sampling rate: above it there is a half octave without vibration
_WINDOW = 256  # samples of a spectrum at the least, where there are as many


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What the spectrum of one joint shows; NaN where the joint hardly moves.

    Attributes
    ----------
    floor : density of its noise and of its rounding [rad^2/Hz, or (rad/s)^2/Hz of a velocity]
    excursion : standard deviation of the signal over that of its noise, zero where it spans a few bits only
    travel_hz : below it lie 99.9 % of the variance of the position
    motion_hz : below it lie 95 % of the variance of the velocity
    sunk_hz : above it the signal is within its noise floor
    valley_hz : where the acceleration is weakest between ``travel_hz`` and ``sunk_hz``
    compare_hz : up to which the torque is compared with a model: at the valley, and up to the third harmonic of the
        motion below it, so that a friction that jumps with the direction is seen (its first harmonic looks like viscous
        friction), as far as vibration and noise above the valley hold no more than a hundredth of the variance of the
        acceleration
    """

    floor: float
    excursion: float
    travel_hz: float
    motion_hz: float
    sunk_hz: float
    valley_hz: float
    compare_hz: float

    @property
    def cutoff_hz(self) -> float:
        """So high that the filter is flat where torques are compared, and where the motion is."""
        return FLAT * max(self.compare_hz, self.motion_hz)


def joint_spectrum(signal: FloatArray, period: float, derivative: int) -> Spectrum:
    """Look at a position (``derivative`` 0) or velocity (1) (N,) of one joint, sampled evenly."""
    frequency, density = welch_density(signal, period, derivative == 0)
    mean = _half_octaves(frequency, density)
    white = float(mean[(frequency > _FLOOR_FROM / period) & (frequency < HIGHEST / period)].min())
    floor = max(white, _rounding(signal, period))
    excursion = _signal_to_noise(signal, floor, period)
    if excursion < _MOVES[derivative]:
        return Spectrum(floor, excursion, *[math.nan] * 5)
    clean = np.where(mean > 2.0 * floor, np.maximum(density - floor, 0.0), 0.0)
    if not clean.any():  # slower than the spectrum resolves
        clean = density
    omega = 2.0 * math.pi * frequency
    travel_hz = _share(frequency, clean * omega ** (-2 * derivative), _TRAVEL)
    motion_hz = _share(frequency, clean * omega ** (2 - 2 * derivative), _MOTION)
    sunk = frequency[(mean < 2.0 * floor) & (frequency >= travel_hz)]
    sunk_hz = float(sunk[0]) if sunk.size else float(frequency[-1])
    between = np.flatnonzero((frequency >= travel_hz) & (frequency <= sunk_hz))
    valley = int(between[np.argmin((mean * omega ** (4 - 2 * derivative))[between])])
    below = slice(None, valley + 1)
    slow_hz = _share(frequency[below], clean[below] * omega[below] ** (2 - 2 * derivative), _MOTION)
    power = np.maximum(mean, floor) * omega ** (4 - 2 * derivative)
    strange = np.searchsorted(np.cumsum(power[valley + 1 :]), _STRANGE * power[below].sum())
    compare_hz = max(min(float(frequency[valley + strange]), _HARMONICS * slow_hz), float(frequency[valley]))
    return Spectrum(floor, excursion, travel_hz, motion_hz, sunk_hz, float(frequency[valley]), compare_hz)


def _rounding(signal: FloatArray, period: float) -> float:
    """Density of the error of a signal (N,) that is rounded to its last bit, per Hz.

    The error is uniform, with a twelfth of the squared bit as its variance; its spectrum reaches up to the rate at
    which the bit changes, or to the Nyquist frequency.
    """
    bit = _last_bit(signal)
    if bit == 0.0:
        return 0.0
    changes = float(np.mean(np.abs(np.diff(signal)))) / (period * bit)
    return bit**2 / 12.0 / min(0.5 / period, changes)


def _signal_to_noise(signal: FloatArray, floor: float, period: float) -> float:
    if np.ptp(signal) < _BITS * _last_bit(signal) or not np.ptp(signal) > 0.0:
        return 0.0
    return float(np.std(signal)) / (math.sqrt(0.5 * floor / period) + np.finfo(float).tiny)


def _last_bit(signal: FloatArray) -> float:
    """Smallest step between two values that occur, zero for a constant."""
    values = np.unique(signal)
    return float(np.diff(values).min()) if values.size > 1 else 0.0


def welch_density(signal: FloatArray, period: float, differences: bool = False) -> tuple[FloatArray, FloatArray]:
    """Frequencies [Hz] above zero and power spectral density; through ``differences`` a steep one leaks less."""
    white = np.diff(signal) if differences else signal - signal.mean()
    length = min(white.size, max(_WINDOW, white.size // 3))
    frequency, density = welch(white, 1.0 / period, "hann", nperseg=length, detrend="constant")
    frequency, density = frequency[1:], density[1:]
    if differences:
        density = density / (2.0 * np.sin(math.pi * frequency * period)) ** 2
    return frequency, density


def _share(frequency: FloatArray, density: FloatArray, share: float) -> float:
    """Frequency below which a share of the variance lies."""
    power = np.cumsum(density)
    return float(frequency[np.searchsorted(power, share * power[-1])])


def _half_octaves(frequency: FloatArray, density: FloatArray) -> FloatArray:
    """Mean density within a quarter of an octave below and above each frequency: lines of a periodic motion merge."""
    power = np.append(np.cumsum(density[::-1])[::-1], 0.0)  # from the weak end, so that nothing weak is lost
    first = np.searchsorted(frequency, frequency * 2.0**-0.25)
    last = np.searchsorted(frequency, frequency * 2.0**0.25, side="right")
    return np.asarray((power[first] - power[last]) / (last - first))
