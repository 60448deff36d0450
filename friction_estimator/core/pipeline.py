"""The one path of a sample: attitude, contact phase, dynamics, base state, observer, identifier, fusion."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.base.attitude import AttitudeEstimator
from friction_estimator.core.base.base_state import BaseStateEstimator, resting_base
from friction_estimator.core.base.contact_phase import ContactPhaseDetector
from friction_estimator.core.config import Config
from friction_estimator.core.friction.identifier import FrictionIdentifier, ModelledFriction
from friction_estimator.core.observers import make_observer
from friction_estimator.core.observers.momentum import MomentumObserver
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
    BoolArray,
    ContactPhase,
    FloatArray,
    FrictionEstimate,
    MeasuredFriction,
    SensorFrame,
)


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
        self.base_state = BaseStateEstimator(config.base_state, robot.imu_position_in_base, len(config.feet))
        self.observer = make_observer(config, robot)
        self.momentum = (
            self.observer if isinstance(self.observer, MomentumObserver) else MomentumObserver(config, robot)
        )
        self.identifier = FrictionIdentifier(config.identifier, robot.joint_names)
        self._learn_in_all_phases = config.identifier.phases == "all"
        self._on_a_limb = robot.limb.any(axis=0)
        self.reset()

    def reset(self) -> None:
        """Restart all filters; identified parameters stay."""
        for stage in (self.attitude, self.contact_phase, self.base_state, self.observer, self.momentum):
            stage.reset()

    def step(self, frame: SensorFrame) -> FrictionEstimate:
        """Use one frame; ``frame.dt == 0`` restarts the filters."""
        if frame.dt == 0.0:
            self.reset()
        attitude = self.attitude.step(frame.angular_velocity, frame.specific_force, frame.dt, frame.imu_fresh)
        phase = self.contact_phase.step(frame.wrenches, frame.wrench_fresh, frame.dt)
        dynamics = self.robot.update(frame.position, frame.velocity, attitude.angular_velocity, attitude.specific_force)
        base = (
            self.base_state.step(attitude, phase, dynamics, frame.wrenches, frame.wrench_fresh, frame.dt)
            if self.robot.base_dofs
            else resting_base()
        )
        measured = self.observer.step(frame, attitude, phase, dynamics)
        residual = measured if self.momentum is self.observer else self.momentum.step(frame, attitude, phase, dynamics)

        identifier = self.identifier
        regressor = identifier.regressor(frame.velocity, frame.effort)
        delayed = self.observer.filter(regressor, frame.dt)
        identifier.learn(delayed, measured.friction, measured.noise_sigma, measured.available & self._may_learn(phase))
        model = identifier.predict(regressor)
        friction, sigma = fuse(measured, model, identifier.lag_variance(regressor, delayed))
        external = self._external_torque(residual, regressor, delayed, frame.dt)
        return FrictionEstimate(
            stamp_ns=frame.stamp_ns,
            position=frame.position,
            velocity=frame.velocity,
            effort=frame.effort,
            friction=friction,
            sigma=sigma,
            measured=measured.available,
            model=model.friction,
            model_sigma=model.sigma,
            parameters=identifier.parameters,
            parameters_sigma=identifier.parameters_sigma,
            coulomb=identifier.coulomb,
            viscous=identifier.viscous,
            coulomb_sigma=identifier.coulomb_sigma,
            viscous_sigma=identifier.viscous_sigma,
            external_torque=external.friction,
            external_torque_sigma=external.sigma,
            phase=phase,
            base=base,
        )

    def _may_learn(self, phase: ContactPhase) -> BoolArray:
        """Joints whose parameters may adapt now: those of standing limbs, and those of no limb at all, (n,)."""
        if self._learn_in_all_phases:
            return np.ones(self._on_a_limb.size, dtype=bool)
        return np.logical_or(self.robot.limb[phase.contact].any(axis=0), ~self._on_a_limb)

    def _external_torque(
        self, residual: MeasuredFriction, regressor: FloatArray, delayed: FloatArray, dt: float
    ) -> ModelledFriction:
        """Momentum residual that neither foot wrenches nor the law explain, (n,) [N m]; NaN while unknown."""
        if self.momentum is not self.observer:
            delayed = self.momentum.filter(regressor, dt)
        law = self.identifier.predict(delayed)
        return ModelledFriction(law.friction - residual.friction, np.hypot(law.sigma, residual.sigma))


def fuse(
    measured: MeasuredFriction, model: ModelledFriction, lag_variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Measured friction where there is one, else the law (Hashlamon & Erbatur 2014, sections 5 and 6).

    Parameters
    ----------
    lag_variance : (n,) how far the observer's low-pass is behind, according to the law, squared [(N m)^2]

    Returns
    -------
    friction, sigma : (n,), (n,) [N m]
    """
    measured_sigma = np.sqrt(measured.sigma**2 + lag_variance)
    friction = np.where(measured.available, measured.friction, model.friction)
    return friction, np.where(measured.available, measured_sigma, model.sigma)
