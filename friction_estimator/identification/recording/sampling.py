"""Stamps and bad samples of a log: usual period, gaps, even grids, repair; and what of a signal is motion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from scipy.interpolate import make_interp_spline

from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import TEMPERATURE, JointLog
from friction_estimator.identification.linear_problem import robust_std
from friction_estimator.types import BoolArray, FloatArray, IntArray

_ALWAYS_BRIDGED = 3.5
"""Two lost samples in a row are bridged whatever the motion, in periods."""
_LONGEST_BRIDGE = 10.5
"""Steps that are bridged at most, in periods: the noise of a spline between its ends grows with them."""

EVEN = 0.02
"""Steps between stamps that vary less than this, in periods (RMS), count as even; slow drift of a clock may add up."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a recording that has no gap in time."""

    # first sample and the one after the last
    start: int
    stop: int
    jitter: float  # RMS deviation of the steps between stamps from whole periods, in periods
    missing: int  # how many samples were lost and are bridged

    @property
    def even(self) -> bool:
        """Whether the samples may be used as they are, with the lost ones filled in."""
        return self.jitter < EVEN


def usual_period(time: FloatArray) -> float:
    """Most frequent time between two samples with stamps (N,) [s].

    Raises
    ------
    InputError
        When there are fewer than two samples.
    """
    if time.size < 2:
        raise InputError(f"the log has {time.size} samples: a motion needs at least two")
    steps = np.diff(time)
    median = float(np.median(steps))
    return float(np.mean(steps[np.abs(steps - median) < 0.5 * median]))  # the clock may count coarsely


def longest_bridge(period: float, band_hz: float) -> float:
    """Longest step between two samples that is bridged [s]; what is longer is a gap that no filter crosses.

    Samples that are half of the shortest period of a signal apart show all of it.

    Parameters
    ----------
    period : between two samples, as most of them have it [s]
    band_hz : motion and torque are compared up to here [Hz]
    """
    return max(_ALWAYS_BRIDGED * period, min(_LONGEST_BRIDGE * period, 0.5 / band_hz))


def find_stretches(time: FloatArray, period: float, bridged: float | None = None) -> tuple[Stretch, ...]:
    """Where the samples (N,), strictly increasing in time [s], have no gap between them.

    Parameters
    ----------
    bridged : longest step between two samples that is no gap [s]; None: two samples may be lost in a row
    """
    gaps = np.flatnonzero(np.diff(time) > (_ALWAYS_BRIDGED * period if bridged is None else bridged)) + 1
    edges, found = [0, *gaps.tolist(), time.size], []
    for start, stop in pairwise(edges):
        steps, whole = np.diff(time[start:stop]) / period, np.diff(grid_numbers(time[start:stop], period))
        jitter = float(np.sqrt(np.mean((steps - whole) ** 2))) if steps.size else 0.0
        found.append(Stretch(start, stop, jitter, int(whole.sum()) - steps.size))
    return tuple(found)


def longest_stretch(time: FloatArray, period: float) -> Stretch:
    """The stretch without a gap that has most samples."""
    return max(find_stretches(time, period), key=lambda stretch: stretch.stop - stretch.start)


def even_times(time: FloatArray, stretch: Stretch, period: float) -> FloatArray:
    """Stamps (K,) of one stretch of the stamps (N,) at a constant rate [s]: as they are where they are even."""
    own = time[stretch.start : stretch.stop]
    if not stretch.even:
        return own[0] + period * np.arange(int((own[-1] - own[0]) / period + 1e-6) + 1)
    place = grid_numbers(own, period)
    return np.asarray(np.interp(np.arange(place[-1] + 1), place, own))


def evenly(signal: FloatArray, time: FloatArray, stretch: Stretch, period: float, smooth: bool) -> FloatArray:
    """Samples (K, ...) of a signal at :func:`even_times`; recorded values at these times are kept to the last bit.

    Parameters
    ----------
    signal, time : (N, ...) recorded values, and their stamps (N,) [s]
    stretch : which of the N samples, without a gap between them
    period : of the result [s]
    smooth : True: values between samples by cubic splines, for a motion; False: by straight lines
    """
    own, samples = time[stretch.start : stretch.stop], signal[stretch.start : stretch.stop]
    if not stretch.even:
        return _at_times(even_times(time, stretch, period), own, samples, smooth)
    if not stretch.missing:
        return samples
    place = grid_numbers(own, period)
    filled = _at_times(np.arange(place[-1] + 1, dtype=float), place.astype(float), samples, smooth)
    filled[place] = samples
    return filled


def grid_numbers(time: FloatArray, period: float) -> IntArray:
    """Number (N,) of each stamp (N,) on a grid of the period, counted step by step so that a drift does not add up."""
    return np.concatenate([[0], np.cumsum(np.maximum(np.rint(np.diff(time) / period), 1.0))]).astype(np.intp)


def _at_times(grid: FloatArray, time: FloatArray, signal: FloatArray, smooth: bool) -> FloatArray:
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


_FEWEST_SAMPLES = 50
_LARGEST_NUMBER, _SMALLEST_NUMBER = 1e12, 1e-30
"""No sensor measures numbers beyond the first, in SI units; below the second they are zero. Products of four numbers
between them stay within the range of floating point."""
_SHORTEST_STEP, _LONGEST_STEP = 1e-7, 1e9
"""Steps between samples [s]; the stamps of a slow log may be in nanoseconds."""
_BAD_SHARE = 0.1
"""Share of the samples that may be left out; above it the log is faulty and should be recorded again."""

_SAME_STAMP = 1e-3  # of the usual step: stamps that are nearer than this to each other are the same
_STAMP_DIGITS = (1e-1, 1e-2, 1e-3, 1e-4)  # s
_DIGIT_ERROR = 1e-3  # of a digit, left by floating point


def repair(log: JointLog) -> tuple[JointLog, tuple[str, ...]]:
    """Leave out samples with missing numbers or repeated stamps, and put late ones in their place.

    A short hole is bridged later, a longer one becomes a gap. ``inputs`` may hold NaN: they mean that
    a joint has none or that nothing was measured. Only a temperature, which is often logged at a lower rate, is filled.

    Returns
    -------
    log : time strictly increasing, position finite; velocity and effort finite, or NaN in the whole column of a joint
        that has none
    notes : what was done, with counts; empty when nothing was

    Raises
    ------
    InputError
        When the log is too short, more than a tenth of it is bad, or time runs backwards.
    """
    if log.time.size < _FEWEST_SAMPLES:
        raise InputError(f"{log.name}: {log.time.size} samples are too few, at least {_FEWEST_SAMPLES} are needed")
    log, notes = _within_range(log)
    log, count = _without_missing(log)
    if count:
        notes.append(f"{count} samples with missing numbers left out")
    log, count = _ordered(log)
    if count:
        notes.append(f"{count} samples whose stamp was late put in their place")
    log, count = _without_repeated(log)
    if count:
        notes.append(f"{count} samples with the stamp of the one before left out")
    if not _SHORTEST_STEP < (step := _median_step(log)) < _LONGEST_STEP:
        raise InputError(f"{log.name}: samples are {step:.3g} s apart: is it the column of the time?")
    log, digit = _with_even_stamps(log)
    if digit:
        notes.append(f"stamps are rounded to {digit:g} s, and fit samples at a constant rate: they are taken as such")
    if TEMPERATURE in log.inputs and np.isnan(log.inputs[TEMPERATURE]).any():
        inputs = dict(log.inputs)
        known = np.isfinite(inputs[TEMPERATURE])
        filled = [np.interp(log.time, log.time[rows], one[rows]) if rows.any() else one
                  for one, rows in zip(inputs[TEMPERATURE].T, known.T, strict=True)]  # fmt: skip
        inputs[TEMPERATURE] = np.column_stack(filled)
        log = replace(log, inputs=MappingProxyType(inputs))
    return log, tuple(notes)


def _within_range(log: JointLog) -> tuple[JointLog, list[str]]:
    """The log without numbers that no sensor measures, and which columns had them."""
    notes: list[str] = []

    def bounded(kind: str, signal: FloatArray) -> FloatArray:
        size = np.abs(signal)
        beyond, vanishing = size > _LARGEST_NUMBER, (size < _SMALLEST_NUMBER) & (size > 0.0)
        counts = zip(log.joint_names, (beyond & np.isfinite(signal)).sum(axis=0), strict=True)
        notes.extend(
            f"{number} numbers of {kind}/{joint} are beyond {_LARGEST_NUMBER:g} and count as missing"
            for joint, number in counts
            if number
        )
        if not (beyond.any() or vanishing.any()):
            return signal
        return np.where(beyond, np.nan, np.where(vanishing, 0.0, signal))

    return log.changed(bounded), notes


def _without_missing(log: JointLog) -> tuple[JointLog, int]:
    bad = ~np.isfinite(log.time)
    counts = {"time": int(bad.sum())} if bad.any() else {}
    for kind in ("position", "velocity", "effort"):
        signal = getattr(log, kind)
        if signal is None:
            continue
        missing = ~np.isfinite(signal)
        absent = missing.all(axis=0)
        if kind == "position" and absent.any():
            joint = log.joint_names[int(np.argmax(absent))]
            raise InputError(f"{log.name}: position/{joint} holds no number at all; leave the joint out")
        missing &= ~absent
        counts |= {
            f"{kind}/{joint}": int(number)
            for joint, number in zip(log.joint_names, missing.sum(axis=0), strict=True)
            if number
        }
        bad |= missing.any(axis=1)
    if bad.mean() > _BAD_SHARE:
        counted = ", ".join(f"{name} {number}" for name, number in counts.items())
        raise InputError(
            f"{log.name}: {bad.sum()} of {bad.size} samples lack numbers (NaN), too many to be left out: {counted}; "
            "leave these joints or this part of the file out"
        )
    return (log.rows(~bad), int(bad.sum())) if bad.any() else (log, 0)


def _ordered(log: JointLog) -> tuple[JointLog, int]:
    behind = np.maximum.accumulate(log.time) - log.time
    if not behind.any():
        return log, 0
    late = behind > _SAME_STAMP * _median_step(log)
    count = int(late.sum())
    if count > _BAD_SHARE * late.size:
        back = int(np.argmax(late))
        raise InputError(
            f"{log.name}: time does not increase, first at sample {back} ({log.time[back - 1]:.6g} s, then "
            f"{log.time[back]:.6g} s): is it the column of the time? Where a clock was set back, cut the file in two"
        )
    return log.rows(np.argsort(log.time, kind="stable")), count


def _without_repeated(log: JointLog) -> tuple[JointLog, int]:
    again = np.concatenate([[False], np.diff(log.time) <= _SAME_STAMP * _median_step(log)])
    count = int(again.sum())
    if count > _BAD_SHARE * again.size:
        raise InputError(
            f"{log.name}: {count} of {again.size} stamps repeat the one before: time needs more digits, "
            "or the file holds every sample more than once"
        )
    return (log.rows(~again), count) if count else (log, 0)


def _with_even_stamps(log: JointLog) -> tuple[JointLog, float]:
    """Take the rounding off stamps that were written with few digits, where an even grid explains every one of them."""
    since, step = log.time - log.time[0], _median_step(log)
    digit = next((d for d in _STAMP_DIGITS if np.abs(since / d - np.rint(since / d)).max() < _DIGIT_ERROR), 0.0)
    if digit < EVEN * step or np.ptp(np.diff(since)) < EVEN * step:
        return log, 0.0
    place = grid_numbers(log.time, usual_period(log.time))
    even = np.polyval(np.polyfit(place, since, 1), place)
    if np.abs(even - since).max() > digit:
        return log, 0.0
    return replace(log, time=log.time[0] + even), digit


def _median_step(log: JointLog) -> float:
    return float(np.median(np.abs(np.diff(log.time))))


FLAT = 2.0
"""A low-pass of order 4 changes amplitudes by less than 1 % up to its cut-off divided by this."""
_STANDSTILL_BITS = 4
"""Steps of the encoder that a motion must span."""
_STANDSTILL_SIGMAS = 3.0
"""Standard deviation of a signal over that of its noise: a joint below that stands still."""
_EQUAL_VALUES = 1e-15
"""Share of the range of a signal: values that are nearer than this to each other are the same."""
_TRAVEL_SHARE = 0.999
"""Share of the variance of the position that its band holds."""
BANDS = 10.0
"""Comparison in bands of the motion: the first harmonics of friction's steps come through."""


def signal_to_noise(signal: FloatArray) -> float:
    """Standard deviation of a signal (N,) over that of its noise: 1 for noise alone, 0 within a few encoder steps."""
    if np.ptp(signal) <= _STANDSTILL_BITS * _last_bit(signal):
        return 0.0
    return float(np.std(signal) / max(white_noise(signal), np.finfo(float).tiny))


def white_noise(signal: FloatArray) -> float:
    """Standard deviation of the white noise of a signal (N,), rounding included.

    It is what fourth differences show, which a motion that is sampled well has little of.
    """
    fourth, bit = np.diff(signal, 4), _last_bit(signal)
    return max(robust_std(fourth) / np.sqrt(70.0), bit / np.sqrt(12.0)) if fourth.size and np.isfinite(bit) else 0.0


def _last_bit(signal: FloatArray) -> float:
    """Smallest step between two values of a signal, zero for a constant one; rounding of a computation is no step."""
    steps = np.diff(np.unique(signal))
    return float(steps[steps > _EQUAL_VALUES * steps.sum()].min(initial=np.inf)) if steps.size else 0.0


def moving_joints(position: FloatArray, velocity: FloatArray | None = None) -> BoolArray:
    """Whether each joint moves by more than the noise and a few bits of its encoder, (n,).

    Parameters
    ----------
    position : (N, n) [rad or m]
    velocity : (N, n) measured, when it is to be used as well: a joint moves when either of the two shows it
    """
    signals = (position,) if velocity is None else (position, velocity)
    return np.array(
        [
            any(signal_to_noise(one[:, joint]) > _STANDSTILL_SIGMAS for one in signals)
            for joint in range(position.shape[1])
        ]
    )


def motion_band(time: FloatArray, position: FloatArray, travel: float = _TRAVEL_SHARE) -> float:
    """Frequency below which a position (N,) has the share ``travel`` of its variance, noise left out [Hz].

    Noise hardly shows in a position, but may hold most of the variance of a velocity.
    """
    period = usual_period(time)
    even = np.interp(np.arange(time[0], time[-1], period), time, position)
    power = np.abs(np.fft.rfft((even - even.mean()) * np.hanning(even.size))) ** 2
    floor = np.median(power[power.size // 2 :]) / np.log(2.0)  # of an exponential distribution, to its mean
    share = np.cumsum(np.maximum(power - floor, 0.0))
    return float((np.searchsorted(share, travel * share[-1]) + 1) / (period * even.size))


def comparison_band(log: JointLog, travel: float = _TRAVEL_SHARE) -> float:
    """Ten times the :func:`motion_band` of the fastest joint [Hz]: motion and torque are compared up to there.

    Raises
    ------
    InputError
        When no joint moves.
    """
    moving = np.flatnonzero(moving_joints(log.position, log.velocity))
    if not moving.size:
        raise InputError(f"{log.name}: no joint moves by more than its noise, so that there is no motion to filter")
    return BANDS * max(motion_band(log.time, log.position[:, joint], travel) for joint in moving)
