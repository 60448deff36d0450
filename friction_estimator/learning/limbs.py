"""Limb modules of MOB-Net from the tree of the robot (Lim et al. 2024, section 4.1, Table 1).

The mass matrix couples a limb with its ancestors, its descendants and the base only, so the module of a limb takes
these joints alone. Limbs are the unbranched chains of the tree: legs, waist, arms, neck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, IntArray

BASE_INPUTS = 12
"""Numbers of U^V in eq. 17: two columns of the rotation matrix, angular velocity, specific force."""
VIRTUAL = "virtual joints"


@dataclass(frozen=True, slots=True)
class LimbModule:
    """One network of MOB-Net.

    Attributes
    ----------
    name : first and last joint of the limb, or ``virtual joints``
    outputs : (o,) rows of the generalised torque
    inputs : (i,) columns of :attr:`~friction_estimator.learning.signals.Signals.inputs`
    has_torque : whether motor torques are among the inputs: the limb carries a foot
    """

    name: str
    outputs: IntArray
    inputs: IntArray
    has_torque: bool = False

    @property
    def is_base(self) -> bool:
        """Whether this is the module of the virtual joints."""
        return self.name == VIRTUAL


def limb_modules(robot: RobotModel) -> tuple[LimbModule, ...]:
    """Modules of a robot: its limbs in the order of their first joints, then the virtual joints of a floating base.

    Inputs of a limb are Q (position and velocity) of its own and all coupled joints, T (torque) of its own joints if
    they carry a foot, and U^V; those of the virtual joints are Q of all joints and U^V (Table 1).
    """
    n, base = len(robot.joint_names), robot.base_dofs
    carries_foot = np.asarray(robot.limb.any(axis=0))
    on_base = np.arange(3 * n, 3 * n + BASE_INPUTS if base else 3 * n)
    modules = []
    for joints in chains(robot.coupled):
        moved = np.flatnonzero(robot.coupled[joints[0]])
        torque = 2 * n + joints[carries_foot[joints]]
        inputs = np.concatenate((moved, n + moved, torque, on_base))
        modules.append(LimbModule(chain_name(robot.joint_names, joints), base + joints, inputs, torque.size > 0))
    if base:
        modules.append(LimbModule(VIRTUAL, np.arange(base), np.concatenate((np.arange(2 * n), on_base))))
    return tuple(modules)


def chains(coupled: BoolArray) -> list[IntArray]:
    """Joints of each unbranched chain of the tree, from the base outward.

    Joints of one chain are coupled with the same joints. Joints are in the order of the tree, parents first.
    """
    _, first, chain = np.unique(coupled, axis=0, return_index=True, return_inverse=True)
    return [np.flatnonzero(chain.ravel() == one) for one in np.argsort(first)]


def chain_name(joint_names: Sequence[str], joints: IntArray) -> str:
    """First and last joint of a chain."""
    first, last = joint_names[joints[0]], joint_names[joints[-1]]
    return first if first == last else f"{first} to {last}"
