"""Which joints of a robot with a fixed base move in a plan, and how far, how fast and how strongly they may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from friction_estimator.errors import ConfigError, RobotModelError, choices
from friction_estimator.types import FloatArray

DEFAULT_SPEED = 1.0
"""Velocity limit where neither the URDF nor the user gives one [rad/s or m/s]."""

SPEED_RISE_TIME = 0.25
"""Time to reach the velocity limit, from which an acceleration limit follows that nobody gave [s]."""


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Limits of every joint. Nothing else is watched: neither collisions nor the workspace.

    Attributes
    ----------
    joint_names : (n)
    lower, upper : (n,) positions [rad or m]
    velocity : (n,) [rad/s or m/s]
    acceleration : (n,) [rad/s^2 or m/s^2]
    effort : (n,) [N m or N], infinite where nothing is known
    choices : what was assumed where the URDF has no limit, in sentences
    """

    joint_names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        valid = (self.upper > self.lower) & (self.velocity > 0.0) & (self.acceleration > 0.0) & (self.effort > 0.0)
        if not valid.all():
            wrong = [name for name, good in zip(self.joint_names, valid, strict=True) if not good]
            raise ConfigError(f"the limits leave no motion to the joint {choices(wrong)}")

    def within(self, fraction: float) -> MotionLimits:
        """Tighter limits: ``fraction`` of the range about its middle, and of everything else."""
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        return MotionLimits(
            self.joint_names,
            middle - fraction * half,
            middle + fraction * half,
            fraction * self.velocity,
            fraction * self.acceleration,
            fraction * self.effort,
            self.choices,
        )


def limits_of_urdf(
    urdf_xml: str,
    joint_names: tuple[str, ...],
    velocity: float | None = None,
    acceleration: float | None = None,
) -> MotionLimits:
    """Limits as the URDF gives them, and what stands in where it does not.

    Parameters
    ----------
    urdf_xml : text of the URDF
    joint_names : (n) wanted joints
    velocity : another limit for all joints, where it is below that of the URDF [rad/s or m/s]
    acceleration : limit for all joints; a URDF has none [rad/s^2 or m/s^2]

    Raises
    ------
    RobotModelError
        When a joint is not in the URDF.
    """
    model = pin.buildModelFromXML(urdf_xml)
    missing = [name for name in joint_names if not model.existJointName(name)]
    if missing:
        raise RobotModelError(f"the URDF has no joint {choices(missing)}; it has {choices(list(model.names)[1:])}")
    joints = [model.joints[model.getJointId(name)] for name in joint_names]
    rows = [joint.idx_v for joint in joints]
    notes: list[str] = []
    lower, upper = _range(model, joint_names, notes)
    speed = _speed(np.array(model.velocityLimit)[rows], velocity, joint_names, notes)
    effort = np.array(model.effortLimit)[rows]
    if acceleration is None:
        notes.append(
            f"a URDF has no acceleration limits: the velocity limit is reached in {SPEED_RISE_TIME:g} s at the earliest"
        )
    rise = speed / SPEED_RISE_TIME if acceleration is None else np.full(speed.shape, acceleration)
    return MotionLimits(joint_names, lower, upper, speed, rise, np.where(effort > 0.0, effort, np.inf), tuple(notes))


def _range(model: pin.Model, joint_names: tuple[str, ...], notes: list[str]) -> tuple[FloatArray, FloatArray]:
    """Position limits; one turn for a joint that has none."""
    lower, upper = np.full(len(joint_names), -np.pi), np.full(len(joint_names), np.pi)
    unlimited = []
    for row, name in enumerate(joint_names):
        joint = model.joints[model.getJointId(name)]
        low, high = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        if joint.nq == 1 and high > low and np.isfinite(high - low) and high - low < 1e3:
            lower[row], upper[row] = low, high
        else:
            unlimited.append(name)
    if unlimited:
        notes.append(f"no position limits of {', '.join(unlimited)} in the URDF: -pi to pi taken")
    return lower, upper


def _speed(limit: FloatArray, wanted: float | None, joint_names: tuple[str, ...], notes: list[str]) -> FloatArray:
    known = (limit > 0.0) & np.isfinite(limit) & (limit < 1e3)
    if wanted is None and not known.all():
        unknown = [name for name, there in zip(joint_names, known, strict=True) if not there]
        notes.append(f"no velocity limit of {', '.join(unknown)} in the URDF: {DEFAULT_SPEED:g} rad/s taken")
    ceiling = DEFAULT_SPEED if wanted is None else wanted
    return np.where(known, limit if wanted is None else np.minimum(limit, ceiling), ceiling)


LIGHT = 0.003
"""Share of the moving mass behind a joint: fingers of most robots have less, the last joints of arms more."""


def planned_joints(urdf_xml: str, joint_names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints worth a place in the plan, and light ones: fingers, tilting sensors.

    They have controllers of their own, and opening and closing a gripper does not identify the arm. What mimics them is
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
