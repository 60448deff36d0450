"""Limbs: groups of joints whose torque balances hang together, found from the tree of the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from friction_estimator.robot.model import RobotModel
from friction_estimator.types import IntArray


@dataclass(frozen=True, slots=True)
class Limb:
    """Joints of one branch of the root link: a leg, or a torso with arms and head.

    Seen from the IMU on the root link, the joint rows of the mass matrix couple joints of the same branch only.

    Attributes
    ----------
    joints : (m,) indices
    feet : (f,) indices of the feet that hang on them
    """

    joints: IntArray
    feet: IntArray


def find_limbs(robot: RobotModel) -> tuple[Limb, ...]:
    """All limbs of a robot, in the order of their first joints."""
    count, label = connected_components(robot.coupled, directed=False)
    limbs = []
    for branch in range(count):
        joints = np.flatnonzero(label == branch)
        limbs.append(Limb(joints, np.flatnonzero(robot.limb[:, joints].any(axis=1))))
    return tuple(sorted(limbs, key=lambda limb: int(limb.joints[0])))
