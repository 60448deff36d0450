"""Friction estimates to serialized messages: the same for the live node and for a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate, serialize_string
from friction_estimator.messages.markers import FrictionMarkers
from friction_estimator.messages.odometry import OdometryTemplate, TransformTemplate
from friction_estimator.messages.schedule import OutputSchedule
from friction_estimator.messages.topics import Topic, When
from friction_estimator.types import FrictionEstimate

ODOM_FRAME = "odom"
"""World of the base state: it starts under the robot and drifts, hence not ``map`` (REP-105)."""

_SCALARS = {
    topics.MEASURED: "measured",
    topics.MODEL: "model",
    topics.COULOMB: "coulomb",
    topics.VISCOUS: "viscous",
    topics.COULOMB_SIGMA: "coulomb_sigma",
    topics.VISCOUS_SIGMA: "viscous_sigma",
    topics.EXTERNAL_TORQUE: "external_torque",
    topics.EXTERNAL_TORQUE_SIGMA: "external_torque_sigma",
}
"""Attribute of a :class:`FrictionEstimate` that leaves as the effort on a topic."""


class OutputMessages:
    """Builds what leaves with an estimate.

    Parameters
    ----------
    config : slow rate
    joint_names : (n) order of the estimates
    markers : draws the markers for rviz; None leaves that topic out
    base_frame : name of the base link
    transform : whether the base pose also leaves on /tf

    Attributes
    ----------
    topics : those that :meth:`build` can return
    """

    def __init__(
        self,
        config: Config,
        joint_names: Sequence[str],
        markers: FrictionMarkers | None = None,
        base_frame: str = "base_link",
        transform: bool = False,
    ) -> None:
        absent = () if markers else (topics.FRICTION_MARKERS,)
        self.topics: tuple[Topic, ...] = tuple(topic for topic in topics.output_topics(config) if topic not in absent)
        if transform and config.has_base_state:
            self.topics += (topics.BASE_TRANSFORM,)
        self._secondary = [topic for topic in self.topics if topic.when is not When.SAMPLE]
        self._markers = markers
        self._has_friction = config.has_friction
        self._schedule = OutputSchedule(config.output.slow_rate)
        self._friction = JointStateTemplate(base_frame, joint_names, with_state=True)
        self._scalar = JointStateTemplate(base_frame, joint_names)
        self._odometry = OdometryTemplate(ODOM_FRAME, base_frame)
        self._transform = TransformTemplate(ODOM_FRAME, base_frame)
        self._no_torque = np.zeros(len(joint_names))

    def reset(self) -> None:
        """Let every topic leave with the next estimate."""
        self._schedule.reset()

    def build(
        self, estimate: FrictionEstimate, wanted: Callable[[Topic], object] = lambda topic: True
    ) -> list[tuple[Topic, bytes]]:
        """Messages that leave with this estimate, as (topic, serialized message).

        Parameters
        ----------
        estimate : what they hold
        wanted : called with each due topic but friction and compensation; false: it is left out
        """
        stamp_ns = estimate.stamp_ns
        built: list[tuple[Topic, bytes]] = []
        if self._has_friction:
            friction = self._friction.serialize(stamp_ns, estimate.friction, estimate.position, estimate.velocity)
            built.append((topics.FRICTION, friction))
            if wanted(topics.SIGMA):
                built.append((topics.SIGMA, self._scalar.serialize(stamp_ns, estimate.sigma)))
        if estimate.compensation is not None:
            built.append((topics.COMPENSATION, self._scalar.serialize(stamp_ns, estimate.compensation)))
        due = self._schedule.due(stamp_ns, (estimate.phase.name, estimate.measured.tobytes()))
        if len(due) > 1:
            for topic in self._secondary:
                if topic.when in due and wanted(topic):
                    built.append((topic, self._serialize(topic, estimate)))
        return built

    def no_compensation(self, stamp_ns: int) -> tuple[Topic, bytes]:
        """The end of friction compensation: zero torque for every joint, as (topic, serialized message)."""
        return topics.COMPENSATION, self._scalar.serialize(stamp_ns, self._no_torque)

    def _serialize(self, topic: Topic, estimate: FrictionEstimate) -> bytes:
        if (attribute := _SCALARS.get(topic)) is not None:
            return self._scalar.serialize(estimate.stamp_ns, getattr(estimate, attribute))
        if topic is topics.CONTACT_PHASE:
            return serialize_string(estimate.phase.name)
        if topic is topics.FRICTION_MARKERS and self._markers is not None:
            return self._markers.build(estimate)
        base = estimate.base
        if topic is topics.BASE_TRANSFORM:
            return self._transform.serialize(estimate.stamp_ns, base)
        return self._odometry.serialize(
            estimate.stamp_ns,
            base.position_base_in_world,
            base.rotation_base_to_world,
            base.linear_velocity,
            base.angular_velocity,
            base.pose_covariance,
            base.twist_covariance,
        )
