"""Newest values on the topics of a live run, deserialized a few times a second."""

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

from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.recorder_node import DIAGNOSTICS, Recorder
from friction_estimator.types import FloatArray

_TRUTH_KEPT = 2000
"""Kept messages of the true friction: more than the simulator can be ahead of the estimator."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """State of a live run.

    Attributes
    ----------
    joint_names : (n); empty before the first estimate
    friction, coulomb, viscous, measured : (n,) newest ``effort`` on the topics of these names; NaN while unknown
    truth : (n,) true friction at the stamp of ``friction``; NaN while unknown
    phase : contact phase
    elapsed : header time since the first joint state [s]
    joint_samples, estimates : messages recorded
    sent : joint states that the simulator has published
    received : joint states that the estimator has received
    behind : delay of the simulation against real time [s]
    waited : part of this delay in which the simulation waited for the estimator [s]
    latency : median and 99th percentile of the estimator's processing time
    collisions : what was detected so far, one sentence each
    cores : processor time by process, divided by real time, from the first joint state to the last
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
    behind: float
    waited: float
    latency: str
    collisions: tuple[str, ...]
    cores: Mapping[str, float]


class LiveTopics:
    """Deserializes the newest messages of a recorder.

    Parameters
    ----------
    config : topic names
    recorder : of the topics
    """

    def __init__(self, config: Config, recorder: Recorder) -> None:
        self._recorder = recorder
        self._joint_topic = config.output.joint_states_topic
        self._truth: deque[bytes] = deque(maxlen=_TRUTH_KEPT)
        self._first_stamp: int | None = None
        self._reported: dict[str, str] = {}
        self._collisions: list[str] = []

    def handler(self, topic: str) -> Callable[[bytes], None] | None:
        """Function that the recorder calls with every message of a topic; None where only the newest one is used."""
        handlers = {
            DIAGNOSTICS[0]: self._diagnostics,
            topics.COLLISION.name: self._collision,
            topics.TRUE_FRICTION.name: self._truth.append,
        }
        return handlers.get(topic)

    @property
    def joint_samples(self) -> int:
        """Joint states recorded."""
        return self._recorder.counts[self._joint_topic]

    @property
    def estimates(self) -> int:
        """Estimates recorded."""
        return self._recorder.counts[topics.FRICTION.name]

    def state(self, cores: Mapping[str, float]) -> LiveState:
        """State from the newest messages; ``cores`` as in :class:`LiveState`."""
        friction = self._message(topics.FRICTION.name, JointState)
        names = tuple(friction.name) if friction is not None else ()
        phase = self._message(topics.CONTACT_PHASE.name, String)
        reported = self._reported
        return LiveState(
            joint_names=names,
            friction=_effort(friction, names),
            truth=self._truth_at_estimate(names),
            coulomb=self._newest_effort(topics.COULOMB, names),
            viscous=self._newest_effort(topics.VISCOUS, names),
            measured=self._newest_effort(topics.MEASURED, names),
            phase="" if phase is None else phase.data,
            elapsed=self._elapsed(),
            joint_samples=self.joint_samples,
            estimates=self.estimates,
            sent=int(reported.get("published", "0")),
            received=int(reported.get("received", "0")),
            behind=float(reported.get("behind", "0").removesuffix(" s")),
            waited=float(reported.get("waited", "0").removesuffix(" s")),
            latency=reported.get("latency", ""),
            collisions=tuple(self._collisions),
            cores=cores,
        )

    def _elapsed(self) -> float:
        newest = self._recorder.newest.get(self._joint_topic)
        if newest is None:
            return 0.0
        stamp = stamp_of(newest)
        if self._first_stamp is None:
            self._first_stamp = stamp
        return 1e-9 * (stamp - self._first_stamp)

    def _truth_at_estimate(self, names: tuple[str, ...]) -> FloatArray:
        """True friction at the stamp of the newest estimate: the simulator may be ahead of the estimator."""
        newest = self._recorder.newest.get(topics.FRICTION.name)
        if newest is None:
            return _effort(None, names)
        stamp, kept = stamp_of(newest), tuple(self._truth)
        place = bisect_left(kept, stamp, key=stamp_of)
        found = place < len(kept) and stamp_of(kept[place]) == stamp
        return _effort(deserialize_message(kept[place], JointState) if found else None, names)

    def _newest_effort(self, topic: topics.Topic, names: tuple[str, ...]) -> FloatArray:
        return _effort(self._message(topic.name, JointState), names)

    def _message(self, topic: str, message_type: Any) -> Any:
        raw = self._recorder.newest.get(topic)
        return None if raw is None else deserialize_message(raw, message_type)

    def _collision(self, raw: bytes) -> None:
        seconds = 0.0 if self._first_stamp is None else 1e-9 * (stamp_of(raw) - self._first_stamp)
        for status in deserialize_message(raw, DiagnosticArray).status:
            self._collisions.append(f"{seconds:.3f} s: {status.message}")

    def _diagnostics(self, raw: bytes) -> None:
        for status in deserialize_message(raw, DiagnosticArray).status:
            values = {item.key: item.value for item in status.values}
            if status.name.endswith(": samples"):
                self._reported.update(values)
            elif status.name.endswith(f": input {self._joint_topic}"):
                self._reported["received"] = values["received"]
            elif status.name.endswith(": estimates") and not values.get("processing p50", "nan").startswith("nan"):
                self._reported["latency"] = f"p50 {values['processing p50']}, p99 {values['processing p99']}"


def _effort(message: JointState | None, names: tuple[str, ...]) -> FloatArray:
    """Effort in the order of ``names``, (n,); NaN where there is none."""
    if message is None:
        return np.full(len(names), np.nan)
    effort = dict(zip(message.name, message.effort, strict=True))
    return np.array([effort.get(name, np.nan) for name in names])
