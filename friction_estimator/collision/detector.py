"""Detects collisions in the external torque (Lim et al. 2024, sections 5.3 and 7).

    | external torque | ─┐
                         ├─► one of them above its threshold for 5 ms ─► Collision of the limb
    its sigma ───────────┘

Every joint has two pairs of thresholds: one while nothing but a collision may touch its limb, and one while a foot that
it carries is on the ground, where errors of the foot sensor and of the model under load are larger. The paper detects
collisions of the swinging leg only. External torque and sigma may come from MOB-Net or from the Kalman observer;
thresholds hold for the source with which they were learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.collision.thresholds import CONTINUITY, IN_CONTACT, SIGNALS, JointStates, Thresholds
from friction_estimator.compiled import kernel
from friction_estimator.learning.network import chain_name, chains
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray, FrictionEstimate, IntArray

PAUSE = 0.3
"""A limb has collided once until it has been below all thresholds for this time [s]."""


@kernel("V V I T f8 M M")
def compare(
    torque: FloatArray,
    sigma: FloatArray,
    state: IntArray,
    thresholds: FloatArray,
    dt: float,
    ratio: FloatArray,
    above_for: FloatArray,
) -> None:
    """Ratio (2, n) of each signal to its threshold, and for how long it has been above one (2, n), in place.

    The time is -1 while the ratio is not above one.

    Parameters
    ----------
    torque, sigma : (n,) external torque and its standard deviation [N m]
    state : (n,) of :class:`~friction_estimator.collision.thresholds.JointStates`
    thresholds : (2, 2, n) by state and signal [N m]
    dt : since the sample before [s]
    """
    for joint in range(state.size):
        ratio[0, joint] = ratio[1, joint] = 0.0
        if state[joint] >= 0:
            limits = thresholds[state[joint]]
            ratio[0, joint], ratio[1, joint] = abs(torque[joint]) / limits[0, joint], sigma[joint] / limits[1, joint]
        for row in range(2):
            above = above_for[row, joint] + dt if above_for[row, joint] >= 0.0 else 0.0
            above_for[row, joint] = above if ratio[row, joint] > 1.0 else -1.0


@dataclass(frozen=True, slots=True)
class Collision:
    """One collision at the moment of its detection.

    Attributes
    ----------
    stamp_ns : of the joint sample [ns]
    limb : first and last joint of the limb
    joint : the one whose signal is furthest above its threshold
    signal : ``external torque`` or ``sigma``
    value, threshold : of that signal, with its sign [N m]
    in_contact : whether the limb stood on the ground
    """

    stamp_ns: int
    limb: str
    joint: str
    signal: str
    value: float
    threshold: float
    in_contact: bool

    def __str__(self) -> str:
        place = "on the ground" if self.in_contact else "in the air"
        return (
            f"collision of the limb {self.limb}, {place}: {self.signal} of {self.joint} is {self.value:.1f} N m, "
            f"threshold {self.threshold:.1f} N m"
        )


class CollisionDetector:
    """Detects collisions in the estimates of a replay, a live node or a simulation.

    Parameters
    ----------
    robot : the model that the estimator has
    thresholds : of this robot and this source of the external torque

    Attributes
    ----------
    hit : limbs that collide at the newest sample, each by the index of its foot; -1: a limb without a foot

    Raises
    ------
    LearningError
        When the thresholds are of other joints.
    """

    def __init__(self, robot: RobotModel, thresholds: Thresholds) -> None:
        thresholds.check(robot.joint_names)
        self._joint_names = robot.joint_names
        self._states = JointStates(robot)
        self._thresholds = np.ascontiguousarray(thresholds.values)
        self._limbs = [(chain_name(robot.joint_names, joints), joints) for joints in chains(robot.coupled)]
        carries = [robot.limb[:, joints[0]] for _, joints in self._limbs]
        self._feet = [int(np.argmax(feet)) if feet.any() else -1 for feet in carries]
        self.hit: tuple[int, ...] = ()
        n = len(robot.joint_names)
        self._ratio, self._above_for = np.zeros((2, n)), np.full((2, n), -1.0)
        self._collided_until_ns = [0] * len(self._limbs)

    def step(self, estimate: FrictionEstimate) -> tuple[Collision, ...]:
        """Use one estimate; return the collisions that it shows, at most one a limb."""
        dt = self._states.step(estimate)
        if dt == 0.0:
            self._collided_until_ns = [0] * len(self._limbs)
        signals = estimate.external_torque, estimate.external_torque_sigma
        compare(*signals, self._states.state, self._thresholds, dt, self._ratio, self._above_for)
        if self._above_for.max() < CONTINUITY - 1e-9:
            self.hit = ()
            return ()
        ratio = np.where(self._above_for < CONTINUITY - 1e-9, 0.0, self._ratio)
        found, hit = [], []
        for number, (name, joints) in enumerate(self._limbs):
            row, worst = np.unravel_index(np.argmax(ratio[:, joints]), (2, joints.size))
            if ratio[row, joints[worst]] > 0.0:
                hit.append(self._feet[number])
                if estimate.stamp_ns > self._collided_until_ns[number]:
                    found.append(self._collision(estimate, name, int(joints[worst]), int(row)))
                self._collided_until_ns[number] = estimate.stamp_ns + round(1e9 * PAUSE)
        self.hit = tuple(hit)
        return tuple(found)

    def _collision(self, estimate: FrictionEstimate, limb: str, joint: int, row: int) -> Collision:
        state = int(self._states.state[joint])
        signals = estimate.external_torque, estimate.external_torque_sigma
        return Collision(
            estimate.stamp_ns,
            limb,
            self._joint_names[joint],
            SIGNALS[row],
            float(signals[row][joint]),
            float(self._thresholds[state, row, joint]),
            state == IN_CONTACT,
        )
