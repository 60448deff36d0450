"""Everything that leaves the estimator node with an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rclpy.duration import Duration
from rclpy.node import Node

from friction_estimator.core.config import Config
from friction_estimator.core.types import FrictionEstimate
from friction_estimator.messages import topics
from friction_estimator.messages.markers import FrictionMarkers, joint_axes
from friction_estimator.messages.outputs import OutputMessages
from friction_estimator.messages.topics import When
from friction_estimator.ros.message_types import RclpyMessageTypes, message_class
from friction_estimator.ros.qos import FAST_OUTPUT, OUTPUT
from friction_estimator.ros.transform import BaseTransformBroadcaster

_LAST_WORD = Duration(nanoseconds=200_000_000)


class OutputPublishers:
    """One publisher for every topic that this configuration has, and the base transform.

    Markers cost as much as all other topics together, so they are built only while somebody listens.

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
        self._types = RclpyMessageTypes()
        self._publishers = {
            topic.name: node.create_publisher(
                message_class(topic.type), topic.name, OUTPUT if topic.when is When.SLOW else FAST_OUTPUT
            )
            for topic in topics.output_topics(config)
        }
        self._messages = OutputMessages(self._types, config, joint_names)
        self._markers = FrictionMarkers(self._types, joint_axes(urdf_xml, joint_names))
        self._transform = BaseTransformBroadcaster(node)

    def change(self, name: str, value: float) -> None:
        """Follow a parameter that changed at run time: the rate of the slow topics."""
        section, key = name.split(".")
        self._config = replace(self._config, **{section: replace(getattr(self._config, section), **{key: value})})
        self._messages = OutputMessages(self._types, self._config, self._joint_names)

    def reset(self) -> None:
        """Let every topic leave with the next estimate."""
        self._messages.reset()

    def publish(self, estimate: FrictionEstimate) -> None:
        """Publish what is due with this estimate."""
        publishers = self._publishers
        for name, message in self._messages.build(estimate):
            publishers[name].publish(message)
            if name == topics.BASE_STATE.name:
                self._transform.send(message)
                self._publish_markers(estimate)

    def stop_compensation(self, stamp_ns: int) -> None:
        """Publish zero torque."""
        name, message = self._messages.no_compensation(stamp_ns)
        self._publishers[name].publish(message)

    def await_delivery(self) -> None:
        """Wait a moment until the newest compensation has arrived: a process that ends takes with it what has not."""
        publisher = self._publishers.get(topics.COMPENSATION.name)
        if publisher is not None:
            publisher.wait_for_all_acked(_LAST_WORD)

    def _publish_markers(self, estimate: FrictionEstimate) -> None:
        publisher = self._publishers[topics.FRICTION_MARKERS.name]
        if publisher.get_subscription_count():
            publisher.publish(self._markers.build(estimate))
