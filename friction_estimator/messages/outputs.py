"""Friction estimates to serialized messages: the same for the live node and for a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from friction_estimator.config import Config
from friction_estimator.linear_algebra import quaternion_from_matrix
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate, StampedTemplate, serialize_string
from friction_estimator.messages.markers import FrictionMarkers, joint_axes
from friction_estimator.messages.topics import Topic, When
from friction_estimator.types import BaseState, FloatArray, FrictionEstimate

_DISPLAY_PERIOD_NS = 100_000_000
_NO_COVARIANCE = np.zeros((6, 6))
_SAMPLE = frozenset({When.SAMPLE})
_CHANGED = frozenset({When.SAMPLE, When.CHANGE})
_SLOW = frozenset({When.SAMPLE, When.CHANGE, When.SLOW})
_ALL = frozenset(When)

_SCALARS = {
    topics.MEASURED: attrgetter("measured"),
    topics.VALID: attrgetter("valid"),
    topics.MODEL: attrgetter("model"),
    topics.COULOMB: attrgetter("law.coulomb"),
    topics.VISCOUS: attrgetter("law.viscous"),
    topics.COULOMB_SIGMA: attrgetter("law.coulomb_sigma"),
    topics.VISCOUS_SIGMA: attrgetter("law.viscous_sigma"),
    topics.EXTERNAL_TORQUE: attrgetter("external_torque"),
    topics.EXTERNAL_TORQUE_SIGMA: attrgetter("external_torque_sigma"),
}
"""Values of a :class:`FrictionEstimate` that are published as the effort on a topic."""


class OutputMessages:
    """Builds the messages that are due with each estimate.

    Parameters
    ----------
    config : stages and slow rate
    joint_names : (n) order of the estimates
    urdf_xml : axes of the joints, for the markers
    transform : whether the base pose is also a message for /tf

    Attributes
    ----------
    topics : topics of the messages that :meth:`build` can return

    Raises
    ------
    RobotModelError
        When the URDF lacks a joint.
    """

    def __init__(
        self,
        config: Config,
        joint_names: Sequence[str],
        urdf_xml: str,
        transform: bool = False,
    ) -> None:
        self.topics = topics.output_topics(config)
        if transform and config.has_base_state:
            self.topics += (topics.BASE_TRANSFORM,)
        self._secondary = [topic for topic in self.topics if topic.when is not When.SAMPLE]
        self._markers = FrictionMarkers(joint_axes(urdf_xml, joint_names))
        self._has_friction = config.has_friction
        self._schedule = OutputSchedule(config.output.slow_rate)
        self._friction = JointStateTemplate(topics.BASE_FRAME, joint_names, with_state=True)
        self._scalar = JointStateTemplate(topics.BASE_FRAME, joint_names)
        self._odometry = OdometryTemplate(topics.ODOM_FRAME, topics.BASE_FRAME)
        self._transform = TransformTemplate(topics.ODOM_FRAME, topics.BASE_FRAME)
        self._no_torque = np.zeros(len(joint_names))
        self._sigma_is_wanted = False

    def reset(self) -> None:
        """Build the messages of every topic with the next estimate."""
        self._schedule.reset()

    def set_slow_rate(self, slow_rate: float) -> None:
        """Change the rate of the slow topics [Hz]."""
        self._schedule = OutputSchedule(slow_rate)

    def build(
        self, estimate: FrictionEstimate, wanted: Callable[[Topic], object] = lambda topic: True
    ) -> list[tuple[Topic, bytes]]:
        """Messages that are due with this estimate, as (topic, serialized message).

        Parameters
        ----------
        estimate : content of the messages
        wanted : called with each due topic except friction and compensation, and at the slow rate with that of sigma;
            messages of topics for which it returns false are left out
        """
        stamp_ns = estimate.stamp_ns
        built: list[tuple[Topic, bytes]] = []
        if self._has_friction:
            friction = self._friction.serialize(stamp_ns, estimate.friction, estimate.position, estimate.velocity)
            built.append((topics.FRICTION, friction))
        due = self._schedule.due(stamp_ns, (estimate.phase.name, estimate.measured.tobytes(), estimate.valid.tobytes()))
        if self._has_friction and len(due) > 1 and When.SLOW in due:
            self._sigma_is_wanted = bool(wanted(topics.SIGMA))
        if self._sigma_is_wanted:
            built.append((topics.SIGMA, self._scalar.serialize(stamp_ns, estimate.sigma)))
        if estimate.compensation is not None:
            built.append((topics.COMPENSATION, self._scalar.serialize(stamp_ns, estimate.compensation)))
        if len(due) > 1:
            for topic in self._secondary:
                if topic.when in due and wanted(topic):
                    built.append((topic, self._serialize(topic, estimate)))
        return built

    def no_compensation(self, stamp_ns: int) -> tuple[Topic, bytes]:
        """Zero compensation torque of every joint, as (topic, serialized message)."""
        return topics.COMPENSATION, self._scalar.serialize(stamp_ns, self._no_torque)

    def _serialize(self, topic: Topic, estimate: FrictionEstimate) -> bytes:
        if (values_of := _SCALARS.get(topic)) is not None:
            return self._scalar.serialize(estimate.stamp_ns, values_of(estimate))
        if topic is topics.CONTACT_PHASE:
            return serialize_string(estimate.phase.name)
        if topic is topics.FRICTION_MARKERS:
            return self._markers.build(estimate)
        base = estimate.base
        if topic is topics.BASE_TRANSFORM:
            return self._transform.serialize(estimate.stamp_ns, base)
        return self._odometry.serialize(
            estimate.stamp_ns,
            base.position_base_in_world,
            base.rotation_base_to_world,
            base.linear_velocity,
            base.angular_velocity,
            base.pose_covariance,
            base.twist_covariance,
        )


class OutputSchedule:
    """Decides which topics are due with a sample, by header stamp alone: live node and replay publish the same.

    Time is divided into slots of ``1 / slow_rate``; the slow topics are due with the first sample in a slot. Topics for
    display (``When.DISPLAY``) are due with the first slow sample of every tenth of a second.

    Parameters
    ----------
    slow_rate : [Hz]
    """

    def __init__(self, slow_rate: float) -> None:
        self._period_ns = max(1, round(1e9 / slow_rate))
        self.reset()

    def reset(self) -> None:
        """Make every topic due with the next sample."""
        self._slot: int | None = None
        self._display_slot: int | None = None
        self._state: object = None

    def due(self, stamp_ns: int, state: object = None) -> frozenset[When]:
        """Topics that are due with the sample of this stamp.

        Parameters
        ----------
        stamp_ns : header stamp of the sample [ns]; may jump back
        state : anything comparable; topics of ``When.CHANGE`` are due when it differs from that of the call before
        """
        slot = stamp_ns // self._period_ns
        if slot != self._slot:
            self._slot, self._state = slot, state
            return self._display(stamp_ns // _DISPLAY_PERIOD_NS)
        if state != self._state:
            self._state = state
            return _CHANGED
        return _SAMPLE

    def _display(self, slot: int) -> frozenset[When]:
        if slot == self._display_slot:
            return _SLOW
        self._display_slot = slot
        return _ALL


class OdometryTemplate:
    """Serializes nav_msgs/Odometry of one base.

    The twist of an Odometry is in the base axes; the linear velocity of a base state is in the world axes.

    Parameters
    ----------
    frame_id, child_frame_id : world frame and base frame
    """

    def __init__(self, frame_id: str, child_frame_id: str) -> None:
        self._template = StampedTemplate(85, frame_id, child_frame_id)

    def serialize(
        self,
        stamp_ns: int,
        position: FloatArray,
        rotation: FloatArray,
        linear_velocity: FloatArray,
        angular_velocity: FloatArray,
        pose_covariance: FloatArray = _NO_COVARIANCE,
        twist_covariance: FloatArray = _NO_COVARIANCE,
    ) -> bytes:
        """Bytes of a message.

        Parameters
        ----------
        stamp_ns : header stamp [ns]
        position : (3,) of the base in the world [m]
        rotation : (3, 3) base to world
        linear_velocity : (3,) of the base origin, world axes [m/s]
        angular_velocity : (3,) base axes [rad/s]
        pose_covariance : (6, 6) position, then rotation about the world axes
        twist_covariance : (6, 6) linear (world axes), then angular (base axes)
        """
        in_base_axes = twist_covariance.copy()
        in_base_axes[:3] = rotation.T @ in_base_axes[:3]
        in_base_axes[:, :3] = in_base_axes[:, :3] @ rotation
        return self._template.serialize(
            stamp_ns,
            position,
            _quaternion(rotation),
            pose_covariance,
            rotation.T @ linear_velocity,
            angular_velocity,
            in_base_axes,
        )


class TransformTemplate:
    """Serializes tf2_msgs/TFMessage with the pose of one base.

    Parameters
    ----------
    frame_id, child_frame_id : world frame and base frame
    """

    def __init__(self, frame_id: str, child_frame_id: str) -> None:
        self._template = StampedTemplate(7, frame_id, child_frame_id, sequence=True)

    def serialize(self, stamp_ns: int, base: BaseState) -> bytes:
        """Bytes of a message."""
        return self._template.serialize(stamp_ns, base.position_base_in_world, _quaternion(base.rotation_base_to_world))


def _quaternion(rotation: FloatArray) -> FloatArray:
    """In the order of geometry_msgs/Quaternion: x, y, z, w."""
    w, x, y, z = quaternion_from_matrix(rotation).tolist()
    return np.array((x, y, z, w))
