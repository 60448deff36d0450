"""Friction estimates to messages: the same for the live node and for a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.types import FloatArray, FrictionEstimate
from friction_estimator.messages import topics
from friction_estimator.messages.markers import FrictionMarkers
from friction_estimator.messages.odometry import make_odometry
from friction_estimator.messages.schedule import OutputSchedule
from friction_estimator.messages.topics import When
from friction_estimator.messages.types import MessageTypes, make_header

ODOM_FRAME = "odom"
"""World of the base state: it starts under the robot and drifts, hence not ``map`` (REP-105)."""


class OutputMessages:
    """Builds what leaves with an estimate.

    Parameters
    ----------
    types : message classes
    config : slow rate
    joint_names : (n) order of the estimates
    markers : draws the markers for rviz; None leaves that topic out
    base_frame : name of the base link
    """

    def __init__(
        self,
        types: MessageTypes,
        config: Config,
        joint_names: Sequence[str],
        markers: FrictionMarkers | None = None,
        base_frame: str = "base_link",
    ) -> None:
        self._types = types
        self._joint_names = list(joint_names)
        self._markers = markers
        self._base_frame = base_frame
        self._topics = topics.output_topics(config)
        self._schedule = OutputSchedule(config.output.slow_rate)

    @property
    def topics(self) -> tuple[topics.Topic, ...]:
        """The topics that :meth:`build` can return."""
        without = () if self._markers else (topics.FRICTION_MARKERS,)
        return tuple(topic for topic in self._topics if topic not in without)

    def reset(self) -> None:
        """Let every topic leave with the next estimate."""
        self._schedule.reset()

    def build(self, estimate: FrictionEstimate) -> list[tuple[str, Any]]:
        """Messages that leave with this estimate, as (relative topic name, message)."""
        header = make_header(self._types, estimate.stamp_ns, self._base_frame)
        state = estimate.phase.name, estimate.measured.tobytes()
        due = self._schedule.due(estimate.stamp_ns, state)
        friction = self._joint_state(header, estimate.friction, estimate.position, estimate.velocity)
        built = [
            (topics.FRICTION.name, friction),
            (topics.SIGMA.name, self._joint_state(header, estimate.sigma)),
        ]
        if estimate.compensation is not None:
            built.append((topics.COMPENSATION.name, self._joint_state(header, estimate.compensation)))
        if When.CHANGE in due:
            built += self._changing(header, estimate)
        if When.SLOW in due:
            built += self._slow(header, estimate)
        if When.DISPLAY in due and self._markers is not None:
            built.append((topics.FRICTION_MARKERS.name, self._markers.build(estimate)))
        return built

    def no_compensation(self, stamp_ns: int) -> tuple[str, Any]:
        """The end of friction compensation: zero torque for every joint, as (relative topic name, message)."""
        header = make_header(self._types, stamp_ns, self._base_frame)
        return topics.COMPENSATION.name, self._joint_state(header, np.zeros(len(self._joint_names)))

    def _changing(self, header: Any, estimate: FrictionEstimate) -> list[tuple[str, Any]]:
        measured = self._joint_state(header, estimate.measured.astype(float))
        phase = self._types.make(topics.STRING, data=estimate.phase.name)
        return [(topics.MEASURED.name, measured), (topics.CONTACT_PHASE.name, phase)]

    def _slow(self, header: Any, estimate: FrictionEstimate) -> list[tuple[str, Any]]:
        scalars = (
            (topics.MODEL, estimate.model),
            (topics.COULOMB, estimate.coulomb),
            (topics.VISCOUS, estimate.viscous),
            (topics.COULOMB_SIGMA, estimate.coulomb_sigma),
            (topics.VISCOUS_SIGMA, estimate.viscous_sigma),
            (topics.EXTERNAL_TORQUE, estimate.external_torque),
            (topics.EXTERNAL_TORQUE_SIGMA, estimate.external_torque_sigma),
        )
        built = [(topic.name, self._joint_state(header, values)) for topic, values in scalars]
        built.append((topics.BASE_STATE.name, self._base_state(estimate)))
        return built

    def _base_state(self, estimate: FrictionEstimate) -> Any:
        base = estimate.base
        return make_odometry(
            self._types,
            estimate.stamp_ns,
            (ODOM_FRAME, self._base_frame),
            base.position_base_in_world,
            base.rotation_base_to_world,
            base.linear_velocity,
            base.angular_velocity,
            base.pose_covariance,
            base.twist_covariance,
        )

    def _joint_state(
        self, header: Any, effort: FloatArray, position: FloatArray | None = None, velocity: FloatArray | None = None
    ) -> Any:
        fields = {"effort": self._types.floats(effort)}
        if position is not None and velocity is not None:
            fields.update(position=self._types.floats(position), velocity=self._types.floats(velocity))
        return self._types.make(topics.JOINT_STATE, header=header, name=self._joint_names, **fields)
