"""Method `motor`: friction motor by motor behind a coupling matrix, then drive gain and offset (Guedelha 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from friction_estimator.config.robot import Coupling, uncoupled
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.identification.curve_decision import choose_delay, choose_offsets, choose_treatment
from friction_estimator.identification.curve_problem import curve_rows
from friction_estimator.identification.joint_log import JointLog, Motion, RobotDescription, Treatment
from friction_estimator.identification.linear_problem import FOLDS, SolverOptions
from friction_estimator.identification.motor.fit import fit_drive_gain, fit_motor_friction
from friction_estimator.identification.motor.problem import FrictionUnknowns, MotorLaw
from friction_estimator.identification.motor.result import (
    MotorPrediction,
    MotorResult,
    drive_gains,
    identified_friction,
    motor_choices,
    motor_figures,
    motor_findings,
    motor_parameters,
    motor_prediction,
    motor_score,
)
from friction_estimator.identification.motor.samples import (
    DRIVES,
    LEFT_OUT,
    TORQUE,
    UNDRIVEN,
    MotorSamples,
    StickOptions,
    advanced,
    as_curves,
    drive_kind,
    motor_samples,
    separated,
)
from friction_estimator.identification.recording.zero_phase import Progress, to_motion
from friction_estimator.identification.result import Candidate, Identification, Provenance, judged, sentences
from friction_estimator.laws import make_linear_law
from friction_estimator.laws.linear import ASYMMETRIC_STRIBECK, STRIBECK_VELOCITY
from friction_estimator.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class MotorOptions:
    """How to identify.

    Attributes
    ----------
    law : linear friction law of every motor that needs no load
    stribeck_velocity : of ``asymmetric_stribeck`` [rad/s], 1 deg/s as published; None: searched, motor by motor
    zero_slope : ``none``, ``positive``, ``negative`` or ``both``: friction leaves standstill with zero slope there
    inertia : reflected inertia of the motors at the output of their gearboxes, by name, as far as known [kg m^2]
    identify_inertia : find the inertia of the others; False: they have none
    offset : a constant torque acts in the free logs too; None: chosen, where the law allows to separate it
    drive : ``pwm`` or ``current``; None: whichever was recorded
    known_gain : torque per unit of the drive by motor, for free logs in which it was not zero [N m per unit]
    stick : what counts as standing still
    solver : weights, robustness and bounds of both phases
    cutoff_hz : of the velocities; None: chosen
    delay : by which the torques are late [s]; None: chosen
    folds : of the validation
    coupling : of motors that move several joints together; None: every joint has a motor of its own
    """

    law: str = ASYMMETRIC_STRIBECK.name
    stribeck_velocity: float | None = STRIBECK_VELOCITY
    zero_slope: str = "none"
    inertia: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    identify_inertia: bool = True
    offset: bool | None = None
    drive: str | None = None
    known_gain: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    stick: StickOptions = field(default_factory=StickOptions)
    solver: SolverOptions = field(default_factory=SolverOptions)
    cutoff_hz: float | None = None
    delay: float | None = None
    folds: int = FOLDS
    coupling: Coupling | None = None

    @property
    def dead_zone(self) -> float:
        """Velocities of all sizes are compared."""
        return 0.0

    @property
    def max_sigma(self) -> float:
        """All torques are compared."""
        return float("inf")


DEFAULTS = MotorOptions()


def motor_law(options: MotorOptions) -> MotorLaw:
    """The law of every motor, with the Stribeck velocity to take or to begin with.

    Raises
    ------
    ConfigError
        When it is not known, or Stribeck options are given for a law without them.
    """
    if options.stribeck_velocity is None and options.law != ASYMMETRIC_STRIBECK.name:
        raise ConfigError(f"a Stribeck velocity is searched for {ASYMMETRIC_STRIBECK.name!r}, not for {options.law!r}")
    velocity = STRIBECK_VELOCITY if options.stribeck_velocity is None else options.stribeck_velocity
    law = MotorLaw(options.law, velocity, options.zero_slope)
    if options.offset and not law.offset_shows:
        raise ConfigError(
            f"a constant torque cannot be separated from the friction of {options.law!r}: leave offset out"
        )
    return law


def unknowns_of(motor: str, law: MotorLaw, options: MotorOptions, offset: bool, gain: str | None) -> FrictionUnknowns:
    """What is not known of one motor."""
    searched = options.identify_inertia and motor not in options.inertia
    return FrictionUnknowns(
        law,
        search=options.stribeck_velocity is None,
        inertia=None if searched else options.inertia.get(motor, 0.0),
        offset=offset,
        gain=gain,
    )


def check_names(options: MotorOptions, coupling: Coupling) -> None:
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


METHOD = "motor"
_NEEDS_LOGS = f"the method {METHOD!r} needs logs of joints that are moved, from outside with PWM = 0 or by their motors"
_BACKWARD = 0.1
"""Share of the power that friction may give back before the torque is taken to have the wrong sign."""


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether the torque behind the transmission was recorded, and the reason in a sentence."""
    if all(TORQUE in log.inputs for log in logs):
        return True, "the torque behind the transmission was recorded"
    return False, f"motor needs {TORQUE}/<joint>"


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: MotorOptions = DEFAULTS,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Find out which logs are driven, and identify friction from the others and drive gains from these.

    With known gains all logs show friction, whether they are driven or not, and no gain is identified.

    Parameters
    ----------
    logs : one an experiment, of the same joints
    robot, progress : not used
    warn : called where a log is driven in a few samples only

    Raises
    ------
    ConfigError, InputError
        As :func:`identify_motor`; also when a known gain is given and it is not clear which column it multiplies.
    """
    coupling = options.coupling or uncoupled(logs[0].joint_names)
    if options.known_gain:
        return identify_motor(logs, [], coupling, replace(options, drive=_driving_input(logs, options.drive)))
    free, driven, reasons = separated(logs)
    if warn is not None:
        for reason in reasons:
            if reason.endswith(LEFT_OUT):
                warn(reason)
    found = identify_motor(free, driven, coupling, options)
    return replace(found, provenance=replace(found.provenance, choices=(*reasons, *found.provenance.choices)))


def _driving_input(logs: Sequence[JointLog], wanted: str | None) -> str:
    """Which recorded column a known gain multiplies."""
    recorded = [kind for kind in DRIVES if any(kind in log.inputs for log in logs)]
    if wanted is not None and wanted not in recorded:
        raise ConfigError(f"the drive {wanted!r} was not recorded; the logs have {choices(recorded)}")
    if wanted is None and len(recorded) != 1:
        found = "both" if recorded else "neither of them"
        raise ConfigError(f"a known gain multiplies 'pwm' or 'current'; the logs have {found}: say which with --drive")
    return wanted or recorded[0]


def identify_motor(
    free_logs: Sequence[JointLog],
    driven_logs: Sequence[JointLog],
    coupling: Coupling,
    options: MotorOptions = DEFAULTS,
) -> Identification:
    """Friction, drive gain and offset of motors that move joints through a coupling (Guedelha et al. 2017, section 3).

    Parameters
    ----------
    free_logs : joints moved from outside with PWM = 0; the input ``joint_torque`` is the torque that the transmission
        passes on to the joint's child link [N m]
    driven_logs : with the input ``pwm`` or ``current`` as well, the k-th joint's column that of the k-th motor; none:
        friction only
    coupling : of the motors and joints to identify; the logs may have more joints

    Returns
    -------
    identification : friction by the name of the motor, which is that of the joint where they are not coupled

    Raises
    ------
    ConfigError
        When an option is unknown, or names a motor that the coupling lacks.
    InputError
        When the logs lack a signal, motors hardly slide, or the free logs are driven.
    """
    if not free_logs and not driven_logs:
        raise InputError(_NEEDS_LOGS)
    check_names(options, coupling)
    law = motor_law(options)
    free_logs, driven_logs = ([log.select(coupling.joint_names) for log in logs] for logs in (free_logs, driven_logs))
    kind = drive_kind(driven_logs, options.drive) if driven_logs else options.drive or DRIVES[0]
    treatment, delay, offsets, table, notes = _decisions(free_logs, driven_logs, kind, coupling, law, options)
    free, driven = ([advanced(to_motion(log, treatment), delay) for log in logs] for logs in (free_logs, driven_logs))
    known = options.inertia, options.known_gain
    free_samples = motor_samples(free, coupling, kind, options.stick, True, *known)
    driven_samples = motor_samples(driven, coupling, kind, options.stick, False, *known)
    results = []
    for samples, moved, offset in zip(free_samples, driven_samples, offsets, strict=True):
        both = samples if free else moved  # without a free log, friction and gain are unknowns of one problem
        driving = _driving(samples, moved, kind, options) if free else np.zeros(moved.velocity.size)
        slides = both.slides
        unknowns = unknowns_of(samples.motor, law, options, bool(offset), None if free else kind)
        friction = fit_motor_friction(both.select(slides), unknowns, driving[slides], options.solver)
        gain = friction.gain
        if free and driven:
            gain = fit_drive_gain(moved.select(moved.slides), kind, friction, options.solver)
        results.append(MotorResult(both, driving, friction, gain))
    prediction = motor_prediction(results, treatment, delay, coupling, kind, options.stick, known)
    return _identification(results, prediction, (*free, *driven), coupling, options, table, notes, bool(free))


def _decisions(
    free: Sequence[JointLog],
    driven: Sequence[JointLog],
    kind: str,
    coupling: Coupling,
    law: MotorLaw,
    options: MotorOptions,
) -> tuple[Treatment, float, BoolArray, tuple[Candidate, ...], tuple[str, ...]]:
    """Treatment, delay and which motors (n,) have a constant torque, by held-out errors; all candidates; in words."""
    logs, is_free = free or driven, bool(free) and not options.known_gain

    def made(treatment: Treatment) -> list[Motion]:
        return [as_curves(to_motion(log, treatment), coupling, kind, is_free, options.stick) for log in logs]

    laws = [make_linear_law(law.name)] * len(coupling.motor_names)
    treatment, table = choose_treatment(logs, made, laws, options, unfiltered=False)
    motions = made(treatment)
    delay, reason, delays = choose_delay(motions, laws, options)
    offsets = np.full(len(coupling.motor_names), law.offset_shows and options.offset is not False)
    constants: tuple[Candidate, ...] = ()
    if options.offset is None:
        offsets, constants = choose_offsets(curve_rows(motions, delay), laws, offsets, options.folds)
    return treatment, delay, offsets, (*table, *delays, *constants), (reason.replace("friction", "the torque", 1),)


def _driving(free: MotorSamples, driven: MotorSamples, kind: str, options: MotorOptions) -> FloatArray:
    """Torque (r,) of the drive in the free logs [N m].

    Raises
    ------
    InputError
        When it is not zero and the gain is not known, or the torque seems to have the wrong sign.
    """
    largest = float(np.abs(np.nan_to_num(free.drive)).max(initial=0.0))
    gain = options.known_gain.get(free.motor)
    if gain is None and largest > UNDRIVEN * float(np.abs(np.nan_to_num(driven.drive)).max(initial=0.0)):
        raise InputError(
            f"the motor {free.motor!r} is driven in the free logs ({kind} up to {largest:g}): record it with PWM = 0, "
            "give its known gain, or pass the file with the driven logs"
        )
    if not np.nan_to_num(free.torque).any():
        raise InputError(
            f"{TORQUE!r} of the motor {free.motor!r} is zero in all samples without drive: was it recorded?"
        )
    driving = np.zeros_like(free.drive) if gain is None else gain * np.nan_to_num(free.drive)
    power = np.nan_to_num((driving - free.torque) * free.velocity)
    if power.sum() < -_BACKWARD * np.abs(power).sum():
        raise InputError(
            f"{TORQUE!r} pushes the motor {free.motor!r} along with its motion although it is not driven: it has the "
            "wrong sign (it is the torque that the joint exerts on its child link), or the coupling matrix has"
        )
    return driving


def _identification(
    results: Sequence[MotorResult],
    prediction: MotorPrediction,
    motions: Sequence[Motion],
    coupling: Coupling,
    options: MotorOptions,
    candidates: tuple[Candidate, ...],
    notes: tuple[str, ...],
    free: bool,
) -> Identification:
    friction = identified_friction(results)
    own = prediction.rows_of([result.free for result in results], free).scores()
    scores = tuple(
        motor_score(result, score, options.solver, options.folds) for result, score in zip(results, own, strict=True)
    )
    condition = max(result.friction.fit.condition for result in results)
    findings = [finding for result in results for finding in motor_findings(result)]
    filtered = tuple(f"{motion.name}: {choice}" for motion in motions for choice in motion.choices)
    return Identification(
        friction,
        motor_parameters(results),
        scores,
        tuple(motor_figures(result) for result in results),
        condition,
        sentences([*findings, *judged(scores, friction, condition)]),
        Provenance(
            METHOD,
            tuple((motion.name, motion.digest) for motion in motions),
            (*filtered, *notes, *motor_choices(results, coupling)),
        ),
        drives=drive_gains(results),
        predictions=(prediction,),
        candidates=candidates,
    )
