"""The published chain: an observer measures friction, recursive least squares identifies the law, both are fused.

    frame ─► observer ─► measured friction ─► recursive least squares ─► law
                              │                                          │
                              └────────► fusion: measured, else the law ◄┘

(Hashlamon & Erbatur 2014, sections 5 and 6.) Any observer of :mod:`friction_estimator.estimation.observers` fits.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.base.contact_phase import add_collisions_of_feet
from friction_estimator.config import Config
from friction_estimator.estimation.observers import make_observer
from friction_estimator.estimation.observers.identifier import FrictionIdentifier, IdentifierState, predict_friction
from friction_estimator.estimation.observers.momentum import MomentumObserver
from friction_estimator.estimation.visited_velocities import VISIT_PERIOD
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.linear_algebra import is_bounded, unbounded_columns
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    JointFriction,
    Matrix,
    MeasuredFriction,
    SensorFrame,
)


@entry_point
def fuse(
    state: IdentifierState,
    to_joints: Matrix,
    regressor: Matrix,
    delayed: Matrix,
    residual_regressor: Matrix,
    lags: bool,
    measured: MeasuredFriction,
    residual: MeasuredFriction,
    rows: Matrix,
) -> bool:
    """Measured friction where there is one, else the law (Hashlamon & Erbatur 2014, sections 5 and 6).

    The lag of an observer adds to its variance: the change of friction since then by the law, squared, the variance of
    that change, and all that the law does not represent, since nothing shows how fast that part changes.

    Parameters
    ----------
    state, to_joints : identified laws of the motors; (n, n) torques at the joints from those of the motors
    regressor, delayed, residual_regressor : (n, p) at present, as late as the observer, as late as the residual
    lags : False for an observer without lag
    measured, residual : of the observer and of the momentum observer
    rows : (6, n) output, first fields of :class:`JointFriction`; the external torque is without foot wrenches and law

    Returns
    -------
    False where friction, model or a sigma of them is not finite
    """
    friction, sigma, model, model_sigma, external, external_sigma = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    predict_friction(state, to_joints, regressor, model, model_sigma)
    predict_friction(state, to_joints, residual_regressor, external, external_sigma)
    behind, behind_sigma = friction, sigma  # until the last loop overwrites them
    if lags:
        predict_friction(state, to_joints, regressor - delayed, behind, behind_sigma)
    else:
        behind[:] = 0.0
        behind_sigma[:] = 0.0
    for i in range(friction.size):
        if measured.available[i]:
            sigma[i] = math.sqrt(measured.sigma[i] ** 2 + behind[i] ** 2 + behind_sigma[i] ** 2)
            friction[i] = measured.friction[i]
        else:
            friction[i], sigma[i] = model[i], model_sigma[i]
        external[i] -= residual.friction[i]
        external_sigma[i] = math.hypot(external_sigma[i], residual.sigma[i])
    return is_bounded(friction) and is_bounded(sigma) and is_bounded(model) and is_bounded(model_sigma)


class ObservedFriction:
    """Observer, identifier and fusion.

    Parameters
    ----------
    config : ``observer`` and its section, ``identifier``, ``momentum``, ``sensors``
    robot : the model that also made the :class:`Dynamics`

    Attributes
    ----------
    laws : the friction laws of the motors
    restore : function that starts from saved parameters; raises ConfigError when they do not fit
    frozen : True while identification pauses
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self.observer = make_observer(config, robot)
        self.momentum = (
            self.observer if isinstance(self.observer, MomentumObserver) else MomentumObserver(config, robot)
        )
        self.identifier = FrictionIdentifier(config.identifier, robot.joint_names, robot.motors)
        self.laws, self.restore, self.frozen = self.identifier.laws, self.identifier.restore, False
        self._motors, self._names, self._not_visited = robot.motors, robot.joint_names, 0.0
        self._velocity_std = np.full(len(robot.joint_names), config.sensors.velocity_std)
        self._limb = robot.limb
        self._learn_in_all_phases = config.identifier.phases == "all"
        self._all = ~robot.in_unmeasured_contact
        self._excludes_some = not self._all.all()
        self._learning_joints: dict[bytes, BoolArray] = {}
        self._no_calibration = np.zeros(len(robot.joint_names))
        self._never_disturbed = np.zeros(len(robot.joint_names), dtype=bool)
        self._gain = config.momentum.gain
        self._foot_collision_torque: FloatArray = np.full(len(robot.joint_names), np.nan)

    def reset(self) -> None:
        """Restart the observers; identified parameters stay."""
        self.observer.reset()
        self.momentum.reset()
        self.identifier.reset_failed_laws()
        self._foot_collision_torque = np.full(self._never_disturbed.size, np.nan)

    def reset_to_prior(self) -> None:
        """Reset, and drop the identified parameters too."""
        self.reset()
        self.identifier.reset_to_prior()

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters, to keep over a restart."""
        return self.identifier.identified

    def set_sensor_fault(self, wrong: bool, wrong_for: float) -> None:
        """Do nothing: the published identification does not react to known sensor faults."""

    def sensor_calibration(self) -> None:
        """None: the published observers identify no errors of the sensors."""

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Measure the friction of one frame, update the identified laws, and fuse both.

        Raises
        ------
        FloatingPointError
            When a result is not finite. Laws that were not finite have their prior again; call :meth:`reset` then.
        """
        observer, momentum, identifier = self.observer, self.momentum, self.identifier
        measured = observer.step(frame, attitude, phase, dynamics)
        residual = measured if momentum is observer else momentum.step(frame, attitude, phase, dynamics)
        regressor = identifier.regressor(frame.velocity, frame.effort)
        if self._excludes_some:
            measured = measured._replace(available=measured.available & self._all)
        delayed = observer.filter(regressor, frame.dt)
        learning = measured.available & self._may_learn(phase)
        if not self.frozen:
            identifier.learn(delayed, measured.friction, measured.noise_sigma, learning)
        self._add_velocities(frame, regressor, learning)
        late = delayed if momentum is observer else momentum.filter(regressor, frame.dt)
        rows = np.empty((6, frame.effort.size))
        is_valid = fuse(
            identifier.buffer, self._motors.to_joints, regressor, delayed, late, delayed is not regressor, *measured,
            *residual, rows,
        )  # fmt: skip
        if not is_valid:
            failed = unbounded_columns(self._names, rows[:4])
            raise FloatingPointError(
                f"the measured friction of {failed} was not finite: check its position, velocity and effort"
            )
        friction, sigma, model, model_sigma, external, external_sigma = rows
        add_collisions_of_feet(
            dynamics.foot_jacobian, frame.wrenches, phase.contact, math.exp(-self._gain * frame.dt),
            self._foot_collision_torque, external, external_sigma,
        )  # fmt: skip
        return JointFriction(
            friction=friction,
            sigma=sigma,
            measured=measured.available,
            model=model,
            model_sigma=model_sigma,
            external_torque=external,
            external_torque_sigma=external_sigma,
            nis=identifier.nis,
            calibration_torque=self._no_calibration,
            disturbed=self._never_disturbed,
            law=identifier.law,
        )

    def _add_velocities(self, frame: SensorFrame, regressor: FloatArray, learning: BoolArray) -> None:
        """Note the velocities of the motors, now and then."""
        self._not_visited += frame.dt
        if self._not_visited >= VISIT_PERIOD:
            motors = self._motors
            velocity, std = motors.velocity(frame.velocity), motors.velocity_std(self._velocity_std)
            learns = np.asarray(learning[motors.group].all(axis=1))
            self.identifier.visited.add_velocities(regressor, velocity, std, VISIT_PERIOD, learns)
            self._not_visited = 0.0

    def _may_learn(self, phase: ContactPhase) -> BoolArray:
        """Joints whose parameters may adapt now: those of standing limbs, and those of no limb at all, (n,)."""
        if self._learn_in_all_phases:
            return self._all
        key = phase.contact.tobytes()
        if key not in self._learning_joints:
            standing = np.logical_or(self._limb[phase.contact].any(axis=0), ~self._limb.any(axis=0))
            self._learning_joints[key] = standing & self._all
        return self._learning_joints[key]
