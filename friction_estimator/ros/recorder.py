"""Live topics into a rosbag2, without decoding them: what the recorder node and the demo use."""

from __future__ import annotations

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


class Recorder:
    """Writes every message of some topics into a bag, stamped with the time of its arrival.

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
        self, topic: str, type_name: str, qos: QoSProfile = RECORDER, also: Callable[[bytes], None] | None = None
    ) -> None:
        """Record a topic.

        Parameters
        ----------
        topic : relative or absolute name
        type_name : ``package/msg/Name``
        qos : reliable for our own publishers, best effort for those of others
        also : called with every serialized message
        """
        counts, write_raw, now = self.counts, self._writer.write_raw, time.time_ns
        counts[topic] = 0
        full_name = self._node.resolve_topic_name(topic)
        self._writer.add_topic(full_name, type_name)

        def receive(raw: bytes) -> None:
            write_raw(full_name, type_name, now(), raw)
            counts[topic] += 1
            if also is not None:
                also(raw)

        self._node.create_subscription(message_class(type_name), topic, receive, qos, raw=True)


def input_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of the sensor topics."""
    inputs = [(config.output.joint_states_topic, topics.JOINT_STATE)]
    if not config.robot.fixed_base:
        inputs.append((config.imu.topic, topics.IMU))
    return inputs + [(foot.wrench_topic, topics.WRENCH) for foot in config.feet]


def result_topics(config: Config) -> list[tuple[str, str]]:
    """Names and types of all that the estimator says, and of the truth that a simulator adds."""
    own: Iterable[topics.Topic] = (*topics.OUTPUTS, *topics.truth_topics(foot.name for foot in config.feet))
    return [(topic.name, topic.type) for topic in own if topic is not topics.FRICTION_MARKERS]
