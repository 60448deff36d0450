"""Method ``friction_curve``: any friction law through measured friction (Egle 2021, section 6.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curves.decision import (
    DEFAULTS,
    CurveSource,
    FrictionCurveOptions,
    choose_columns,
    choose_delay,
    choose_law,
    choose_treatment,
)
from friction_estimator.identification.curves.drive import DriveRecording
from friction_estimator.identification.curves.fit import (
    CurveFit,
    Identifiability,
    fit_curve,
    held_out_curve_error,
    parameter_identifiability,
)
from friction_estimator.identification.curves.problem import OFFSET, CurveRows, CurveSamples, torque_of
from friction_estimator.identification.curves.stribeck import StribeckExcess, fitted_law
from friction_estimator.identification.joint_log import (
    FRICTION,
    JointLog,
    Motion,
    RobotDescription,
    Treatment,
    at_motors,
)
from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.prediction import CurvePrediction
from friction_estimator.identification.recording.zero_phase import Progress, to_motions
from friction_estimator.identification.result import (
    Candidate,
    Finding,
    FrictionSamples,
    Identification,
    ParameterTable,
    Provenance,
    about_score,
    joined,
    sentences,
)
from friction_estimator.laws import FrictionLaw, laws_of_joints, make_law
from friction_estimator.laws.joint_laws import AUTOMATIC, START_LAW, chosen_joints
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray

METHOD = "friction_curve"
_DRAWN = 2000
_FEWEST = 10
"""Samples a parameter below which a joint is left out."""


@dataclass(frozen=True, slots=True)
class JointCurve:
    """One joint's part of the result.

    Attributes
    ----------
    joint : its name
    samples : those of the fit
    fit : law and parameters, with the further columns that were chosen
    shown : which of the parameters the data shows
    error : RMS of the scored samples on held-out segments [N m]
    """

    joint: str
    samples: CurveSamples
    fit: CurveFit
    shown: Identifiability
    error: float

    @property
    def law(self) -> tuple[str, FloatArray, FloatArray]:
        """Law of the registry with its parameters (q,) and their covariance (q, q)."""
        law, friction = self.fit.law, self.fit.friction
        if isinstance(law, StribeckExcess):
            return (law.name, *law.registered(friction.values, friction.covariance))
        return law.name, friction.values, friction.covariance

    @property
    def further(self) -> dict[str, float]:
        """Parameters of the further columns by name."""
        return dict(zip((column.name for column in self.samples.columns), self.fit.further.tolist(), strict=True))


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
    options: FrictionCurveOptions = DEFAULTS,
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
    names = laws_of_joints(options.law, options.joint_laws, motors.names, linear=False)

    def made(treatment: Treatment) -> list[Motion]:
        return [at_motors(one, motors) for one in to_motions(logs, treatment, options.folds)]

    laws = [_start(fitted_law(name)) for name in names]
    treatment, table = choose_treatment(logs, CurveSource(made), laws, options, progress)
    return identify_friction_curve(made(treatment), names, options, table)


def identify_friction_curve(
    motions: Sequence[Motion],
    laws: str | Sequence[str],
    options: FrictionCurveOptions = DEFAULTS,
    table: Sequence[Candidate] = (),
) -> Identification:
    """Fit a law to the measured friction of every joint (Egle 2021, eq. 6.4).

    Parameters
    ----------
    motions : experiments of the same joints with ``inputs["friction"]``, for instance of a replayed bag
    laws : name of one law for all joints, or (n) one a joint; any of the registry, replaced where ``options.law`` is
        ``auto``
    table : candidates of the velocity that were compared before

    Raises
    ------
    InputError
        When there is no friction, joints differ between motions, or no joint has enough samples.
    ConfigError
        When a law is unknown.
    """
    names = _joint_names(motions)
    law_names = (START_LAW if laws == AUTOMATIC else laws,) * len(names) if isinstance(laws, str) else tuple(laws)
    if len(law_names) != len(names):
        raise ConfigError(f"{len(law_names)} laws for {len(names)} joints: name one law, or one a joint")
    forms = [fitted_law(law) for law in law_names]
    lacking = np.array([[not law.has_offset] for law in forms])
    optional, needed = lacking & (options.offset is None), lacking & bool(options.offset)
    curves = fit_curves(motions, CurveSource(lambda _: [], (OFFSET,)), forms, optional, needed, options)
    return curves.identification(METHOD, options, table, "friction")


@dataclass(frozen=True, slots=True)
class Curves:
    """Fits of all joints.

    Attributes
    ----------
    motions, rows : that were fitted
    delay : by which friction is late [s]
    curves : of the joints that have one
    left_out : why the others have none, in sentences
    lateness : why the delay was taken
    table : all candidates
    """

    motions: Sequence[Motion]
    rows: CurveRows
    delay: float
    curves: tuple[JointCurve, ...]
    left_out: tuple[str, ...]
    lateness: str
    table: tuple[Candidate, ...]

    def identification(
        self,
        method: str,
        options: FrictionCurveOptions,
        table: Sequence[Candidate],
        quantity: str,
        drive: DriveRecording | None = None,
    ) -> Identification:
        """The result: laws, all parameters, errors, figures, and one verdict."""
        prediction = CurvePrediction(
            joints=tuple(curve.joint for curve in self.curves),
            treatment=self.motions[0].treatment or Treatment(float("inf"), float("inf"), True),
            laws=tuple(curve.law[0] for curve in self.curves),
            values=tuple(tuple(curve.law[1].tolist()) for curve in self.curves),
            further=tuple(curve.further for curve in self.curves),
            delay=self.delay,
            dead_zone=options.dead_zone,
            max_sigma=options.max_sigma,
            coupling=options.coupling,
            drive=drive,
        )
        own = {score.joint: score for score in prediction.predicted(self.rows).scores()}
        scores = tuple(replace(own[one.joint], model_error=one.error) for one in self.curves)
        findings = [Finding(2.0, text) for text in self.left_out]
        for curve, score in zip(self.curves, scores, strict=True):
            findings += about_score(score, quantity)
            findings += [Finding(1.0, text) for text in curve.shown.reasons if score.relative_error < 1.0]
            findings += [Finding(1.3, text) for text in _about_static_friction(curve)]
        decisions = [choice for motion in self.motions for choice in motion.choices]
        notes = (self.lateness.replace("friction", "the torque", 1) if drive else self.lateness, *self.left_out)
        data = tuple((motion.name, motion.digest) for motion in self.motions)
        laws, variances = [curve.law for curve in self.curves], [_variances(curve) for curve in self.curves]
        return Identification(
            friction=joined(
                [curve.joint for curve in self.curves],
                [name for name, _, _ in laws],
                [(values, covariance) for _, values, covariance in laws],
                [residual for residual, _ in variances],
                [noise for _, noise in variances],
                [score.samples for score in scores],
            ),
            parameters=_table(self.curves),
            scores=scores,
            samples=tuple(_drawn(curve, self.rows) for curve in self.curves),
            condition=max(curve.fit.condition for curve in self.curves),
            verdicts=sentences([*findings, *_about_offsets(self.curves)]),
            provenance=Provenance(method, data, tuple(dict.fromkeys((*decisions, *notes)))),
            predictions=(prediction,),
            candidates=(*table, *self.table),
        )


def _start(law: FrictionLaw) -> FrictionLaw:
    """The law with the shape that decisions are made with."""
    return law.at_published_velocity if isinstance(law, StribeckExcess) else law


def fit_curves(
    motions: Sequence[Motion],
    source: CurveSource,
    forms: Sequence[FrictionLaw],
    optional: BoolArray,
    needed: BoolArray,
    options: FrictionCurveOptions,
) -> Curves:
    """Lateness, further columns and law of every joint.

    Parameters
    ----------
    forms : (n) laws in the form in which they are fitted
    optional, needed : (n, e) further columns that are fitted where they predict better, and in any case

    Raises
    ------
    InputError
        When no joint has enough samples.
    """
    names, starts = motions[0].joint_names, [_start(law) for law in forms]
    delay, lateness, delays = choose_delay(motions, source, starts, options)
    rows = options.rows(motions, delay, source.columns)
    lacking, chosen, table = choose_columns(rows, starts, optional, needed, options.folds)
    curves, left_out = list[JointCurve](), list[str]()
    for k, (joint, law) in enumerate(zip(names, forms, strict=True)):
        samples = rows.samples(k, chosen[k])
        reason = _lacking(joint, samples, _FEWEST * (len(law.parameters) + len(samples.columns)))
        if reason:
            left_out.append(reason)
            continue
        if options.law == AUTOMATIC and k in chosen_joints(options.joint_laws, names):
            name, found = choose_law(joint, samples, options)
            law, table = fitted_law(name), (*table, *found)
            samples = samples.without(OFFSET) if law.has_offset else samples
            curves.append(_joint_curve(joint, law, samples, rows, options))
        else:
            curves.append(_joint_curve(joint, _reduced(law, lacking[k], samples), samples, rows, options))
    if not curves:
        raise InputError(f"no joint has enough measured friction to fit a law: {'; '.join(left_out)}")
    return Curves(motions, rows, delay, tuple(curves), tuple(left_out), lateness, (*delays, *table))


def _reduced(law: FrictionLaw, lacking: Sequence[str], samples: CurveSamples) -> FrictionLaw:
    """The law without the parameters that the data do not show; they may be as large as the friction."""
    return law.without(dict.fromkeys(lacking, samples.torque_rms)) if isinstance(law, StribeckExcess) else law


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
    joint: str, law: FrictionLaw, samples: CurveSamples, rows: CurveRows, options: FrictionCurveOptions
) -> JointCurve:
    fit = fit_curve(law, samples, options.fit)
    error = held_out_curve_error(fit, samples, options.fit, options.folds)
    k = rows.names.index(joint)
    scored = rows.scored[rows.usable[:, k], k]
    return JointCurve(joint, samples, fit, parameter_identifiability(joint, fit, samples), rms(error[scored]))


def _variances(curve: JointCurve) -> tuple[float, float]:
    """Of what the law does not explain, and of white noise: that is what neighbouring samples do not share."""
    residual = curve.samples.friction - torque_of(curve.fit.law, curve.fit.values, curve.samples)
    noise, total = float(0.5 * np.mean(np.diff(residual) ** 2)), curve.error**2
    return max(total - noise, min(total, noise) * float(np.sqrt(2.0 / residual.size))), noise


_CONSTANT = (
    "a constant torque that is no part of the law was found; it is in the table of parameters and in predictions, and "
    "no live node uses it: {}"
)


def _about_static_friction(curve: JointCurve) -> list[str]:
    """Static friction and Stribeck velocity that no sample shows, in sentences."""
    law, (_, values, covariance) = curve.fit.law, curve.law
    if not isinstance(law, StribeckExcess):
        return []
    found = []
    if law.velocity is None and not float(np.sqrt(covariance[-1, -1])) < 0.5 * values[-1]:
        spread = float(np.sqrt(covariance[-1, -1]))
        found.append(
            f"{curve.joint}: the Stribeck velocity {values[-1]:.2g} rad/s cannot be seen in this motion (sigma "
            f"{spread:.2g}): take the published one, or move slower and faster"
        )
    if not law.unseen:
        return found
    sides = " and the ".join(("positive", "negative")[side] for side in sorted(law.unseen))
    return [
        *found,
        f"{curve.joint}: no sample slides slowly enough in the {sides} direction to show static friction, and "
        "static friction there is taken to be Coulomb friction; move it more slowly",
    ]


def _about_offsets(curves: Sequence[JointCurve]) -> list[Finding]:
    found = [f"{one.joint} {one.further[OFFSET.name]:+.3g} N m" for one in curves if OFFSET.name in one.further]
    return [Finding(0.9, _CONSTANT.format(", ".join(found)))] if found else []


def _table(curves: Sequence[JointCurve]) -> ParameterTable:
    """Parameters of the laws as registered, then those of the further columns, joint by joint."""
    names, units, values, sigma, shown = list[str](), list[str](), [], [], list[bool]()
    for curve in curves:
        name, own, covariance = curve.law
        law, q, identifiable = make_law(name), len(curve.fit.law.parameters), curve.shown.identifiable
        known = dict(zip(curve.fit.names, identifiable.tolist(), strict=True))
        names += [f"{curve.joint}/{one}" for one in (*law.parameter_names, *curve.fit.names[q:])]
        units += [*law.units, *curve.fit.units[q:]]
        values += [own, curve.fit.further]
        sigma += [np.sqrt(np.diagonal(covariance)), curve.fit.sigma[q:]]
        exact = np.diagonal(covariance) == 0.0  # given, not identified
        shown += [known.get(one, bool(exact[k])) for k, one in enumerate(law.parameter_names)]
        shown += identifiable[q:].tolist()
    return ParameterTable(
        tuple(names), tuple(units), np.concatenate(values), np.concatenate(sigma), identifiable=np.array(shown)
    )


def _drawn(curve: JointCurve, rows: CurveRows) -> FrictionSamples:
    """Friction over velocity, less the further columns, thinned out for figures."""
    joint = rows.names.index(curve.joint)
    seen: BoolArray = rows.measured[:, joint]
    few = np.flatnonzero(seen)[:: max(1, -(-int(seen.sum()) // _DRAWN))]
    velocity, friction, load = (signal[few, joint] for signal in (rows.velocity, rows.friction, rows.load))
    rest = rows.beyond(joint, curve.further)[few]
    fitted, sigma = curve.fit.friction.predict(velocity, load)
    return FrictionSamples(curve.joint, velocity, friction - rest, load, fitted, sigma, rows.usable[few, joint])
