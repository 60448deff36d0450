"""Samples to serialized sensor messages: what a simulated robot publishes or records. The inverse of ``inputs.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.config import Config
from friction_estimator.messages.cdr import JointStateTemplate, StampedTemplate
from friction_estimator.types import ImuSample, JointSample, WrenchSample

_NO_ORIENTATION = np.array([0.0, 0.0, 0.0, 1.0, -1.0] + 8 * [0.0])
"""Quaternion and covariance of an IMU that does not measure its orientation."""
_UNKNOWN_COVARIANCE = np.zeros(9)


class SensorMessages:
    """Serializes the input messages of one robot.

    Parameters
    ----------
    config : frames and signs
    joint_names : (n) order of the joint samples
    base_frame : frame_id of the joint states
    """

    def __init__(self, config: Config, joint_names: Sequence[str], base_frame: str = "base_link") -> None:
        self._joints = JointStateTemplate(base_frame, joint_names, with_state=True)
        self._imu = StampedTemplate(37, config.imu.frame)
        self._wrenches = [StampedTemplate(6, foot.frame) for foot in config.feet]
        self._flip = [foot.flip for foot in config.feet]

    def joint_state(self, sample: JointSample) -> bytes:
        """Bytes of a sensor_msgs/JointState."""
        return self._joints.serialize(sample.stamp_ns, sample.effort, sample.position, sample.velocity)

    def imu(self, sample: ImuSample) -> bytes:
        """Bytes of a sensor_msgs/Imu without orientation."""
        rate = sample.angular_velocity, _UNKNOWN_COVARIANCE
        force = sample.specific_force, _UNKNOWN_COVARIANCE
        return self._imu.serialize(sample.stamp_ns, _NO_ORIENTATION, *rate, *force)

    def wrench(self, sample: WrenchSample) -> bytes:
        """Bytes of a geometry_msgs/WrenchStamped in the sole frame; negated for sensors that are flipped."""
        wrench = -sample.wrench if self._flip[sample.foot] else sample.wrench
        return self._wrenches[sample.foot].serialize(sample.stamp_ns, wrench)
