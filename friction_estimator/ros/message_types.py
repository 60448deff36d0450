"""Message classes of rclpy for ``messages.types.MessageTypes``."""

from __future__ import annotations

import array
import importlib
from typing import Any

import numpy as np

from friction_estimator.core.types import FloatArray


def message_class(type_name: str) -> Any:
    """Class of a message such as ``sensor_msgs/msg/JointState``."""
    package, _, name = type_name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)


class RclpyMessageTypes:
    """``messages.types.MessageTypes`` for rclpy."""

    def __init__(self) -> None:
        self._classes: dict[str, Any] = {}

    def make(self, type_name: str, /, **fields: Any) -> Any:
        """Create a message; absent fields get their defaults."""
        try:
            message_type = self._classes[type_name]
        except KeyError:
            message_type = self._classes[type_name] = message_class(type_name)
        return message_type(**fields)

    def floats(self, values: FloatArray) -> array.array[float]:
        """What a ``float64[]`` field takes: rclpy keeps an ``array.array`` as it is and copies all else slowly."""
        return array.array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())
