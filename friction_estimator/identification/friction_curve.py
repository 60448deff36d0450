"""Method ``friction_curve``: any friction law through measured friction (Egle 2021, section 6.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curve_decision import choose_delay, choose_offsets, choose_treatment
from friction_estimator.identification.curve_fit import (
    CurveFit,
    CurveOptions,
    Identifiability,
    curve_findings,
    fit_curve,
    held_out_curve_error,
    parameter_identifiability,
)
from friction_estimator.identification.curve_problem import (
    CurvePrediction,
    CurveRows,
    CurveSamples,
    WithOffset,
    curve_rows,
)
from friction_estimator.identification.joint_log import (
    FRICTION,
    JointLog,
    Motion,
    RobotDescription,
    Treatment,
    at_motors,
)
from friction_estimator.identification.linear_problem import FOLDS, rms
from friction_estimator.identification.recording.zero_phase import Progress, to_motions
from friction_estimator.identification.result import (
    Candidate,
    Finding,
    FrictionSamples,
    Identification,
    JointScore,
    ParameterTable,
    Provenance,
    joined,
    sentences,
)
from friction_estimator.laws import FrictionLaw, laws_of_joints, make_law
from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray

METHOD = "friction_curve"
_DRAWN = 2000
_FEWEST = 10
"""Samples a parameter below which a joint is left out."""


@dataclass(frozen=True, slots=True)
class FrictionCurveOptions:
    """Choices of the method.

    Attributes
    ----------
    law : any friction law of the registry, of every joint
    joint_laws : exceptions, ``joint=law`` as of `identifier.joint_laws`
    coupling : of motors that move several joints together; their friction is then fitted motor by motor
    fit : loss and starts
    delay : how late the friction is against the other columns [s]; None: chosen
    offset : a constant torque is fitted that the law lacks; None: chosen, joint by joint
    dead_zone : slower samples are left out [rad/s]
    max_sigma : friction less certain than that is left out, where its standard deviation was recorded [N m]
    folds : of the validation
    cutoff_hz : of the zero-phase filter of velocities; None: chosen
    """

    law: str = "coulomb_viscous"
    joint_laws: tuple[str, ...] = ()
    coupling: Coupling | None = None
    fit: CurveOptions = field(default_factory=CurveOptions)
    delay: float | None = None
    offset: bool | None = None
    dead_zone: float = 0.0
    max_sigma: float = float("inf")
    folds: int = FOLDS
    cutoff_hz: float | None = None


@dataclass(frozen=True, slots=True)
class JointCurve:
    """One joint's part of the result.

    Attributes
    ----------
    joint : its name
    samples : those of the fit
    law : of the registry
    fit : law and parameters, with an offset where one was chosen
    identifiability : which of the parameters the data shows
    score : on held-out segments
    """

    joint: str
    samples: CurveSamples
    law: FrictionLaw
    fit: CurveFit
    identifiability: Identifiability
    score: JointScore


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether friction was recorded, or can be measured because the robot walks, and the reason in a sentence.

    Of a walking robot whose logs lack the input ``friction`` the estimator must measure it before :func:`run`.
    """
    if all(FRICTION in log.inputs for log in logs):
        return True, "measured friction torque is in the data"
    if robot is not None and not robot.fixed_base:
        return True, "the robot walks, so the estimator must measure friction first"
    return False, (
        "friction_curve needs friction/<joint>, or a bag of a walking robot with its sensors and --robot with its YAML"
    )


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: FrictionCurveOptions = FrictionCurveOptions(),
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Choose the velocities, take coupled joints to their motors, and fit a law to the friction of each.

    Parameters
    ----------
    logs : one an experiment, of the same joints, with the input ``friction``
    robot : not used
    progress : called with the number of compared velocities, and of all
    warn : not used

    Raises
    ------
    ConfigError
        When a law is unknown or the coupling does not fit the joints.
    InputError
        When there is no friction, or no joint has enough samples.
    """
    motors = Transmission.of(options.coupling, logs[0].joint_names)
    laws = laws_of_joints(options.law, options.joint_laws, motors.names, linear=False)

    def made(treatment: Treatment) -> list[Motion]:
        return [at_motors(one, motors) for one in to_motions(logs, treatment, options.folds)]

    treatment, table = choose_treatment(logs, made, [make_law(law) for law in laws], options, progress)
    return identify_friction_curve(made(treatment), laws, options, table)


def identify_friction_curve(
    motions: Sequence[Motion],
    laws: str | Sequence[str],
    options: FrictionCurveOptions = FrictionCurveOptions(),
    table: Sequence[Candidate] = (),
) -> Identification:
    """Fit a law to the measured friction of every joint (Egle 2021, eq. 6.4).

    Parameters
    ----------
    motions : experiments of the same joints with ``inputs["friction"]``, for instance of a replayed bag
    laws : name of one law for all joints, or (n) one a joint; any of the registry
    table : candidates of the velocity that were compared before

    Raises
    ------
    InputError
        When there is no friction, joints differ between motions, or no joint has enough samples.
    ConfigError
        When a law is unknown.
    """
    names = _joint_names(motions)
    law_names = (laws,) * len(names) if isinstance(laws, str) else tuple(laws)
    if len(law_names) != len(names):
        raise ConfigError(f"{len(law_names)} laws for {len(names)} joints: name one law, or one a joint")
    parts = [make_law(law) for law in law_names]
    delay, lateness, delays = choose_delay(motions, parts, options)
    rows = curve_rows(motions, delay, options.dead_zone, options.max_sigma)
    lacking = np.array([not law.has_offset for law in parts])
    offsets: BoolArray = lacking & bool(options.offset)
    constants: tuple[Candidate, ...] = ()
    if options.offset is None:
        offsets, constants = choose_offsets(rows, parts, lacking, options.folds)
    curves: list[JointCurve] = []
    left_out: list[str] = []
    for k, (joint, law) in enumerate(zip(names, parts, strict=True)):
        samples = rows.samples(k)
        reason = _lacking(joint, samples, _FEWEST * len(law.parameter_names))
        if reason:
            left_out.append(reason)
        else:
            curves.append(_joint_curve(joint, law, bool(offsets[k]), samples, options))
    if not curves:
        raise InputError(f"no joint has enough measured friction to fit a law: {'; '.join(left_out)}")
    decisions = [choice for motion in motions for choice in motion.choices]
    data = tuple((motion.name, motion.digest) for motion in motions)
    provenance = Provenance(METHOD, data, tuple(dict.fromkeys((*decisions, lateness, *left_out))))
    prediction = CurvePrediction(
        joints=tuple(curve.joint for curve in curves),
        treatment=motions[0].treatment or Treatment(float("inf"), float("inf"), True),
        laws=tuple(curve.law.name for curve in curves),
        values=tuple(tuple(curve.fit.values.tolist()) for curve in curves),
        delay=delay,
        dead_zone=options.dead_zone,
        max_sigma=options.max_sigma,
        coupling=options.coupling,
    )
    return _result(curves, left_out, rows, prediction, provenance, (*table, *delays, *constants))


def _joint_names(motions: Sequence[Motion]) -> tuple[str, ...]:
    if not motions:
        raise InputError("there is no data to identify friction from")
    names = motions[0].joint_names
    for motion in motions[1:]:
        if motion.joint_names != names:
            raise InputError(
                f"{motion.name} has the joints {', '.join(motion.joint_names)}, {motions[0].name} {', '.join(names)}"
            )
    return names


def _lacking(joint: str, samples: CurveSamples, fewest: int) -> str:
    """Why no law can be fitted to these samples, in a sentence; empty when one can."""
    if samples.velocity.size < fewest:
        return (
            f"{joint} is left out: {samples.velocity.size} samples with measured friction while it moves are too few, "
            f"its law needs {fewest}: move it"
        )
    if samples.torque_rms == 0.0:
        return f"{joint} is left out: its measured friction is zero everywhere"
    return ""


def _joint_curve(
    joint: str, law: FrictionLaw, offset: bool, samples: CurveSamples, options: FrictionCurveOptions
) -> JointCurve:
    fit = fit_curve(WithOffset(law) if offset else law, samples, options.fit)
    error = held_out_curve_error(fit, samples, options.fit, options.folds)
    score = JointScore(joint, samples.torque_rms, float("nan"), rms(error), float("nan"), samples.velocity.size)
    return JointCurve(joint, samples, law, fit, parameter_identifiability(joint, fit, samples), score)


def _result(
    curves: Sequence[JointCurve],
    left_out: Sequence[str],
    rows: CurveRows,
    prediction: CurvePrediction,
    provenance: Provenance,
    candidates: tuple[Candidate, ...],
) -> Identification:
    own = {score.joint: score for score in prediction.predicted(rows).scores()}
    curves = [replace(curve, score=replace(curve.score, fit_error=own[curve.joint].fit_error)) for curve in curves]
    findings = [one for curve in curves for one in curve_findings(curve.score, curve.fit, curve.identifiability)]
    return Identification(
        friction=_identified(curves),
        parameters=_table(curves),
        scores=tuple(curve.score for curve in curves),
        samples=tuple(_drawn(curve, rows) for curve in curves),
        condition=max(curve.fit.condition for curve in curves),
        verdicts=sentences([*(Finding(2.0, text) for text in left_out), *findings, *_about_offsets(curves)]),
        provenance=provenance,
        predictions=(prediction,),
        candidates=candidates,
    )


_CONSTANT = (
    "a constant torque that is no part of the law was found; it is in the table of parameters and in predictions, and "
    "no live node uses it: {}"
)


def _about_offsets(curves: Sequence[JointCurve]) -> list[Finding]:
    found = [f"{one.joint} {one.fit.values[-1]:+.3g} N m" for one in curves if isinstance(one.fit.law, WithOffset)]
    return [Finding(0.9, _CONSTANT.format(", ".join(found)))] if found else []


def _identified(curves: Sequence[JointCurve]) -> IdentifiedParameters:
    sizes = [len(curve.law.parameter_names) for curve in curves]
    return joined(
        [curve.joint for curve in curves],
        [curve.law.name for curve in curves],
        [
            (curve.fit.values[:size], curve.fit.covariance[:size, :size])
            for curve, size in zip(curves, sizes, strict=True)
        ],
        [curve.score.model_error**2 for curve in curves],
        np.zeros(len(curves)),
        [curve.score.samples for curve in curves],
    )


def _table(curves: Sequence[JointCurve]) -> ParameterTable:
    return ParameterTable(
        names=tuple(f"{curve.joint}/{name}" for curve in curves for name in curve.fit.law.parameter_names),
        units=tuple(unit for curve in curves for unit in curve.fit.law.units),
        values=np.concatenate([curve.fit.values for curve in curves]),
        sigma=np.concatenate([curve.fit.sigma for curve in curves]),
        identifiable=np.concatenate([curve.identifiability.identifiable for curve in curves]),
    )


def _drawn(curve: JointCurve, rows: CurveRows) -> FrictionSamples:
    joint = rows.names.index(curve.joint)
    seen: BoolArray = rows.measured[:, joint]
    few = np.flatnonzero(seen)[:: max(1, -(-int(seen.sum()) // _DRAWN))]
    velocity, friction, load = (signal[few, joint] for signal in (rows.velocity, rows.friction, rows.load))
    fitted, sigma = curve.fit.predict(velocity, load)
    return FrictionSamples(curve.joint, velocity, friction, load, fitted, sigma, rows.usable[few, joint])
