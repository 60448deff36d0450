"""The printed chain: an observer measures friction, recursive least squares learns the law, one of them is believed.

    frame ─► observer ─► measured friction ─► recursive least squares ─► law
                              │                                          │
                              └────────► fusion: measured, else the law ◄┘

(Hashlamon & Erbatur 2014, sections 5 and 6.) Any observer of :mod:`friction_estimator.core.observers` will do.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.core.config import Config
from friction_estimator.core.friction.identified import IdentifiedParameters
from friction_estimator.core.friction.identifier import FrictionIdentifier, ModelledFriction
from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.observers import make_observer
from friction_estimator.core.observers.momentum import MomentumObserver
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    JointFriction,
    MeasuredFriction,
    SensorFrame,
)


class ObservedFriction:
    """Observer, identifier and fusion.

    Parameters
    ----------
    config : ``observer`` and its section, ``identifier``, ``momentum``, ``sensors``
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self.observer = make_observer(config, robot)
        self.momentum = (
            self.observer if isinstance(self.observer, MomentumObserver) else MomentumObserver(config, robot)
        )
        self.identifier = FrictionIdentifier(config.identifier, robot.joint_names, robot.motors)
        self._limb = robot.limb
        self._learn_in_all_phases = config.identifier.phases == "all"
        self._on_a_limb = robot.limb.any(axis=0)
        self._no_calibration = np.zeros(len(robot.joint_names))
        self._never_disturbed = np.zeros(len(robot.joint_names), dtype=bool)

    @property
    def laws(self) -> JointLaws:
        """The friction laws of the joints."""
        return self.identifier.laws

    @property
    def frozen(self) -> bool:
        """True while nothing is learned."""
        return self.identifier.frozen

    @frozen.setter
    def frozen(self, value: bool) -> None:
        self.identifier.frozen = value

    def reset(self) -> None:
        """Restart the observers; identified parameters stay."""
        self.observer.reset()
        self.momentum.reset()

    def forget(self) -> None:
        """Reset, and drop the identified parameters too."""
        self.reset()
        self.identifier.forget()

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        return self.identifier.identified

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from saved parameters; raises ConfigError when they do not fit."""
        self.identifier.restore(identified)

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Measure, learn, and say what is believed."""
        measured = self.observer.step(frame, attitude, phase, dynamics)
        residual = measured if self.momentum is self.observer else self.momentum.step(frame, attitude, phase, dynamics)
        identifier = self.identifier
        regressor = identifier.regressor(frame.velocity, frame.effort)
        delayed = self.observer.filter(regressor, frame.dt)
        identifier.learn(delayed, measured.friction, measured.noise_sigma, measured.available & self._may_learn(phase))
        model = identifier.predict(regressor)
        friction, sigma = fuse(measured, model, identifier.lag_variance(regressor, delayed))
        external = self._external_torque(residual, regressor, delayed, frame.dt)
        return JointFriction(
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
            consistency=identifier.consistency,
            calibration_torque=self._no_calibration,
            disturbed=self._never_disturbed,
        )

    def _may_learn(self, phase: ContactPhase) -> BoolArray:
        """Joints whose parameters may adapt now: those of standing limbs, and those of no limb at all, (n,)."""
        if self._learn_in_all_phases:
            return np.ones(self._on_a_limb.size, dtype=bool)
        return np.logical_or(self._limb[phase.contact].any(axis=0), ~self._on_a_limb)

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
