"""Ground truth of a simulator to serialized messages."""

from __future__ import annotations

from collections.abc import Sequence

from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.config import Config
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate, StampedTemplate, serialize_string
from friction_estimator.messages.odometry import OdometryTemplate
from friction_estimator.messages.outputs import ODOM_FRAME
from friction_estimator.messages.schedule import OutputSchedule
from friction_estimator.messages.topics import Topic, When
from friction_estimator.types import GroundTruth


class TruthMessages:
    """Serializes the ground truth of one simulated robot.

    Parameters
    ----------
    config : feet and slow rate
    joint_names : (n) order of the friction torques
    base_frame : name of the base link

    Attributes
    ----------
    topics : those that :meth:`build` can return
    """

    def __init__(self, config: Config, joint_names: Sequence[str], base_frame: str = "base_link") -> None:
        feet = config.feet
        self.topics = topics.truth_topics(foot.name for foot in feet)
        names = tuple(foot.support_name for foot in feet)
        self._phase_name = ContactPhaseDetector(config.contact_phase, 1.0, names).name
        self._schedule = OutputSchedule(config.output.slow_rate)
        self._torque = JointStateTemplate(base_frame, joint_names)
        self._odometry = OdometryTemplate(ODOM_FRAME, base_frame)
        self._wrenches = [(topics.true_wrench(foot.name), StampedTemplate(6, foot.frame)) for foot in feet]

    def build(self, truth: GroundTruth) -> list[tuple[Topic, bytes]]:
        """Messages that leave with this sample, as (topic, serialized message)."""
        stamp_ns = truth.stamp_ns
        due = self._schedule.due(stamp_ns, truth.contact.tobytes())
        built = [(topics.TRUE_FRICTION, self._torque.serialize(stamp_ns, truth.friction))]
        if When.CHANGE in due:
            built.append((topics.TRUE_CONTACT_PHASE, serialize_string(self._phase_name(truth.contact))))
        if When.SLOW in due:
            base = self._odometry.serialize(
                stamp_ns,
                truth.position_base_in_world,
                truth.rotation_base_to_world,
                truth.linear_velocity,
                truth.angular_velocity,
            )
            built.append((topics.TRUE_EXTERNAL_TORQUE, self._torque.serialize(stamp_ns, truth.external_torque)))
            built.append((topics.TRUE_BASE_STATE, base))
            for (topic, template), wrench in zip(self._wrenches, truth.wrenches, strict=True):
                built.append((topic, template.serialize(stamp_ns, wrench)))
        return built
