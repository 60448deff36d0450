"""What message classes must offer, so that the same code builds messages of any origin; stamps of such messages."""

from __future__ import annotations

from typing import Any, Protocol

from friction_estimator.types import FloatArray


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
