"""Where the URDF comes from: the parameter ``robot_description``, the file ``robot.urdf``, or the topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rclpy.node import Node
from std_msgs.msg import String

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.resources import check_urdf, find_urdf, read_urdf
from friction_estimator.ros.qos import LATCHED

TOPIC = "robot_description"


def find_robot_description(text: str, file: str) -> str:
    """URDF from the parameters, empty when they name none.

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
        check_urdf(text, f"in the parameter {TOPIC}")
        return text
    return read_urdf(find_urdf(file, (Path.cwd(),))) if file else ""


def await_robot_description(node: Node, start: Callable[[str], None]) -> None:
    """Call ``start(urdf_xml)`` with the first usable message on ``robot_description``; name the reason for others."""
    node.get_logger().info(f"waiting for the URDF on {node.resolve_topic_name(TOPIC)}")

    def receive(message: String) -> None:
        try:
            check_urdf(message.data, f"on {subscription.topic_name}")
            start(message.data)
        except FrictionEstimatorError as error:
            node.get_logger().error(f"{error}; waiting for another one")
            return
        node.destroy_subscription(subscription)

    subscription = node.create_subscription(String, TOPIC, receive, LATCHED)
