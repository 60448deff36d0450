"""Friction as rviz markers: an arc about each joint axis whose length is proportional to the torque, and a text."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import RobotModelError, choices
from friction_estimator.messages.cdr import BODY, NANOSECONDS, CdrWriter
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.types import FloatArray, FrictionEstimate

_POINTS = 24
_RADIUS = 0.08  # of the arcs [m]
_FULL_TURN = 1.5 * np.pi
_MEASURED, _MODELLED = (0.12, 0.47, 0.71), (1.0, 0.5, 0.05)
_UPRIGHT = (0.0, 0.0, 0.0, 1.0)
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
    """Axis of a joint.

    Attributes
    ----------
    frame : link that the joint moves; its origin lies on the axis
    axis : (3,) unit vector in that link
    """

    frame: str
    axis: FloatArray


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

    The arc of a joint is 270 degrees long at ``full_scale`` and turns in the direction of the friction. It is blue
    where the friction is measured, and orange where it comes from the law.

    Parameters
    ----------
    axes : (n) of the joints
    full_scale : friction torque of the longest arc [N m]
    """

    def __init__(self, axes: Sequence[JointAxis], full_scale: float = 5.0) -> None:
        self._full_scale = full_scale
        across = [_perpendicular(axis.axis) for axis in axes]
        self._cosine = _RADIUS * np.reshape(across, (-1, 1, 3))
        self._sine = _RADIUS * np.reshape(
            [np.cross(axis.axis, u) for axis, u in zip(axes, across, strict=True)], (-1, 1, 3)
        )
        writer = CdrWriter()
        writer.pack("I", 4, 2 * len(axes))
        places = []
        for number, (axis, u) in enumerate(zip(axes, across, strict=True)):
            places.append(_write_marker(writer, number, axis.frame, _ARC, np.zeros(3), _POINTS))
            places.append(_write_marker(writer, number, axis.frame, _TEXT, 1.4 * _RADIUS * u, 0))
        buffer = self._buffer = writer.buffer
        words = len(buffer) // 4
        self._integers, self._reals = np.frombuffer(buffer, "<u4", words), np.frombuffer(buffer, "<f4", words)
        self._coordinates = np.frombuffer(buffer, "<f8", (len(buffer) - BODY) // 8, BODY)
        self._stamps = np.array([place.stamp for place in places], dtype=np.intp) // 4
        self._colors = np.array([place.color for place in places], dtype=np.intp)[:, None] // 4 + np.arange(3)
        first = np.array([place.points - BODY for place in places[::2]], dtype=np.intp)[:, None] // 8
        self._arcs = first + np.arange(3 * _POINTS)
        self._texts = [place.text for place in places[1::2]]

    def build(self, estimate: FrictionEstimate) -> bytes:
        """Bytes of a visualization_msgs/MarkerArray: an arc and a text for every joint."""
        seconds, nanoseconds = divmod(estimate.stamp_ns, NANOSECONDS)
        self._integers[self._stamps], self._integers[self._stamps + 1] = seconds % 2**32, nanoseconds  # before 1970
        self._reals[self._colors] = np.where(np.repeat(estimate.measured, 2)[:, None], _MEASURED, _MODELLED)
        part = np.clip(estimate.friction / self._full_scale, -1.0, 1.0)
        angles = np.linspace(0.0, part * _FULL_TURN, _POINTS, axis=1)[:, :, None]
        points = np.cos(angles) * self._cosine + np.sin(angles) * self._sine
        self._coordinates[self._arcs] = points.reshape(self._arcs.shape)
        for offset, torque in zip(self._texts, estimate.friction.tolist(), strict=True):
            text = f"{torque:+.2f} N m".encode()
            if len(text) > _LONGEST_TEXT:
                text = f"{torque:+.0e} N m".encode()
            struct.pack_into(f"<I{_LONGEST_TEXT + 1}s", self._buffer, offset, len(text) + 1, text)
        return bytes(self._buffer)


@dataclass(frozen=True, slots=True)
class _Places:
    """Offsets of the fields of a marker that change: stamp, color, points, and length of the text."""

    stamp: int
    color: int
    points: int
    text: int


def _write_marker(
    writer: CdrWriter, number: int, frame: str, kind: _Kind, position: FloatArray, points: int
) -> _Places:
    """Append a visualization_msgs/Marker that is fixed to its frame."""
    stamp = writer.header(frame)
    writer.string(kind.namespace)
    writer.pack("3i", 4, number, kind.type, 0)  # add or modify
    writer.pack("10d", 8, *position, *_UPRIGHT, *kind.scale)
    color = writer.pack("4f", 4, 0.0, 0.0, 0.0, 1.0)
    writer.pack("iI", 4, 0, 0)  # it never expires
    writer.pack("B", 1, True)
    writer.pack("I", 4, points)
    first_point = writer.zeros(3 * points)
    writer.pack("I", 4, 0)  # no colours of single points
    writer.string("")  # no texture: its source, then an empty CompressedImage and coordinates
    writer.header("")
    writer.string("")
    writer.pack("2I", 4, 0, 0)
    text = writer.string(_LONGEST_TEXT * " " if kind is _TEXT else "")
    writer.string("")  # no mesh: its source, then an empty MeshFile
    writer.string("")
    writer.pack("I", 4, 0)
    writer.pack("B", 1, False)
    return _Places(stamp, color, first_point, text)


def _perpendicular(axis: FloatArray) -> FloatArray:
    """A unit vector perpendicular to an axis, (3,)."""
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return across / np.linalg.norm(across)
