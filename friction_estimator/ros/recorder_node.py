"""Recorder of live topics into a rosbag2 without deserialization, for the demo and the launch argument ``record``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.node_parameters import RECORDER_FIELDS
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.messages.recording import RunDescription
from friction_estimator.messages.topics import Topic
from friction_estimator.ros.middleware import RECORDER, SENSOR_INPUT, SubscriptionOnDemand, message_class
from friction_estimator.ros.parameters import find_robot_description, read_parameters
from friction_estimator.ros.spin import Running

TAKE_PERIOD = 0.01
"""Pause between two calls of :meth:`Recorder.take` [s]."""


class HeaderClock:
    """Times [ns] under which messages are recorded: the newest header stamp; a simulation may be slower than the clock.

    So the messages of a recording are in the order of their times, as readers of an MCAP without index expect.
    """

    def __init__(self) -> None:
        self._newest = 0

    def time(self, topic: Topic, raw: bytes, arrival_ns: int) -> int:
        """Time of a serialized message that arrived at a time [ns]."""
        if topic.type in (topics.STRING, topics.DIAGNOSTICS):
            return self._newest or arrival_ns
        self._newest = max(self._newest, stamp_of(raw))
        return self._newest


class _Recorded(NamedTuple):
    """A recorded topic, its full name, its subscription, its clock and a further handler."""

    topic: Topic
    full_name: str
    subscription: SubscriptionOnDemand
    clock: HeaderClock | None
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
    counts : messages written so far, by topic
    newest : newest serialized message by topic
    """

    def __init__(self, node: Node, writer: BagWriter | None = None) -> None:
        self._node = node
        self._writer = writer
        self._recorded: list[_Recorded] = []
        self._early: list[tuple[int, bytes, _Recorded]] = []
        self.counts: dict[str, int] = {}
        self.newest: dict[str, bytes] = {}

    def record(
        self,
        recorded: Iterable[Topic],
        qos: QoSProfile = RECORDER,
        clock: HeaderClock | None = None,
        handlers: Mapping[str, Callable[[bytes], None]] = MappingProxyType({}),
    ) -> None:
        """Record topics.

        Parameters
        ----------
        recorded : their names are relative or absolute
        qos : reliable for publishers of this package, best effort for others
        clock : time under which a message is recorded; None: that of its arrival, as ``ros2 bag record`` does
        handlers : functions that get every serialized message of a topic, by its name
        """
        no_events = SubscriptionEventCallbacks(use_default_callbacks=False)
        for topic in recorded:
            self.counts[topic.name] = 0
            full_name = self._node.resolve_topic_name(topic.name)
            if self._writer is not None:
                self._writer.add_topic(full_name, topic.type)
            source = SubscriptionOnDemand(self._node, message_class(topic.type), topic.name, qos, no_events)
            self._recorded.append(_Recorded(topic, full_name, source, clock, handlers.get(topic.name)))

    def take(self) -> None:
        """Write all messages that have arrived before this call, in the order of their arrival.

        Those that arrive during the call wait for the next one: topics are fetched one after the other.
        """
        now, arrived, self._early = time.time_ns(), self._early, []
        for recorded in self._recorded:
            for at, raw in recorded.subscription.fetch_all():
                (arrived if at <= now else self._early).append((at, raw, recorded))
        arrived.sort(key=itemgetter(0))
        counts, newest = self.counts, self.newest
        for arrival_ns, raw, recorded in arrived:
            if self._writer is not None:
                at = arrival_ns if recorded.clock is None else recorded.clock.time(recorded.topic, raw, arrival_ns)
                self._writer.write_raw(recorded.full_name, recorded.topic.type, at, raw)
            counts[recorded.topic.name] += 1
            newest[recorded.topic.name] = raw
            if recorded.also is not None:
                recorded.also(raw)
        if self._writer is not None:
            self._writer.save(now=False)

    def close(self) -> None:
        """Write all messages that have arrived, and end the subscriptions."""
        self.take()
        self.take()  # what has arrived during the first call
        for recorded in self._recorded:
            recorded.subscription.destroy()
        self._recorded.clear()


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
            custom_data = RunDescription.from_config(self._config, self._urdf_xml, "", "recorded live").to_custom_data()
        with BagWriter(self._output, custom_data=custom_data) as writer:
            recorder = Recorder(self, writer)
            config, input_qos = self._config, RECORDER if self._inputs_reliable else SENSOR_INPUT
            recorder.record(topics.input_topics(config), input_qos)
            recorder.record((*topics.result_topics(config), *topics.truth_topics(config)))
            recorder.record((topics.NODE_STATUS, topics.COLLISION))
            self.get_logger().info(f"recording to {writer.path}")
            while running():
                executor.spin_once(timeout_sec=TAKE_PERIOD)
                recorder.take()
            recorder.close()
        self.get_logger().info(f"{writer.message_count} messages in {writer.path}")
