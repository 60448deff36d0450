"""Publishers of the estimator node, collisions, and the guard that ends friction compensation with zero torque."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point, Pose, PoseArray, Quaternion, WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node

from friction_estimator.collision.detector import CollisionDetector, Thresholds
from friction_estimator.collision.reaction import FootstepPlanner
from friction_estimator.config import Config
from friction_estimator.errors import ConfigError
from friction_estimator.learning.external_torque import MobNetEstimate, WholeBodyTorque, base_wrench, wrench_at_foot
from friction_estimator.linear_algebra import quaternion_from_matrix
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import StampedTemplate
from friction_estimator.messages.outputs import OutputMessages
from friction_estimator.messages.topics import Topic, When
from friction_estimator.robot.model import RobotModel
from friction_estimator.ros.middleware import FAST_OUTPUT, OUTPUT, diagnostic_status, message_class
from friction_estimator.types import FloatArray, FrictionEstimate

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
        """End all topics."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)

    def await_delivery(self) -> None:
        """Wait a moment until the newest torque is delivered: at the end of a process undelivered messages are lost."""
        publisher = self._publishers.get(topics.COMPENSATION.name)
        if publisher is not None:
            publisher.wait_for_all_acked(_DELIVERY)

    def _has_subscribers(self, topic: Topic) -> bool:
        return bool(self._publishers[topic.name].get_subscription_count())


class CollisionPublisher:
    """Detects collisions in the estimates; publishes and logs each of them, and its wrench while it lasts.

    Parameters
    ----------
    node : owner of the publishers
    robot : the model that the estimator has
    thresholds : of this robot
    sole_frames : (k) of the feet
    has_wrench : whether the estimates are those of MOB-Net, which have the wrench on the base
    reaction : ``none``, or which footsteps are published after a collision
    step_length : of these footsteps [m]

    Raises
    ------
    ConfigError
        When this robot, or this source of the external torque, gives no such footsteps.
    """

    def __init__(
        self,
        node: Node,
        robot: RobotModel,
        thresholds: Thresholds,
        sole_frames: Sequence[str],
        has_wrench: bool,
        reaction: str,
        step_length: float,
    ) -> None:
        if reaction == "compliant" and not has_wrench:
            raise ConfigError(
                "collision_reaction = 'compliant' needs the wrench on the base, which only a MOB-Net gives: set "
                "mob_net_model to a model file, or set collision_reaction: rewind, which repeats the last footsteps"
            )
        self._node, self._detector = node, CollisionDetector(robot, thresholds)
        self._sole_frames, self._reaction = sole_frames, reaction
        self._publisher = node.create_publisher(DiagnosticArray, topics.COLLISION.name, OUTPUT)
        names = (topics.COLLISION_WRENCH.name, topics.LIMB_WRENCH.name) if has_wrench else ()
        self._wrenches = [node.create_publisher(WrenchStamped, name, FAST_OUTPUT) for name in names]
        self._planner = FootstepPlanner(robot, step_length) if reaction != "none" else None
        self._footsteps = [node.create_publisher(PoseArray, topics.FOOTSTEPS.name, OUTPUT)] if self._planner else []

    def step(self, estimate: FrictionEstimate) -> None:
        """Use one estimate."""
        if self._planner is not None:
            self._planner.step(estimate)
        found = self._detector.step(estimate)
        if found and self._planner is not None:
            self._react(self._planner, estimate)
        for collision in found:
            status = diagnostic_status(
                f"{self._node.get_name()}: collision",
                DiagnosticStatus.WARN,
                str(collision),
                {name: getattr(collision, name) for name in ("limb", "joint", "signal", "value", "threshold")},
            )
            message = DiagnosticArray(status=[status])
            message.header.stamp = _stamp(collision.stamp_ns)
            self._publisher.publish(message)
            self._node.get_logger().warning(f"at {1e-9 * collision.stamp_ns:.3f} s: {collision}")
        if self._detector.hit and self._wrenches and isinstance(estimate, MobNetEstimate):
            self._publish_wrenches(estimate.stamp_ns, estimate.whole_body)

    def destroy(self) -> None:
        """End the topics."""
        for publisher in (self._publisher, *self._wrenches, *self._footsteps):
            self._node.destroy_publisher(publisher)

    def _react(self, planner: FootstepPlanner, estimate: FrictionEstimate) -> None:
        """Publish footsteps, unless no foot stands or the wrench is not known."""
        footsteps = None
        if self._reaction == "rewind":
            footsteps = planner.rewind(estimate)
        elif isinstance(estimate, MobNetEstimate) and (wrench := base_wrench(estimate.whole_body)) is not None:
            footsteps = planner.compliant(estimate, wrench[:3])
        if footsteps is None:
            return
        poses = zip(footsteps.rotation, footsteps.position, strict=True)
        message = PoseArray(poses=[_pose(*pose) for pose in poses])
        message.header.stamp = _stamp(estimate.stamp_ns)
        message.header.frame_id = self._sole_frames[footsteps.standing]
        for publisher in self._footsteps:
            publisher.publish(message)

    def _publish_wrenches(self, stamp_ns: int, torque: WholeBodyTorque) -> None:
        wrench = base_wrench(torque)
        if wrench is None:
            return
        of_base, of_limb = self._wrenches
        of_base.publish(StampedTemplate((6,), topics.BASE_FRAME).serialize(stamp_ns, wrench))
        for foot in self._detector.hit:
            if foot >= 0:
                at_foot = wrench_at_foot(wrench, torque.dynamics, foot)
                of_limb.publish(StampedTemplate((6,), self._sole_frames[foot]).serialize(stamp_ns, at_foot))


def _stamp(stamp_ns: int) -> Time:
    seconds, nanoseconds = divmod(stamp_ns, 1_000_000_000)
    return Time(sec=seconds, nanosec=nanoseconds)


def _pose(rotation: FloatArray, position: FloatArray) -> Pose:
    x, y, z = position.tolist()
    w, a, b, c = quaternion_from_matrix(np.ascontiguousarray(rotation)).tolist()
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=w, x=a, y=b, z=c))


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
