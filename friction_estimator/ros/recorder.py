"""Live topics into a rosbag2, without decoding them: what the recorder node and the demo use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.config import Config
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.message_types import message_class
from friction_estimator.ros.qos import RECORDER

DIAGNOSTICS = ("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")

PERIOD = 0.01
"""Pause between two calls of :meth:`Recorder.take` [s]: a callback for each message would cost twice as much."""

BagClock = Callable[[bytes, int], int]
"""Time [ns] under which a message is recorded, from its serialized form and its time of arrival [ns]."""


def arrival_clock(raw: bytes, arrival_ns: int) -> int:
    """Record under the time of arrival, as ``ros2 bag record`` does."""
    return arrival_ns


class HeaderClock:
    """Record under header stamps: for a simulation, whose time may run slower than the wall clock.

    Messages without a header get the stamp of the message that arrived before them.
    """

    def __init__(self) -> None:
        self._newest = 0

    def of_type(self, type_name: str) -> BagClock:
        """Clock for messages of this type."""
        return self._before if type_name in (topics.STRING, DIAGNOSTICS[1]) else self._own

    def _own(self, raw: bytes, arrival_ns: int) -> int:
        self._newest = stamp_of(raw)
        return self._newest

    def _before(self, raw: bytes, arrival_ns: int) -> int:
        return self._newest or arrival_ns


class _Recorded(NamedTuple):
    """A topic, and how its messages are taken and written."""

    topic: str
    full_name: str
    type_name: str
    message_type: Any
    take: Callable[[Any, bool], tuple[bytes, dict[str, int]] | None]
    clock: BagClock
    also: Callable[[bytes], None] | None


class Recorder:
    """Writes every message of some topics into a bag, when :meth:`take` is called.

    The subscriptions belong to a second node that no executor serves: taking what has come a hundred times a second
    costs half as much as a callback for each message.

    Parameters
    ----------
    node : resolves the names of the topics
    writer : an open bag

    Attributes
    ----------
    counts : messages written so far, by the name under which the topic was recorded
    newest : last serialized message of each topic that has sent one
    """

    def __init__(self, node: Node, writer: BagWriter) -> None:
        self._node = node
        self._listener = Node(
            f"{node.get_name()}_topics",
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._writer = writer
        self._recorded: list[_Recorded] = []
        self.counts: dict[str, int] = {}
        self.newest: dict[str, bytes] = {}

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
        self.counts[topic] = 0
        full_name, message_type = self._node.resolve_topic_name(topic), message_class(type_name)
        self._writer.add_topic(full_name, type_name)
        subscription = self._listener.create_subscription(message_type, full_name, _ignore, qos, raw=True)
        take = subscription.handle.take_message
        self._recorded.append(_Recorded(topic, full_name, type_name, message_type, take, clock, also))

    def take(self) -> None:
        """Write all messages that have come since the last call, in the order of their arrival."""
        arrived: list[tuple[int, bytes, _Recorded]] = []
        for recorded in self._recorded:
            take, message_type = recorded.take, recorded.message_type
            while (taken := take(message_type, True)) is not None:
                arrived.append((taken[1]["received_timestamp"], taken[0], recorded))
        arrived.sort(key=itemgetter(0))
        write_raw, counts, newest = self._writer.write_raw, self.counts, self.newest
        for arrival_ns, raw, recorded in arrived:
            write_raw(recorded.full_name, recorded.type_name, recorded.clock(raw, arrival_ns), raw)
            counts[recorded.topic] += 1
            newest[recorded.topic] = raw
            if recorded.also is not None:
                recorded.also(raw)

    def close(self) -> None:
        """Write what has come, and end the subscriptions."""
        self.take()
        self._recorded.clear()
        self._listener.destroy_node()


def _ignore(raw: bytes) -> None:
    """Callback of a subscription whose messages are taken."""


def input_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the sensor topics."""
    inputs = [(config.output.joint_states_topic, topics.JOINT_STATE)]
    if not config.robot.fixed_base:
        inputs.append((config.imu.topic, topics.IMU))
    if config.needs_commands:
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
