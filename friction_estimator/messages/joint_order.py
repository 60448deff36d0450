"""From the joints of a message to those of the model, learned once and kept while the names stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from friction_estimator.core.exceptions import InputError, choices
from friction_estimator.core.types import FloatArray


class JointOrder:
    """Picks the joints of the model out of messages with any order of joints and further ones.

    Parameters
    ----------
    topic : of the messages, for error texts
    joint_names : (n) wanted joints, in model order
    """

    def __init__(self, topic: str, joint_names: Sequence[str]) -> None:
        self._topic = topic
        self._joint_names = tuple(joint_names)
        self._message_names: list[str] = []
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def read(self, names: Sequence[str]) -> None:
        """Learn the names (m) of the next message.

        Raises
        ------
        InputError
            When a wanted joint is missing or named twice.
        """
        if names != self._message_names:
            self._learn(list(names))

    def pick(self, label: str, values: Sequence[float]) -> FloatArray:
        """Values (m) of a message whose names were read, in model order (n,).

        Raises
        ------
        InputError
            When there are not as many as names.
        """
        if len(values) != len(self._message_names):
            raise InputError(self._wrong_length(label, len(values)))
        return np.asarray(values, dtype=np.float64)[self._order]

    def check_finite(self, label: str, values: FloatArray) -> None:
        """Raise InputError when a value (n,) is not finite, naming its joint."""
        bad = [name for name, good in zip(self._joint_names, np.isfinite(values), strict=True) if not good]
        if bad:
            raise InputError(f"{self._topic}: {label} of joint {choices(bad)} is not finite")

    def _learn(self, names: list[str]) -> None:
        index = {name: place for place, name in enumerate(names)}
        missing = [name for name in self._joint_names if name not in index]
        if missing:
            raise InputError(f"{self._topic}: joint {choices(missing)} missing; the message holds {choices(names)}")
        if len(index) != len(names):
            twice = {name for name in names if names.count(name) > 1}
            raise InputError(f"{self._topic}: joint {choices(twice)} is named more than once")
        self._order = np.array([index[name] for name in self._joint_names], dtype=np.intp)
        self._message_names = names

    def _wrong_length(self, label: str, length: int) -> str:
        if length == 0:
            return f"{self._topic}: {label} is empty, but the estimator needs {_NEEDED.get(label, label)}"
        return f"{self._topic}: {label} has {length} values for {len(self._message_names)} joint names"


_NEEDED = {
    "position": "the joint positions",
    "velocity": "the joint velocities",
    "effort": "the motor torques",
}
