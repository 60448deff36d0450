"""Samples to sensor messages: what a simulated robot publishes or records. The inverse of ``inputs.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.types import ImuSample, JointSample, WrenchSample
from friction_estimator.messages.types import MessageTypes, make_header, make_vector, make_wrench


class SensorMessages:
    """Builds the input messages of one robot.

    Parameters
    ----------
    types : message classes
    config : frames and signs
    joint_names : (n) order of the joint samples
    base_frame : frame_id of the joint states
    """

    def __init__(
        self, types: MessageTypes, config: Config, joint_names: Sequence[str], base_frame: str = "base_link"
    ) -> None:
        self._types = types
        self._config = config
        self._joint_names = list(joint_names)
        self._base_frame = base_frame

    def joint_state(self, sample: JointSample) -> Any:
        """sensor_msgs/JointState."""
        floats = self._types.floats
        return self._types.make(
            "sensor_msgs/msg/JointState",
            header=make_header(self._types, sample.stamp_ns, self._base_frame),
            name=self._joint_names,
            position=floats(sample.position),
            velocity=floats(sample.velocity),
            effort=floats(sample.effort),
        )

    def imu(self, sample: ImuSample) -> Any:
        """sensor_msgs/Imu without orientation."""
        orientation_absent = np.array([-1.0] + 8 * [0.0])
        return self._types.make(
            "sensor_msgs/msg/Imu",
            header=make_header(self._types, sample.stamp_ns, self._config.imu.frame),
            orientation_covariance=orientation_absent,
            angular_velocity=make_vector(self._types, sample.angular_velocity),
            linear_acceleration=make_vector(self._types, sample.specific_force),
        )

    def wrench(self, sample: WrenchSample) -> Any:
        """geometry_msgs/WrenchStamped in the sole frame; negated for sensors that are configured as flipped."""
        foot = self._config.feet[sample.foot]
        wrench = -sample.wrench if foot.flip else sample.wrench
        return make_wrench(self._types, sample.stamp_ns, foot.frame, wrench)
