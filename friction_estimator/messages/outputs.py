"""Friction estimates to serialized messages, the same for the live node and for a replay, and as markers for rviz."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from friction_estimator.config import Config
from friction_estimator.errors import RobotModelError, choices
from friction_estimator.linear_algebra import quaternion_from_matrix
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import CdrWriter, JointStateTemplate, StampedTemplate, Template, serialize_string
from friction_estimator.messages.topics import Topic, When
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.types import BaseState, FloatArray, FrictionEstimate, GroundTruth

_POINTS = 24  # of an arc
_RADIUS = 0.08  # of the arcs [m]
_TEXT_RADIUS = 1.4 * _RADIUS  # of the place of the text, outside of the arc [m]
_FULL_TURN = 1.5 * np.pi
_MEASURED, _MODELLED = (0.12, 0.47, 0.71), (1.0, 0.5, 0.05)  # red, green, blue
_UPRIGHT = (0.0, 0.0, 0.0, 1.0)  # x, y, z, w
_FULL_SCALE = 5.0
"""Friction torque of the longest arc [N m]."""
_LONGEST_TEXT = 11
"""Characters; all texts of 8 to 11 take the same space in a serialized message."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Common fields of the markers of one kind: namespace, type of visualization_msgs/Marker, scale [m]."""

    namespace: str
    type: int
    scale: tuple[float, float, float]


_ARC = _Kind("friction", 4, (0.012, 0.0, 0.0))  # LINE_STRIP
_TEXT = _Kind("friction_text", 9, (0.0, 0.0, 0.035))  # TEXT_VIEW_FACING


@dataclass(frozen=True, slots=True)
class JointAxis:
    """Axis of a joint: link and direction, for the markers."""

    frame: str  # link that the joint moves; its origin lies on the axis
    axis: FloatArray  # (3,) unit vector in that link


def joint_axes(urdf_xml: str, joint_names: Sequence[str]) -> tuple[JointAxis, ...]:
    """Axes of these joints in a URDF, (n).

    Raises
    ------
    RobotModelError
        When the URDF is not valid or lacks a joint.
    """
    joints = {joint.get("name"): joint for joint in parse_urdf(urdf_xml).iterfind("joint")}
    missing = [name for name in joint_names if name not in joints]
    if missing:
        raise RobotModelError(f"the URDF has no joint {choices(missing)}; it has {choices(filter(None, joints))}")
    return tuple(_axis(joints[name]) for name in joint_names)


def _axis(joint: ElementTree.Element) -> JointAxis:
    child, axis = joint.find("child"), joint.find("axis")
    direction = np.array([float(x) for x in axis.get("xyz", "1 0 0").split()] if axis is not None else [1.0, 0.0, 0.0])
    return JointAxis(child.get("link", "") if child is not None else "", direction / np.linalg.norm(direction))


class FrictionMarkers:
    """Serializes the MarkerArray of one robot.

    The arc of a joint is 270 degrees long at :data:`_FULL_SCALE` and turns in the direction of the friction. It is blue
    where the friction is measured, and orange where it comes from the law.

    Parameters
    ----------
    axes : (n) of the joints
    """

    def __init__(self, axes: Sequence[JointAxis]) -> None:
        across = [_perpendicular(axis.axis) for axis in axes]
        self._cosine = _RADIUS * np.reshape(across, (-1, 1, 3))
        self._sine = _RADIUS * np.reshape(
            [np.cross(axis.axis, u) for axis, u in zip(axes, across, strict=True)], (-1, 1, 3)
        )
        writer = CdrWriter()
        writer.pack("I", 4, 2 * len(axes))
        self._offsets = []
        for number, (axis, u) in enumerate(zip(axes, across, strict=True)):
            arc, _ = _write_marker(writer, number, axis.frame, _ARC, np.zeros(3), _POINTS)
            self._offsets.append((arc, *_write_marker(writer, number, axis.frame, _TEXT, _TEXT_RADIUS * u, 0)))
        self._template = Template(writer)

    def build(self, estimate: FrictionEstimate) -> bytes:
        """Bytes of a visualization_msgs/MarkerArray: an arc and a text for every joint."""
        part = np.clip(estimate.friction / _FULL_SCALE, -1.0, 1.0)
        angles = np.linspace(0.0, part * _FULL_TURN, _POINTS, axis=1)[:, :, None]
        points = np.cos(angles) * self._cosine + np.sin(angles) * self._sine
        signals = self._offsets, estimate.measured.tolist(), estimate.friction.tolist()
        for (color_of_arc, color_of_text, text_at), measured, torque in zip(*signals, strict=True):
            for offset in (color_of_arc, color_of_text):
                struct.pack_into("<3f", self._template.buffer, offset, *(_MEASURED if measured else _MODELLED))
            text = f"{torque:+.2f} N m".encode()
            if len(text) > _LONGEST_TEXT:
                text = f"{torque:+.0e} N m".encode()
            struct.pack_into(f"<I{_LONGEST_TEXT + 1}s", self._template.buffer, text_at, len(text) + 1, text)
        return self._template.serialize(estimate.stamp_ns, *points)


def _write_marker(
    writer: CdrWriter, number: int, frame: str, kind: _Kind, position: FloatArray, points: int
) -> tuple[int, int]:
    """Append a visualization_msgs/Marker that is fixed to its frame; offsets of its colour and its text."""
    writer.header(frame)
    writer.string(kind.namespace)
    writer.pack("3i", 4, number, kind.type, 0)  # add or modify
    writer.pack("10d", 8, *position, *_UPRIGHT, *kind.scale)
    color = writer.pack("4f", 4, 0.0, 0.0, 0.0, 1.0)
    writer.pack("iI", 4, 0, 0)  # it never expires
    writer.pack("B", 1, True)
    writer.pack("I", 4, points)
    if points:
        writer.zeros(3 * points)
    writer.pack("I", 4, 0)  # no colours of single points
    writer.string("")  # no texture: its source, then an empty CompressedImage and coordinates
    writer.pack("iI", 4, 0, 0)
    writer.string("")
    writer.string("")
    writer.pack("2I", 4, 0, 0)
    text = writer.string(_LONGEST_TEXT * " " if kind is _TEXT else "")
    writer.string("")  # no mesh: its source, then an empty MeshFile
    writer.string("")
    writer.pack("I", 4, 0)
    writer.pack("B", 1, False)
    return color, text


def _perpendicular(axis: FloatArray) -> FloatArray:
    """A unit vector perpendicular to an axis, (3,)."""
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return across / np.linalg.norm(across)


_DISPLAY_PERIOD_NS = 100_000_000  # between two drawings in rviz
_SAMPLE = frozenset({When.SAMPLE})
_CHANGED = frozenset({When.SAMPLE, When.CHANGE})
_SLOW = frozenset({When.SAMPLE, When.CHANGE, When.SLOW})
_ALL = frozenset(When)

_SCALARS = {topic: attrgetter(field) for field, topic in topics.SCALARS.items()}


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
        frames = topics.ODOM_FRAME, topics.BASE_FRAME
        self._odometry = StampedTemplate(ODOMETRY_SIZES, *frames)
        self._transform = StampedTemplate((3, 4), *frames, sequence=True)
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
            friction = self._friction.serialize(stamp_ns, estimate.position, estimate.velocity, estimate.friction)
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
        if topic is topics.BASE_TRANSFORM:
            return self._transform.serialize(estimate.stamp_ns, *_pose(estimate.base))
        if topic is topics.BASE_STATE:
            return self._odometry.serialize(estimate.stamp_ns, *odometry_numbers(estimate.base))
        raise ValueError(f"nothing writes messages of the topic {topic.name!r}: add it to OutputMessages._serialize")


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


ODOMETRY_SIZES = (3, 4, 36, 3, 3, 36)
"""Lengths of the arrays of a nav_msgs/Odometry."""


def odometry_numbers(base: BaseState | GroundTruth) -> Iterator[FloatArray]:
    """Arrays of a nav_msgs/Odometry. Its twist is in the base axes; the linear velocity of a base is in the world axes.

    The ground truth has no covariance.
    """
    rotation, pose, twist = base.rotation_base_to_world, np.zeros((6, 6)), np.zeros((6, 6))
    if not isinstance(base, GroundTruth):
        pose, twist = base.pose_covariance, base.twist_covariance.copy()
    twist[:3] = rotation.T @ twist[:3]
    twist[:, :3] = twist[:, :3] @ rotation
    yield from _pose(base)
    yield from (pose, rotation.T @ base.linear_velocity, base.angular_velocity, twist)


def _pose(base: BaseState | GroundTruth) -> tuple[FloatArray, FloatArray]:
    """Position, and orientation in the order of geometry_msgs/Quaternion: x, y, z, w."""
    w, x, y, z = quaternion_from_matrix(base.rotation_base_to_world).tolist()
    return base.position_base_in_world, np.array((x, y, z, w))
