"""Sensor messages to samples, for anything that is shaped like a ROS message (rclpy, rosbags)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from friction_estimator.core.config import Config
from friction_estimator.core.exceptions import InputError, choices
from friction_estimator.core.types import FloatArray, ImuSample, JointSample, WrenchSample
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
        self._joint_names = tuple(joint_names)
        self._ones = np.ones(len(self._joint_names))
        self._joint_topic = config.output.joint_states_topic
        self._imu_topic = config.imu.topic
        self._imu_frame = config.imu.frame
        self._feet = config.feet
        self._message_names: list[str] = []
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def joint_state(self, message: Any) -> JointSample:
        """Joint sample of a sensor_msgs/JointState: any order of joints, other joints ignored."""
        names = message.name
        if names != self._message_names:
            self._learn_names(list(names))
        count, order = len(self._message_names), self._order
        fields = []
        for label, values in (
            ("position", message.position),
            ("velocity", message.velocity),
            ("effort", message.effort),
        ):
            if len(values) != count:
                raise InputError(self._wrong_length(label, len(values), count))
            fields.append(np.asarray(values, dtype=np.float64)[order])
        position, velocity, effort = fields
        if not math.isfinite((position + velocity + effort) @ self._ones):
            self._check_finite(position, velocity, effort)
        return JointSample(header_stamp(message), position, velocity, effort)

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

    def _learn_names(self, names: list[str]) -> None:
        index = {name: place for place, name in enumerate(names)}
        missing = [name for name in self._joint_names if name not in index]
        if missing:
            raise InputError(
                f"{self._joint_topic}: joint {choices(missing)} missing; the message holds {choices(names)}"
            )
        if len(index) != len(names):
            twice = {name for name in names if names.count(name) > 1}
            raise InputError(f"{self._joint_topic}: joint {choices(twice)} is named more than once")
        self._order = np.array([index[name] for name in self._joint_names], dtype=np.intp)
        self._message_names = names

    def _wrong_length(self, label: str, length: int, count: int) -> str:
        if length == 0:
            need = {"effort": "the motor torques", "velocity": "the joint velocities"}.get(label, "the joint positions")
            return f"{self._joint_topic}: {label} is empty, but friction estimation needs {need}"
        return f"{self._joint_topic}: {label} has {length} values for {count} joint names"

    def _check_finite(self, position: FloatArray, velocity: FloatArray, effort: FloatArray) -> None:
        for label, values in (("position", position), ("velocity", velocity), ("effort", effort)):
            bad = [name for name, good in zip(self._joint_names, np.isfinite(values), strict=True) if not good]
            if bad:
                raise InputError(f"{self._joint_topic}: {label} of joint {choices(bad)} is not finite")
