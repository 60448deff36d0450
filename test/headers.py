"""Headers of message objects."""

from __future__ import annotations

from typing import Any


def make_header(types: Any, stamp_ns: int, frame_id: str = "") -> Any:
    """Header with a stamp [ns] and a frame; ``types.make`` makes messages by the name of their type."""
    stamp = types.make("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return types.make("std_msgs/msg/Header", stamp=stamp, frame_id=frame_id)
