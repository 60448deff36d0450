"""Live topics into a rosbag2, without decoding them: what the recorder node and the demo use."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable

from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.bags.writer import BagWriter
from friction_estimator.core.config import Config
from friction_estimator.messages import topics
from friction_estimator.ros.message_types import message_class
from friction_estimator.ros.qos import RECORDER

DIAGNOSTICS = ("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")

BagClock = Callable[[bytes], int]
"""Time [ns] under which a serialized message is recorded."""

_CDR_STAMP = struct.Struct("<iI")
_CDR_PREAMBLE = 4


def arrival_clock(raw: bytes) -> int:
    """Record under the time of arrival, as ``ros2 bag record`` does."""
    return time.time_ns()


class StampClock:
    """Record under header stamps: for a simulation, whose time may run slower than the wall clock.

    Messages without a header get the newest stamp that this clock has seen.
    """

    def __init__(self) -> None:
        self._newest = 0

    def own(self, raw: bytes) -> int:
        """Stamp of a message that starts with a header."""
        sec, nanosec = _CDR_STAMP.unpack_from(raw, _CDR_PREAMBLE)
        self._newest = int(sec) * 1_000_000_000 + int(nanosec)
        return self._newest

    def newest(self, raw: bytes) -> int:
        """Stamp for a message without a header."""
        return self._newest or time.time_ns()

    def of_type(self, type_name: str) -> BagClock:
        """Clock for messages of this type."""
        return self.newest if type_name in (topics.STRING, DIAGNOSTICS[1]) else self.own


class Recorder:
    """Writes every message of some topics into a bag.

    Parameters
    ----------
    node : owner of the subscriptions
    writer : an open bag

    Attributes
    ----------
    counts : messages written so far, by the name under which the topic was recorded
    """

    def __init__(self, node: Node, writer: BagWriter) -> None:
        self._node = node
        self._writer = writer
        self.counts: dict[str, int] = {}

    def record(
        self,
        topic: str,
        type_name: str,
        qos: QoSProfile = RECORDER,
        clock: BagClock = arrival_clock,
        also: Callable[[bytes], None] | None = None,
    ) -> None:
        """Record a topic.

        Parameters
        ----------
        topic : relative or absolute name
        type_name : ``package/msg/Name``
        qos : reliable for our own publishers, best effort for those of others
        clock : time under which a message is recorded
        also : called with every serialized message
        """
        counts, write_raw = self.counts, self._writer.write_raw
        counts[topic] = 0
        full_name = self._node.resolve_topic_name(topic)
        self._writer.add_topic(full_name, type_name)

        def receive(raw: bytes) -> None:
            write_raw(full_name, type_name, clock(raw), raw)
            counts[topic] += 1
            if also is not None:
                also(raw)

        self._node.create_subscription(message_class(type_name), topic, receive, qos, raw=True)


def input_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the sensor topics."""
    inputs = [(config.output.joint_states_topic, topics.JOINT_STATE)]
    if not config.robot.fixed_base:
        inputs.append((config.imu.topic, topics.IMU))
    if config.compensation.needs_commands:
        inputs.append((config.compensation.desired_topic, topics.JOINT_STATE))
    return inputs + [(foot.wrench_topic, topics.WRENCH) for foot in config.feet]


def result_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of all that the estimator says; markers are for the eye alone."""
    return _names(topic for topic in topics.output_topics(config) if topic is not topics.FRICTION_MARKERS)


def truth_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of what only a simulator knows."""
    return _names(topics.truth_topics(foot.name for foot in config.feet))


def _names(items: Iterable[topics.Topic]) -> list[tuple[str, str]]:
    return [(topic.name, topic.type) for topic in items]
