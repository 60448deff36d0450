"""Sensor messages to samples, for anything that is shaped like a ROS message (rclpy, rosbags)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.exceptions import InputError
from friction_estimator.core.types import DesiredSample, ImuSample, JointSample, WrenchSample
from friction_estimator.messages.joint_order import JointOrder
from friction_estimator.messages.types import header_stamp


class InputReader:
    """Reads and checks the messages of one robot.

    Parameters
    ----------
    config : topics, frames and signs
    joint_names : (n) wanted joints, in model order

    Every method raises :class:`InputError` with one message that says what is wrong with the sensor message.
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        self._ones = np.ones(len(joint_names))
        self._joints = JointOrder(config.output.joint_states_topic, joint_names)
        self._commands = JointOrder(config.compensation.desired_topic, joint_names)
        self._imu_topic = config.imu.topic
        self._imu_frame = config.imu.frame
        self._feet = config.feet

    def joint_state(self, message: Any) -> JointSample:
        """Joint sample of a sensor_msgs/JointState: any order of joints, other joints ignored, effort NaN if empty."""
        joints = self._joints
        joints.read(message.name)
        position = joints.pick("position", message.position)
        velocity = joints.pick("velocity", message.velocity)
        if len(message.effort) == 0:  # not measured; empty arrays are allowed in a JointState
            effort = np.full(self._ones.size, np.nan)
            if not math.isfinite((position + velocity) @ self._ones):
                joints.check_finite("position", position)
                joints.check_finite("velocity", velocity)
            return JointSample(header_stamp(message), position, velocity, effort)
        effort = joints.pick("effort", message.effort)
        if not math.isfinite((position + velocity + effort) @ self._ones):
            for label, values in (("position", position), ("velocity", velocity), ("effort", effort)):
                joints.check_finite(label, values)
        return JointSample(header_stamp(message), position, velocity, effort)

    def desired(self, message: Any) -> DesiredSample:
        """Desired velocities of a sensor_msgs/JointState, such as a joint command; its other fields are not used."""
        joints = self._commands
        joints.read(message.name)
        velocity = joints.pick("velocity", message.velocity)
        if not math.isfinite(velocity @ self._ones):
            joints.check_finite("velocity", velocity)
        return DesiredSample(header_stamp(message), velocity)

    def imu(self, message: Any) -> ImuSample:
        """IMU sample of a sensor_msgs/Imu; its orientation is not used."""
        for label, covariance in (
            ("angular_velocity", message.angular_velocity_covariance),
            ("linear_acceleration", message.linear_acceleration_covariance),
        ):
            if covariance[0] == -1.0:
                raise InputError(f"{self._imu_topic}: {label}_covariance[0] is -1, so the IMU does not measure it")
        frame = message.header.frame_id
        if frame and frame != self._imu_frame:
            raise InputError(
                f"{self._imu_topic}: frame_id is {frame!r}, but imu.frame is {self._imu_frame!r}; "
                "set imu.frame to the URDF frame of the IMU"
            )
        rate, force = message.angular_velocity, message.linear_acceleration
        sample = ImuSample(
            header_stamp(message),
            np.array((rate.x, rate.y, rate.z)),
            np.array((force.x, force.y, force.z)),
        )
        if not math.isfinite(rate.x + rate.y + rate.z):
            raise InputError(f"{self._imu_topic}: angular_velocity is not finite: {sample.angular_velocity}")
        if not math.isfinite(force.x + force.y + force.z):
            raise InputError(f"{self._imu_topic}: linear_acceleration is not finite: {sample.specific_force}")
        return sample

    def wrench(self, foot: int, message: Any) -> WrenchSample:
        """Foot sample of a geometry_msgs/WrenchStamped; the sign is flipped where the configuration says so.

        Parameters
        ----------
        foot : index into ``Config.feet``
        message : wrench in and about the sole frame of that foot
        """
        settings = self._feet[foot]
        frame = message.header.frame_id
        if frame and frame != settings.frame:
            raise InputError(
                f"{settings.wrench_topic}: frame_id is {frame!r}, but feet.{settings.name}.frame is "
                f"{settings.frame!r}; the wrench must be given in and about that sole frame"
            )
        force, moment = message.wrench.force, message.wrench.torque
        values = np.array((force.x, force.y, force.z, moment.x, moment.y, moment.z))
        if not math.isfinite(force.x + force.y + force.z + moment.x + moment.y + moment.z):
            raise InputError(f"{settings.wrench_topic}: the wrench is not finite: {values}")
        return WrenchSample(header_stamp(message), foot, -values if settings.flip else values)
