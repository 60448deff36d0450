"""The robot of `identify`: a plain URDF of something with a fixed base, or the YAML of any robot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from xml.etree import ElementTree

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification.joint_log import RobotDescription
from friction_estimator.io.resources import robot_names
from friction_estimator.io.robot import Robot, as_robot, load_robot
from friction_estimator.messages.description import RunDescription


def identified_robot(arguments: argparse.Namespace) -> Robot | None:
    """The robot of ``--robot`` with what ``--set`` changes; None when no robot was named."""
    return None if arguments.robot is None else as_robot(load_robot(arguments.robot, dict(arguments.settings)))


def described(robot: Robot | None) -> RobotDescription | None:
    """What identification needs of the robot."""
    return None if robot is None else RobotDescription(robot.urdf_xml, robot.config.robot.fixed_base)


def robot_of_bag(custom_data: dict[str, str]) -> str | None:
    """Name of the robot that a bag of ours says it is of, when it ships with this package."""
    name = RunDescription.from_custom_data(custom_data).robot
    return name if name in robot_names() else None


def movable_joints(urdf_xml: str) -> tuple[str, ...]:
    """Joints with one degree of freedom, in the order of the file; those that mimic others are not among them."""
    kinds = ("revolute", "continuous", "prismatic")
    joints = ElementTree.fromstring(urdf_xml).findall("joint")
    return tuple(
        joint.get("name", "") for joint in joints if joint.get("type") in kinds and joint.find("mimic") is None
    )


def common_joints(recorded: Sequence[str], urdf_xml: str, origin: str) -> tuple[str, ...]:
    """Recorded joints that the robot has.

    Raises
    ------
    ConfigError
        When it has none of them.
    """
    there = movable_joints(urdf_xml)
    mine = tuple(name for name in recorded if name in there)
    if not mine:
        raise ConfigError(f"{origin} has the joints {choices(recorded)}, the robot has {choices(there)}")
    return mine
