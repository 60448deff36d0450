"""The Kalman stage: every frame it says the friction, every window it learns."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import Config, SensorNoise
from friction_estimator.core.friction.identified import IdentifiedParameters, common_rows
from friction_estimator.core.friction.joint_laws import JointLaws, laws_of_joints
from friction_estimator.core.kalman.bounds import law_bounds, within_bounds
from friction_estimator.core.kalman.disturbance import Disturbance, DisturbanceObserver, DisturbanceWatch
from friction_estimator.core.kalman.empty_feet import EmptyFeet
from friction_estimator.core.kalman.instant import InstantFriction, Sensed
from friction_estimator.core.kalman.joint_motion import JointMotion, JointMotionFilter
from friction_estimator.core.kalman.limb_filter import LimbFilter, LimbWindow
from friction_estimator.core.kalman.limb_state import LimbState, lay_out
from friction_estimator.core.kalman.limbs import Limb, find_limbs
from friction_estimator.core.kalman.sensor_noise import SensorNoiseMonitor
from friction_estimator.core.kalman.stamp_clock import StampClock
from friction_estimator.core.kalman.window_dynamics import WindowDynamics
from friction_estimator.core.kalman.windows import Window, WindowBuffer, WindowSample
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    JointFriction,
    SensorFrame,
)

_NODES = np.sqrt(3.0) * np.array([0.0, 1.0, -1.0])
_NODE_WEIGHTS = np.array([2.0, 0.5, 0.5]) / 3.0
"""Gauss-Hermite quadrature of three nodes."""


@dataclass(frozen=True, slots=True)
class LawNow:
    """What the law says at the present velocity.

    Attributes
    ----------
    regressor : (n, p) mean over the uncertain velocity
    torque : (n,) [N m]
    variance : (n,) from its parameters [(N m)^2]
    velocity_variance : (n,) from the uncertain velocity [(N m)^2]
    """

    regressor: FloatArray
    torque: FloatArray
    variance: FloatArray
    velocity_variance: FloatArray


class KalmanFriction:
    """Friction stage with one :class:`LimbFilter` a limb.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``identifier`` (laws), ``momentum.input_hold``
    robot : the model that also makes the :class:`Dynamics`

    Attributes
    ----------
    laws : friction laws of the joints
    frozen : True while law and calibration stay as they are
    """

    _filter_class = LimbFilter

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._config = config.kalman
        self._joint_names = robot.joint_names
        self._foot_count = len(robot.foot_names)
        names = laws_of_joints(config.friction_law, config.identifier.joint_laws, robot.joint_names)
        self.laws = JointLaws(names)
        self.frozen = False
        self._bounds = law_bounds(self.laws)
        self.limbs = find_limbs(robot)
        self.filters = [self._make_filter(limb, config, robot) for limb in self.limbs]
        self._clock = StampClock(len(robot.joint_names), config.sensors.position_std)
        self._noise = SensorNoiseMonitor(config.sensors, len(robot.joint_names), self._foot_count)
        self._motion = JointMotionFilter(config.kalman, config.sensors)
        self._buffer = WindowBuffer(config.kalman, config.sensors, config.momentum.input_hold == "forward")
        self._dynamics = WindowDynamics(config, robot)
        self._empty_feet = EmptyFeet(
            len(robot.foot_names),
            config.sensors.force_std,
            max(config.kalman.force_bias_std, config.sensors.force_bias_std),
            config.contact_phase.on_fraction * robot.weight,
        )
        self._disturbance = DisturbanceObserver(config, robot)
        self._instant = InstantFriction(config, robot)
        self._watch = DisturbanceWatch(config.kalman, self.limbs, len(robot.joint_names))
        self.reset()

    def _make_filter(self, limb: Limb, config: Config, robot: RobotModel) -> LimbFilter:
        layout = lay_out(limb, self.laws, config.kalman, config.sensors, bool(robot.base_dofs))
        m, p = limb.joints.size, self.laws.parameter_count
        own = self._bounds[limb.joints]
        bounds = np.zeros((m, own.shape[1], m, p))
        bounds[np.arange(m), :, np.arange(m)] = own
        rows = bounds.reshape(-1, m * p)
        return self._filter_class(layout, config.kalman, rows[rows.any(axis=1)])

    def reset(self) -> None:
        """Restart the filters; law and calibration stay."""
        self._clock.reset()
        self._noise.reset()
        self._instant.reset()
        for part in (self._motion, self._buffer, self._dynamics, self._empty_feet, self._disturbance, self._watch):
            part.reset()
        for limb_filter in self.filters:
            limb_filter.restart()
        n = len(self._joint_names)
        self._time = 0.0
        self._measured_at = np.full(n, -math.inf)
        self._window_length = self._config.window
        self._calibration_torque = np.zeros(n)
        self._calibration_variance = np.zeros(n)
        self._explained, self._consistency = np.zeros(n), np.full(n, np.nan)
        self._wrench_bias, self._wrench_gain = (np.zeros((self._foot_count, 6)) for _ in range(2))
        self._refresh()

    def forget(self) -> None:
        """Reset, and drop law and calibration too."""
        for limb_filter in self.filters:
            limb_filter.forget()
        self.reset()

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Use one frame."""
        dt = self._clock.interval(frame.dt, frame.position)
        if dt != frame.dt:
            frame = dataclasses.replace(frame, dt=dt)
        self._time += dt
        if self._noise.add(self._time, frame):
            self._retune(self._noise.noise)
        motion = self._motion.step(frame.position, frame.velocity, frame.dt)
        law = self._law_now(motion, frame.effort)
        wrenches = (frame.wrenches - self._wrench_bias) * (1.0 - self._wrench_gain)
        sensed = dataclasses.replace(frame, wrenches=wrenches), attitude, phase, dynamics
        disturbance = self._disturbed(sensed, motion, law)
        imu = attitude.angular_velocity, attitude.specific_force, attitude.angular_acceleration
        sample = WindowSample.of(
            self._time, frame, imu, motion, law.regressor, law.velocity_variance, self._watch.pushed
        )
        window = self._buffer.add(sample)
        if window is not None:
            self._learn(window)
        return self._friction(sensed, law, disturbance)

    def _law_now(self, motion: JointMotion, effort: FloatArray) -> LawNow:
        """The law at a velocity that is known to a standard deviation only."""
        node_velocities = motion.velocity + _NODES[:, None] * motion.velocity_std
        nodes = self.laws.regressor(node_velocities, effort)
        regressor = _NODE_WEIGHTS[0] * nodes[0] + _NODE_WEIGHTS[1] * (nodes[1] + nodes[2])
        node_torque = (nodes * self._parameters).sum(axis=2)
        torque = _NODE_WEIGHTS @ node_torque
        velocity_variance = _NODE_WEIGHTS @ (node_torque - torque) ** 2
        return LawNow(regressor, torque, self._variance(regressor, with_mismatch=False), velocity_variance)

    def _retune(self, noise: SensorNoise) -> None:
        """The sensors are noisier than was told."""
        self._motion.retune(noise)
        self._buffer.fit.retune(noise)
        self._dynamics.retune(noise)
        self._empty_feet.retune(noise.force_std)
        self._disturbance.retune(noise)

    def _disturbed(self, sensed: Sensed, motion: JointMotion, law: LawNow) -> Disturbance:
        """Watch for pushes."""
        expected = law.torque + self._calibration_torque
        variance = law.variance + law.velocity_variance + self._calibration_variance + self._mismatch_variance
        disturbance = self._disturbance.step(*sensed, motion, expected, variance)
        for index in self._watch.step(disturbance, law.torque, sensed[0].dt):
            if not self.frozen:
                self.filters[index].relearn()
        return disturbance

    def _learn(self, window: Window) -> None:
        """Let every limb whose sensors spoke, and that nobody pushes, use a window."""
        self._window_length = max(self._config.window, window.duration)
        self._dynamics.advance(window)
        self._explained, self._consistency = self._explained.copy(), self._consistency.copy()  # the old ones have left
        readings = self._empty_feet.step(window)
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            known = window.complete and window.imu_fresh and window.wrench_fresh[limb.feet].all()
            if not known or not self._noise.ready or window.disturbed[limb.joints[0]]:
                limb_filter.skip(window.duration)
                continue
            if limb_filter.running and window.duration > 0.0:
                limb_window = self._dynamics.of_limb(limb, limb_filter.layout, window, limb_filter.state)
                resting = float(np.abs(window.end.velocity[limb.joints]).max()) < self._config.least_velocity
                touching = bool(self._empty_feet.touching[limb.feet].any())
                limb_filter.step(limb_window, self.frozen or resting, touching)
                self._note_calibration(limb, limb_filter, limb_window)
                self._consistency[limb.joints] = limb_filter.consistency
                if not self.frozen:
                    self._weigh_empty_feet(limb, limb_filter, readings, window.samples)
                self._measured_at[limb.joints] = self._time
            else:
                limb_filter.begin(*self._dynamics.momentum(limb, window))
        self._refresh()

    def _weigh_empty_feet(self, limb: Limb, limb_filter: LimbFilter, readings: FloatArray, samples: int) -> None:
        for index, foot in enumerate(limb.feet):
            if self._empty_feet.empty[foot]:
                limb_filter.weigh_empty_foot(index, readings[foot], self._dynamics.wrench_variance / samples)

    def _note_calibration(self, limb: Limb, limb_filter: LimbFilter, window: LimbWindow) -> None:
        """What model and sensors are wrong by now, for the disturbance observer."""
        layout, state = limb_filter.layout, limb_filter.state
        part = layout.calibration
        columns = window.force_columns[:, part]
        variance = ((columns @ limb_filter.covariance[part, part]) * columns).sum(axis=1)
        self._calibration_variance[limb.joints] = variance
        others = np.concatenate((np.r_[layout.links], np.r_[layout.effort_gain], np.r_[layout.accelerometer_bias]))
        self._calibration_torque[limb.joints] = window.force_columns[:, others] @ state[others]
        self._explained[limb.joints] = columns @ state[part]
        self._wrench_bias[limb.feet] = state[layout.foot_bias].reshape(-1, 6)
        self._wrench_gain[limb.feet] = state[layout.foot_gain].reshape(-1, 6)

    def _refresh(self) -> None:
        """Gather from the limbs what every frame needs: law, mismatch, and their covariance joint by joint."""
        n, p = len(self._joint_names), self.laws.parameter_count
        parameters, mismatch = np.zeros((n, p)), np.zeros(n)
        covariance = np.zeros((n, p + 1, p + 1))
        stationary = np.zeros(n)
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            layout, rows = limb_filter.layout, limb.joints
            own = _own_columns(layout, rows.size, p)
            parameters[rows] = limb_filter.state[own[:, :p]]
            mismatch[rows] = limb_filter.state[own[:, p]]
            covariance[rows] = limb_filter.covariance[own[:, :, None], own[:, None, :]]
            stationary[rows] = limb_filter.mismatch_variance
        parameters = within_bounds(parameters, covariance[:, :p, :p], self._bounds)
        self._parameters, self._mismatch, self._joint_covariance = parameters, mismatch, covariance
        self._mismatch_variance = stationary
        diagonal = np.diagonal(covariance, axis1=1, axis2=2)[:, :p]
        self._parameters_sigma: FloatArray = np.sqrt(np.maximum(diagonal, 0.0))
        self._coulomb_sigma = np.sqrt(self._variance(self.laws.coulomb_weights, with_mismatch=False))
        self._viscous_sigma = np.sqrt(self._variance(self.laws.viscous_weights, with_mismatch=False))
        self._coulomb, self._viscous = self.laws.coulomb(parameters), self.laws.viscous(parameters)

    def _variance(self, regressor: FloatArray, with_mismatch: bool) -> FloatArray:
        """Variance of law, or law and mismatch, at a regressor (n, p), (n,) [(N m)^2]."""
        if with_mismatch:
            row = np.concatenate((regressor, np.ones((regressor.shape[0], 1))), axis=1)
            covariance = self._joint_covariance
        else:
            row, covariance = regressor, self._joint_covariance[:, :-1, :-1]
        spread = (row[:, None, :] @ covariance @ row[:, :, None])[:, 0, 0]
        return np.maximum(spread, 0.0)

    def _friction(self, sensed: Sensed, law: LawNow, disturbance: Disturbance) -> JointFriction:
        """Law and mismatch, or while nothing can be measured the law alone."""
        measured: BoolArray = (self._time - self._measured_at < 3.0 * self._window_length) & ~self._watch.pushed
        mismatch = np.where(measured, self._mismatch, 0.0)
        alone = law.variance + self._mismatch_variance
        variance = np.where(measured, self._variance(law.regressor, with_mismatch=True), alone)
        calibration = self._calibration_torque, self._calibration_variance
        friction, velocity_variance = self._instant.correct(
            law.torque + mismatch, np.where(measured, law.velocity_variance, 0.0), sensed, calibration
        )
        velocity_variance = np.where(measured, velocity_variance, law.velocity_variance)
        return JointFriction(
            friction=friction,
            sigma=np.sqrt(variance + velocity_variance),
            measured=measured,
            model=law.torque,
            model_sigma=np.sqrt(alone + law.velocity_variance),
            parameters=self._parameters,
            parameters_sigma=self._parameters_sigma,
            coulomb=self._coulomb,
            viscous=self._viscous,
            coulomb_sigma=self._coulomb_sigma,
            viscous_sigma=self._viscous_sigma,
            external_torque=disturbance.torque + mismatch,
            external_torque_sigma=disturbance.sigma,
            consistency=self._consistency,
            calibration_torque=self._explained,
            disturbed=self._watch.pushed,
        )

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        samples, p = np.zeros(len(self._joint_names)), self.laws.parameter_count
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            samples[limb.joints] = limb_filter.windows
        return IdentifiedParameters(
            joint_names=self._joint_names,
            law_names=self.laws.law_names,
            values=self._parameters.copy(),
            covariance=self._joint_covariance[:, :p, :p].copy(),
            residual_variance=self._mismatch_variance.copy(),
            measurement_variance=np.zeros(len(self._joint_names)),
            samples=samples,
        )

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._joint_names, self.laws.law_names)
        row_of = dict(zip(here, there, strict=True))
        width = min(self.laws.parameter_count, identified.values.shape[1])
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            own = _own_columns(limb_filter.layout, limb.joints.size, self.laws.parameter_count)[:, :width]
            for row, joint in enumerate(limb.joints.tolist()):
                if joint in row_of:
                    saved = row_of[joint]
                    limb_filter.replace(
                        own[row], identified.values[saved, :width], identified.covariance[saved, :width, :width]
                    )
                    limb_filter.windows = max(limb_filter.windows, int(identified.samples[saved]))
                    limb_filter.mismatch_variance[row] = identified.residual_variance[saved]
        self._refresh()


def _own_columns(layout: LimbState, m: int, p: int) -> np.ndarray:
    """Indices (m, p + 1) into a limb's state: law parameters of each joint, then its mismatch."""
    law = np.arange(layout.law.start, layout.law.stop).reshape(m, p)
    mismatch = np.arange(layout.mismatch.start, layout.mismatch.stop)[:, None]
    return np.concatenate((law, mismatch), axis=1)
