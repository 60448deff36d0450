"""Joint log to motion: how signals are treated, edges cut, gaps left open; and a motion of joints to one of motors.

:class:`Motion` has velocities and accelerations without phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import (
    COMMANDED,
    EXTERNAL,
    FRICTION_INPUT,
    SIGMA_INPUT,
    TEMPERATURE,
    JointLog,
    Payload,
)
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
from friction_estimator.identification.recording.zero_phase import FULL_BAND, ORDER, derivative_edge, derive
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray, IntArray

_GAP = 1.5
"""Periods between two samples that are not neighbours."""


@dataclass(frozen=True, slots=True)
class Treatment:
    """How a recording is filtered to a motion, and up to which frequency motion and torque are compared."""

    # -3 dB frequency of the zero-phase filter of position, velocity and acceleration [Hz]; infinite: signals as
    # recorded, without acceleration
    cutoff_hz: float
    band_hz: float  # both sides of the equation of motion are compared up to here [Hz]
    measured: bool = False  # the measured velocity is used; False: the derivative of the position

    def __str__(self) -> str:
        band = f"cut-off {self.cutoff_hz:.3g} Hz" if math.isfinite(self.cutoff_hz) else "as recorded"
        return f"{'measured' if self.measured else 'differentiated'} velocity, {band}"


@dataclass(frozen=True, slots=True)
class Motion:
    """One experiment at a constant rate, edges cut, still with every sample."""

    name: str  # of the experiment
    joint_names: tuple[str, ...]  # (n)
    period: float  # between two samples [s]
    time: FloatArray  # (N,) [s]
    # (N, n) band-limited [rad, rad/s, rad/s^2]; velocity and acceleration are zero for a joint that stands still
    # throughout
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray | None  # (N, n) motor torque, not filtered [N m]; None when not recorded
    # other columns by kind, (N, n), not filtered (see `identification.joint_log.JointLog`)
    inputs: Mapping[str, FloatArray]
    # (N,) number of the stretch of time that a sample belongs to: folds of the validation never cut through one
    segment: IntArray
    payload: Payload | None  # what the robot carried
    digest: str  # of the file
    choices: tuple[str, ...]  # how it was filtered and why, in sentences
    treatment: Treatment | None = None  # how it was made of a recording; None: by other means

    @property
    def cutoff_hz(self) -> float:
        """Cut-off of the filter of the motion [Hz]; infinite: as recorded."""
        return math.inf if self.treatment is None else self.treatment.cutoff_hz

    @property
    def parallel_hz(self) -> float:
        """Frequency up to which motion and torque are compared [Hz]; NaN when unknown."""
        return math.nan if self.treatment is None else self.treatment.band_hz

    @property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """First sample and end of every stretch without a gap."""
        gaps = np.flatnonzero(np.diff(self.time) > _GAP * self.period) + 1
        borders = [0, *gaps.tolist(), self.time.size]
        return tuple(zip(borders[:-1], borders[1:], strict=True))

    @property
    def stretch(self) -> IntArray:
        """(N,) number of the stretch without a gap to which every sample belongs."""
        return np.repeat(np.arange(len(self.stretches)), [stop - start for start, stop in self.stretches])


_LADDER = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Cut-offs of the motion that are compared, in bands in which torques are compared."""


def highest_cutoff(logs: Sequence[JointLog]) -> float:
    """Highest cut-off that logs are treated with [Hz]."""
    return min(FULL_BAND * 0.5 / usual_period(log.time) for log in logs)


def tried_cutoffs(logs: Sequence[JointLog], band_hz: float, given: float | None) -> list[float]:
    """Cut-offs of the motion that are compared, rising [Hz]; only ``given`` where that is not None."""
    return sorted({min(factor * band_hz, highest_cutoff(logs)) for factor in _LADDER}) if given is None else [given]


def usual_treatment(logs: Sequence[JointLog], band_hz: float | None = None) -> Treatment:
    """Differentiated velocity behind a filter that is flat where torques are compared: a start, before any choice.

    Parameters
    ----------
    logs : that are treated alike
    band_hz : motion and torque are compared up to here [Hz]; None: ten times the band that holds the motion
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
    still = ~moving_joints(log.position, log.velocity if chosen.measured else None)
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


def at_motors(motion: Motion, motors: Transmission) -> Motion:
    """The same motion, of the motors (Guedelha et al. 2017, eqs. 33-34).

    Parameters
    ----------
    motion : of the joints (n)
    motors : of these joints

    Returns
    -------
    motion : positions, velocities and accelerations times ``T^-1``, torques times ``T^T``; a torque is missing where
        that of one joint of a motor is. Standard deviations take the errors of the joints for independent. Temperatures
        are those of the motors already, the column of a joint that of the motor at its place. Other inputs are left out
    """
    if not motors.couples:
        return replace(motion, joint_names=motors.names)
    at_motor = {
        FRICTION_INPUT: lambda torque: _pulled(torque, motors.matrix),
        SIGMA_INPUT: lambda sigma: np.sqrt(_pulled(sigma**2, motors.matrix**2)),
        TEMPERATURE: lambda warmth: warmth,
        COMMANDED: lambda torque: _pulled(torque, motors.matrix),
        EXTERNAL: lambda torque: _pulled(torque, motors.matrix),
    }
    return replace(
        motion,
        joint_names=motors.names,
        effort=None if motion.effort is None else _pulled(motion.effort, motors.matrix),
        inputs=MappingProxyType(
            {kind: at_motor[kind](values) for kind, values in motion.inputs.items() if kind in at_motor}
        ),
        position=motors.velocity(motion.position),
        velocity=motors.velocity(motion.velocity),
        acceleration=motors.velocity(motion.acceleration),
    )


def _pulled(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """``values @ matrix`` (N, n), NaN only where a value that counts is."""
    missing = np.isnan(values)
    return np.where(missing @ (matrix != 0.0), np.nan, np.nan_to_num(values) @ matrix)
