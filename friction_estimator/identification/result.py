"""Result of an offline identification, as files, reports and the command line use it, and findings about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from friction_estimator.identification.uncertainty import velocity_dependent_rms
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import SAVED_SCALARS, IdentifiedParameters, joined
from friction_estimator.types import BoolArray, FloatArray, ShortRepr


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """Estimated parameters with error bars."""

    names: tuple[str, ...]  # (p) e.g. `knee/viscous` or `ZZ_3R + 0.4 MX_4` (a base parameter with what it groups)
    units: tuple[str, ...]  # (p)
    values: FloatArray  # (p,)
    sigma: FloatArray  # (p,) standard deviations that allow for coloured residuals
    # (p,) what was known before (URDF, file, injected truth), NaN where nothing was; None when nothing at all
    reference: FloatArray | None = None
    # (p,) False where the data does not show the parameter, whatever its value; None when not tested
    identifiable: BoolArray | None = None

    def value(self, name: str) -> float:
        """Value of a parameter by its name; NaN where there is none."""
        return float(self.values[self.names.index(name)]) if name in self.names else np.nan

    @property
    def urdf_scale(self) -> float:
        """Factor from known parameters to the identified ones, by least squares in sigmas; 1 without any."""
        if self.reference is None:
            return 1.0
        known = np.isfinite(self.reference) & (self.sigma > 0.0)
        value, reference = (one[known] / self.sigma[known] for one in (self.values, self.reference))
        return float(value @ reference / (reference @ reference)) if reference.any() else 1.0


@dataclass(frozen=True, slots=True)
class JointScore:
    """How well one joint's torque is predicted on segments that the fit has not seen."""

    joint: str  # its name
    torque_rms: float  # RMS of the measured torque, the error of "predict zero" [N m]
    # RMS error when friction is left out of the model [N m], NaN when there is no rigid-body model
    rigid_body_error: float
    held_out_error: float  # RMS error of the whole model on held-out segments [N m]
    fit_error: float  # RMS error on the data of the fit [N m]
    samples: int  # used for it

    @property
    def relative_error(self) -> float:
        """Held-out error over the RMS of the torque, ||rho|| / ||Y|| of Hamon et al. 2010, Table III."""
        return self.held_out_error / self.torque_rms if self.torque_rms > 0.0 else float("inf")


@dataclass(frozen=True, slots=True)
class FrictionSamples:
    """Friction of one joint (or motor) as the data shows it, thinned out for figures."""

    joint: str  # its name
    velocity: FloatArray  # (K,) [rad/s]
    friction: FloatArray  # (K,) torque minus everything in the model but friction [N m]
    load: FloatArray  # (K,) torque through the joint [N m]
    fitted: FloatArray  # (K,) torque of the identified law [N m]
    sigma: FloatArray  # (K,) standard deviation of `fitted` from the parameters' covariance [N m]
    used: BoolArray  # (K,) False where the sample was left out of the fit (near standstill, outlier, stick)

    @property
    def shown(self) -> slice:
        """Every k-th sample, so that a figure draws at most about 2,000."""
        return slice(None, None, max(1, self.velocity.size // _FIGURE_SAMPLES))

    def thinned(self, sigma: FloatArray) -> FrictionSamples:
        """These samples alone, with their standard deviations."""
        signals = ("velocity", "friction", "load", "fitted", "used")
        return replace(self, **{name: getattr(self, name)[self.shown] for name in signals}, sigma=sigma)


_FIGURE_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class DriveGain:
    """Torque of a motor by its drive, ``offset + gain * drive`` at the output of the gearbox."""

    offset: float  # [N m]
    gain: float  # [`unit`]
    unit: str  # `N m/pwm`, `N m/A`, or N m per unit of the recorded effort


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the table of candidates."""

    decision: str  # what was decided, e.g. `motion`
    settings: str  # of this candidate, in words
    error: float  # held-out error relative to the torque, geometric mean over the joints
    excess: float  # how much larger than that of the best candidate, relative
    sigma: float  # standard error of `excess`
    chosen: bool  # whether it was taken


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from, so that it can be made again."""

    method: str  # `inverse_dynamics`, `friction_curve` or `motor`
    data: tuple[tuple[str, str], ...]  # name and SHA-256 of every experiment
    # what was chosen from the data and why, one sentence each (filters, dead zone, eliminated parameters)
    choices: tuple[str, ...]
    command: str = ""  # the command line, empty when called from Python


@dataclass(frozen=True, slots=True, repr=False)
class Identification(ShortRepr):
    """The whole result."""

    friction: IdentifiedParameters  # law and parameters of every joint, as the live node starts from them
    # everything that was estimated, also what the live node does not use (inertia, drive gain)
    parameters: ParameterTable
    scores: tuple[JointScore, ...]  # (n) one per joint
    samples: tuple[FrictionSamples, ...]  # (n) one per joint
    condition: float  # condition number of the column-scaled observation matrix
    verdicts: tuple[str, ...]  # findings, one sentence each, the most severe first
    provenance: Provenance  # how it was made
    # standard inertial parameters by name, e.g. `Izz knee` and the drive inertia `Ia knee`, that reproduce the
    # identified torque of the rigid bodies; those that are missing are zero. Empty when none were identified
    inertia: Mapping[str, float] = field(default_factory=dict)
    # torque by PWM, current or recorded effort of every motor whose drive gain was identified
    drives: Mapping[str, DriveGain] = field(default_factory=dict)
    predictions: tuple[Any, ...] = ()  # how the torque of every limb was predicted; empty where only laws are known
    candidates: tuple[Candidate, ...] = ()  # what was compared by held-out errors, and chosen
    # standard inertial parameters of the real bodies, and inertias of the drives, that are nearest to the
    # identified ones, by the names of `inertia`, and the parameters of friction that go with them; empty when
    # links were not identified
    bodies: Mapping[str, float] = field(default_factory=dict)


INNER_QUANTILES = (0.05, 0.95)
"""Quantiles of the speed between which nine tenths of the samples lie."""


def velocity_ranges(samples: Sequence[FrictionSamples]) -> FloatArray:
    """Speeds (n, 2) between which nine tenths of the used samples of each joint lie [rad/s]; NaN without any."""
    ranges = np.full((len(samples), 2), np.nan)
    for row, one in enumerate(samples):
        speeds = np.abs(one.velocity[one.used & (one.velocity != 0.0)])
        if speeds.size and np.ptp(speeds) > 0.0:
            ranges[row] = np.quantile(speeds, INNER_QUANTILES)
    return ranges


FEWEST_JUDGED = 20
"""Samples, nearly independent behind the filter, that an error is judged by: with fewer it is uncertain by a sixth."""


_GOOD_ERROR = 0.1
"""Relative error of a torque that is predicted well."""
_OVERFIT_RATIO = 1.5
"""Error on unseen segments over that of the fit."""
_ILL_CONDITION = 1000.0
"""Condition number above which single parameters are uncertain."""
VAGUE = 0.3
"""Relative standard deviation above which the data do not show a parameter."""
SURE_SIGMAS = 3.0
"""Standard deviations from zero of what a finding names."""
OTHER_GAIN = 0.05
"""Relative difference of a gain from one that is worth a sentence."""
GAIN_EXPLAINS = 0.5
"""Share of a squared error that a factor must explain to be named."""


class Severity(IntEnum):
    """How far a finding goes."""

    NOTE = 0  # good to know
    DOUBT = 1  # the result, or that of a joint, is used with care
    FAULT = 2  # it should not be used


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be known about a result: findings with the same text make one sentence."""

    severity: Severity
    text: str  # `{}` stands for the details of all joints
    joint: str = ""  # joint, motor or limb that it is about; empty: all
    detail: str = ""  # numbers of that joint
    size: float = 1.0  # share of the torque, or of the samples, that it is about


def sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """One sentence for each kind of finding, with its joints: the most severe first, and of these the largest."""
    kinds = dict[str, list[Finding]]()
    for finding in sorted(findings, key=lambda one: (one.severity, one.size), reverse=True):
        kinds.setdefault(finding.text, []).append(finding)
    return tuple(_sentence(text, same) for text, same in kinds.items())


def _sentence(text: str, same: Sequence[Finding]) -> str:
    """``joint: text`` for one joint; for several, their names in front, or behind their details."""
    places = list(dict.fromkeys((one.joint, one.detail) for one in same))
    several = len(places) > 1
    details = ", ".join(f"{detail} ({joint})" if several and joint else detail for joint, detail in places)
    joints = ", ".join(dict.fromkeys(joint for joint, _ in places if joint))
    shown = joints and not (several and "{}" in text)
    return f"{joints}: {text}".replace("{}", details) if shown else text.replace("{}", details)


def about_condition(condition: float, joint: str = "") -> list[Finding]:
    """The finding that the columns of a problem are hard to tell apart, by their condition number."""
    text = (
        f"the motion excites some parameters badly, with a condition number of {{}} where {_ILL_CONDITION:.0f} is "
        "fair: single inertial parameters are uncertain, friction usually is not"
    )
    return [Finding(Severity.NOTE, text, joint, f"{condition:.0f}")] if condition > _ILL_CONDITION else []


def about_score(score: JointScore, quantity: str = "torque") -> list[Finding]:
    """Findings about the held-out error of one joint; ``quantity`` is what is predicted."""
    joint, relative = score.joint, score.relative_error
    if not score.samples:
        text = "never fast enough, so its friction is unknown: record faster motion"
        return [Finding(Severity.FAULT, text, joint)]
    if not score.torque_rms > 0.0:
        text = f"the {quantity} is zero in all samples; use the friction only if there is no motor"
        return [Finding(Severity.FAULT, text, joint)]
    found, percent = list[Finding](), f"{100 * relative:.1f} %"
    quality = f"the {quantity} is predicted with an error of {{}} on segments that the fit has not seen"
    if score.samples < FEWEST_JUDGED:
        text = f"{{}} samples are too few to judge the friction, {FEWEST_JUDGED} are needed: record longer motion"
        found.append(Finding(Severity.FAULT, text, joint, f"{score.samples}"))
    if not relative < 1.0:
        text = f"no better than predicting zero: {quality}; do not use it"
        found.append(Finding(Severity.FAULT, text, joint, percent))
    elif relative > _GOOD_ERROR:
        text = f"{quality}; below {100 * _GOOD_ERROR:.0f} % is good"
        found.append(Finding(Severity.DOUBT, text, joint, percent, relative))
    else:
        found.append(Finding(Severity.NOTE, quality, joint, percent, relative))
    if score.held_out_error > _OVERFIT_RATIO * score.fit_error > 0.0:
        text = (
            "the error on unseen segments is {} times that of the fit: too many parameters for this motion, or the "
            "robot changed; record more, or other, motion"
        )
        found.append(Finding(Severity.DOUBT, text, joint, f"{score.held_out_error / score.fit_error:.1f}"))
    if score.held_out_error > score.rigid_body_error:
        text = "friction does not improve the prediction, the rigid body alone is better: check the torque"
        found.append(Finding(Severity.FAULT, text, joint))
    return found


_WORTH_A_LAW = 0.1
"""Relative difference of held-out errors that is worth another law."""
_CLEARLY = 2.0
"""Standard errors by which another law must predict better to be named."""


def better_law(table: Sequence[Candidate], given: str) -> tuple[Candidate, Candidate] | None:
    """The chosen law of a table where it predicts unseen data clearly better than the given one; and that one."""
    own = next((one for one in table if one.settings == given), None)
    best = next(one for one in table if one.chosen)
    if own is None or own.error < (1.0 + _WORTH_A_LAW) * best.error or own.excess < _CLEARLY * own.sigma:
        return None
    return best, own


WRONG_SHAPE = 0.05
"""Share of the friction that goes with the velocity and is in no law."""


def shape_error(seen: FrictionSamples) -> tuple[float, float]:
    """What a law leaves that depends on the velocity: share of the friction, and RMS [N m]; zero where noise does."""
    velocity, friction, fitted = seen.velocity[seen.used], seen.friction[seen.used], seen.fitted[seen.used]
    left, size = velocity_dependent_rms(velocity, friction - fitted), float(np.linalg.norm(fitted))
    return (left / size * np.sqrt(fitted.size) if size > 0.0 else 0.0), left


def about_law(seen: FrictionSamples, law: str, better: tuple[Candidate, Candidate] | None) -> list[Finding]:
    """What a law leaves of the friction, and the law that predicts unseen data better; nothing where neither is much.

    Parameters
    ----------
    better : of :func:`better_law`
    """
    found, (share, left) = list[Finding](), shape_error(seen)
    if share > WRONG_SHAPE:
        text = f"the law {law!r} leaves a part of the friction that depends on the velocity, {{}}"
        if better is None:
            text += (
                ", and no other law predicts unseen data better: the torque is late or contains something else, or "
                "friction builds up after slow reversals (regressor presliding); look at the residuals"
            )
        found.append(Finding(Severity.DOUBT, text, seen.joint, f"{left:.2g} N m RMS or {share:.0%}"))
    if better is not None:
        best, own = better
        why = ", in which friction grows with the load," if make_law(best.settings).depends_on_load else ""
        text = (
            f"the law {best.settings!r}{why} predicts unseen data better than {law!r}, with an error of {{}}: identify "
            "with it, or let the data choose (law auto)"
        )
        detail = f"{100 * best.error:.1f} instead of {100 * own.error:.1f} %"
        found.append(Finding(Severity.DOUBT, text, seen.joint, detail))
    return found


ONE_WAY = 0.02
"""A joint moves in one direction only when less than this part of its samples shows the other one."""
_ONE_SPEED = 2.0
"""Factor between fast and slow samples, below which a joint moves at one speed."""


def moves_one_way(velocity: FloatArray) -> bool:
    """Whether velocities (N,) are those of a motion in one direction."""
    return bool(min((velocity > 0.0).mean(), (velocity < 0.0).mean()) < ONE_WAY) if velocity.size else False


def about_direction(joint: str, velocity: FloatArray) -> list[Finding]:
    """The finding that a joint with these velocities (N,) moves in one direction only."""
    text = (
        "moves in one direction only, where Coulomb friction and a constant torque, such as an error of the zero of "
        f"the torque, look alike: {more_motion(velocity)}"
    )
    return [Finding(Severity.DOUBT, text, joint)] if moves_one_way(velocity) else []


def more_motion(velocity: FloatArray) -> str:
    """The motion that a recording with these velocities (N,) of a joint lacks most."""
    if moves_one_way(velocity):
        return "move in both directions, at several speeds"
    slow, fast = np.quantile(np.abs(velocity), INNER_QUANTILES) if velocity.size else (0.0, 0.0)
    return "move at several speeds" if fast < _ONE_SPEED * slow else "move faster, and for longer"


Part = tuple[Identification, Sequence[Finding]]
"""Identification of some joints, and what is to be found about it."""


def merged(parts: Sequence[Part], findings: Sequence[Finding] = ()) -> Identification:
    """One result of joints that were identified apart.

    Parameters
    ----------
    findings : further ones, of all joints
    """
    found = [one for one, _ in parts]
    findings = [*findings, *(finding for _, own in parts for finding in own)]
    whole = ", ".join(name for one in found for name in one.friction.joint_names)
    if "," in whole:  # what is about the only limb is about everything
        findings = [replace(one, joint="") if one.joint == whole else one for one in findings]
    friction, tables = [one.friction for one in found], [one.parameters for one in found]
    rows = [(one, row) for one in friction for row in range(len(one.joint_names))]
    names = [", ".join(one.friction.joint_names) + ": " if len(found) > 1 else "" for one in found]
    everywhere = set.intersection(*(set(one.provenance.choices) for one in found))
    choices = [
        text if text in everywhere else name + text
        for name, one in zip(names, found, strict=True)
        for text in one.provenance.choices
    ]
    candidates = tuple(
        candidate if "/" in candidate.decision else replace(candidate, decision=name + candidate.decision)
        for name, one in zip(names, found, strict=True)
        for candidate in one.candidates
    )
    columns: dict[str, Any] = {
        kind: None if getattr(tables[0], kind) is None else np.concatenate([getattr(one, kind) for one in tables])
        for kind in ("values", "sigma", "reference", "identifiable")
    }
    laws = joined(
        [one.joint_names[row] for one, row in rows],
        [one.law_names[row] for one, row in rows],
        [(one.values[row], one.covariance[row]) for one, row in rows],
        *(np.concatenate([getattr(one, kind) for one in friction]) for kind in SAVED_SCALARS),
    )
    if friction[0].presliding is not None:
        added: Any = [(one.presliding, one.presliding_covariance) for one in friction]
        torques, spread = map(np.concatenate, zip(*added, strict=True))
        laws = replace(laws, presliding=torques, presliding_covariance=spread)
    return replace(
        found[0],
        friction=laws,
        parameters=ParameterTable(
            tuple(name for one in tables for name in one.names),
            tuple(unit for one in tables for unit in one.units),
            **columns,
        ),
        scores=tuple(score for one in found for score in one.scores),
        samples=tuple(samples for one in found for samples in one.samples),
        condition=max(one.condition for one in found),
        verdicts=sentences(findings),
        provenance=replace(found[0].provenance, choices=tuple(dict.fromkeys(choices))),
        inertia={name: value for one in found for name, value in one.inertia.items()},
        bodies={name: value for one in found for name, value in one.bodies.items()},
        drives={name: gain for one in found for name, gain in one.drives.items()},
        predictions=tuple(prediction for one in found for prediction in one.predictions),
        candidates=candidates,
    )
