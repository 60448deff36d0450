"""What only a simulator knows, to messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from friction_estimator.core.base.contact_phase import ContactPhaseDetector
from friction_estimator.core.config import Config
from friction_estimator.core.types import FloatArray, GroundTruth
from friction_estimator.messages import topics
from friction_estimator.messages.odometry import make_odometry
from friction_estimator.messages.outputs import ODOM_FRAME
from friction_estimator.messages.schedule import OutputSchedule
from friction_estimator.messages.topics import When
from friction_estimator.messages.types import MessageTypes, make_header, make_wrench


class TruthMessages:
    """Builds the ground-truth messages of one simulated robot.

    Parameters
    ----------
    types : message classes
    config : feet and slow rate
    joint_names : (n) order of the friction torques
    base_frame : name of the base link
    """

    def __init__(
        self, types: MessageTypes, config: Config, joint_names: Sequence[str], base_frame: str = "base_link"
    ) -> None:
        self._types = types
        self._feet = config.feet
        self._joint_names = list(joint_names)
        self._base_frame = base_frame
        names = tuple(foot.support_name for foot in config.feet)
        self._phase_name = ContactPhaseDetector(config.contact_phase, 1.0, names).name
        self._schedule = OutputSchedule(config.output.slow_rate)

    @property
    def topics(self) -> tuple[topics.Topic, ...]:
        """The topics that :meth:`build` can return."""
        return topics.truth_topics(foot.name for foot in self._feet)

    def build(self, truth: GroundTruth) -> list[tuple[str, Any]]:
        """Messages that leave with this sample, as (relative topic name, message)."""
        due = self._schedule.due(truth.stamp_ns, truth.contact.tobytes())
        built = [(topics.TRUE_FRICTION.name, self._torque(truth.stamp_ns, truth.friction))]
        if When.CHANGE in due:
            phase = self._types.make(topics.STRING, data=self._phase_name(truth.contact))
            built.append((topics.TRUE_CONTACT_PHASE.name, phase))
        if When.SLOW in due:
            external = self._torque(truth.stamp_ns, truth.external_torque)
            built.append((topics.TRUE_EXTERNAL_TORQUE.name, external))
            built.append((topics.TRUE_BASE_STATE.name, self._base_state(truth)))
            for foot, wrench in zip(self._feet, truth.wrenches, strict=True):
                message = make_wrench(self._types, truth.stamp_ns, foot.frame, wrench)
                built.append((topics.true_wrench(foot.name).name, message))
        return built

    def _torque(self, stamp_ns: int, torque: FloatArray) -> Any:
        return self._types.make(
            topics.JOINT_STATE,
            header=make_header(self._types, stamp_ns, self._base_frame),
            name=self._joint_names,
            effort=self._types.floats(torque),
        )

    def _base_state(self, truth: GroundTruth) -> Any:
        return make_odometry(
            self._types,
            truth.stamp_ns,
            (ODOM_FRAME, self._base_frame),
            truth.position_base_in_world,
            truth.rotation_base_to_world,
            truth.linear_velocity,
            truth.angular_velocity,
        )
