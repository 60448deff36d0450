"""Planned motions of joints as one trajectory_msgs/JointTrajectory in a bag, to play to a controller."""

from __future__ import annotations

import os

from friction_estimator.identification.joint_log import JointTrajectory
from friction_estimator.io.bags.message_types import BagMessageTypes
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.messages.cdr import NANOSECONDS
from friction_estimator.types import FloatArray

TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
TRAJECTORY_TOPIC = "joint_trajectory_controller/joint_trajectory"
"""Where the joint trajectory controller of ros2_control listens, unless it has another name."""


def write_trajectory_bag(
    path: str | os.PathLike[str],
    trajectory: JointTrajectory,
    topic: str = TRAJECTORY_TOPIC,
    overwrite: bool = False,
) -> None:
    """Write one message, with a zero stamp: "start now" for a controller.

    Parameters
    ----------
    path : folder of the bag
    trajectory : what to write
    topic : of the message
    overwrite : replace an older bag of that name

    Raises
    ------
    BagError
        When something is in the way or the place cannot be written to.
    """
    with BagWriter(path, overwrite=overwrite) as writer:
        types = writer.types
        signals = trajectory.time, trajectory.position, trajectory.velocity, trajectory.acceleration
        points = [_point(types, *sample) for sample in zip(*signals, strict=True)]
        header = types.make("std_msgs/msg/Header")
        message = types.make(TRAJECTORY, header=header, joint_names=list(trajectory.joint_names), points=points)
        writer.write(topic, 0, message)


def _point(
    types: BagMessageTypes, time: float, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
) -> object:
    seconds, nanoseconds = divmod(round(float(time) * NANOSECONDS), NANOSECONDS)
    return types.make(
        "trajectory_msgs/msg/JointTrajectoryPoint",
        positions=types.floats(position),
        velocities=types.floats(velocity),
        accelerations=types.floats(acceleration),
        time_from_start=types.make("builtin_interfaces/msg/Duration", sec=seconds, nanosec=nanoseconds),
    )
