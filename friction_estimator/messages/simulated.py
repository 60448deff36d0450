"""Samples and ground truth of a simulated robot to serialized messages; the inverse of ``inputs.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate, StampedTemplate, serialize_string
from friction_estimator.messages.outputs import OdometryTemplate, OutputSchedule
from friction_estimator.messages.topics import Topic, When
from friction_estimator.types import GroundTruth, ImuSample, JointSample, Reading, WrenchSample

_NO_ORIENTATION = np.array([0.0, 0.0, 0.0, 1.0, -1.0] + 8 * [0.0])
"""Quaternion and covariance of an IMU that does not measure its orientation."""
_UNKNOWN_COVARIANCE = np.zeros(9)


class SensorMessages:
    """Serializes the input messages of one robot.

    Parameters
    ----------
    config : frames and signs
    joint_names : (n) order of the joint samples

    Attributes
    ----------
    topics : topics of the messages of :meth:`build`
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        self.topics = topics.sensor_topics(config)
        self._joints = JointStateTemplate(topics.BASE_FRAME, joint_names, with_state=True)
        self._imu = StampedTemplate(37, config.imu.frame)
        self._wrenches = [StampedTemplate(6, foot.frame) for foot in config.feet]
        self._flip = [foot.flip for foot in config.feet]

    def build(self, readings: Sequence[Reading]) -> list[tuple[Topic, bytes]]:
        """Messages of these samples in their order, as (topic, serialized message)."""
        return [self._message(reading) for reading in readings]

    def _message(self, reading: Reading) -> tuple[Topic, bytes]:
        if isinstance(reading, JointSample):
            return self.topics[0], self.joint_state(reading)
        if isinstance(reading, ImuSample):
            return self.topics[1], self.imu(reading)
        return self.topics[2 + reading.foot], self.wrench(reading)

    def joint_state(self, sample: JointSample) -> bytes:
        """Bytes of a sensor_msgs/JointState."""
        return self._joints.serialize(sample.stamp_ns, sample.effort, sample.position, sample.velocity)

    def imu(self, sample: ImuSample) -> bytes:
        """Bytes of a sensor_msgs/Imu without orientation."""
        rate = sample.angular_velocity, _UNKNOWN_COVARIANCE
        force = sample.specific_force, _UNKNOWN_COVARIANCE
        return self._imu.serialize(sample.stamp_ns, _NO_ORIENTATION, *rate, *force)

    def wrench(self, sample: WrenchSample) -> bytes:
        """Bytes of a geometry_msgs/WrenchStamped in the sole frame; negated for sensors with a flipped sign."""
        wrench = -sample.wrench if self._flip[sample.foot] else sample.wrench
        return self._wrenches[sample.foot].serialize(sample.stamp_ns, wrench)


class TruthMessages:
    """Serializes the ground truth of one simulated robot.

    Parameters
    ----------
    config : feet and slow rate
    joint_names : (n) order of the friction torques

    Attributes
    ----------
    topics : topics of the messages that :meth:`build` can return
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        feet = config.feet
        self.topics = topics.truth_topics(foot.name for foot in feet)
        names = tuple(foot.support_name for foot in feet)
        self._phase_name = ContactPhaseDetector(1.0, names).name
        self._schedule = OutputSchedule(config.output.slow_rate)
        self._torque = JointStateTemplate(topics.BASE_FRAME, joint_names)
        self._odometry = OdometryTemplate(topics.ODOM_FRAME, topics.BASE_FRAME)
        self._wrenches = [(topics.true_wrench(foot.name), StampedTemplate(6, foot.frame)) for foot in feet]

    def build(self, truth: GroundTruth) -> list[tuple[Topic, bytes]]:
        """Messages that are due with this sample, as (topic, serialized message)."""
        stamp_ns = truth.stamp_ns
        due = self._schedule.due(stamp_ns, truth.contact.tobytes())
        built = [(topics.TRUE_FRICTION, self._torque.serialize(stamp_ns, truth.friction))]
        if When.CHANGE in due:
            built.append((topics.TRUE_CONTACT_PHASE, serialize_string(self._phase_name(truth.contact))))
        if When.SLOW in due:
            base = self._odometry.serialize(
                stamp_ns,
                truth.position_base_in_world,
                truth.rotation_base_to_world,
                truth.linear_velocity,
                truth.angular_velocity,
            )
            built.append((topics.TRUE_EXTERNAL_TORQUE, self._torque.serialize(stamp_ns, truth.external_torque)))
            built.append((topics.TRUE_BASE_STATE, base))
            for (topic, template), wrench in zip(self._wrenches, truth.wrenches, strict=True):
                built.append((topic, template.serialize(stamp_ns, wrench)))
        return built
