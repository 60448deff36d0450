"""The URDF of the robot: from a parameter, a file or a topic; and a copy of it for rviz's Effort display."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind
from std_msgs.msg import String

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.resources import find_urdf, read_urdf
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.ros.middleware import LATCHED

TOPIC = "robot_description"


def find_robot_description(text: str, file: str) -> str:
    """URDF from the parameters, empty when neither is set.

    Parameters
    ----------
    text : parameter ``robot_description``
    file : parameter ``robot.urdf``

    Raises
    ------
    RobotModelError
        When the file or the text is not a URDF.
    """
    if text:
        parse_urdf(text, f"in the parameter {TOPIC}")
        return text
    return read_urdf(find_urdf(file, (Path.cwd(),))) if file else ""


def await_robot_description(node: Node, start: Callable[[str], None]) -> None:
    """Call ``start(urdf_xml)`` with the first usable message on ``robot_description``; log the errors in others."""
    node.get_logger().info(
        f"waiting for the URDF on {node.resolve_topic_name(TOPIC)}; it may also be set with the parameter robot.urdf"
    )

    def receive(message: String) -> None:
        try:
            parse_urdf(message.data, f"on {subscription.topic_name}")
            start(message.data)
        except FrictionEstimatorError as error:
            node.get_logger().error(f"{error}; waiting for another message")
            return
        node.destroy_subscription(subscription)

    def mismatch(event: Any) -> None:
        node.get_logger().error(
            f"a publisher of {subscription.topic_name} offers another QoS "
            f"({qos_policy_name_from_kind(event.last_policy_kind)}), so its URDF does not arrive: publish it transient "
            "local, as robot_state_publisher does, or set the parameter robot.urdf"
        )

    events = SubscriptionEventCallbacks(incompatible_qos=mismatch)
    subscription = node.create_subscription(String, TOPIC, receive, LATCHED, event_callbacks=events)


def friction_urdf(urdf_xml: str, effort_fraction: float) -> str:
    """Scale the effort limit of every joint in a URDF.

    rviz draws every effort relative to the effort limit of its joint. Friction is about a hundredth of the limit, so it
    is visible with reduced limits only.

    Parameters
    ----------
    urdf_xml : text of a URDF
    effort_fraction : new limit divided by old limit, such as 0.01

    Raises
    ------
    RobotModelError
        When the text is not XML.
    """
    robot = parse_urdf(urdf_xml)
    for limit in robot.iterfind("joint/limit"):
        limit.set("effort", repr(float(limit.get("effort", "0")) * effort_fraction))
    return ElementTree.tostring(robot, encoding="unicode")
