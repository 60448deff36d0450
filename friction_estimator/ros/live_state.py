"""The newest values on the topics of a live run, decoded only when somebody looks."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from friction_estimator.core.config import Config
from friction_estimator.core.types import FloatArray
from friction_estimator.messages import topics
from friction_estimator.messages.types import header_stamp
from friction_estimator.ros.recorder import DIAGNOSTICS

_TRUTH_KEPT = 2000
"""Messages of the true friction, more than the simulator can be ahead of the estimator."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """How a live run is doing.

    Attributes
    ----------
    joint_names : (n); empty before the first estimate
    friction, coulomb, viscous, measured : (n,) newest ``effort`` on the topics of these names; NaN while unknown
    truth : (n,) true friction at the stamp of ``friction``; NaN while unknown
    phase : contact phase
    elapsed : header time since the first joint state [s]
    joint_samples, estimates : messages recorded
    sent : joint states that the simulator says it sent
    received : joint states that the estimator says it received
    lateness : what the simulator says about real time
    latency : what the estimator says about its latency
    """

    joint_names: tuple[str, ...]
    friction: FloatArray
    truth: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    measured: FloatArray
    phase: str
    elapsed: float
    joint_samples: int
    estimates: int
    sent: int
    received: int
    lateness: str
    latency: str


class LiveTopics:
    """Keeps the newest serialized message of every topic.

    Parameters
    ----------
    config : topic names

    Attributes
    ----------
    counts : messages by topic, from the recorder
    """

    def __init__(self, config: Config) -> None:
        self.counts: Mapping[str, int] = {}
        self._joint_topic = config.output.joint_states_topic
        self._newest: dict[str, bytes] = {}
        self._truth: deque[bytes] = deque(maxlen=_TRUTH_KEPT)
        self._first_stamp: int | None = None
        self._said: dict[str, str] = {}

    def handler(self, topic: str) -> Callable[[bytes], None]:
        """What to call with every message of a topic."""
        if topic == DIAGNOSTICS[0]:
            return self._diagnostics
        if topic == topics.TRUE_FRICTION.name:
            return self._truth.append
        newest = self._newest

        def keep(raw: bytes) -> None:
            newest[topic] = raw

        return keep

    def state(self) -> LiveState:
        """Decode the newest messages."""
        friction = self._message(topics.FRICTION.name, JointState)
        names = tuple(friction.name) if friction is not None else ()
        phase = self._message(topics.CONTACT_PHASE.name, String)
        said = self._said
        return LiveState(
            joint_names=names,
            friction=_effort(friction, names),
            truth=self._truth_at(friction, names),
            coulomb=self._newest_effort(topics.COULOMB, names),
            viscous=self._newest_effort(topics.VISCOUS, names),
            measured=self._newest_effort(topics.MEASURED, names),
            phase="" if phase is None else phase.data,
            elapsed=self._elapsed(),
            joint_samples=self.counts.get(self._joint_topic, 0),
            estimates=self.counts.get(topics.FRICTION.name, 0),
            sent=int(said.get("sent", "0")),
            received=int(said.get("received", "0")),
            lateness=said.get("lateness", ""),
            latency=said.get("latency", ""),
        )

    def _elapsed(self) -> float:
        newest = self._message(self._joint_topic, JointState)
        if newest is None:
            return 0.0
        stamp = header_stamp(newest)
        if self._first_stamp is None:
            self._first_stamp = stamp
        return 1e-9 * (stamp - self._first_stamp)

    def _truth_at(self, friction: JointState | None, names: tuple[str, ...]) -> FloatArray:
        """Truth of the same instant: the simulator may be well ahead of the estimator."""
        if friction is None:
            return _effort(None, names)
        stamp, kept = header_stamp(friction), tuple(self._truth)
        place = bisect_left(kept, stamp, key=lambda raw: header_stamp(deserialize_message(raw, JointState)))
        message = deserialize_message(kept[place], JointState) if place < len(kept) else None
        return _effort(message if message is not None and header_stamp(message) == stamp else None, names)

    def _newest_effort(self, topic: topics.Topic, names: tuple[str, ...]) -> FloatArray:
        return _effort(self._message(topic.name, JointState), names)

    def _message(self, topic: str, message_type: Any) -> Any:
        raw = self._newest.get(topic)
        return None if raw is None else deserialize_message(raw, message_type)

    def _diagnostics(self, raw: bytes) -> None:
        for status in deserialize_message(raw, DiagnosticArray).status:
            values = {item.key: item.value for item in status.values}
            if status.name.endswith(": samples"):
                self._said["sent"], self._said["lateness"] = values["published"], status.message
            elif status.name.endswith(f": input {self._joint_topic}"):
                self._said["received"] = values["received"]
            elif status.name.endswith(": estimates") and not values.get("processing p50", "nan").startswith("nan"):
                self._said["latency"] = f"p50 {values['processing p50']}, p99 {values['processing p99']}"


def _effort(message: JointState | None, names: tuple[str, ...]) -> FloatArray:
    """Effort in the order of ``names``, (n,); NaN where there is none."""
    if message is None:
        return np.full(len(names), np.nan)
    effort = dict(zip(message.name, message.effort, strict=True))
    return np.array([effort.get(name, np.nan) for name in names])
