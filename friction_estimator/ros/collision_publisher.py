"""Publisher of collisions, of their wrenches and of footsteps; imported only by a node that detects collisions."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point, Pose, PoseArray, Quaternion, WrenchStamped
from rclpy.node import Node

from friction_estimator.collision.detector import CollisionDetector, Thresholds
from friction_estimator.collision.reaction import FootstepPlanner
from friction_estimator.config import Config
from friction_estimator.errors import ConfigError
from friction_estimator.learning.external_torque import MobNetEstimate, WholeBodyTorque, base_wrench, wrench_at_foot
from friction_estimator.linear_algebra import quaternion_from_matrix
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import StampedTemplate
from friction_estimator.robot.model import RobotModel
from friction_estimator.ros.middleware import FAST_OUTPUT, OUTPUT, diagnostic_status
from friction_estimator.types import FloatArray, FrictionEstimate


class CollisionPublisher:
    """Detects collisions in the estimates; publishes and logs each of them, and its wrench while it lasts.

    Parameters
    ----------
    node : owner of the publishers
    config : that of the estimator
    urdf_xml : text of the URDF of the estimator
    thresholds : of this robot
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
        config: Config,
        urdf_xml: str,
        thresholds: Thresholds,
        has_wrench: bool,
        reaction: str,
        step_length: float,
    ) -> None:
        if reaction == "compliant" and not has_wrench:
            raise ConfigError(
                "collision_reaction = 'compliant' needs the wrench on the base, which only a MOB-Net gives: set "
                "mob_net_model to a model file, or set collision_reaction: rewind, which repeats the last footsteps"
            )
        robot = RobotModel(config, urdf_xml)
        self._node, self._detector = node, CollisionDetector(robot, thresholds)
        self._sole_frames, self._reaction = [foot.frame for foot in config.feet], reaction
        self._publisher = node.create_publisher(DiagnosticArray, topics.COLLISION.name, OUTPUT)
        names = (topics.COLLISION_WRENCH.name, topics.LIMB_WRENCH.name) if has_wrench else ()
        self._wrenches = [node.create_publisher(WrenchStamped, name, FAST_OUTPUT) for name in names]
        self._planner = FootstepPlanner(robot, step_length) if reaction != "none" else None
        self._footsteps = [node.create_publisher(PoseArray, topics.FOOTSTEPS.name, OUTPUT)] if self._planner else []

    def step(self, estimate: FrictionEstimate) -> None:
        """Detect collisions in one estimate, publish and log them."""
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
        """Destroy the publishers."""
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
