"""Identification of a collision: the wrench that hits the robot (Lim et al. 2024, section 7).

    F_u = F_e - sum_l X_l F_l      eq. 24: external wrench on the base without the wrenches that are expected there

The expected wrenches F_l are those of the ground on the feet, which MOB-Net's residual is already without.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.learning.external_torque import WholeBodyTorque
from friction_estimator.types import Dynamics, FloatArray


def base_wrench(torque: WholeBodyTorque) -> FloatArray | None:
    """Unexpected wrench (6,) on a floating base, in base axes about the base origin [N, N m]; None while unknown."""
    if torque.residual.size == torque.dynamics.position.size:
        return None
    wrench = torque.external[:6]
    return wrench if np.isfinite(wrench).all() else None


def wrench_at_foot(wrench: FloatArray, dynamics: Dynamics, foot: int) -> FloatArray:
    """The same wrench (6,) in and about the sole frame of a foot [N, N m].

    The wrench on the base is that on the limb: it is exact wherever the limb is hit, if nothing else is hit meanwhile.
    The joint torques of the limb alone would show it less well, because the leg is almost singular.
    """
    rotation, position = dynamics.foot_rotation_to_base[foot], dynamics.foot_position_in_base[foot]
    force, moment = wrench[:3], wrench[3:]
    return np.concatenate((rotation.T @ force, rotation.T @ (moment - np.cross(position, force))))
