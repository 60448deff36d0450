"""The one path of a sample: attitude, contact phase, dynamics, base state, friction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from friction_estimator.base.attitude import RATE, SPECIFIC_FORCE, AttitudeEstimator
from friction_estimator.base.contact_phase import ContactPhaseDetector
from friction_estimator.base.odometry import Odometry
from friction_estimator.baselines.base_state import BaseStateEstimator
from friction_estimator.config import Config
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.estimation.motion.joint_motion import JointMotionFilter
from friction_estimator.estimation.motion.sensor_monitor import SensorNoiseMonitor
from friction_estimator.estimation.observers.observed_friction import ObservedFriction
from friction_estimator.estimation.two_stage.stage import TwoStageFriction
from friction_estimator.estimation.validity import Validity
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    BaseState,
    ContactPhase,
    Dynamics,
    FrictionEstimate,
    JointFriction,
    JointSample,
    LawEstimate,
    SensorCalibration,
    SensorFrame,
)

LEARNING_STAGES: dict[str, type[Any]] = {
    "kalman": KalmanFriction,
    "two_stage": TwoStageFriction,
}
"""Friction stages that identify law and errors of the sensors together, by the name of their observer."""
NUMERICAL_ERRORS = (ArithmeticError, ValueError)
"""What a computation raises that cannot go on, ``LinAlgError`` included, and a stage whose result is not finite."""

_TILT_FOUND_ANEW = (
    "gyroscope and accelerometer have contradicted each other for a second: the attitude filter restarts from "
    "the accelerometer; check units, axes and ranges of the IMU"
)


_friction_fields = attrgetter(*(item.name for item in fields(JointFriction)))
"""Reads the fields of a :class:`JointFriction`, which are the first of a :class:`FrictionEstimate`."""


class SensedFrame(NamedTuple):
    """Results for one frame of all stages before the friction stage."""

    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics
    base: BaseState


def has_effort(sample: JointSample | SensorFrame | FrictionEstimate) -> bool:
    """Whether the motor torques have been measured."""
    effort = sample.effort
    return not (effort.size == 0 or (math.isnan(effort[0]) and bool(np.isnan(effort).all())))


class VelocityEstimator:
    """Velocities of the joints from their positions alone, for drivers that publish none.

    The filter of joint motion finds noise and resolution of the positions as it does where velocities are measured.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``feet``
    joint_names : (n,)
    """

    def __init__(self, config: Config, joint_names: Sequence[str]) -> None:
        noise = config.sensors.without_velocity()
        self._monitor = SensorNoiseMonitor(noise, len(joint_names), len(config.feet))
        self._motion = JointMotionFilter(config.kalman, noise, joint_names)
        self._zero_velocity = np.zeros(len(joint_names))
        self._time, self._stamp_ns = 0.0, -1

    def step(self, frame: SensorFrame) -> SensorFrame:
        """The frame with velocities; begins anew with ``frame.dt == 0``, and after frames with velocities."""
        continues = frame.dt > 0.0 and frame.stamp_ns - self._stamp_ns == round(1e9 * frame.dt)
        dt, self._stamp_ns = frame.dt if continues else 0.0, frame.stamp_ns
        if not continues:
            self._monitor.reset()
        self._time += dt
        velocity = self._motion.step(frame.position, self._zero_velocity, dt).velocity
        frame = replace(frame, velocity=velocity, differentiated=True)
        if self._monitor.add(self._time, frame):
            self._motion.retune(self._monitor.noise, self._monitor.encoder_step)
        return frame


class FrictionStage(Protocol):
    """Interface of a friction stage: one estimate per frame, and identification of the law.

    A stage whose result is not finite raises ``FloatingPointError``. Before that it has restored valid parameters;
    :meth:`reset` restarts its filters.

    Attributes
    ----------
    frozen : True while identification pauses
    """

    frozen: bool

    @property
    def laws(self) -> JointLaws:
        """The friction laws of the joints, or of the motors that they share."""
        ...

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Friction of one frame, from the results of the stages before."""
        ...

    def reset(self) -> None:
        """Restart the filters; identified parameters stay."""
        ...

    def reset_to_prior(self) -> None:
        """Reset, and drop the identified parameters too."""
        ...

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters, to keep over a restart."""
        ...

    def set_sensor_fault(self, wrong: bool, wrong_for: float) -> None:
        """Note that readings of sensors are known to be wrong, for at most this time [s], or right again."""
        ...

    def sensor_calibration(self) -> SensorCalibration | None:
        """Constant errors of the sensors that the stage has found; None for a stage that does not look for them."""
        ...

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        ...


class Pipeline:
    """Sensor frames in, friction estimates out, one for one.

    A stage that fails restarts and uses the frame again. It fails when its result is not finite or a computation raises
    one of ``NUMERICAL_ERRORS``.

    With ``stages: friction`` attitude and contact phase are estimated, because the friction needs them, and the base
    state is NaN. With ``stages: base_state`` friction is NaN. What is estimated has the same numbers as with both.

    Parameters
    ----------
    config : the whole configuration
    urdf_xml : text of the URDF
    health : counters to update

    Attributes
    ----------
    robot, attitude, contact_phase, base_state, friction : the stages
    unknown_friction : friction of the joints in every estimate without friction
    validity : of the friction of each joint
    sensed : results of the stages before the friction for the newest frame; None before the first one
    """

    def __init__(self, config: Config, urdf_xml: str, health: Health | None = None) -> None:
        self._health = health or Health()
        self.robot = robot = RobotModel(config, urdf_xml)
        self.attitude = AttitudeEstimator(config.attitude, config.sensors, robot.rotation_imu_to_base)
        names = tuple(foot.support_name for foot in config.feet)
        self.contact_phase = ContactPhaseDetector(robot.weight, names)
        base_stage = Odometry if config.base_state.method == "odometry" else BaseStateEstimator
        self.base_state: Odometry | BaseStateEstimator = base_stage(config, robot)
        self.friction: FrictionStage = (
            LEARNING_STAGES[config.observer](config, robot, self._health)
            if config.observer in LEARNING_STAGES
            else ObservedFriction(config, robot)
        )
        self._has_friction = config.has_friction
        self._constant_base: BaseState | None = None
        if not config.has_base_state:
            self._constant_base = _unknown_base()
        elif not robot.base_dofs:
            self._constant_base = BaseState.at_rest()
        self.validity = Validity(self._health, robot.joint_names, robot.motors)
        self.unknown_friction = _unknown_friction(len(robot.joint_names), self.friction.laws.parameter_count)
        self.reset()

    def reset(self) -> None:
        """Restart all filters; identified parameters stay."""
        for stage in (self.attitude, self.contact_phase, self.base_state, self.friction):
            stage.reset()
        self._without_effort = False
        self.sensed: SensedFrame | None = None

    def step(self, frame: SensorFrame) -> FrictionEstimate:
        """Estimate of one frame; ``frame.dt == 0`` restarts the filters."""
        sensed = self.sense(frame)
        if self._has_friction and (not math.isnan(frame.effort[0]) or has_effort(frame)):
            if self._without_effort:  # the friction stage may not bridge the time without torques
                self.friction.reset()
            try:
                friction = self.friction.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
            except NUMERICAL_ERRORS as error:
                self._health.add_error_restart("friction filters", frame.stamp_ns, error)
                self.friction.reset()
                friction = self.friction.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
        else:
            friction = self.unknown_friction
        self._without_effort = friction is self.unknown_friction
        return self.estimate(frame, sensed, friction)

    def estimate(self, frame: SensorFrame, sensed: SensedFrame, friction: JointFriction) -> FrictionEstimate:
        """Estimate of a frame: friction of the joints, with the readings and the base state of the same frame."""
        return FrictionEstimate(
            *_friction_fields(friction),
            stamp_ns=frame.stamp_ns,
            position=frame.position,
            velocity=frame.velocity,
            effort=frame.effort,
            phase=sensed.phase,
            base=sensed.base,
            valid=self.validity.step(friction),
        )

    def sense(self, frame: SensorFrame) -> SensedFrame:
        """All stages before the friction; ``frame.dt == 0`` restarts the filters."""
        if frame.dt == 0.0:
            self.reset()
        try:
            attitude = self.attitude.step(frame.angular_velocity, frame.specific_force, frame.dt, frame.imu_fresh)
        except NUMERICAL_ERRORS as error:
            self._health.add_error_restart("attitude", frame.stamp_ns, error)
            self.attitude.reset()
            attitude = self.attitude.step(frame.angular_velocity, frame.specific_force, frame.dt, frame.imu_fresh)
        if self.attitude.contradicted:
            self._health.add_lasting_event("tilt", frame.stamp_ns, _TILT_FOUND_ANEW)
        phase = self.contact_phase.step(frame.wrenches, frame.wrench_fresh, frame.dt)
        rate, specific_force = attitude.buffer[RATE], attitude.buffer[SPECIFIC_FORCE]
        dynamics = self.robot.dynamics(frame.position, frame.velocity, rate, specific_force)
        try:
            base = self._constant_base or self.base_state.step(attitude, phase, dynamics, frame)
        except NUMERICAL_ERRORS as error:
            self._health.add_error_restart("base state", frame.stamp_ns, error)
            self.base_state.reset()
            base = self.base_state.step(attitude, phase, dynamics, frame)
        if self.robot.root:
            base = self.robot.state_of_root(base, dynamics)
        self.sensed = sensed = SensedFrame(attitude, phase, dynamics, base)
        return sensed


def _unknown_base() -> BaseState:
    """Base state that another process estimates."""
    vector, matrix, covariance = np.full(3, np.nan), np.full((3, 3), np.nan), np.full((6, 6), np.nan)
    return BaseState(vector, matrix, vector, vector, covariance, covariance)


def _unknown_friction(joints: int, parameters: int) -> JointFriction:
    """Friction without motor torques, or that another process estimates."""
    unknown, nothing = np.full(joints, np.nan), np.zeros(joints, dtype=bool)
    table = np.full((joints, parameters), np.nan)
    law = LawEstimate(
        parameters=table,
        parameters_sigma=table,
        coulomb=unknown,
        viscous=unknown,
        coulomb_sigma=unknown,
        viscous_sigma=unknown,
        coulomb_viscous_covariance=unknown,
        velocity_range=np.full((joints, 2), np.nan),
        known=nothing,
    )
    return JointFriction(
        friction=unknown,
        sigma=unknown,
        measured=nothing,
        model=unknown,
        model_sigma=unknown,
        external_torque=unknown,
        external_torque_sigma=unknown,
        nis=unknown,
        calibration_torque=unknown,
        disturbed=nothing,
        law=law,
    )
