"""Recorder of live topics into a rosbag2 without deserialization, for the demo and the launch argument ``record``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.config import Config
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.node_parameters import RECORDER_FIELDS
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.messages.description import RunDescription
from friction_estimator.ros.middleware import RECORDER, SENSOR_INPUT, SubscriptionOnDemand, message_class
from friction_estimator.ros.parameters import find_robot_description, read_parameters
from friction_estimator.ros.spin import Running, run

DIAGNOSTICS = (topics.DIAGNOSTICS_TOPIC, topics.DIAGNOSTICS)
COLLISION = (topics.COLLISION.name, topics.COLLISION.type)

PERIOD = 0.01
"""Pause between two calls of :meth:`Recorder.take` [s]."""

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
        return self._before if type_name in (topics.STRING, topics.DIAGNOSTICS) else self._own

    def _own(self, raw: bytes, arrival_ns: int) -> int:
        self._newest = stamp_of(raw)
        return self._newest

    def _before(self, raw: bytes, arrival_ns: int) -> int:
        return self._newest or arrival_ns


class _Recorded(NamedTuple):
    """A recorded topic: names, type, subscription, clock, and a further handler."""

    topic: str
    full_name: str
    type_name: str
    subscription: SubscriptionOnDemand
    clock: BagClock
    also: Callable[[bytes], None] | None


class Recorder:
    """Writes every message of some topics into a bag, when :meth:`take` is called.

    No executor serves the subscriptions, because fetching all new messages a hundred times a second costs half as much
    as a callback for each message.

    Parameters
    ----------
    node : owns the subscriptions
    writer : an open bag; None: messages are only counted and kept

    Attributes
    ----------
    counts : messages written so far, by the name of the topic as given to :meth:`record`
    newest : newest serialized message by topic
    """

    def __init__(self, node: Node, writer: BagWriter | None = None) -> None:
        self._node = node
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
        qos : reliable for publishers of this package, best effort for others
        clock : time under which a message is recorded
        also : called with every serialized message
        """
        self.counts[topic] = 0
        full_name = self._node.resolve_topic_name(topic)
        if self._writer is not None:
            self._writer.add_topic(full_name, type_name)
        no_events = SubscriptionEventCallbacks(use_default_callbacks=False)
        subscription = SubscriptionOnDemand(self._node, message_class(type_name), topic, qos, no_events)
        self._recorded.append(_Recorded(topic, full_name, type_name, subscription, clock, also))

    def take(self) -> None:
        """Write all messages that have arrived since the last call, in the order of their arrival."""
        arrived = [(at, raw, recorded) for recorded in self._recorded for at, raw in recorded.subscription.fetch_all()]
        arrived.sort(key=itemgetter(0))
        counts, newest = self.counts, self.newest
        for arrival_ns, raw, recorded in arrived:
            if self._writer is not None:
                at = recorded.clock(raw, arrival_ns)
                self._writer.write_raw(recorded.full_name, recorded.type_name, at, raw)
            counts[recorded.topic] += 1
            newest[recorded.topic] = raw
            if recorded.also is not None:
                recorded.also(raw)

    def close(self) -> None:
        """Write all messages that have arrived, and end the subscriptions."""
        self.take()
        for recorded in self._recorded:
            recorded.subscription.destroy()
        self._recorded.clear()


def input_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the sensor topics."""
    return _names(topics.input_topics(config))


def result_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the outputs of the estimator, without the markers for rviz."""
    return _names(topic for topic in topics.output_topics(config) if topic is not topics.FRICTION_MARKERS)


def truth_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the ground-truth topics."""
    return _names(topics.truth_topics(foot.name for foot in config.feet))


def _names(items: Iterable[topics.Topic]) -> list[tuple[str, str]]:
    return [(topic.name, topic.type) for topic in items]


class RecorderNode(Node):
    """Records sensors, results, truth and diagnostics until the process ends.

    Raises
    ------
    ConfigError, RobotModelError
        When a parameter or the URDF cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("recorder")
        self._config, own = read_parameters(self, RECORDER_FIELDS)
        self._output, self._inputs_reliable = own["record_to"], own["inputs_reliable"]
        if not self._output:
            raise ConfigError("set the parameter 'record_to' to the path of the rosbag2 to write")
        self._urdf_xml = find_robot_description("", self._config.robot.urdf)

    def play(self, executor: Executor, running: Running) -> None:
        """Record until the process shall end."""
        custom_data = {}
        if self._urdf_xml:  # without a URDF at the start the bag has no description
            custom_data = RunDescription.of(self._config, self._urdf_xml, "", "recorded live").to_custom_data()
        with BagWriter(self._output, custom_data=custom_data) as writer:
            recorder = Recorder(self, writer)
            for topic, type_name in input_topics(self._config):
                recorder.record(topic, type_name, RECORDER if self._inputs_reliable else SENSOR_INPUT)
            for topic, type_name in [*result_topics(self._config), *truth_topics(self._config), DIAGNOSTICS, COLLISION]:
                recorder.record(topic, type_name)
            self.get_logger().info(f"recording to {writer.path}")
            while running():
                executor.spin_once(timeout_sec=PERIOD)
                recorder.take()
            recorder.close()
        self.get_logger().info(f"{writer.message_count} messages in {writer.path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node as a process."""
    return run(RecorderNode, arguments, RecorderNode.play)
