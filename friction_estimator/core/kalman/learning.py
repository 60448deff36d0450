"""What the filters of the limbs learn from windows, one limb a frame, gathered joint by joint for every frame to use.

    window ─► EmptyFeet, WindowDynamics ─► limb 1 (the next frame), limb 2 (the one after), ... ─► Learned

The limbs take turns so that no frame bears the work of all of them; what they learned is out when the last one is done,
so that their order does not matter.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import Config, SensorNoise
from friction_estimator.core.friction.joint_laws import JointLaws
from friction_estimator.core.kalman.bounds import law_bounds, within_bounds
from friction_estimator.core.kalman.empty_feet import EmptyFeet
from friction_estimator.core.kalman.limb_filter import LimbFilter, LimbWindow
from friction_estimator.core.kalman.limb_state import LimbState, lay_out
from friction_estimator.core.kalman.limbs import Limb, find_limbs
from friction_estimator.core.kalman.window_dynamics import WindowDynamics
from friction_estimator.core.kalman.windows import Window
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of the joints by now. Never changed in place.

    Attributes
    ----------
    parameters : (n, p) of the friction laws, motor by motor, within their bounds
    mismatch : (n,) what the laws miss now, motor by motor [N m]
    covariance : (n, g (p + 1), g (p + 1)) of both, of the g motors that act on each joint; g = 1 without coupling
    mismatch_variance : (n,) of the mismatch when nothing is measured [(N m)^2]
    calibration_torque : (n,) of wrong links, drive gains and accelerometer [N m]; wrenches are calibrated apart
    calibration_variance : (n,) of all calibration [(N m)^2]
    explained_torque : (n,) of all calibration, the wrenches' too [N m]
    consistency : (n,) squared innovation over its variance, NaN before the first window
    measured_at : (n,) since the restart, when a window was last used [s]
    wrench_bias, wrench_gain : (k, 6)
    parameters_sigma : (n, p)
    coulomb, viscous, coulomb_sigma, viscous_sigma : (n,) of each joint that moves alone [N m], [N m s/rad]
    """

    parameters: FloatArray
    mismatch: FloatArray
    covariance: FloatArray
    mismatch_variance: FloatArray
    calibration_torque: FloatArray
    calibration_variance: FloatArray
    explained_torque: FloatArray
    consistency: FloatArray
    measured_at: FloatArray
    wrench_bias: FloatArray
    wrench_gain: FloatArray
    parameters_sigma: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    coulomb_sigma: FloatArray
    viscous_sigma: FloatArray

    @staticmethod
    def nothing(joints: int, parameters: int, feet: int, group: int = 1) -> Learned:
        """Nothing yet: n joints, p parameters, k feet, g motors that act on a joint."""
        n, p, k, g = joints, parameters, feet, group
        zeros = {field.name: np.zeros(n) for field in dataclasses.fields(Learned)}
        zeros |= {"parameters": np.zeros((n, p)), "parameters_sigma": np.zeros((n, p))}
        zeros |= {"covariance": np.zeros((n, g * (p + 1), g * (p + 1)))}
        zeros |= {"wrench_bias": np.zeros((k, 6)), "wrench_gain": np.zeros((k, 6))}
        zeros |= {"consistency": np.full(n, np.nan), "measured_at": np.full(n, -math.inf)}
        return Learned(**zeros)

    def with_rows(self, rows: IntArray, **values: FloatArray) -> Learned:
        """The same with other values of some joints (or feet)."""
        changed = {}
        for name, value in values.items():
            array = getattr(self, name).copy()
            array[rows] = value
            changed[name] = array
        return dataclasses.replace(self, **changed)


class LimbLearning:
    """The filters and their turns.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``contact_phase.on_fraction``
    robot : whose limbs they are
    laws : friction laws of the joints
    filter_class : of every limb

    Attributes
    ----------
    limbs, filters : joints that couple, and their filters
    learned : from all windows that all limbs have used
    touching : (n,) True for joints of limbs with a foot that is neither in the air nor firmly on the ground
    """

    def __init__(
        self, config: Config, robot: RobotModel, laws: JointLaws, filter_class: type[LimbFilter] = LimbFilter
    ) -> None:
        self._config = config.kalman
        group = robot.motors.group.shape[1]
        self._shape = len(robot.joint_names), laws.parameter_count, len(robot.foot_names), group
        self._laws = laws
        self._bounds = law_bounds(laws)
        self.limbs = find_limbs(robot)
        self._motors = [robot.motors.select(limb.joints) for limb in self.limbs]
        self.filters = [
            filter_class(
                lay_out(limb, laws, config.kalman, config.sensors, bool(robot.base_dofs)),
                config.kalman,
                self._rows_of_bounds(limb),
            )
            for limb in self.limbs
        ]
        self._dynamics = WindowDynamics(config, robot)
        self._empty_feet = EmptyFeet(
            len(robot.foot_names),
            config.sensors.force_std,
            max(config.kalman.force_bias_std, config.sensors.force_bias_std),
            config.contact_phase.on_fraction * robot.weight,
        )
        self._turns: deque[int] = deque()
        self.reset()

    def _rows_of_bounds(self, limb: Limb) -> FloatArray:
        m, p = limb.joints.size, self._laws.parameter_count
        own = self._bounds[limb.joints]
        bounds = np.zeros((m, own.shape[1], m, p))
        bounds[np.arange(m), :, np.arange(m)] = own
        rows = bounds.reshape(-1, m * p)
        return rows[rows.any(axis=1)]

    def reset(self) -> None:
        """Restart the filters; law and calibration stay."""
        self._turns.clear()
        self._dynamics.reset()
        self._empty_feet.reset()
        self.touching: BoolArray = np.ones(self._shape[0], dtype=bool)
        self._next = Learned.nothing(*self._shape)
        for limb_filter in self.filters:
            limb_filter.restart()
        self.gather()

    def forget(self) -> None:
        """Drop law and calibration, and reset."""
        for limb_filter in self.filters:
            limb_filter.forget()
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Other variances from now on, for this noise."""
        self._dynamics.retune(noise)
        self._empty_feet.retune(noise.force_std)

    def open(self, window: Window, usable: bool) -> None:
        """A window is complete; from now on every :meth:`step` lets one limb use it.

        Parameters
        ----------
        usable : False when the noise of the sensors is not known yet
        """
        self._dynamics.advance(window)
        self._readings = self._empty_feet.step(window)
        for limb in self.limbs:
            self.touching[limb.joints] = self._empty_feet.touching[limb.feet].any()
        self._window, self._usable = window, usable
        self._turns.extend(range(len(self.limbs)))

    def settle(self, frozen: bool) -> None:
        """Let all limbs that wait use the window now."""
        while self._turns:
            self.step(frozen)

    def step(self, frozen: bool) -> None:
        """Let the next limb that waits, if any, use the window, if its sensors spoke and nobody pushes it.

        Parameters
        ----------
        frozen : True keeps law and calibration as they are
        """
        if not self._turns:
            return
        index = self._turns.popleft()
        limb, limb_filter, window = self.limbs[index], self.filters[index], self._window
        known = window.complete and window.imu_fresh and window.wrench_fresh[limb.feet].all()
        if not known or not self._usable or window.disturbed[limb.joints[0]]:
            limb_filter.skip(window.duration)
        elif limb_filter.running and window.duration > 0.0:
            self._use(index, window, frozen)
        else:
            limb_filter.begin(*self._dynamics.momentum(limb, window))
        limb_filter.close(window.time)
        self._gather(index)
        if not self._turns:
            self.learned = self._next

    def _use(self, index: int, window: Window, frozen: bool) -> None:
        limb, limb_filter = self.limbs[index], self.filters[index]
        limb_window = self._dynamics.of_limb(limb, self._motors[index], limb_filter.layout, window, limb_filter.state)
        resting = float(np.abs(window.end.velocity[limb.joints]).max()) < self._config.least_velocity
        limb_filter.step(limb_window, frozen or resting, touching=bool(self.touching[limb.joints[0]]))
        if not frozen:
            for place, foot in enumerate(limb.feet):
                if self._empty_feet.empty[foot]:
                    variance = self._dynamics.wrench_variance / window.samples
                    limb_filter.weigh_empty_foot(place, self._readings[foot], variance)
        self._note(limb, limb_filter, limb_window)

    def _note(self, limb: Limb, limb_filter: LimbFilter, window: LimbWindow) -> None:
        """What model and sensors are wrong by now, and how well the window fitted."""
        layout, state, part = limb_filter.layout, limb_filter.state, limb_filter.layout.calibration
        columns = window.force_columns[:, part]
        others = np.concatenate((np.r_[layout.links], np.r_[layout.effort_gain], np.r_[layout.accelerometer_bias]))
        self._next = self._next.with_rows(
            limb.joints,
            calibration_torque=window.force_columns[:, others] @ state[others],
            calibration_variance=((columns @ limb_filter.covariance[part, part]) * columns).sum(axis=1),
            explained_torque=columns @ state[part],
            consistency=limb_filter.consistency,
            measured_at=np.full(limb.joints.size, self._window.time),
        ).with_rows(
            limb.feet,
            wrench_bias=state[layout.foot_bias].reshape(-1, 6),
            wrench_gain=state[layout.foot_gain].reshape(-1, 6),
        )

    def gather(self) -> None:
        """Take over what has been changed in the filters."""
        for index in range(len(self.limbs)):
            self._gather(index)
        self.learned = self._next

    def _gather(self, index: int) -> None:
        """Law and mismatch of a limb's motors, and their covariance joint by joint."""
        limb_filter, motors = self.filters[index], self._motors[index]
        rows, p = self.limbs[index].joints, self._laws.parameter_count
        own = own_columns(limb_filter.layout, rows.size, p)
        columns = motors.columns(own)
        covariance = limb_filter.covariance[columns[:, :, None], columns[:, None, :]]
        law = covariance[:, :p, :p]
        parameters = within_bounds(limb_filter.state[own[:, :p]], law, self._bounds[rows])
        coulomb, viscous = self._laws.coulomb_weights[rows], self._laws.viscous_weights[rows]
        self._next = self._next.with_rows(
            rows,
            parameters=parameters,
            mismatch=limb_filter.state[own[:, p]],
            covariance=covariance,
            mismatch_variance=limb_filter.mismatch_variance,
            parameters_sigma=np.sqrt(np.maximum(np.diagonal(law, axis1=1, axis2=2), 0.0)),
            coulomb=motors.coulomb_at_joints((coulomb * parameters).sum(axis=1)),
            viscous=motors.viscous_at_joints((viscous * parameters).sum(axis=1)),
            coulomb_sigma=np.sqrt(motors.law_variance(coulomb, covariance, np.abs(motors.weights))),
            viscous_sigma=np.sqrt(motors.law_variance(viscous, covariance, motors.weights**2)),
        )

    def relearn(self, limbs: Sequence[int]) -> None:
        """What was taken for a push on these limbs has lasted too long to be one."""
        for index in limbs:
            self.filters[index].relearn()


def own_columns(layout: LimbState, m: int, p: int) -> IntArray:
    """Indices (m, p + 1) into a limb's state: law parameters of each joint, then its mismatch."""
    law = np.arange(layout.law.start, layout.law.stop).reshape(m, p)
    mismatch = np.arange(layout.mismatch.start, layout.mismatch.stop)[:, None]
    return np.concatenate((law, mismatch), axis=1)
