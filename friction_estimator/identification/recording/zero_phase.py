"""Joint log to motion: velocities and accelerations without phase, edges cut, gaps left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog, Motion
from friction_estimator.identification.recording import filters
from friction_estimator.identification.recording.sampling import (
    Stretch,
    even_times,
    evenly,
    find_stretches,
    longest_stretch,
    repair,
    usual_period,
)
from friction_estimator.identification.recording.spectrum import (
    FLAT,
    Cutoff,
    choose_cutoff,
    joint_spectrum,
    last_bit,
    moving_joints,
)
from friction_estimator.types import BoolArray, FloatArray, IntArray

_WORST = 5.0  # how many times worse one joint may become so that the others become better
_WORDS = {True: "measured", False: "from the position"}


@dataclass(frozen=True, slots=True)
class VelocityComparison:
    """Measured velocity of one joint against the derivative of its position, both band-limited alike.

    Attributes
    ----------
    gain : slope of the measured velocity over the derivative, 1 when both agree
    lag : how much later the measured velocity is [s]
    measured_error : RMS error of the measured velocity: noise, lag, gain; from its distance to the derivative [rad/s]
    derived_error : RMS error of the derivative from noise and rounding of the position [rad/s]
    """

    gain: float
    lag: float
    measured_error: float
    derived_error: float


def measured_is_better(log: JointLog, period: float) -> tuple[bool, str]:
    """Whether the measured velocity has a smaller error than the derivative of the position, and why in a sentence.

    Compared in the geometric mean over the joints that move, unless one of them suffers.

    Parameters
    ----------
    log : without bad samples
    period : between two samples [s]
    """
    if log.velocity is None or not np.isfinite(log.velocity).all():
        return False, "velocity from the position: it was not recorded"
    found = compare_velocities(log, period)
    if not found:
        return False, "velocity from the position: no joint moves enough to compare"
    ratios = [joint.measured_error / joint.derived_error for joint in found]
    ratio = math.exp(np.mean(np.log(ratios)))
    measured = ratio < 1.0 and max(ratios) < _WORST
    lag, gain = (float(np.median([getattr(joint, name) for joint in found])) for name in ("lag", "gain"))
    error = f"lag {1e3 * lag:.2g} ms, gain {gain:.3g}, error {ratio:.2g} times that of the differentiated position"
    if len(ratios) > 1:
        error += f", of the worst joint {max(ratios):.2g} times"
    return measured, f"velocity {_WORDS[measured]}: the measured one has {error}"


def compare_velocities(log: JointLog, period: float) -> list[VelocityComparison]:
    """Compare both sources of every joint that moves, on the longest stretch."""
    if log.velocity is None:
        return []
    stretch = longest_stretch(log.time, period)
    position = evenly(log.position, log.time, stretch, period, True)
    velocity = evenly(log.velocity, log.time, stretch, period, True)
    bits = map(last_bit, log.position.T)
    pairs = (_compare(*signals, period) for signals in zip(position.T, velocity.T, bits, strict=True))
    return [pair for pair in pairs if pair is not None]


def _compare(position: FloatArray, velocity: FloatArray, bit: float, period: float) -> VelocityComparison | None:
    spectrum = joint_spectrum(position, period, 0, bit)
    if math.isnan(spectrum.cutoff_hz):
        return None
    band = min(spectrum.cutoff_hz, 0.2 / period)
    edge = filters.derivative_edge(period, band)
    if position.size < 4 * edge:
        return None
    derived = filters.central_difference(filters.low_pass(position, period, band), period)
    acceleration = filters.central_difference(derived, period)[edge:-edge]
    measured, derived = filters.low_pass(velocity, period, band)[edge:-edge], derived[edge:-edge]
    (gain, slope), *_ = np.linalg.lstsq(np.column_stack([derived, -acceleration]), measured, rcond=None)
    lag = slope / gain if gain else 0.0
    noise = spectrum.floor * (2.0 * math.pi) ** 2 * band**3 / 3.0 + np.finfo(float).tiny
    rest = float(np.mean((measured - derived) ** 2)) - noise  # their errors are independent
    return VelocityComparison(float(gain), float(lag), math.sqrt(max(rest, 0.01 * noise)), math.sqrt(noise))


Progress = Callable[[float, float], None]
"""Called with the number of finished steps and the number of all steps."""
_SEGMENT = 1.0
"""Longest stretch of time that the cross-validation keeps together [s]."""
_SIGNALS = ("position", "velocity", "acceleration", "effort")
_STANDS = 1e-4
"""RMS velocity of a joint that stands still at most: a turn takes 17 hours [rad/s or m/s]."""


def to_motions(
    logs: Sequence[JointLog], cutoff_hz: float | None, folds: int, progress: Progress | None = None
) -> list[Motion]:
    """Motions of all experiments, with segments short enough for the cross-validation.

    Parameters
    ----------
    cutoff_hz : -3 dB frequency of the zero-phase filter [Hz]; None: from the spectrum of each log
    folds : of the cross-validation: all logs together have at least two segments a fold
    progress : the step after the last log is the fit itself

    Raises
    ------
    InputError
        As :func:`to_motion`.
    """
    span = sum(float(log.time[-1] - log.time[0]) for log in logs if log.time.size)
    segment = min(_SEGMENT, span / (2 * folds)) or _SEGMENT
    motions = []
    for count, log in enumerate(logs):
        if progress is not None:
            progress(count, len(logs) + 1)
        motions.append(to_motion(log, cutoff_hz, segment_duration=segment))
    if progress is not None:
        progress(len(logs), len(logs) + 1)
    return motions


def to_motion(log: JointLog, cutoff: float | None = None, segment_duration: float = 1.0) -> Motion:
    """Motion of one experiment at a constant rate (Hamon et al. 2010, §IV.B; Egle 2021, §7.1).

    Parameters
    ----------
    log : as recorded; a few bad samples are repaired or left out
    cutoff : -3 dB frequency [Hz]; None: from the spectrum
    segment_duration : length of the pieces that validation keeps together [s]

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
    period = usual_period(log.time)
    stretches = find_stretches(log.time, period)
    measured, why = measured_is_better(log, period)
    velocity = log.velocity if measured else None
    chosen = _cutoff(log, cutoff, velocity)
    edge = filters.derivative_edge(period, chosen.cutoff_hz)
    parts = [
        _part(log, velocity, stretch, period, chosen.cutoff_hz)
        for stretch in stretches
        if stretch.stop - stretch.start > 3
    ]
    parts = [part for part in parts if part["time"].size]
    if not parts:
        longest = max(log.time[stretch.stop - 1] - log.time[stretch.start] for stretch in stretches)
        raise InputError(
            f"{log.name}: a filter of {chosen.cutoff_hz:.3g} Hz needs {2 * edge * period:.3g} s without "
            f"a gap at the edges alone, the longest stretch has {longest:.3g} s"
        )
    sampling = _sampling(period, stretches, len(parts))
    filtered = (
        f"Butterworth of order {filters.ORDER} forward and backward, central differences, "
        f"{edge * period:.3g} s cut off at each edge"
    )
    decisions = (*notes, *sampling, why, chosen.reason, filtered)
    motion = _joined(log, period, parts, segment_duration, chosen, decisions)
    return _at_rest(motion, ~moving_joints(log.time, log.position, velocity))


def _cutoff(log: JointLog, cutoff: float | None, velocity: FloatArray | None) -> Cutoff:
    if cutoff is not None:
        parallel = cutoff / FLAT
        reason = f"cut-off {cutoff:g} Hz, given; torques are compared up to {parallel:g} Hz, where it is flat"
        return Cutoff(cutoff, parallel, reason)
    return choose_cutoff(log.time, log.position, velocity, log.effort, log.joint_names)


def _part(
    log: JointLog, measured: FloatArray | None, stretch: Stretch, period: float, cutoff_hz: float
) -> dict[str, FloatArray]:
    """Signals of one stretch, (K, ...) each, edges cut."""

    def even(signal: FloatArray, smooth: bool = False) -> FloatArray:
        return evenly(signal, log.time, stretch, period, smooth)

    position = even(log.position, smooth=True)
    velocity = None if measured is None else even(measured, smooth=True)
    part = dict(zip(_SIGNALS[:3], filters.derive(position, velocity, period, cutoff_hz), strict=True))
    part["time"] = even_times(log.time, stretch, period)
    if log.effort is not None:
        part["effort"] = even(log.effort)
    part |= {f"inputs/{kind}": even(signal) for kind, signal in log.inputs.items()}
    edge = filters.derivative_edge(period, cutoff_hz)
    inner = slice(edge, max(position.shape[0] - edge, edge))
    return {name: signal[inner] for name, signal in part.items()}


def _segments(times: Sequence[FloatArray], duration: float) -> IntArray:
    """Numbers (N,) of the pieces: every stretch is cut into equal ones, as near to the wanted length as can be."""
    numbers = []
    first = 0
    for time in times:
        count = max(1, math.floor((time[-1] - time[0]) / duration + 0.5))
        numbers.append(first + np.arange(time.size) * count // time.size)
        first += count
    return np.concatenate(numbers).astype(np.intp)


def _joined(
    log: JointLog,
    period: float,
    parts: Sequence[Mapping[str, FloatArray]],
    segment_duration: float,
    chosen: Cutoff,
    notes: tuple[str, ...],
) -> Motion:
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
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
        _segments([part["time"] for part in parts], segment_duration),
        log.payload,
        log.digest,
        notes,
        chosen.parallel_hz,
    )


def _at_rest(motion: Motion, still: BoolArray) -> Motion:
    """The motion with these joints (n,), and those that hardly move, at rest where they stand: the rest is noise."""
    still = still | (np.sqrt(np.mean(motion.velocity**2, axis=0)) < _STANDS)
    if not still.any():
        return motion
    names = choices(name for name, stands in zip(motion.joint_names, still, strict=True) if stands)
    return replace(
        motion,
        position=np.where(still, motion.position.mean(axis=0), motion.position),
        velocity=np.where(still, 0.0, motion.velocity),
        acceleration=np.where(still, 0.0, motion.acceleration),
        choices=(*motion.choices, f"{names} stands still: its velocity is taken to be zero"),
    )


def _sampling(period: float, stretches: Sequence[Stretch], used: int) -> tuple[str, ...]:
    notes = []
    jitter = max(stretch.jitter for stretch in stretches)
    missing = sum(stretch.missing for stretch in stretches)
    if any(not stretch.even for stretch in stretches):
        notes.append(f"brought to an even grid of {1.0 / period:.4g} Hz: steps of time vary by {100.0 * jitter:.2g} %")
    if missing:
        notes.append(f"{missing} lost samples are bridged")
    if len(stretches) > 1:
        notes.append(f"{len(stretches) - 1} gaps in the stamps are not crossed, {used} stretches are long enough")
    return tuple(notes)
