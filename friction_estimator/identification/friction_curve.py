"""Method ``friction_curve``: any friction law through measured friction (Egle 2021, section 6.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curve_fit import (
    CurveFit,
    CurveOptions,
    Identifiability,
    curve_findings,
    fit_curve,
    parameter_identifiability,
    refit,
)
from friction_estimator.identification.curve_problem import CurveSamples, curve_samples, find_delay, torque_of
from friction_estimator.identification.joint_log import FRICTION, JointLog, Motion, RobotDescription, at_motors
from friction_estimator.identification.linear_problem import FOLDS, fold_numbers, rms
from friction_estimator.identification.recording.zero_phase import Progress, to_motions
from friction_estimator.identification.result import (
    Finding,
    FrictionSamples,
    Identification,
    JointScore,
    ParameterTable,
    Provenance,
    joined,
    sentences,
)
from friction_estimator.laws import laws_of_joints, make_law
from friction_estimator.laws.joint_laws import IdentifiedParameters
from friction_estimator.robot.transmission import Transmission

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
    delay : how late the friction is against the other columns [s]; None: found from the data
    dead_zone : slower samples are left out [rad/s]
    max_sigma : friction less certain than that is left out, where its standard deviation was recorded [N m]
    folds : of the validation
    cutoff_hz : of the zero-phase filter of velocities and accelerations; None: from the spectrum of each log
    """

    law: str = "coulomb_viscous"
    joint_laws: tuple[str, ...] = ()
    coupling: Coupling | None = None
    fit: CurveOptions = field(default_factory=CurveOptions)
    delay: float | None = None
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
    seen : all samples with measured friction
    samples : those of the fit, without the dead zone
    fit : law and parameters
    identifiability : which of the parameters the data shows
    score : on held-out segments
    """

    joint: str
    seen: CurveSamples
    samples: CurveSamples
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
    """Filter the logs, take coupled joints to their motors, and fit a law to the friction of each.

    Parameters
    ----------
    logs : one an experiment, of the same joints, with the input ``friction``
    robot : not used
    progress : called with the number of filtered logs, and of all steps
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
    motions = to_motions(logs, options.cutoff_hz, options.folds, progress)
    return identify_friction_curve([at_motors(motion, motors) for motion in motions], laws, options)


def identify_friction_curve(
    motions: Sequence[Motion],
    laws: str | Sequence[str],
    options: FrictionCurveOptions = FrictionCurveOptions(),
) -> Identification:
    """Fit a law to the measured friction of every joint (Egle 2021, eq. 6.4).

    Parameters
    ----------
    motions : experiments of the same joints with ``inputs["friction"]``, for instance of a replayed bag
    laws : name of one law for all joints, or (n) one a joint; any of the registry

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
    delay, reason = _delay(motions, options)
    curves: list[JointCurve] = []
    left_out: list[str] = []
    for k, (joint, law) in enumerate(zip(names, law_names, strict=True)):
        seen = curve_samples(motions, k, delay, options.max_sigma)
        samples = seen.select(np.abs(seen.velocity) >= options.dead_zone)
        lacking = _lacking(joint, samples, _FEWEST * len(make_law(law).parameter_names))
        if lacking:
            left_out.append(lacking)
        else:
            curves.append(_joint_curve(joint, law, seen, samples, options))
    if not curves:
        raise InputError(f"no joint has enough measured friction to fit a law: {'; '.join(left_out)}")
    decisions = [choice for motion in motions for choice in motion.choices]
    data = tuple((motion.name, motion.digest) for motion in motions)
    return _result(curves, left_out, Provenance(METHOD, data, tuple(dict.fromkeys((*decisions, reason, *left_out)))))


def _delay(motions: Sequence[Motion], options: FrictionCurveOptions) -> tuple[float, str]:
    if options.delay is None:
        return find_delay(motions, options.max_sigma)
    return options.delay, f"friction is taken as {options.delay:g} s late, as given"


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
    joint: str, law_name: str, seen: CurveSamples, samples: CurveSamples, options: FrictionCurveOptions
) -> JointCurve:
    fit = fit_curve(make_law(law_name), samples, options.fit)
    return JointCurve(
        joint, seen, samples, fit, parameter_identifiability(joint, fit, samples), _score(joint, fit, samples, options)
    )


def _score(joint: str, fit: CurveFit, samples: CurveSamples, options: FrictionCurveOptions) -> JointScore:
    """Errors on the data of the fit, and on segments that a fit has not seen."""
    fold = fold_numbers(samples.segment, options.folds)
    predicted = np.empty_like(samples.friction)
    for number in np.unique(fold):
        held_out = fold == number
        predicted[held_out] = torque_of(
            fit.law, refit(fit, samples.select(~held_out), options.fit), samples.select(held_out)
        )
    own = torque_of(fit.law, fit.values, samples)
    return JointScore(
        joint=joint,
        torque_rms=samples.torque_rms,
        rigid_body_error=float("nan"),
        model_error=rms(predicted - samples.friction),
        fit_error=rms(own - samples.friction),
        samples=samples.velocity.size,
    )


def _result(curves: Sequence[JointCurve], left_out: Sequence[str], provenance: Provenance) -> Identification:
    findings = [one for curve in curves for one in curve_findings(curve.score, curve.fit, curve.identifiability)]
    return Identification(
        friction=_identified(curves),
        parameters=_table(curves),
        scores=tuple(curve.score for curve in curves),
        samples=tuple(_drawn(curve) for curve in curves),
        condition=max(curve.fit.condition for curve in curves),
        verdicts=sentences([*(Finding(2.0, text) for text in left_out), *findings]),
        provenance=provenance,
    )


def _identified(curves: Sequence[JointCurve]) -> IdentifiedParameters:
    return joined(
        [curve.joint for curve in curves],
        [curve.fit.law.name for curve in curves],
        [(curve.fit.values, curve.fit.covariance) for curve in curves],
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


def _drawn(curve: JointCurve) -> FrictionSamples:
    seen = curve.seen.thinned(_DRAWN)
    fitted, sigma = curve.fit.predict(seen.velocity, seen.load)
    load = np.full(seen.velocity.size, np.nan) if seen.load is None else seen.load
    used = np.abs(seen.velocity) >= np.abs(curve.samples.velocity).min()
    return FrictionSamples(curve.joint, seen.velocity, seen.friction, load, fitted, sigma, used)
