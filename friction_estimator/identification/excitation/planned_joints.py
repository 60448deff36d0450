"""Which joints a plan moves when nobody says it."""

from __future__ import annotations

import pinocchio as pin

LIGHT = 0.003
"""Share of the moving mass behind a joint: fingers of most robots have less, the last joints of arms more."""


def planned_joints(urdf_xml: str, joint_names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints worth a place in the plan, and light ones: fingers, tilting sensors.

    They have controllers of their own, and opening and closing a gripper tells nothing of the arm. What mimics them is
    not counted with them. A URDF without masses has no light joints.

    Parameters
    ----------
    urdf_xml : text of the URDF
    joint_names : (n) that could move

    Returns
    -------
    planned, light : together the joints of ``joint_names``, in their order
    """
    model = pin.buildModelFromXML(urdf_xml)
    masses = [inertia.mass for inertia in model.inertias]
    moving = sum(masses[1:])

    def is_light(name: str) -> bool:
        behind = sum(masses[joint] for joint in model.subtrees[model.getJointId(name)])
        return moving > 0.0 and behind < LIGHT * moving

    light = tuple(name for name in joint_names if is_light(name))
    return tuple(name for name in joint_names if name not in light), light
