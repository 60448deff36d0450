"""Method ``friction_curve``: any friction law through measured friction (Egle 2021, section 6.2.2).

Joints, or motors, are independent problems: each has its own velocity, lateness, columns and law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.curves.decision import (
    DEFAULTS,
    CurveSource,
    FrictionCurveOptions,
    choose_delay,
    choose_law,
    choose_parameters,
    choose_treatment,
)
from friction_estimator.identification.curves.drive import DriveRecording
from friction_estimator.identification.curves.fit import (
    CurveFit,
    fit_curve,
    held_out_curve_error,
    parameter_identifiability,
    refit,
)
from friction_estimator.identification.curves.problem import OFFSET, CurveSamples, torque_of
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
    Part,
    Provenance,
    about_score,
    about_shape,
    joined,
    merged,
)
from friction_estimator.identification.scoring import choice_covariance, samples_of
from friction_estimator.laws import FrictionLaw, laws_of_joints, make_law
from friction_estimator.laws.joint_laws import AUTOMATIC, START_LAW, chosen_joints
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray

METHOD = "friction_curve"
_FEWEST = 10
"""Samples a parameter below which a joint is left out."""


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
    """Choose the velocity of every joint, take coupled joints to their motors, and fit a law to the friction of each.

    Parameters
    ----------
    logs : one an experiment, of the same joints, with the input ``friction``
    robot : not used
    progress : called with the number of finished joints, and of all
    warn : not used

    Raises
    ------
    ConfigError
        When a law is unknown or the coupling does not fit the joints.
    InputError
        When there is no friction, or no joint has enough samples.
    """
    motors = Transmission.of(options.coupling, logs[0].joint_names)
    curves = Curves(METHOD, options, "friction")
    for number, source in enumerate(_sources(motors.names, None, options)):
        coupling = None if options.coupling is None else options.coupling.part_of(source.joint)
        joints = (source.joint,) if coupling is None else coupling.joint_names
        own, group = [log.select(joints) for log in logs], Transmission.of(coupling, joints)

        def made(treatment: Treatment, own: Sequence[JointLog] = own, group: Transmission = group) -> list[Motion]:
            return [at_motors(one, group) for one in to_motions(own, treatment, options.folds)]

        curves.add_treated(own, made, source, coupling)
        if progress is not None:
            progress(number + 1, len(motors.names))
    return curves.identification


def identify_friction_curve(
    motions: Sequence[Motion], laws: str | Sequence[str], options: FrictionCurveOptions = DEFAULTS
) -> Identification:
    """Fit a law to the measured friction of every joint (Egle 2021, eq. 6.4).

    Parameters
    ----------
    motions : experiments of the same joints with ``inputs["friction"]``, for instance of a replayed bag
    laws : name of one law for all joints, or (n) one a joint; any of the registry, replaced where ``options.law`` is
        ``auto``

    Raises
    ------
    InputError
        When there is no friction, joints differ between motions, or no joint has enough samples.
    ConfigError
        When a law is unknown.
    """
    curves = Curves(METHOD, options, "friction")
    for source in _sources(_joint_names(motions), laws, options):
        curves.add(motions, source)
    return curves.identification


def _sources(
    names: Sequence[str], laws: str | Sequence[str] | None, options: FrictionCurveOptions
) -> list[CurveSource]:
    """One a joint (n); laws of the options, or others."""
    if laws is None:
        laws = laws_of_joints(options.law, options.joint_laws, names, linear=False)
    law_names = (START_LAW if laws == AUTOMATIC else laws,) * len(names) if isinstance(laws, str) else tuple(laws)
    if len(law_names) != len(names):
        raise ConfigError(f"{len(law_names)} laws for {len(names)} joints: name one law, or one a joint")
    open_joints = chosen_joints(options.joint_laws, names) if options.law == AUTOMATIC else ()
    sources = []
    for k, (name, law) in enumerate(zip(names, map(make_law, law_names), strict=True)):
        columns = () if law.has_offset or options.offset is False else (OFFSET,)
        optional = frozenset(columns if options.offset is None else ())
        sources.append(CurveSource(name, law, columns, optional, automatic=k in open_joints))
    return sources


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


@dataclass(frozen=True, slots=True)
class JointCurve:
    """The law of one joint.

    Attributes
    ----------
    joint : its name
    samples : all with measured friction, and the further columns that were chosen
    fit : law and parameters, with these columns
    identifiable : (p) which of the parameters the data show
    reasons : why others are not shown, in sentences
    error : RMS of the scored samples on held-out segments [N m]
    """

    joint: str
    samples: CurveSamples
    fit: CurveFit
    identifiable: BoolArray
    reasons: tuple[str, ...]
    error: float

    @property
    def further(self) -> dict[str, float]:
        """Parameters of the further columns by name."""
        return dict(zip((column.name for column in self.samples.columns), self.fit.further.tolist(), strict=True))


class Curves:
    """Laws of several joints, one after another, and the result.

    Parameters
    ----------
    method : that identifies
    options : how
    quantity : what is predicted, for sentences
    drive : how friction follows from the torque behind the transmission; None: it was measured

    Attributes
    ----------
    curves : of the joints that have one
    """

    def __init__(
        self, method: str, options: FrictionCurveOptions, quantity: str, drive: DriveRecording | None = None
    ) -> None:
        self._method, self._options, self._quantity, self._drive = method, options, quantity, drive
        self._parts, self._left_out = list[Part](), list[str]()
        self.curves = list[JointCurve]()

    def add_treated(
        self,
        logs: Sequence[JointLog],
        made: Callable[[Treatment], list[Motion]],
        source: CurveSource,
        coupling: Coupling | None = None,
    ) -> None:
        """Velocity, lateness, further columns and law of one joint; see :func:`choose_treatment` and :meth:`add`."""
        treatment, rivals, table = choose_treatment(logs, made, source, self._options)
        if treatment is None:
            self._left_out.append(f"{source.joint} is left out: it moves by no more than its noise: move it")
        else:
            self.add(made(treatment), source, table, coupling, map(made, rivals))

    def add(
        self,
        motions: Sequence[Motion],
        source: CurveSource,
        table: Sequence[Candidate] = (),
        coupling: Coupling | None = None,
        rivals: Iterable[Sequence[Motion]] = (),
    ) -> None:
        """Lateness, further columns and law of one joint, or the reason why it has none.

        Parameters
        ----------
        rivals : the same motions after treatments that predict as well: what they change is part of the uncertainty
        """
        options, joint = self._options, source.joint
        delay, lateness, delays = choose_delay(motions, source, options)
        samples, law = source.samples(motions, options, delay), source.law
        reason = _lacking(joint, samples.used, _FEWEST * (len(law.parameters) + len(source.columns)))
        if reason:
            self._left_out.append(reason)
            return
        samples, found = choose_parameters(samples, source, options)
        if source.automatic:
            name, more = choose_law(joint, samples.used, options)
            law, found = make_law(name), (*found, *more)
            samples = samples.without((OFFSET,)) if law.has_offset else samples
        left_out = set(source.columns) - set(samples.columns)
        others = (source.samples(one, options, delay).without(left_out) for one in rivals)
        curve = _joint_curve(joint, law, samples, options, [one.used for one in others])
        self.curves.append(curve)
        own = self._drive if self._drive is None else self._drive.of(joint)
        lateness = lateness.replace("friction", "the torque", 1) if own else lateness
        prediction = CurvePrediction(
            joint=joint,
            treatment=motions[0].treatment or Treatment(float("inf"), float("inf"), True),
            law=law.name,
            values=tuple(curve.fit.friction.values.tolist()),
            further=curve.further,
            delay=delay,
            dead_zone=source.dead_zone(motions, options),
            max_sigma=options.max_sigma,
            coupling=coupling,
            drive=own,
        )
        rows = prediction.predicted(samples)
        score = replace(rows.scores()[0], model_error=curve.error)
        decisions = [choice for motion in motions for choice in motion.choices]
        data = tuple((motion.name, motion.digest) for motion in motions)
        own_law, (residual, noise) = curve.fit.friction, _variances(curve)
        parameters = [(own_law.values, own_law.covariance)]
        friction = joined([joint], [law.name], parameters, [residual], [noise], [score.samples])
        seen = samples_of(friction, rows, 0)
        result = Identification(
            friction=friction,
            parameters=_table(curve),
            scores=(score,),
            samples=(seen,),
            condition=curve.fit.linear.condition,
            verdicts=(),
            provenance=Provenance(self._method, data, tuple(dict.fromkeys((*decisions, lateness)))),
            predictions=(prediction,),
            candidates=(*table, *delays, *found),
        )
        self._parts.append(
            (result, _findings(curve, seen, score.relative_error < 1.0, about_score(score, self._quantity)))
        )

    @property
    def identification(self) -> Identification:
        """The result of all joints.

        Raises
        ------
        InputError
            When no joint has enough samples.
        """
        if not self._parts:
            raise InputError(f"no joint has enough measured friction to fit a law: {'; '.join(self._left_out)}")
        found = merged(self._parts, [Finding(2.0, text) for text in self._left_out])
        choices = (*found.provenance.choices, *self._left_out)
        return replace(found, provenance=replace(found.provenance, choices=choices))


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
    joint: str, law: FrictionLaw, samples: CurveSamples, options: FrictionCurveOptions, rivals: Sequence[CurveSamples]
) -> JointCurve:
    used = samples.used
    fit = fit_curve(law, used, options.fit)
    spread = choice_covariance(fit.values, [refit(fit, one, options.fit) for one in rivals])
    fit = replace(fit, covariance=fit.covariance + spread)
    error = held_out_curve_error(fit, used, options.fit, options.folds)
    return JointCurve(joint, samples, fit, *parameter_identifiability(joint, fit, used), rms(error[used.scored]))


def _variances(curve: JointCurve) -> tuple[float, float]:
    """Of what the law does not explain, and of white noise: that is what neighbouring samples do not share."""
    used = curve.samples.used
    residual = used.friction - torque_of(curve.fit.law, curve.fit.values, used)
    noise, total = float(0.5 * np.mean(np.diff(residual) ** 2)), curve.error**2
    return max(total - noise, min(total, noise) * float(np.sqrt(2.0 / residual.size))), noise


_CONSTANT = (
    "a constant torque that is no part of the law was found; it is in the table of parameters and in predictions, and "
    "no live node uses it: {} {:+.3g} N m"
)


def _findings(curve: JointCurve, seen: FrictionSamples, useful: bool, found: list[Finding]) -> list[Finding]:
    """Those about the error, and what else is to be found about the curve."""
    found = found + [Finding(1.0, text) for text in curve.reasons if useful]
    found += about_shape(seen, curve.fit.law.name)
    if OFFSET.name in curve.further:
        found.append(Finding(0.9, _CONSTANT.format(curve.joint, curve.further[OFFSET.name])))
    return found


def _table(curve: JointCurve) -> ParameterTable:
    """Parameters of the law, then those of the further columns."""
    fit = curve.fit
    names = tuple(f"{curve.joint}/{name}" for name in fit.names)
    return ParameterTable(names, fit.units, fit.values, fit.sigma, identifiable=curve.identifiable)
