"""Method ``motor``: friction motor by motor behind a coupling matrix, drive gain and offset (Guedelha et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.config.robot import Coupling, uncoupled
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.curves.decision import CurveSource, FrictionCurveOptions
from friction_estimator.identification.curves.drive import (
    COUNTS_AS_FREE,
    DAMPING,
    DRIVE_GAIN,
    DRIVE_OFFSET,
    DRIVES,
    FREE_OFFSET,
    INERTIA,
    JOINT_TORQUE,
    DriveRecording,
    drive_kind,
    separated,
    without_drive,
)
from friction_estimator.identification.curves.fit import CurveOptions
from friction_estimator.identification.curves.friction_curve import JointCurve, collected, identified_curve
from friction_estimator.identification.curves.problem import torque_of
from friction_estimator.identification.joint_log import JointLog, RobotDescription
from friction_estimator.identification.linear_problem import FOLDS, rms
from friction_estimator.identification.result import SURE_SIGMAS, DriveGain, Finding, Identification, Severity
from friction_estimator.laws import FrictionLaw, make_linear_law
from friction_estimator.laws.joint_laws import AUTOMATIC, START_LAW
from friction_estimator.laws.law import torque_gradient
from friction_estimator.laws.published import ASYMMETRIC_STRIBECK, ASYMMETRIC_STRIBECK_SCALED, STRIBECK_VELOCITY
from friction_estimator.types import Progress


@dataclass(frozen=True, slots=True)
class MotorOptions:
    """Options of the method ``motor``."""

    # linear friction law of every motor, with known gains also one that needs the load; `auto`: chosen
    law: str = ASYMMETRIC_STRIBECK.name
    # of `asymmetric_stribeck` [rad/s], 1 deg/s as published; None: searched, motor by motor
    stribeck_velocity: float | None = STRIBECK_VELOCITY
    # `none`, `positive`, `negative` or `both`: friction leaves standstill with zero slope there
    zero_slope: str = "none"
    # reflected inertia of the motors at the output of their gearboxes, by name, as far as known [kg m^2]
    inertia: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    identify_inertia: bool = True  # find the inertia of the others; False: they have none
    # a constant torque acts in the free logs too; None: chosen, where the law allows to separate it
    offset: bool | None = None
    drive: str | None = None  # `pwm` or `current`; None: whichever was recorded
    # torque per unit of the drive by motor, for free logs in which it was not zero [N m per unit]
    known_gain: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    # names of logs without drive torque, or paths of their files: whatever their PWM or current is, it did not
    # act
    free: tuple[str, ...] = ()
    dead_zone: float | None = None  # slower samples stick [rad/s]; None: by the noise of the velocity
    fit: CurveOptions = field(default_factory=CurveOptions)  # loss
    cutoff_hz: float | None = None  # of the velocities; None: chosen
    delay: float | None = None  # by which the torques are late [s]; None: chosen
    folds: int = FOLDS  # of the validation
    coupling: Coupling | None = None  # of motors that move several joints together; None: every joint has one motor


MOTOR_DEFAULTS = MotorOptions()


def motor_law(options: MotorOptions) -> tuple[FrictionLaw, CurveOptions]:
    """The law of every motor, and how it is fitted.

    Raises
    ------
    ConfigError
        When the law is not known, Stribeck options are given for a law without them, or an offset cannot be separated.
    """
    if options.law == AUTOMATIC:
        return make_linear_law(START_LAW), options.fit
    if options.law == ASYMMETRIC_STRIBECK.name:
        published = options.stribeck_velocity == STRIBECK_VELOCITY
        law = ASYMMETRIC_STRIBECK if published else ASYMMETRIC_STRIBECK_SCALED
        velocity, slope = options.stribeck_velocity, options.zero_slope
        return law, replace(options.fit, stribeck_velocity=velocity, zero_slope=slope)
    if options.stribeck_velocity is None:
        raise ConfigError(f"a Stribeck velocity is searched for {ASYMMETRIC_STRIBECK.name!r}, not for {options.law!r}")
    if options.zero_slope != "none" or options.stribeck_velocity != STRIBECK_VELOCITY:
        raise ConfigError(
            f"a Stribeck velocity and a zero slope at standstill are for the law {ASYMMETRIC_STRIBECK.name!r}, "
            f"not for {options.law!r}"
        )
    linear = make_linear_law(options.law)
    if linear.depends_on_load and not options.known_gain:
        raise ConfigError(
            f"the law {options.law!r} needs the load, which is the torque of the motor: give its gain (--known-gain), "
            "as losses in proportion to the load cannot be separated from an unknown gain"
        )
    if options.offset and not offset_shows(linear):
        raise ConfigError(
            f"a constant torque cannot be separated from the friction of {options.law!r}: leave offset out"
        )
    return linear, options.fit


def offset_shows(law: FrictionLaw) -> bool:
    """Whether data separate a constant torque from the law: not if each direction has its own dry friction."""
    speed = np.concatenate((np.linspace(0.01, 1.0, 100), np.geomspace(1e-3, 1.0, 50)))
    p = len(law.parameters)
    velocity = np.tile(np.append(speed, -speed), 2)
    load = np.repeat((1.0, -1.0), velocity.size // 2)
    columns = torque_gradient(law, np.append(np.zeros(p - 1), STRIBECK_VELOCITY), velocity, load)
    ones = np.ones(len(columns))
    return bool(np.linalg.norm(ones - columns @ np.linalg.lstsq(columns, ones, rcond=None)[0]) > 1e-6)


def _check_names(options: MotorOptions, coupling: Coupling) -> None:
    """Refuse options for motors that the coupling lacks, and inertias below zero.

    Raises
    ------
    ConfigError
        Naming the motors.
    """
    wrong = [motor for motor, value in options.inertia.items() if not 0.0 <= value < np.inf]
    if wrong:
        raise ConfigError(f"the inertia of {choices(wrong)} is negative or not finite: give it in kg m^2")
    for name, given in (("inertia", options.inertia), ("known_gain", options.known_gain)):
        unknown = set(given) - set(coupling.motor_names)
        if unknown:
            raise ConfigError(f"{name} names {choices(unknown)}; the motors are {choices(coupling.motor_names)}")


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether the torque behind the transmission was recorded, and the reason in a sentence."""
    if all(JOINT_TORQUE in log.inputs for log in logs):
        return True, "the torque behind the transmission was recorded"
    return False, f"motor needs {JOINT_TORQUE}/<joint>"


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: MotorOptions = MOTOR_DEFAULTS,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Identify with :func:`identify_motor`, with the coupling of the options.

    Parameters
    ----------
    logs : of the same joints, one per experiment, as for :func:`identify_motor`
    robot : not used; every method has it (`methods.IdentifyFunction`)
    options : of this method, with the coupling; without one every joint has its own motor
    progress, warn : called with the number of finished motors and of all; with each warning
    """
    return identify_motor(logs, options.coupling or uncoupled(logs[0].joint_names), options, progress, warn)


def identify_motor(
    logs: Sequence[JointLog],
    coupling: Coupling,
    options: MotorOptions = MOTOR_DEFAULTS,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Friction, drive gain and offset of motors that move joints through a coupling (Guedelha et al. 2017, section 3).

    With known gains all logs show friction, whether they are driven or not, and no gain is identified.

    Parameters
    ----------
    logs : one per experiment, of joints that are moved from outside with PWM = 0, or by their motors; the input
        ``joint_torque`` is the torque that the transmission passes on to the joint's child link [N m]; of a log with
        ``pwm`` or ``current``, the k-th joint's column is that of the k-th motor
    coupling : of the motors and joints to identify; the logs may have more joints
    progress : called with the number of finished motors, and of all
    warn : called where a log is driven in a few samples only

    Returns
    -------
    identification : friction by the name of the motor, which is that of the joint where they are not coupled

    Raises
    ------
    ConfigError
        When an option is unknown, or names a motor that the coupling or a log that the recordings lack.
    InputError
        When the logs lack a signal, or motors hardly slide.
    """
    if not logs:
        raise InputError("the method 'motor' needs logs of joints that are moved, from outside or by their motors")
    _check_names(options, coupling)
    law, fit = motor_law(options)
    logs, notes = without_drive([log.select(coupling.joint_names) for log in logs], options.free)
    free, driven, reasons = separated(logs)
    if options.known_gain:
        kind = drive_kind([log for log in logs if set(DRIVES) & set(log.inputs)], options.drive)
        if driven and (missing := set(coupling.motor_names).difference(options.known_gain)):
            raise InputError(f"{driven[0].name} is driven: give the known gain of {choices(missing)}, too")
        free, driven = logs, []
    else:
        kind, notes = drive_kind(driven, options.drive) if driven else options.drive or DRIVES[0], [*notes, *reasons]
        for reason in reasons:
            if warn is not None and reason.endswith(COUNTS_AS_FREE):
                warn(reason)
    recording = DriveRecording(coupling, kind, options.dead_zone, dict(options.inertia), dict(options.known_gain))
    own = FrictionCurveOptions(
        options.law, fit=fit, delay=options.delay, dead_zone=0.0, folds=options.folds, cutoff_hz=options.cutoff_hz
    )
    offset = {FREE_OFFSET if free else DRIVE_OFFSET} if offset_shows(law) and options.offset is not False else set()
    columns = {*offset, *([recording.gain_column] if driven else [])}
    columns |= {DRIVE_OFFSET, DAMPING} if free and driven else set()
    optional = frozenset({DAMPING} | (set() if options.offset else offset))
    curves, drives = list[JointCurve | str](), dict[str, DriveGain]()
    for motor in coupling.motor_names:
        own_columns = columns | ({INERTIA} if options.identify_inertia and motor not in options.inertia else set())
        kept, part = tuple(one for one in recording.columns if one in own_columns), recording.for_motor(motor)
        source = CurveSource(motor, law, own, kept, optional, options.law == AUTOMATIC, drive=part)
        curve = identified_curve([*free, *driven], source)
        if driven and isinstance(curve, JointCurve):
            drives[motor], findings = _drive(curve, recording, bool(free))
            curve = replace(curve, part=(curve.part[0], [*curve.part[1], *findings]))
        curves.append(curve)
        if progress is not None:
            progress(len(curves), len(coupling.motor_names))
    found = collected(curves)
    meaning = _meaning([one for one in curves if isinstance(one, JointCurve)], recording, bool(free))
    choices_ = (*notes, *found.provenance.choices, *meaning)
    return replace(found, drives=drives, provenance=replace(found.provenance, choices=choices_))


_FEWEST_DRIVEN_SAMPLES = 30
"""Samples for a line with an offset and the standard deviation of both."""
_REPORTED_SHARE = 0.1
"""Share of Coulomb friction above which an offset is reported, and of the driving torque for an error."""
_LEAST_SHARE = 0.01
"""Share of the torque that the drive must explain, where friction is unknown in all logs."""


def _drive(curve: JointCurve, recording: DriveRecording, free: bool) -> tuple[DriveGain, list[Finding]]:
    """The gain of a motor, how well it explains the torque, and constant torques that differ.

    Raises
    ------
    InputError
        When the motor sticks, its drive does not change, or driven logs alone do not separate gain and friction.
    """
    used, motor, kind, q = curve.samples.used, curve.joint, recording.drive, len(curve.fit.law.parameters)
    rows, names = used.group == 1, [column.name for column in curve.samples.columns]
    if rows.sum() < _FEWEST_DRIVEN_SAMPLES:
        raise InputError(
            f"the motor {motor!r} slides in {rows.sum()} samples of the driven logs, {_FEWEST_DRIVEN_SAMPLES} are "
            "needed: drive it until it moves"
        )
    drive = -used.extra_columns[rows, names.index(DRIVE_GAIN)]
    if np.ptp(drive) < 1e-9 * np.abs(drive).max(initial=1.0):
        raise InputError(f"{kind} of the motor {motor!r} is {drive[0]:g} in all samples: it must change")
    sigma = dict(zip(names, curve.fit.sigma[q:].tolist(), strict=True))
    gain, unit, size, found = (
        curve.fit.extra_parameters[DRIVE_GAIN],
        recording.gain_column.unit,
        float(np.std(drive)),
        list[Finding](),
    )
    least = max(SURE_SIGMAS * sigma[DRIVE_GAIN] * size, _LEAST_SHARE * rms(used.friction[rows]))
    if not free and not gain * size > least:
        raise InputError(
            f"friction and drive gain of the motor {motor!r} cannot be separated by driven logs alone: record a log "
            "with PWM = 0 while the joint is moved from outside, or give the known gain (--known-gain)"
        )
    offsets = [curve.fit.extra_parameters.get(one.name, 0.0) for one in (FREE_OFFSET, DRIVE_OFFSET)]
    spread = float(np.hypot(sigma.get(FREE_OFFSET.name, 0.0), sigma.get(DRIVE_OFFSET.name, 0.0)))
    apart = abs(offsets[1] - offsets[0])
    if (
        DRIVE_OFFSET.name in names
        and apart > SURE_SIGMAS * spread
        and apart > _REPORTED_SHARE * abs(float(curve.fit.values[0]))
    ):
        found.append(
            Finding(
                Severity.NOTE,
                "the constant torque is {}: an offset of the torque sensor that moves, or an offset current of the "
                "driver",
                motor,
                f"{offsets[0]:.2g} N m free and {offsets[1]:.2g} N m driven",
            )
        )
    if gain < SURE_SIGMAS * sigma[DRIVE_GAIN]:
        text = (
            f"the drive gain {{}} is not above zero: check sign and column of the {kind}, or record a log in which it "
            "is larger"
        )
        found.append(Finding(Severity.FAULT, text, motor, f"{gain:.3g} +- {sigma[DRIVE_GAIN]:.2g} {unit}"))
    else:
        driven = used.select(rows)
        left = rms(driven.friction - torque_of(curve.fit.law, curve.fit.values, driven)) / driven.torque_rms
        met = f"the torque of driven motion is met to {100 * left:.1f} %"
        severity = Severity.DOUBT if left > _REPORTED_SHARE else Severity.NOTE
        detail = f"{gain:.3g} +- {sigma[DRIVE_GAIN]:.2g} {unit}, {met}"
        found.append(Finding(severity, f"{kind} gives {{}}", motor, detail))
    return DriveGain(offsets[1], gain, unit), found


def _meaning(curves: Sequence[JointCurve], recording: DriveRecording, free: bool) -> list[str]:
    """The meaning of the numbers, one sentence each."""
    notes = ["friction with PWM = 0 has the back EMF in its viscous part (Guedelha et al. 2017, eq. 17)"] * free
    for joints, motors in recording.coupling.groups:
        if len(joints) > 1:
            notes.append(
                f"{', '.join(joints)} are moved together by {', '.join(motors)}: their friction is given by the name "
                "of the motor, at the output of its gearbox"
            )
    for curve in curves:
        used, count = curve.samples.used, curve.samples.velocity.size
        notes.append(
            f"{curve.joint}: {100 * used.velocity.size / max(count, 1):.0f} % of the samples slide, at "
            f"{np.abs(used.velocity).min(initial=np.inf):.2g} rad/s and more; the rest is standstill and its margins"
        )
    return notes
