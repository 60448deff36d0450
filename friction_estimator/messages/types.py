"""What message classes must offer, so that the same code builds messages of rclpy and of rosbags."""

from __future__ import annotations

from typing import Any, Protocol

from friction_estimator.core.types import FloatArray


class MessageTypes(Protocol):
    """Makes messages by the name of their type.

    Arrays of fixed length (covariances) are NumPy arrays in both worlds; sequences of variable length go through
    :meth:`floats`.
    """

    def make(self, type_name: str, /, **fields: Any) -> Any:
        """Create a message such as ``make("std_msgs/msg/String", data="...")``; absent fields get their defaults."""
        ...

    def floats(self, values: FloatArray) -> Any:
        """Turn an array (m,) into what a ``float64[]`` field takes."""
        ...


_NS = 1_000_000_000


def make_header(types: MessageTypes, stamp_ns: int, frame_id: str) -> Any:
    """Header with a stamp [ns] and a frame."""
    stamp = types.make("builtin_interfaces/msg/Time", sec=stamp_ns // _NS, nanosec=stamp_ns % _NS)
    return types.make("std_msgs/msg/Header", stamp=stamp, frame_id=frame_id)


def header_stamp(message: Any) -> int:
    """Stamp of a message with a header [ns]."""
    stamp = message.header.stamp
    return stamp.sec * _NS + stamp.nanosec


def make_vector(types: MessageTypes, values: FloatArray) -> Any:
    """Vector3 of (3,)."""
    x, y, z = values.tolist()
    return types.make("geometry_msgs/msg/Vector3", x=x, y=y, z=z)


def make_wrench(types: MessageTypes, stamp_ns: int, frame_id: str, wrench: FloatArray) -> Any:
    """WrenchStamped of (6,) force and moment [N, N m]."""
    body = types.make(
        "geometry_msgs/msg/Wrench", force=make_vector(types, wrench[:3]), torque=make_vector(types, wrench[3:])
    )
    return types.make("geometry_msgs/msg/WrenchStamped", header=make_header(types, stamp_ns, frame_id), wrench=body)
