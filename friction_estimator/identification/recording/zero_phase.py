"""Joint log to motion: zero-phase filter, derivatives, edges cut, gaps left open; and the filter of both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from scipy.signal import butter, sosfilt, sosfiltfilt

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog, Motion, Treatment
from friction_estimator.identification.recording.sampling import (
    FLAT,
    Stretch,
    comparison_band,
    even_times,
    evenly,
    find_stretches,
    longest_bridge,
    moving_joints,
    repair,
    usual_period,
)
from friction_estimator.types import FloatArray, IntArray

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
    """First derivative (N, ...) along the first axis, wrong within ``HALF_STENCIL`` samples of both ends."""
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

    Low-pass, then central differences (Hamon et al. 2010, §IV.B; Egle 2021, §7.1.2).
    """
    smooth = low_pass(position, period, cutoff_hz)
    speed = central_difference(smooth, period) if velocity is None else low_pass(velocity, period, cutoff_hz)
    return smooth, speed, central_difference(speed, period)


_BLOCK_COLUMNS = 64  # columns filtered at once: bounds the memory
FULL_BAND = 0.8
"""Cut-off of a low-pass in Nyquist frequencies of the samples that are kept, at most: that of MATLAB's `decimate`."""


@dataclass(frozen=True, slots=True)
class ParallelFilter:
    """One filter for all columns of one motion."""

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
    """Every how manieth sample is kept behind a low-pass."""
    return max(1, int(FULL_BAND * 0.5 / (period * cutoff_hz) + 1e-9))


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


_LADDER = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Cut-offs of the motion that are compared, in bands in which torques are compared."""


def highest_cutoff(logs: Sequence[JointLog]) -> float:
    """Highest cut-off that logs are treated with [Hz]."""
    return min(FULL_BAND * 0.5 / usual_period(log.time) for log in logs)


def tried_cutoffs(logs: Sequence[JointLog], band_hz: float, given: float | None) -> list[float]:
    """Cut-offs of the motion that are compared, rising [Hz]; the given one alone."""
    return sorted({min(factor * band_hz, highest_cutoff(logs)) for factor in _LADDER}) if given is None else [given]


def usual_treatment(logs: Sequence[JointLog], band_hz: float | None = None) -> Treatment:
    """Differentiated velocity behind a filter that is flat where torques are compared: a start, before any choice.

    Parameters
    ----------
    logs : that are treated alike
    band_hz : None: ten times the band that holds the motion, one for all logs
    """
    highest = highest_cutoff(logs)
    band = max(comparison_band(log) for log in logs) if band_hz is None else band_hz
    return Treatment(min(FLAT * band, highest), min(band, highest))


_LONGEST_SEGMENT = 1.0
"""Longest stretch of time that the cross-validation keeps together [s]."""
_STANDSTILL_SPEED = 1e-4
"""RMS velocity of a joint that stands still at most: a turn takes 17 hours [rad/s or m/s]."""


def to_motions(logs: Sequence[JointLog], treatment: Treatment, folds: int, grain: int = 1) -> list[Motion]:
    """Motions of all experiments, with segments short enough for the cross-validation.

    Parameters
    ----------
    folds : of the cross-validation: all logs together have at least two segments a fold
    grain : the number of samples that is cut off at both edges of every stretch is a multiple of this

    Raises
    ------
    InputError
        As :func:`to_motion`.
    """
    span = sum(float(log.time[-1] - log.time[0]) for log in logs if log.time.size)
    segment = min(_LONGEST_SEGMENT, span / (2 * folds)) or _LONGEST_SEGMENT
    return [to_motion(log, treatment, segment, grain) for log in logs]


def to_motion(
    log: JointLog, treatment: Treatment | None = None, segment_duration: float = 1.0, grain: int = 1
) -> Motion:
    """Motion of one experiment at a constant rate (Hamon et al. 2010, §IV.B; Egle 2021, §7.1).

    Parameters
    ----------
    log : as recorded; a few bad samples are repaired or left out
    treatment : None: :func:`usual_treatment`
    segment_duration : length of the pieces that validation keeps together [s]
    grain : the number of samples that is cut off at both edges of every stretch is a multiple of this

    Returns
    -------
    motion : every gap of the stamps separates segments; ``choices`` has every decision with its reason

    Raises
    ------
    InputError
        When the log cannot be used, or nothing is left between the edges.
    """
    if not segment_duration > 0.0:
        raise InputError(f"a segment must last longer than {segment_duration:g} s")
    log, notes = repair(log)
    period, chosen = usual_period(log.time), usual_treatment([log]) if treatment is None else treatment
    filtered = math.isfinite(chosen.cutoff_hz)
    if (chosen.measured or not filtered) and not velocity_is_complete(log):
        raise InputError(f"{log.name}: a velocity of every joint at every sample was not recorded")
    edge = math.ceil(derivative_edge(period, chosen.cutoff_hz) / grain) * grain if filtered else 0
    stretches = find_stretches(log.time, period, longest_bridge(period, chosen.band_hz) if filtered else None)
    parts = [_part(log, chosen, one, period, edge) for one in stretches if one.stop - one.start > 3 or not filtered]
    parts = [part for part in parts if part["time"].size]
    if not parts:
        longest = max(log.time[stretch.stop - 1] - log.time[stretch.start] for stretch in stretches)
        raise InputError(
            f"{log.name}: a filter of {chosen.cutoff_hz:.3g} Hz needs {2 * edge * period:.3g} s without "
            f"a gap at the edges alone, the longest stretch has {longest:.3g} s"
        )
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    segments, first = list[IntArray](), 0
    for time in (part["time"] for part in parts):  # equal pieces, as near to the wanted length as can be
        count = max(1, math.floor((time[-1] - time[0]) / segment_duration + 0.5))
        segments.append(first + np.arange(time.size) * count // time.size)
        first += count
    still = ~moving_joints(log.time, log.position, log.velocity if chosen.measured else None)
    still |= np.sqrt(np.mean(joined["velocity"] ** 2, axis=0)) < _STANDSTILL_SPEED
    decisions = (*notes, *_sampling(period, stretches, len(parts), chosen, edge))
    if still.any():  # what hardly moves is at rest where it stands: the rest is noise
        names = choices(name for name, stands in zip(log.joint_names, still, strict=True) if stands)
        decisions += (f"{names} stands still: its velocity is taken to be zero",)
        joined["position"] = np.where(still, joined["position"].mean(axis=0), joined["position"])
        for kind in ("velocity", "acceleration"):
            joined[kind] = np.where(still, 0.0, joined[kind])
    return Motion(
        log.name,
        log.joint_names,
        period,
        joined["time"],
        joined["position"],
        joined["velocity"],
        joined["acceleration"],
        joined.get("effort"),
        MappingProxyType({kind: joined[f"inputs/{kind}"] for kind in log.inputs}),
        np.concatenate(segments).astype(np.intp),
        log.payload,
        log.digest,
        decisions,
        chosen,
    )


def velocity_is_complete(log: JointLog) -> bool:
    """Whether the velocity of every joint was recorded at every sample."""
    return log.velocity is not None and bool(np.isfinite(log.velocity).all())


def _part(log: JointLog, treatment: Treatment, stretch: Stretch, period: float, edge: int) -> dict[str, FloatArray]:
    """Signals of one stretch, (K, ...) each, edges cut; without a filter as recorded, so that gaps cost nothing."""
    filtered = math.isfinite(treatment.cutoff_hz)

    def even(signal: FloatArray, smooth: bool = False) -> FloatArray:
        if not filtered:
            return signal[stretch.start : stretch.stop]
        return evenly(signal, log.time, stretch, period, smooth)

    position = even(log.position, smooth=True)
    velocity = even(log.velocity, smooth=True) if treatment.measured and log.velocity is not None else None
    if filtered:
        position, velocity, acceleration = derive(position, velocity, period, treatment.cutoff_hz)
    else:
        acceleration = np.full_like(position, np.nan)
    part = {"position": position, "velocity": velocity, "acceleration": acceleration}
    part["time"] = even_times(log.time, stretch, period) if filtered else even(log.time)
    if log.effort is not None:
        part["effort"] = even(log.effort)
    part |= {f"inputs/{kind}": even(signal) for kind, signal in log.inputs.items()}
    inner = slice(edge, max(position.shape[0] - edge, edge))
    return {name: signal[inner] for name, signal in part.items() if signal is not None}


def _sampling(period: float, stretches: Sequence[Stretch], used: int, treatment: Treatment, edge: int) -> Iterator[str]:
    """How a log was brought to a motion."""
    if not math.isfinite(treatment.cutoff_hz):
        yield f"{treatment}"
        return
    if any(not stretch.even for stretch in stretches):
        jitter = 100.0 * max(stretch.jitter for stretch in stretches)
        yield f"brought to an even grid of {1.0 / period:.4g} Hz: steps of time vary by {jitter:.2g} %"
    if missing := sum(stretch.missing for stretch in stretches):
        yield f"{missing} lost samples are bridged"
    if len(stretches) > 1:
        yield f"{len(stretches) - 1} gaps in the stamps are not crossed, {used} stretches are long enough"
    yield (
        f"{treatment}: Butterworth of order {ORDER} forward and backward, central differences, {edge * period:.3g} s "
        f"cut off at each edge; torques are compared up to {treatment.band_hz:.3g} Hz"
    )
