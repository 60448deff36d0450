"""Which joints' friction may be used now, and why not: a wrong or silent sensor, a law that is new, no finite number.

Large errors are no reason: their size is in sigma.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.health import Health
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, JointFriction, LawEstimate

NO_PROBLEM = "no problem found"
"""Text of a joint whose friction may be used."""


class Reason(Enum):
    """Why the friction of a joint should not be used now."""

    SENSOR = "sensor"
    START = "start"
    NUMBER = "number"


ADVICE = {
    Reason.SENSOR: "a sensor is wrong or silent, and the friction of these joints with it: correct the sensors first "
    "(status `sensors`)",
    Reason.START: "the law is new: it is known once the joint has moved in both directions; keep moving, or start from "
    "saved parameters",
    Reason.NUMBER: "friction or sigma is not a finite number: check that joint states have efforts, and the events",
}
"""What each reason means, and what to do about it."""


class JointDiagnosis(NamedTuple):
    """Why the friction of one joint should not be used now."""

    joint: str  # name
    kinds: tuple[Reason, ...]  # all reasons that hold; none where it may be used
    text: str  # the first reason in one sentence, that of the finding for a sensor; empty where there is none

    def __str__(self) -> str:
        return self.text or NO_PROBLEM


class Validity:
    """Decides for every estimate which joints' friction may be used.

    Parameters
    ----------
    health : with the joints that depend on wrong sensors
    joint_names : (n,)
    motors : that move the joints: a joint needs the laws of all its motors
    """

    def __init__(self, health: Health, joint_names: Sequence[str], motors: Transmission) -> None:
        self._health, self._names, self._group = health, joint_names, motors.group
        self._law: LawEstimate | None = None
        self._wrong: dict[str, str] = {}
        self._known: BoolArray = np.zeros(len(joint_names), dtype=bool)
        self._finite: BoolArray = np.ones(len(joint_names), dtype=bool)
        self._usable = self._known

    def step(self, friction: JointFriction) -> BoolArray:
        """Joints (n,) whose friction in an estimate may be used."""
        law, wrong = friction.law, self._health.invalid_joints
        if law is not self._law or wrong is not self._wrong:
            self._law, self._wrong = law, wrong
            self._known = np.asarray(law.known[self._group].all(axis=1))
            self._usable = self._known & [name not in wrong for name in self._names]
        self._finite = np.isfinite(friction.friction) & np.isfinite(friction.sigma)
        return self._usable & self._finite

    def diagnose(self) -> tuple[JointDiagnosis, ...]:
        """Of every joint (n): why its friction should not be used now."""
        return tuple(map(self._diagnosis, self._names, self._known.tolist(), self._finite.tolist()))

    def _diagnosis(self, joint: str, known: bool, finite: bool) -> JointDiagnosis:
        finding = self._health.invalid_joints.get(joint, "")
        holds = {Reason.SENSOR: bool(finding), Reason.NUMBER: not finite, Reason.START: not known}
        kinds = tuple(reason for reason, is_so in holds.items() if is_so)
        return JointDiagnosis(joint, kinds, finding or (ADVICE[kinds[0]] if kinds else ""))


def advice(diagnoses: Sequence[JointDiagnosis]) -> tuple[str, ...]:
    """One sentence for each reason: what it means, what to do, and which joints have it."""
    joints = {reason: [one.joint for one in diagnoses if one.kinds[:1] == (reason,)] for reason in ADVICE}
    return tuple(f"{ADVICE[reason]} ({', '.join(names)})" for reason, names in joints.items() if names)
