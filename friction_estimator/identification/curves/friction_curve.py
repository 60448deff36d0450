"""Method ``friction_curve``: any friction law through measured friction (Egle 2021, section 6.2.2).

Joints, or motors, are independent problems: each has its own velocity, lateness, columns and law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.curves.decision import (
    CURVE_DEFAULTS,
    CurveSource,
    FrictionCurveOptions,
    choose_curve_velocity,
    choose_delay,
    choose_law,
    choose_parameters,
)
from friction_estimator.identification.curves.fit import (
    CurveFit,
    fit_curve,
    held_out_curve_error,
    parameter_identifiability,
    refit,
    with_left_out,
)
from friction_estimator.identification.curves.problem import OFFSET_COLUMN, CurveSamples, torque_of
from friction_estimator.identification.joint_log import FRICTION_INPUT, JointLog, RobotDescription
from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.prediction import CurvePrediction
from friction_estimator.identification.recording.motion import Motion, Treatment
from friction_estimator.identification.result import (
    WRONG_SHAPE,
    Candidate,
    Finding,
    Identification,
    ParameterTable,
    Part,
    Provenance,
    Severity,
    about_direction,
    about_law,
    about_score,
    better_law,
    merged,
    shape_error,
)
from friction_estimator.identification.scoring import choice_covariance, samples_of
from friction_estimator.laws import laws_of_joints, make_law
from friction_estimator.laws.identified import joined
from friction_estimator.laws.joint_laws import AUTOMATIC, joints_without_own_law
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import Progress

CURVE_METHOD, MOTOR_METHOD = "friction_curve", "motor"
_SAMPLES_A_PARAMETER = 10
"""Samples a parameter below which a joint is left out."""


def accepts(logs: Sequence[JointLog], robot: RobotDescription | None) -> tuple[bool, str]:
    """Whether friction was recorded, or can be measured because the robot walks, and the reason in a sentence.

    Of a walking robot whose logs lack the input ``friction`` the estimator must measure it before :func:`run`.
    """
    if all(FRICTION_INPUT in log.inputs for log in logs):
        return True, "measured friction torque is in the data"
    if robot is not None and not robot.fixed_base:
        return True, "the robot walks, so the estimator must measure friction first"
    return False, (
        "friction_curve needs friction/<joint>, or a bag of a walking robot with its sensors and --robot with its YAML"
    )


def run(
    logs: Sequence[JointLog],
    robot: RobotDescription | None,
    options: FrictionCurveOptions = CURVE_DEFAULTS,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Identification:
    """Identify the friction law of every joint, or of the motors of coupled joints, from measured friction.

    Each joint or motor is identified alone: first its velocity signal is chosen, then its law is fitted.

    Parameters
    ----------
    logs : of the same joints, with the input ``friction/<joint>``: measured friction torque [N m]
    robot, warn : not used; every method has them (`methods.IdentifyFunction`)
    options : of this method
    progress : called with the number of finished joints or motors, and of all

    Raises
    ------
    ConfigError
        When a law is unknown or the coupling does not fit the joints.
    InputError
        When there is no friction, or no joint has enough samples.
    """
    names, parts = Transmission.from_coupling(options.coupling, logs[0].joint_names).names, list[JointCurve | str]()
    for source in _sources(names, options):
        coupling = None if options.coupling is None else options.coupling.part_of(source.joint)
        own = [log.select((source.joint,) if coupling is None else coupling.joint_names) for log in logs]
        parts.append(identified_curve(own, replace(source, coupling=coupling)))
        if progress is not None:
            progress(len(parts), len(names))
    return collected(parts)


def identify_friction_curve(
    motions: Sequence[Motion], options: FrictionCurveOptions = CURVE_DEFAULTS
) -> Identification:
    """Fit a law to the measured friction of every joint (Egle 2021, eq. 6.4).

    Parameters
    ----------
    motions : experiments of the same joints with ``inputs["friction"]``, for instance of a replayed bag

    Raises
    ------
    InputError
        When there is no friction, joints differ between motions, or no joint has enough samples.
    ConfigError
        When a law is unknown.
    """
    if not motions:
        raise InputError("there is no data to identify friction from")
    names = motions[0].joint_names
    for motion in motions[1:]:
        if motion.joint_names != names:
            raise InputError(
                f"{motion.name} has the joints {', '.join(motion.joint_names)}, {motions[0].name} {', '.join(names)}"
            )
    return collected([_fitted_curve(motions, source) for source in _sources(names, options)])


def _sources(names: Sequence[str], options: FrictionCurveOptions) -> list[CurveSource]:
    """One a joint (n)."""
    law_names = laws_of_joints(options.law, options.joint_laws, names, linear=False)
    open_joints = joints_without_own_law(options.joint_laws, names) if options.law == AUTOMATIC else ()
    sources = []
    for k, (name, law) in enumerate(zip(names, map(make_law, law_names), strict=True)):
        columns = () if law.has_offset or options.offset is False else (OFFSET_COLUMN,)
        optional = frozenset(columns if options.offset is None else ())
        sources.append(CurveSource(name, law, options, columns, optional, k in open_joints))
    return sources


@dataclass(frozen=True, slots=True)
class JointCurve:
    """The fitted law of one joint, with the samples that it was fitted to."""

    joint: str  # its name
    samples: CurveSamples  # all with measured friction, and the extra columns that were chosen
    fit: CurveFit  # law and parameters, with these columns
    part: Part  # the result of this joint, and what is to be found about it


def identified_curve(logs: Sequence[JointLog], source: CurveSource) -> JointCurve | str:
    """Choose velocity, lateness, extra columns and law of one joint, or return the reason why it has none."""
    treatment, rivals, table = choose_curve_velocity(logs, source)
    if treatment is None:
        return f"{source.joint} is left out: it moves by no more than its noise: move it"
    others = (source.motions(logs, rival) for rival in rivals)
    return _fitted_curve(source.motions(logs, treatment), source, table, others)


def _fitted_curve(
    motions: Sequence[Motion],
    source: CurveSource,
    table: Sequence[Candidate] = (),
    rivals: Iterable[Sequence[Motion]] = (),
) -> JointCurve | str:
    """Lateness, extra columns and law of one joint, or the reason why it has none.

    Parameters
    ----------
    rivals : the same motions after treatments that predict as well: what they change is part of the uncertainty
    """
    options, joint = source.options, source.joint
    delay, lateness, delays = choose_delay(motions, source)
    samples, law = source.samples(motions, delay), source.law
    count, fewest = samples.used.velocity.size, _SAMPLES_A_PARAMETER * (len(law.parameters) + len(source.columns))
    if count < fewest:
        return (
            f"{joint} is left out: {count} samples with measured friction while it moves are too few, its law needs "
            f"{fewest}: move it"
        )
    if samples.used.torque_rms == 0.0:
        return f"{joint} is left out: its measured friction is zero everywhere"
    whole = samples
    samples, found = choose_parameters(samples, source)
    if source.automatic:
        name, more = choose_law(samples.used, source)
        law, found = make_law(name), (*found, *more)
        samples = samples.without((OFFSET_COLUMN,)) if law.has_offset else samples
    left_out, used = set(source.columns) - set(samples.columns), samples.used
    others = [source.samples(one, delay).without(left_out).used for one in rivals]
    fit = fit_curve(law, used, options.fit)
    tried = [fit.values, *(refit(fit, one, options.fit) for one in others)]
    fit = replace(fit, covariance=fit.covariance + choice_covariance(tried, 0, range(len(tried))))
    fit = with_left_out(fit, whole.used, source.optional & left_out, options.fit)
    prediction = CurvePrediction(
        joint=joint,
        treatment=motions[0].treatment or Treatment(float("inf"), float("inf"), True),
        law=law.name,
        values=tuple(fit.friction.values.tolist()),
        extra_parameters=fit.extra_parameters,
        delay=delay,
        dead_zone=source.dead_zone(motions),
        max_sigma=options.max_sigma,
        coupling=source.coupling,
        drive=source.drive,
    )
    lateness = lateness if source.drive is None else lateness.replace("friction", "the torque", 1)
    decisions = *dict.fromkeys(choice for motion in motions for choice in motion.choices), lateness
    data = tuple((motion.name, motion.digest) for motion in motions)
    provenance = Provenance(CURVE_METHOD if source.drive is None else MOTOR_METHOD, data, decisions)
    result, findings = _reported(prediction, samples, fit, source)
    if delay and options.delay is None:
        findings.append(Finding(Severity.DOUBT, _LATE, joint, f"{1e3 * delay:.3g} ms"))
    result = replace(result, provenance=provenance, candidates=(*table, *delays, *found))
    return JointCurve(joint, samples, fit, (result, findings))


def _reported(
    prediction: CurvePrediction, samples: CurveSamples, fit: CurveFit, source: CurveSource
) -> tuple[Identification, list[Finding]]:
    """Parameters, errors and figure of one joint, and findings about it."""
    options, joint, law, used = source.options, prediction.joint, fit.law, samples.used
    rows = prediction.predicted(samples)
    error = rms(held_out_curve_error(fit, used, options.fit, options.folds)[used.scored])
    identifiable, reasons = parameter_identifiability(joint, fit, used)
    score = replace(rows.scores()[0], held_out_error=error)
    residual = used.friction - torque_of(law, fit.values, used)
    # white noise is what neighbouring samples do not share
    noise, total = float(0.5 * np.mean(np.diff(residual) ** 2)), error**2
    unexplained = max(total - noise, min(total, noise) * float(np.sqrt(2.0 / residual.size)))
    parameters = [(fit.friction.values, fit.friction.covariance)]
    friction = joined([joint], [law.name], parameters, [unexplained], [noise], [score.samples])
    seen, names = samples_of(friction, rows, 0), tuple(f"{joint}/{name}" for name in fit.names)
    result = Identification(
        friction=friction,
        parameters=ParameterTable(names, fit.units, fit.values, fit.sigma, identifiable=identifiable),
        scores=(score,),
        samples=(seen,),
        condition=fit.linear.condition,
        verdicts=(),
        provenance=Provenance("", (), ()),
        predictions=(prediction,),
    )
    findings = about_score(score, "friction" if prediction.drive is None else "torque")
    findings += [Finding(Severity.DOUBT, *one) for one in reasons if score.relative_error < 1.0]
    findings += [] if reasons else about_direction(joint, used.velocity)
    wrong = not source.automatic and shape_error(seen)[0] > WRONG_SHAPE
    better = better_law(choose_law(used, source)[1], law.name) if wrong else None
    findings += about_law(seen, law.name, better)
    if OFFSET_COLUMN.name in prediction.extra_parameters:
        detail = f"{prediction.extra_parameters[OFFSET_COLUMN.name]:+.3g} N m"
        findings.append(Finding(Severity.NOTE, _CONSTANT_TORQUE, joint, detail))
    return result, findings


_LATE = (
    "the measured friction, or torque, is {} late compared with the velocity and was moved back: the filter of what "
    "measured it lags, or the stamps of the two differ. Check the stamps, or give the delay that is known (--delay); "
    "no live node moves it back"
)
_CONSTANT_TORQUE = (
    "a constant torque that is no part of the law was found: {}; it is in the table of parameters and in predictions, "
    "and no live node uses it"
)


def collected(curves: Sequence[JointCurve | str]) -> Identification:
    """The result of all joints; a text in place of a curve is the reason why that joint has no law.

    Raises
    ------
    InputError
        When no joint has enough samples.
    """
    parts = [one.part for one in curves if isinstance(one, JointCurve)]
    left_out = [one for one in curves if isinstance(one, str)]
    if not parts:
        raise InputError(f"no joint has enough measured friction to fit a law: {'; '.join(left_out)}")
    found = merged(parts, [Finding(Severity.FAULT, text) for text in left_out])
    choices = (*found.provenance.choices, *left_out)
    return replace(found, provenance=replace(found.provenance, choices=choices))
