"""Warnings about a log: sampling, constant columns, exchanged columns, units, signs of velocities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np
from scipy.integrate import cumulative_trapezoid

from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import velocity_is_complete
from friction_estimator.identification.recording.sampling import (
    evenly,
    find_stretches,
    longest_stretch,
    motion_band,
    moving_joints,
    repair,
    signal_to_noise,
    usual_period,
)
from friction_estimator.identification.recording.zero_phase import central_difference, low_pass
from friction_estimator.types import FloatArray

_MOST_JITTER = 0.1  # of the period
_MOST_LOST = 0.01  # of the samples
_TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # s
_LONGEST_PERIOD = 0.1  # s between samples: no joint's motion is seen with less


def data_warnings(log: JointLog, position_limits: FloatArray | None = None) -> tuple[str, ...]:
    """Look for the usual mistakes in recordings.

    Parameters
    ----------
    log : as recorded
    position_limits : (n, 2) of the joints, from the URDF; NaN or infinite where there is none [rad or m]

    Returns
    -------
    warnings : one sentence each, with the evidence; empty when the log looks sound

    Raises
    ------
    InputError
        When the log cannot be used at all: too short, time that runs backwards, a tenth of the samples bad, no joint
        that moves.
    """
    whole, notes = repair(log)
    period = usual_period(whole.time)
    if not np.ptp(whole.position, axis=0).any():
        raise InputError(f"{log.name}: every position is constant, so that no joint moves")
    found = [*notes, *_sampling(whole, period), *_constant(whole)]
    found += _column_suspicions(whole, period)
    found += _degree_suspicions(whole, period, position_limits)
    return tuple(f"{log.name}: {text}" for text in found)


def _sampling(log: JointLog, period: float) -> Iterator[str]:
    if period > _LONGEST_PERIOD:
        units = (unit for unit, factor in _TIME_UNITS.items() if period * factor <= _LONGEST_PERIOD)
        yield (
            f"samples are {period:.3g} s apart, too far for the motion of a joint: name the column 'time [UNIT]' where "
            f"the unit is another one, here most likely 'time [{next(units, 'ns')}]'; where the log was thinned out, "
            "record every sample"
        )
    stretches = find_stretches(log.time, period)
    lengths = [stretch.stop - stretch.start for stretch in stretches]
    jitter = float(np.average([stretch.jitter for stretch in stretches], weights=lengths))
    if jitter > _MOST_JITTER:
        yield (
            f"irregular sampling: steps between stamps vary by {100.0 * jitter:.0f} % of {1e3 * period:.4g} ms (RMS): "
            "record the stamps of the driver, not those of the receiver"
        )
    expected = round((log.time[-1] - log.time[0]) / period) + 1
    lost = expected - log.time.size
    if lost > _MOST_LOST * expected:
        yield (
            f"{lost} of {expected} samples are missing, in {len(stretches) - 1} gaps and one or two at a time; the "
            f"longest gap has {float(np.diff(log.time).max()):.3g} s: check the load of the recording computer"
        )


def _constant(log: JointLog) -> Iterator[str]:
    """Columns that do not change, and joints that stand still apart from the noise of their position."""
    spans = np.ptp(log.position, axis=0)
    for kind, meaning in (
        ("position", "the joint did not move, so its friction cannot be identified"),
        ("velocity", "it is not measured; take the column out"),
        ("effort", "it is not measured; take the column or the joint out"),
    ):
        signal = getattr(log, kind)
        if signal is None:
            continue
        flat = (np.ptp(np.nan_to_num(signal), axis=0) == 0.0) & ~np.isnan(signal).all(axis=0)
        names = [*compress(log.joint_names, flat & ((kind == "position") | (spans > 0.0)))]
        if names:
            value = float(signal[0, log.joint_names.index(names[0])])
            yield f"{kind} of {choices(names)} is constant ({value:g}): {meaning}"
    velocity = log.velocity if velocity_is_complete(log) else None
    names = [*compress(log.joint_names, (spans > 0.0) & ~moving_joints(log.position, velocity))]
    if names:
        yield (
            f"position of {choices(names)} changes by no more than its noise: the joint stands still, so its friction "
            "cannot be identified"
        )


_ALIKE, _UNLIKE = 0.9, 0.75  # correlations
_CLOSE, _SCALED = 1.2, 1.5  # factors between slopes: equal below the first, in other units above the second
_HARMONICS = 10.0  # of the motion
_MOVES, _MOVES_WELL = 5.0, 30.0  # times the noise of the position: enough to recognise a column, and to rule it out
_FEWEST_SAMPLES = 32  # samples without a gap
_DEGREES = math.degrees(1.0)
_FACTORS = {
    _DEGREES: "is the velocity in degrees a second (column 'velocity/<joint> [deg/s]')?",
    1.0 / _DEGREES: "is the position in degrees (column 'position/<joint> [deg]')?",
    60.0 / (2.0 * math.pi): "is the velocity in revolutions a minute (column 'velocity/<joint> [rpm]')?",
    1e3: "is time in milliseconds (column 'time [ms]')?",
    1e6: "is time in microseconds (column 'time [us]')?",
    1e9: "is time in nanoseconds (column 'time [ns]')?",
    1e-3: "is the position in millimetres or milliradians (column 'position/<joint> [mm]', '[mrad]')?",
}


def _column_suspicions(log: JointLog, period: float) -> Iterator[str]:
    """Find columns that may be exchanged, reversed or in another unit.

    Changes over half a swing are compared with integrals over it: they are large against the bits of an encoder, where
    a derivative is not.

    Parameters
    ----------
    log : repaired
    period : between two samples [s]
    """
    stretch = longest_stretch(log.time, period)
    if stretch.stop - stretch.start < _FEWEST_SAMPLES:
        return

    def even(signal: FloatArray) -> FloatArray:
        return evenly(np.nan_to_num(signal), log.time, stretch, period, False)

    def integral(signal: FloatArray) -> FloatArray:
        return np.asarray(cumulative_trapezoid(signal, dx=period, axis=0, initial=0.0))

    position, moves = (
        even(log.position),
        moving_joints(log.position, log.velocity if velocity_is_complete(log) else None),
    )
    time: FloatArray = period * np.arange(len(position), dtype=float)
    travel = integral(position - position.mean(axis=0))
    for joint, name in compress(enumerate(log.joint_names), moves):  # what stands has noise alone
        motion = signal_to_noise(position[:, joint])
        if log.velocity is not None and motion > _MOVES:
            swing = 0.5 / (motion_band(time, position[:, joint]) * period)
            steps = int(np.clip(np.rint(swing), 1, max(len(position) // 10, 1)))
            velocity = even(log.velocity[:, joint])
            walk = integral(velocity)
            found = [_compare(walk, column, steps) for column in position.T]
            back = _compare(travel[:, joint], velocity, steps)
            yield from _velocity_suspicion(found, back, joint, log.joint_names, motion > _MOVES_WELL)
        if log.effort is not None and motion > 0.0:
            columns = position[:, joint], even(log.effort[:, joint])
            rough, smooth = (np.std(np.diff(one, 2)) / np.std(one) if np.ptp(one) > 0.0 else 0.0 for one in columns)
            if rough > max(3.0 * smooth, 0.05) and smooth > 0.0:  # a position is an integral of that of the torque
                yield (
                    f"position/{name} is rougher than effort/{name} (second differences {rough:.2g} and {smooth:.2g} "
                    "of the standard deviation): are the two columns exchanged?"
                )


def _compare(one: FloatArray, other: FloatArray, steps: int) -> tuple[float, float]:
    """Correlation of the changes of two signals over some steps, and how many times as large the first ones are."""
    a, b = (change - change.mean() for change in (one[steps:] - one[:-steps], other[steps:] - other[:-steps]))
    aa, bb, ab = float(a @ a), float(b @ b), float(a @ b)
    if aa <= 0.0 or bb <= 0.0:
        return 0.0, 0.0
    return ab / math.sqrt(aa * bb), math.copysign(math.sqrt(aa / bb), ab)


def _near(value: float, wanted: float, factor: float = _CLOSE) -> bool:
    return wanted / factor < value < wanted * factor


def _velocity_suspicion(
    found: Sequence[tuple[float, float]], back: tuple[float, float], joint: int, names: tuple[str, ...], certain: bool
) -> Iterator[str]:
    """What a velocity is, by its integral compared with all positions, and by its own position's with itself."""
    name, (alike, factor) = names[joint], found[joint]
    back_alike, back_factor = back
    evidence = f"velocity/{name} is {factor:.3g} times the derivative of position/{name} (correlation {alike:.2f})"
    others = [k for k, (one, ratio) in enumerate(found) if k != joint and one > _ALIKE and _near(ratio, 1.0)]
    if alike < _UNLIKE and back_alike > _ALIKE and _near(back_factor, 1.0):
        yield (
            f"position/{name} is the derivative of velocity/{name} (correlation {back_alike:.2f}): are the two columns "
            "exchanged?"
        )
    elif alike > _ALIKE and not _near(factor, 1.0, _SCALED):
        meanings = [meaning for known, meaning in _FACTORS.items() if _near(factor, known)]
        yield f"{evidence}: {next(iter(meanings), 'are units, time or a gear ratio wrong?')}"
    elif alike < -_ALIKE:
        yield f"{evidence}: does one of them have the wrong sign?"
    elif alike < _UNLIKE and others:
        other = others[0]
        yield (
            f"velocity/{name} is the derivative of position/{names[other]} (correlation {found[other][0]:.2f}), not of "
            f"position/{name}: are columns of these joints exchanged?"
        )
    elif alike < _UNLIKE and certain:
        yield (
            f"velocity/{name} differs from the derivative of position/{name} (correlation {alike:.2f}): check that it "
            "is the right column"
        )


_OVERSHOOT = 1.05  # of a limit, for what a controller overshoots
_FASTEST_JOINT = 30.0  # rad/s: five turns a second, behind the gear
_ONE_TURN = 2.0 * math.pi


def _degree_suspicions(log: JointLog, period: float, position_limits: FloatArray | None = None) -> Iterator[str]:
    """Find positions that look like degrees, or are outside of their limits otherwise.

    Parameters
    ----------
    log : repaired
    period : between two samples [s]
    position_limits : (n, 2) [rad or m], NaN or infinite where there is none
    """
    n = len(log.joint_names)
    limits = np.full((n, 2), np.nan) if position_limits is None else np.asarray(position_limits, dtype=float)
    if limits.shape != (n, 2):
        raise InputError(f"{log.name}: limits of the positions have the shape {limits.shape}, expected {(n, 2)}")
    for joint, name in enumerate(log.joint_names):
        if outside := _outside(log.position[:, joint], limits[joint]):
            yield f"position/{name} {outside}"
        elif np.ptp(log.position[:, joint]) > _ONE_TURN:
            position = evenly(log.position[:, joint], log.time, longest_stretch(log.time, period), period, False)
            if position.size < _FEWEST_SAMPLES or signal_to_noise(position) < _MOVES:
                continue
            band = _HARMONICS * motion_band(period * np.arange(position.size, dtype=float), position)
            smooth = low_pass(position, period, min(band, 0.2 / period))
            speed = float(np.percentile(np.abs(central_difference(smooth, period)), 99.0))
            if speed > _FASTEST_JOINT:
                yield f"position/{name}: {speed:.3g} rad/s are faster than joints usually turn: is it in degrees?"


def _outside(position: FloatArray, limits: FloatArray) -> str:
    lower, upper = (
        limit if math.isfinite(limit) else math.copysign(math.inf, sign)
        for limit, sign in zip(limits, (-1.0, 1.0), strict=True)
    )
    slack = (_OVERSHOOT - 1.0) * max(abs(bound) for bound in (lower, upper, 0.0) if math.isfinite(bound))
    low, high = float(position.min()), float(position.max())
    if low >= lower - slack and high <= upper + slack:
        return ""
    range_ = f"runs from {low:.4g} to {high:.4g}, its limits are {lower:.4g} and {upper:.4g}"
    fits = math.radians(low) >= lower - slack and math.radians(high) <= upper + slack
    if fits and max(-low, high) > 2.0 * math.pi:
        return f"{range_}: is it in degrees?"
    return f"{range_}: is it another joint's, or counted from another zero?"
