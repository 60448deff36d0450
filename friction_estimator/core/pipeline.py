"""The one path of a sample: attitude, contact phase, dynamics, base state, friction."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.base.attitude import AttitudeEstimator
from friction_estimator.core.base.base_state import BaseStateEstimator, resting_base
from friction_estimator.core.base.contact_phase import ContactPhaseDetector
from friction_estimator.core.base.odometry import Odometry
from friction_estimator.core.config import Config
from friction_estimator.core.friction_stage import FrictionStage
from friction_estimator.core.kalman import KalmanFriction
from friction_estimator.core.observed_friction import ObservedFriction
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
    Attitude,
    BaseState,
    ContactPhase,
    Dynamics,
    FrictionEstimate,
    JointFriction,
    JointSample,
    SensorFrame,
)

_FRICTION = tuple(field.name for field in dataclasses.fields(JointFriction))


@dataclass(frozen=True, slots=True)
class SensedFrame:
    """What all stages before the friction have made of a frame."""

    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics
    base: BaseState


def has_effort(sample: JointSample | SensorFrame | FrictionEstimate) -> bool:
    """Whether the motor torques have been measured."""
    effort = sample.effort
    return not (effort.size == 0 or (math.isnan(effort[0]) and bool(np.isnan(effort).all())))


class Pipeline:
    """Sensor frames in, friction estimates out, one for one.

    Parameters
    ----------
    config : the whole configuration
    urdf_xml : text of the URDF
    """

    def __init__(self, config: Config, urdf_xml: str) -> None:
        self.robot = robot = RobotModel(config, urdf_xml)
        self.attitude = AttitudeEstimator(config.attitude, config.sensors, robot.rotation_imu_to_base)
        names = tuple(foot.support_name for foot in config.feet)
        self.contact_phase = ContactPhaseDetector(config.contact_phase, robot.weight, names)
        base_stage = Odometry if config.base_state.method == "odometry" else BaseStateEstimator
        self.base_state: Odometry | BaseStateEstimator = base_stage(config, robot.imu_position_in_base)
        self.friction: FrictionStage = (
            KalmanFriction(config, robot) if config.observer == "kalman" else ObservedFriction(config, robot)
        )
        self._unknown = _unknown_friction(len(robot.joint_names), self.friction.laws.parameter_count)
        self.reset()

    def reset(self) -> None:
        """Restart all filters; identified parameters stay."""
        for stage in (self.attitude, self.contact_phase, self.base_state, self.friction):
            stage.reset()
        self._without_effort = False

    def step(self, frame: SensorFrame) -> FrictionEstimate:
        """Use one frame; ``frame.dt == 0`` restarts the filters."""
        sensed = self.sense(frame)
        if has_effort(frame):
            if self._without_effort:  # the friction stage may not bridge the time without torques
                self.friction.reset()
            friction = self.friction.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
        else:
            friction = self._unknown
        self._without_effort = friction is self._unknown
        return estimate_of(frame, sensed.phase, sensed.base, friction)

    def sense(self, frame: SensorFrame) -> SensedFrame:
        """All stages before the friction; ``frame.dt == 0`` restarts the filters."""
        if frame.dt == 0.0:
            self.reset()
        attitude = self.attitude.step(frame.angular_velocity, frame.specific_force, frame.dt, frame.imu_fresh)
        phase = self.contact_phase.step(frame.wrenches, frame.wrench_fresh, frame.dt)
        dynamics = self.robot.update(frame.position, frame.velocity, attitude.angular_velocity, attitude.specific_force)
        base = self.base_state.step(attitude, phase, dynamics, frame) if self.robot.base_dofs else resting_base()
        return SensedFrame(attitude, phase, dynamics, base)


def estimate_of(frame: SensorFrame, phase: ContactPhase, base: BaseState, friction: JointFriction) -> FrictionEstimate:
    """What leaves the pipeline."""
    return FrictionEstimate(
        stamp_ns=frame.stamp_ns,
        position=frame.position,
        velocity=frame.velocity,
        effort=frame.effort,
        phase=phase,
        base=base,
        **{name: getattr(friction, name) for name in _FRICTION},
    )


def _unknown_friction(joints: int, parameters: int) -> JointFriction:
    """What is known of friction without motor torques: nothing."""
    unknown, nothing = np.full(joints, np.nan), np.zeros(joints, dtype=bool)
    shapes = {name: unknown for name in _FRICTION}
    shapes.update(measured=nothing, disturbed=nothing)
    shapes.update(dict.fromkeys(("parameters", "parameters_sigma"), np.full((joints, parameters), np.nan)))
    return JointFriction(**shapes)
