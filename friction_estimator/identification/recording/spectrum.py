"""Cut-off of the low-pass from the spectrum of the motion: what of it is motion, vibration and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import welch

from friction_estimator.errors import InputError
from friction_estimator.identification.recording.filters import HIGHEST
from friction_estimator.identification.recording.sampling import evenly, longest_stretch, usual_period
from friction_estimator.types import BoolArray, FloatArray

FLAT = 2.0
"""A low-pass of order 4 changes amplitudes by less than 1 % up to its cut-off divided by this."""

_MOVES = (20.0, 3.0)  # position and velocity over their RMS noise
_BITS = 20  # that a motion must span, where the signal comes in steps
_STANDS = 3.0  # position or velocity over its RMS noise: a joint below that stands still
_SAME = 1e-15  # of the range of a signal: values that are nearer than this to each other are the same
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
    signal_to_noise : standard deviation of the signal over that of its noise and rounding, one for noise alone
    excursion : the same, zero where the signal spans a few bits only
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
    signal_to_noise: float
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


def joint_spectrum(signal: FloatArray, period: float, derivative: int, bit: float | None = None) -> Spectrum:
    """Look at a position (``derivative`` 0) or velocity (1) (N,) of one joint, sampled evenly.

    ``bit`` is the smallest step of the signal as it was recorded; None: that of these samples.
    """
    bit = last_bit(signal) if bit is None else bit
    frequency, density = welch_density(signal, period, derivative == 0)
    mean = _half_octaves(frequency, density)
    white = float(mean[(frequency > _FLOOR_FROM / period) & (frequency < HIGHEST / period)].min())
    floor = max(white, _rounding(signal, period, bit))
    ratio = float(np.std(signal)) / (math.sqrt(0.5 * floor / period) + np.finfo(float).tiny)
    excursion = 0.0 if np.ptp(signal) < _BITS * bit else ratio
    if excursion < _MOVES[derivative]:
        return Spectrum(floor, ratio, excursion, *[math.nan] * 5)
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
    return Spectrum(floor, ratio, excursion, travel_hz, motion_hz, sunk_hz, float(frequency[valley]), compare_hz)


def _rounding(signal: FloatArray, period: float, bit: float) -> float:
    """Density of the error of a signal (N,) that is rounded to its last bit, per Hz.

    The error is uniform, with a twelfth of the squared bit as its variance; its spectrum reaches up to the rate at
    which the bit changes, or to the Nyquist frequency.
    """
    if bit == 0.0 or np.ptp(signal) == 0.0:
        return 0.0
    changes = float(np.mean(np.abs(np.diff(signal)))) / bit / period
    return bit**2 / 12.0 / min(0.5 / period, changes)


def last_bit(signal: FloatArray) -> float:
    """Smallest step between two values (N,) that occur, zero for a constant; rounding of a computation is no step."""
    steps = np.diff(np.unique(signal))
    return float(steps[steps > _SAME * steps.sum()].min(initial=np.inf)) if steps.size else 0.0


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


_HIGHEST_SHARE = 0.8  # of the Nyquist frequency
SHORTEST = 32
"""Samples that a spectrum can be made of."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Low-pass for the motion of one experiment.

    Attributes
    ----------
    cutoff_hz : of position, velocity and acceleration, one for all joints: the highest that one of them needs
    parallel_hz : for the parallel filter of motion and torque, not above ``cutoff_hz``: vibrations of the joints are
        real motion, which friction answers to, but no rigid body explains their torque
    reason : in a sentence
    """

    cutoff_hz: float
    parallel_hz: float
    reason: str


def choose_cutoff(
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray | None = None,
    effort: FloatArray | None = None,
    joint_names: Sequence[str] = (),
) -> Cutoff:
    """Cut-off between the motion and what is not motion.

    The acceleration of a motion falls with frequency, that of sensor noise rises with its fourth power in a spectrum,
    and elastic gears vibrate in between: the spectrum of the acceleration has a valley. Motion and torque are compared
    up to there, or up to the third harmonic of a motion that leaves so much between itself and the noise: what is known
    of the acceleration is not all that counts, the step of dry friction must be seen. The motion itself is filtered
    twice as high as that, or as 95 % of the velocity where that is higher: the torque does not go through this filter,
    which must therefore be flat where both are compared. The largest cut-off over the joints is taken for all of them:
    coupled torques then keep their phases, and no joint loses its motion.

    Parameters
    ----------
    time : (N,) strictly increasing [s]
    position : (N,) or (N, n) [rad or m]
    velocity : (N,) or (N, n) measured, when it is to be used instead of the derivative of the position
    effort : (N,) or (N, n); ``reason`` has the share of the torque below the cut-off; it has no part in the choice
    joint_names : (n) for ``reason``

    Raises
    ------
    InputError
        When the samples are too few for a spectrum, or no joint moves.
    """
    signal = position if velocity is None else velocity
    signals = signal.reshape(time.size, -1)
    period, even = _longest(time, signals, True)
    highest_hz = _HIGHEST_SHARE * 0.5 / period
    spectra = [
        joint_spectrum(column, period, 0 if velocity is None else 1, last_bit(recorded))
        for column, recorded in zip(even.T, signals.T, strict=True)
    ]
    per_joint = np.array([min(spectrum.cutoff_hz, highest_hz) for spectrum in spectra])
    if np.isnan(per_joint).all():
        raise InputError("no joint moves by more than its noise, so that there is no motion to filter")
    leading = int(np.nanargmax(per_joint))
    cutoff = float(per_joint[leading])
    parallel = min(float(np.nanmax([spectrum.compare_hz for spectrum in spectra])), cutoff)
    name = joint_names[leading] if joint_names else f"joint {leading + 1}"
    name = f"{'position' if velocity is None else 'measured velocity'} of {name}"
    reason = f"cut-off {cutoff:.3g} Hz, from the {name}: "
    reason += _reason(spectra[leading], cutoff, 0.5 / period) + f"; torques are compared up to {parallel:.3g} Hz"
    if effort is not None:
        reason += _torque_share(time, effort.reshape(time.size, -1), parallel)
    return Cutoff(cutoff, parallel, reason)


def moving_joints(time: FloatArray, position: FloatArray, velocity: FloatArray | None = None) -> BoolArray:
    """Whether each joint moves by more than the noise and a few bits of its encoder, (n,).

    Parameters
    ----------
    time : (N,) strictly increasing [s]
    position : (N, n) [rad or m]
    velocity : (N, n) measured, when it is to be used as well: a joint moves when either of the two shows it
    """
    period = usual_period(time)
    stretch = longest_stretch(time, period)
    moving: BoolArray = np.zeros(position.shape[1], dtype=bool)
    for derivative, signals in enumerate((position,) if velocity is None else (position, velocity)):
        even = evenly(signals, time, stretch, period, True)
        if len(even) < SHORTEST:
            moving |= np.ptp(signals, axis=0) > 0.0
            continue
        for joint, column in enumerate(even.T):
            spectrum = joint_spectrum(column, period, derivative, last_bit(signals[:, joint]))
            moving[joint] |= spectrum.signal_to_noise > _STANDS
    return moving


def _longest(time: FloatArray, signals: FloatArray, smooth: bool) -> tuple[float, FloatArray]:
    """Period [s] and even samples (K, n) of the longest stretch without a gap."""
    period = usual_period(time)
    stretch = longest_stretch(time, period)
    if stretch.stop - stretch.start < SHORTEST:
        raise InputError(
            f"the longest stretch without a gap has {stretch.stop - stretch.start} samples, a spectrum needs {SHORTEST}"
        )
    return period, evenly(signals, time, stretch, period, smooth)


def _torque_share(time: FloatArray, effort: FloatArray, cutoff: float) -> str:
    known = effort[:, np.isfinite(effort).all(axis=0)]
    if not known.shape[1]:
        return ""
    period, even = _longest(time, known, False)
    shares = []
    for column in even.T:
        frequency, density = welch_density(column - column.mean(), period)
        shares.append(density[frequency <= cutoff].sum() / total if (total := density.sum()) > 0.0 else 1.0)
    return f"; {100.0 * min(shares):.3g} % or more of the variance of every torque lie below that"


def _reason(spectrum: Spectrum, cutoff: float, nyquist: float) -> str:
    text = (
        f"its acceleration is weakest at {spectrum.valley_hz:.3g} Hz, 95 % of the variance of its velocity lie below "
    )
    text += f"{spectrum.motion_hz:.3g} Hz"
    if spectrum.sunk_hz < _HIGHEST_SHARE * nyquist:
        text += f", it sinks into its noise floor at {spectrum.sunk_hz:.3g} Hz"
    else:
        text += f", no noise floor shows below {nyquist:.4g} Hz"
    if cutoff < spectrum.cutoff_hz:
        return text + "; as high as the sampling rate allows"
    if spectrum.motion_hz >= spectrum.compare_hz:
        return text + f"; {FLAT:g} times the second of these"
    if spectrum.compare_hz > spectrum.valley_hz:
        return text + f"; {FLAT:g} times {spectrum.compare_hz:.3g} Hz, for the harmonics of friction's steps"
    return text + f"; {FLAT:g} times the first of these"
