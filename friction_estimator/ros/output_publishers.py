"""Publishers of the estimator node, and the guard that ends friction compensation with zero torque."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence

from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node

from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.outputs import OutputMessages
from friction_estimator.messages.topics import Topic, When
from friction_estimator.ros.middleware import FAST_OUTPUT, OUTPUT, message_class
from friction_estimator.types import FrictionEstimate

_DELIVERY = Duration(nanoseconds=200_000_000)  # longest wait for the delivery of the last torque
_CHECKS = 4  # of the clock during one compensation.timeout


class OutputPublishers:
    """One publisher for every topic of this configuration, and one for the base transform.

    Topics other than the friction and its compensation are serialized only while they have subscribers.

    Parameters
    ----------
    node : owner of the publishers
    config : stages and slow rate
    joint_names : (n) order of the estimates
    urdf_xml : axes of the joints, for the markers
    """

    def __init__(self, node: Node, config: Config, joint_names: Sequence[str], urdf_xml: str) -> None:
        has_transform = importlib.util.find_spec("tf2_msgs") is not None
        if config.has_base_state and not has_transform:
            node.get_logger().info(
                "tf2_msgs is not installed, so the base pose is published on base_state but not on /tf; "
                "install the ROS package tf2_msgs if you need /tf"
            )
        self._node = node
        self._messages = OutputMessages(config, joint_names, urdf_xml, has_transform)
        self.set_slow_rate = self._messages.set_slow_rate
        self.reset = self._messages.reset
        self._publishers = {
            topic.name: node.create_publisher(
                message_class(topic.type), topic.name, OUTPUT if topic.when is When.SLOW else FAST_OUTPUT
            )
            for topic in self._messages.topics
        }

    def publish(self, estimate: FrictionEstimate) -> None:
        """Publish the messages that are due with this estimate."""
        publishers = self._publishers
        for topic, message in self._messages.build(estimate, self._has_subscribers):
            publishers[topic.name].publish(message)

    def stop_compensation(self, stamp_ns: int) -> None:
        """Publish zero torque."""
        topic, message = self._messages.no_compensation(stamp_ns)
        self._publishers[topic.name].publish(message)

    def rivals(self) -> tuple[str, int]:
        """Full name of the topic of the friction, or of the base state, and its number of other publishers."""
        name: str = next(iter(self._publishers.values())).topic_name
        return name, self._node.count_publishers(name) - 1

    def destroy(self) -> None:
        """Destroy all publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)

    def await_delivery(self) -> None:
        """Wait a moment until the newest torque is delivered: at the end of a process undelivered messages are lost."""
        publisher = self._publishers.get(topics.COMPENSATION.name)
        if publisher is not None:
            publisher.wait_for_all_acked(_DELIVERY)

    def _has_subscribers(self, topic: Topic) -> bool:
        return bool(self._publishers[topic.name].get_subscription_count())


class CompensationGuard:
    """Publishes zero torque when no estimate has been published for ``compensation.timeout``.

    It uses the clock of the machine, because with ``use_sim_time`` a stopped clock would hold the last torque.

    Parameters
    ----------
    node : owner of the timer
    timeout : longest time between two torques [s]
    stop : publishes zero torque with a stamp [ns]
    """

    def __init__(self, node: Node, timeout: float, stop: Callable[[int], None]) -> None:
        self._timeout = timeout
        self._stop = stop
        self._stamp_ns: int | None = None
        self._published_at = 0.0
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._node, self._timer = node, node.create_timer(timeout / _CHECKS, self._check, clock=steady)

    def destroy(self) -> None:
        """Check no longer."""
        self._node.destroy_timer(self._timer)

    def published(self, stamp_ns: int) -> None:
        """Note that a torque with this stamp [ns] has been published."""
        self._stamp_ns, self._published_at = stamp_ns, time.monotonic()

    def end(self) -> None:
        """Publish zero torque now, unless the last torque was zero; its stamp continues that of the last torque."""
        if self._stamp_ns is not None:
            silence_ns = int(1e9 * (time.monotonic() - self._published_at))
            stamp_ns, self._stamp_ns = self._stamp_ns + silence_ns, None
            self._stop(stamp_ns)

    def _check(self) -> None:
        if time.monotonic() - self._published_at > self._timeout:
            self.end()
