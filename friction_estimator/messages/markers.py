"""Friction as rviz markers: an arc about each joint axis, as long as the torque is large, and the number beside it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.core.exceptions import RobotModelError, choices
from friction_estimator.core.types import FloatArray, FrictionEstimate
from friction_estimator.messages.types import MessageTypes, make_header

_LINE_STRIP, _TEXT_VIEW_FACING = 4, 9
_POINTS = 24
_FULL_TURN = 1.5 * np.pi
_MEASURED, _MODELLED = (0.12, 0.47, 0.71), (1.0, 0.5, 0.05)


@dataclass(frozen=True, slots=True)
class JointAxis:
    """Where a joint turns.

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
        When the URDF is not XML or lacks a joint.
    """
    try:
        joints = {joint.get("name"): joint for joint in ElementTree.fromstring(urdf_xml).iterfind("joint")}
    except ElementTree.ParseError as error:
        raise RobotModelError(f"the URDF is not valid XML: {error}") from None
    missing = [name for name in joint_names if name not in joints]
    if missing:
        raise RobotModelError(f"the URDF has no joint {choices(missing)}; it has {choices(filter(None, joints))}")
    return tuple(_axis(joints[name]) for name in joint_names)


def _axis(joint: ElementTree.Element) -> JointAxis:
    child, axis = joint.find("child"), joint.find("axis")
    direction = np.array([float(x) for x in axis.get("xyz", "1 0 0").split()] if axis is not None else [1.0, 0.0, 0.0])
    return JointAxis(child.get("link", "") if child is not None else "", direction / np.linalg.norm(direction))


class FrictionMarkers:
    """Builds the MarkerArray of one robot.

    The arc of a joint is 270 degrees long at ``full_scale`` and turns the way the friction does; it is blue where the
    friction is measured, orange where it is modelled.

    Parameters
    ----------
    types : message classes
    axes : (n) where the joints are
    full_scale : friction torque of the longest arc [N m]
    radius : of the arcs [m]
    """

    def __init__(
        self, types: MessageTypes, axes: Sequence[JointAxis], full_scale: float = 5.0, radius: float = 0.08
    ) -> None:
        self._types = types
        self._frames = [axis.frame for axis in axes]
        self._full_scale = full_scale
        self._radius = radius
        across = [_perpendicular(axis.axis) for axis in axes]
        self._planes = [(u, np.cross(axis.axis, u)) for axis, u in zip(axes, across, strict=True)]
        self._texts = [1.4 * radius * u for u in across]

    def build(self, estimate: FrictionEstimate) -> Any:
        """visualization_msgs/MarkerArray: an arc and a text for every joint."""
        markers = []
        for joint, (torque, measured) in enumerate(
            zip(estimate.friction.tolist(), estimate.measured.tolist(), strict=True)
        ):
            header = make_header(self._types, estimate.stamp_ns, self._frames[joint])
            color = _MEASURED if measured else _MODELLED
            markers.append(self._arc(header, joint, torque, color))
            markers.append(self._text(header, joint, torque, color))
        return self._types.make("visualization_msgs/msg/MarkerArray", markers=markers)

    def _arc(self, header: Any, joint: int, torque: float, color: tuple[float, float, float]) -> Any:
        u, v = self._planes[joint]
        part = float(np.clip(torque / self._full_scale, -1.0, 1.0))
        angles = np.linspace(0.0, part * _FULL_TURN, _POINTS)[:, None]
        points = self._radius * (np.cos(angles) * u + np.sin(angles) * v)
        return self._marker(
            header,
            "friction",
            joint,
            _LINE_STRIP,
            color,
            scale=self._types.make("geometry_msgs/msg/Vector3", x=0.012, y=0.0, z=0.0),
            points=[self._point(point) for point in points],
        )

    def _text(self, header: Any, joint: int, torque: float, color: tuple[float, float, float]) -> Any:
        position = self._point(self._texts[joint])
        return self._marker(
            header,
            "friction_text",
            joint,
            _TEXT_VIEW_FACING,
            color,
            scale=self._types.make("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.035),
            text=f"{torque:+.2f} N m",
            position=position,
        )

    def _marker(
        self,
        header: Any,
        namespace: str,
        number: int,
        kind: int,
        color: tuple[float, float, float],
        position: Any = None,
        **fields: Any,
    ) -> Any:
        make = self._types.make
        r, g, b = color
        upright = make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
        place = position if position is not None else make("geometry_msgs/msg/Point")
        return make(
            "visualization_msgs/msg/Marker",
            header=header,
            ns=namespace,
            id=number,
            type=kind,
            pose=make("geometry_msgs/msg/Pose", position=place, orientation=upright),
            color=make("std_msgs/msg/ColorRGBA", r=r, g=g, b=b, a=1.0),
            frame_locked=True,
            **fields,
        )

    def _point(self, position: FloatArray) -> Any:
        x, y, z = position.tolist()
        return self._types.make("geometry_msgs/msg/Point", x=x, y=y, z=z)


def _perpendicular(axis: FloatArray) -> FloatArray:
    """Some unit vector across an axis, (3,)."""
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return across / np.linalg.norm(across)
