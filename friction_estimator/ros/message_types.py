"""Message classes of rclpy by their names."""

from __future__ import annotations

import importlib
from typing import Any


def message_class(type_name: str) -> Any:
    """Class of a message such as ``sensor_msgs/msg/JointState``."""
    package, _, name = type_name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)
