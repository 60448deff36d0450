"""Everything that leaves the estimator node with an estimate."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace

from rclpy.duration import Duration
from rclpy.node import Node

from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.outputs import OutputMessages
from friction_estimator.messages.topics import Topic, When
from friction_estimator.ros.message_types import message_class
from friction_estimator.ros.qos import FAST_OUTPUT, OUTPUT
from friction_estimator.types import FrictionEstimate

_LAST_WORD = Duration(nanoseconds=200_000_000)


class OutputPublishers:
    """One publisher for every topic that this configuration has, and one for the base transform.

    What is neither the friction nor its compensation is serialized only while somebody subscribes to it.

    Parameters
    ----------
    node : owner of the publishers
    config : slow rate
    joint_names : (n) order of the estimates
    urdf_xml : where the joints are, for the markers
    """

    def __init__(self, node: Node, config: Config, joint_names: Sequence[str], urdf_xml: str) -> None:
        self._config = config
        self._joint_names = tuple(joint_names)
        self._urdf_xml = urdf_xml
        self._has_transform = importlib.util.find_spec("tf2_msgs") is not None
        if config.has_base_state and not self._has_transform:
            node.get_logger().info("tf2_msgs is not installed: the base pose is on base_state, but not on /tf")
        self._messages = self._make_messages()
        self._publishers = {
            topic.name: node.create_publisher(
                message_class(topic.type), topic.name, OUTPUT if topic.when is When.SLOW else FAST_OUTPUT
            )
            for topic in self._messages.topics
        }

    def change(self, name: str, value: float) -> None:
        """Follow a parameter that changed at run time: the rate of the slow topics."""
        section, key = name.split(".")
        self._config = replace(self._config, **{section: replace(getattr(self._config, section), **{key: value})})
        self._messages = self._make_messages()

    def reset(self) -> None:
        """Let every topic leave with the next estimate."""
        self._messages.reset()

    def publish(self, estimate: FrictionEstimate) -> None:
        """Publish what is due with this estimate."""
        publishers = self._publishers
        for topic, message in self._messages.build(estimate, self._has_subscribers):
            publishers[topic.name].publish(message)

    def stop_compensation(self, stamp_ns: int) -> None:
        """Publish zero torque."""
        topic, message = self._messages.no_compensation(stamp_ns)
        self._publishers[topic.name].publish(message)

    def await_delivery(self) -> None:
        """Wait a moment until the newest compensation has arrived: a process that ends takes with it what has not."""
        publisher = self._publishers.get(topics.COMPENSATION.name)
        if publisher is not None:
            publisher.wait_for_all_acked(_LAST_WORD)

    def _make_messages(self) -> OutputMessages:
        return OutputMessages(self._config, self._joint_names, self._urdf_xml, transform=self._has_transform)

    def _has_subscribers(self, topic: Topic) -> bool:
        return bool(self._publishers[topic.name].get_subscription_count())
