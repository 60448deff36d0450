"""Diagnosis of the estimates: which joints should not be trusted now, why, and what to do about it.

:class:`~friction_estimator.estimation.diagnosis.diagnosis_monitor.DiagnosisMonitor` makes the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.types import BoolArray, FloatArray

MIN_DIAGNOSIS_TIME = 1.0
"""A diagnosis needs samples of at least this duration [s]: fewer may be chance."""
MAX_PRIOR_RATIO = 0.5
"""A law is unknown while the standard deviation of every parameter is above this fraction of its prior."""
LONG_MOTION_TIME = 5.0
"""After this moving time [s] a law that is still unknown has another reason than too little motion: on the simulated
walk every law is known after a fifth of it."""
_CALIBRATION_RATIO = 1.0
"""Errors of model and sensors that explain more than this multiple of the friction torque (RMS) are worth a note."""
_MAX_DISTURBED_SHARE = 0.1
"""Fraction of the time in which pushes may interrupt the identification."""
_MAX_DRIVING_SHARE = 0.15
"""Fraction of the moving time in which friction may drive a joint: bent bristles do so for a tenth of it."""
_DRIFT_RATIO = 0.25
"""Change of the law's torque since the start that is drift, as a fraction of that torque."""
_DRIFT_GATE = 1.0
"""A change of the law is drift only beyond this many standard deviations of its torque."""
_MAX_LAW_ERROR = 0.125
"""Part of the friction of a moving joint (RMS, in stance or in swing) that a law may leave unexplained: half of the
error with which an estimate is wrong."""
_MAX_ACCURATE_LAW_ERROR = 0.08
"""Where a law leaves less than this part of the friction unexplained, moderate innovations come from the sensors, and
friction is right."""
_MAX_MODERATE_NIS = (1.96 / 1.44) ** 2
"""Mean normalised innovation squared of Gaussian errors of which 1.96 sigma hold 85 %: smaller ones are moderate."""
_MAX_UNCERTAINTY = 0.25 / 0.6745
"""Part of the friction (RMS, in stance or in swing) that its sigma may reach: Gaussian errors are beyond a quarter of
the friction, with which an estimate is wrong, as often as not."""

ADVICE = {
    "passivity": "friction accelerates joints instead of braking them: check the sign and offset of the torque, and "
    "the robot model",
    "excitation": "friction is not identified yet, too little motion so far: keep walking, or start from saved "
    "parameters",
    "identification": "friction is not identified although the joints move: check rates, stamps and values of the "
    "sensors (status `sensors`)",
    "law": "friction depends on more than velocity and load, such as the position or the motion before, and sigma may "
    "be too small: set another law, or use the friction where the joint slides",
    "disturbance": "pushes stop the identification too often: remove the contact, name the joint in "
    "`robot.unmeasured_contacts`, or check the torque and the model",
    "consistency": "innovations are larger than predicted: check robot model, stamps and noise (`sensors.*`)",
    "uncertainty": "sigma is large against the friction: move the joint faster, or use better encoders and sensors",
    "calibration": "errors of model and sensors explain more torque than friction, and the estimate accounts for them",
    "drift": "the friction law has changed since the start, and the innovations agree with it: check gear, temperature "
    "and calibration",
}
"""What each kind of problem or note means, and what to do about it; first what explains the others."""

_NOTES = frozenset(("calibration", "drift"))
"""Kinds that are information and no problem, of joints without a problem: the estimate accounts for them."""

_SENSORS_FIRST = "sensors are wrong, and estimates with them: correct the sensors first (status `sensors`)"

NO_PROBLEM = "no problem found"
"""Text of a joint without a problem."""


@dataclass(frozen=True, slots=True)
class DiagnosisFigures:
    """Figures about the newest estimates; NaN where there are too few samples."""

    moving_time: FloatArray  # (n,) how long each joint has moved since the start [s]
    known_at_start: BoolArray  # (n,) True where the law came from an earlier run
    # (n,) smallest ratio of a parameter's standard deviation to its prior; one: nothing is identified
    prior_ratio: FloatArray
    # (n,) share of the moving time in which the friction drives its joint beyond its noise; passive means 0
    driving: FloatArray
    # (n,) RMS of the friction while the joint moves, and of the torque that errors of model and sensors explain
    # [N m]
    friction: FloatArray
    calibration: FloatArray
    disturbed: FloatArray  # (n,) share of the time in which a push at this joint stopped the identification
    nis: FloatArray  # (n,) mean normalised innovation squared, one for a right model
    nis_limit: FloatArray  # (n,) upper end of the chi-square band of that mean
    # (n,) size of the innovations of its limb in the last second, in standard deviations, where they are
    # inconsistent; else one
    excess: FloatArray
    drift: FloatArray  # (n,) RMS change of the law's torque since the start, at the velocities that occur [N m]
    drift_sigma: FloatArray  # (n,) standard deviation of that change [N m]
    law: FloatArray  # (n,) RMS of the law's torque at the same velocities [N m]
    uncertainty: FloatArray  # (n,) RMS of sigma over RMS of the friction, in stance or in swing, whichever is larger
    # (n,) RMS of the friction minus the law's torque over RMS of the friction while the joint moves, in stance or
    # in swing
    law_error: FloatArray


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason not to trust the estimate of a joint, or a note: a key of :data:`ADVICE`, and its figures as text."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class JointDiagnosis:
    """Diagnosis of one joint."""

    joint: str  # name
    problems: tuple[Problem, ...]  # why its estimate should not be trusted; empty when no problem was found
    notes: tuple[Problem, ...] = ()  # what the estimate accounts for

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the problems."""
        return tuple(problem.kind for problem in self.problems)

    @property
    def note_kinds(self) -> tuple[str, ...]:
        """Kinds of the notes."""
        return tuple(note.kind for note in self.notes)

    def __str__(self) -> str:
        problems = map(str, self.problems or (NO_PROBLEM,))
        return "; ".join((*problems, *(f"note: {note}" for note in self.notes)))


def diagnose(figures: DiagnosisFigures, joint_names: Sequence[str]) -> tuple[JointDiagnosis, ...]:
    """Diagnosis of every joint (n)."""
    found = {kind: where.tolist() for kind, where in _find_problems(figures)}
    diagnoses = []
    for row, joint in enumerate(joint_names):
        all_found = [Problem(kind, _describe(kind, figures, row)) for kind in ADVICE if found[kind][row]]
        problems = tuple(one for one in all_found if one.kind not in _NOTES)
        diagnoses.append(JointDiagnosis(joint, problems, () if problems else tuple(all_found)))
    return tuple(diagnoses)


def advice(diagnoses: Sequence[JointDiagnosis], sensors_wrong: bool = False) -> tuple[str, ...]:
    """One sentence for each kind of problem found: what it means, what to do, and which joints have it.

    Parameters
    ----------
    diagnoses : of all joints
    sensors_wrong : True while sensors are known to be wrong: nothing else is blamed then for what they explain
    """
    joints = {kind: [diagnosis.joint for diagnosis in diagnoses if kind in diagnosis.kinds] for kind in ADVICE}
    texts = dict(ADVICE)
    if sensors_wrong:
        affected = [diagnosis.joint for diagnosis in diagnoses if set(diagnosis.kinds) - {"excitation"}]
        joints, texts["sensors"] = {"excitation": joints["excitation"], "sensors": affected}, _SENSORS_FIRST
    return tuple(f"{texts[kind]} ({', '.join(names)})" for kind, names in joints.items() if names)


def notes(diagnoses: Sequence[JointDiagnosis]) -> tuple[str, ...]:
    """One sentence for each kind of note, with the joints that have it."""
    joints = {kind: [diagnosis.joint for diagnosis in diagnoses if kind in diagnosis.note_kinds] for kind in ADVICE}
    return tuple(f"note: {ADVICE[kind]} ({', '.join(names)})" for kind, names in joints.items() if names)


def _find_problems(figures: DiagnosisFigures) -> Iterator[tuple[str, BoolArray]]:
    """Each kind of problem and which joints (n,) have it; NaN, for too few samples, compares as False."""
    still = (figures.moving_time < MIN_DIAGNOSIS_TIME) & ~figures.known_at_start & np.isfinite(figures.disturbed)
    unknown, moved = still | (figures.prior_ratio > MAX_PRIOR_RATIO), figures.moving_time > LONG_MOTION_TIME
    yield "excitation", unknown & ~moved
    yield "identification", unknown & moved
    yield "passivity", figures.driving > _MAX_DRIVING_SHARE
    harmful = (figures.nis > _MAX_MODERATE_NIS) | ~(figures.law_error < _MAX_ACCURATE_LAW_ERROR)
    inconsistent = (figures.nis > figures.nis_limit) & harmful  # not accounted for
    yield "consistency", inconsistent
    accounted = ~(figures.excess > 1.0)
    yield "calibration", moved & (figures.calibration > _CALIBRATION_RATIO * figures.friction) & accounted
    large = figures.drift > _DRIFT_RATIO * figures.law
    yield "drift", large & (figures.drift > _DRIFT_GATE * figures.drift_sigma) & accounted
    yield "disturbance", figures.disturbed > _MAX_DISTURBED_SHARE
    yield "law", moved & (figures.law_error > _MAX_LAW_ERROR)
    yield "uncertainty", moved & ~unknown & (figures.uncertainty > _MAX_UNCERTAINTY)


def _describe(kind: str, figures: DiagnosisFigures, row: int) -> str:
    f = figures
    if kind in ("excitation", "identification"):
        known = (
            "" if np.isnan(f.prior_ratio[row]) else f", no parameter better than {f.prior_ratio[row]:.0%} of its prior"
        )
        return f"moved for {f.moving_time[row]:.1f} s{known}"
    if kind == "passivity":
        return f"friction drives the joint in {f.driving[row]:.0%} of its moving time"
    if kind == "calibration":
        return (
            f"errors of model and sensors explain {f.calibration[row]:.2g} N m, friction is {f.friction[row]:.2g} N m"
        )
    if kind == "drift":
        return f"the law has changed by {f.drift[row]:.2g} of {f.law[row]:.2g} N m since the start"
    if kind == "law":
        return f"the law leaves {f.law_error[row]:.0%} of the friction unexplained"
    if kind == "uncertainty":
        return f"sigma is {f.uncertainty[row]:.0%} of the friction"
    if kind == "consistency":
        return f"mean squared innovation {f.nis[row]:.2f} times its variance, limit {f.nis_limit[row]:.2f}"
    return f"pushed {f.disturbed[row]:.0%} of the time"
