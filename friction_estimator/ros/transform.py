"""The estimated base pose on /tf, where the message type of tf is installed.

tf2_ros is not needed: a transform broadcaster is one publisher. The type ``tf2_msgs/TFMessage`` comes with every apt
installation of ROS 2, but not with the wheels of a pip-only one; there nothing is published.
"""

from __future__ import annotations

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.ros.message_types import message_class


class BaseTransformBroadcaster:
    """Publishes the pose of ``base_state`` as a transform.

    Parameters
    ----------
    node : owner of the publisher
    """

    def __init__(self, node: Node) -> None:
        self._publisher = None
        try:
            transforms = message_class("tf2_msgs/msg/TFMessage")
        except ImportError:
            node.get_logger().info("tf2_msgs is not installed: the base pose is on base_state, but not on /tf")
            return
        self._publisher = node.create_publisher(transforms, "/tf", QoSProfile(depth=100))
        self._transform = TransformStamped()
        self._message = transforms(transforms=[self._transform])

    def send(self, odometry: Odometry) -> None:
        """Publish the transform of one odometry message."""
        if self._publisher is None:
            return
        pose = odometry.pose.pose
        self._transform.header = odometry.header
        self._transform.child_frame_id = odometry.child_frame_id
        translation = self._transform.transform.translation
        translation.x, translation.y, translation.z = pose.position.x, pose.position.y, pose.position.z
        self._transform.transform.rotation = pose.orientation
        self._publisher.publish(self._message)
