"""The Kalman stage: every frame it says the friction, every window it learns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import Config, SensorNoise
from friction_estimator.core.friction.identified import IdentifiedParameters, common_rows
from friction_estimator.core.friction.joint_laws import JointLaws, laws_of_joints
from friction_estimator.core.kalman.disturbance import Disturbance, DisturbanceObserver, DisturbanceWatch
from friction_estimator.core.kalman.instant import InstantFriction, Sensed
from friction_estimator.core.kalman.joint_motion import JointMotionFilter
from friction_estimator.core.kalman.learning import LimbLearning, own_columns
from friction_estimator.core.kalman.limb_filter import LimbFilter
from friction_estimator.core.kalman.motion_bank import JointMotion
from friction_estimator.core.kalman.sensor_noise import SensorNoiseMonitor
from friction_estimator.core.kalman.stamp_clock import StampClock
from friction_estimator.core.kalman.windows import WindowBuffer, WindowSample
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

_STALE = 3.0
"""After so many windows without one that could be used, what the law misses is not known any more."""


@dataclass(frozen=True, slots=True)
class LawNow:
    """What the law says at the present velocity.

    Attributes
    ----------
    regressor : (n, p) mean over the uncertain velocity, motor by motor
    regressor_variance : (n,) from the uncertain velocity, motor by motor [(N m)^2]
    torque : (n,) [N m]
    variance : (n,) from its parameters [(N m)^2]
    velocity_variance : (n,) from the uncertain velocity [(N m)^2]
    """

    regressor: FloatArray
    regressor_variance: FloatArray
    torque: FloatArray
    variance: FloatArray
    velocity_variance: FloatArray


class KalmanFriction:
    """Friction stage with one filter a limb.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``identifier`` (laws), ``momentum.input_hold``
    robot : the model that also makes the :class:`Dynamics`
    filter_class : of every limb

    Attributes
    ----------
    laws : friction laws of the joints
    frozen : True while law and calibration stay as they are
    learning : filters of the limbs and what they know
    """

    def __init__(self, config: Config, robot: RobotModel, filter_class: type[LimbFilter] = LimbFilter) -> None:
        self._config = config.kalman
        self._motors = robot.motors
        self.laws = JointLaws(laws_of_joints(config.friction_law, config.identifier.joint_laws, robot.motors.names))
        self.frozen = False
        self.learning = LimbLearning(config, robot, self.laws, filter_class)
        self._clock = StampClock(len(robot.joint_names), config.sensors.position_std)
        self._noise = SensorNoiseMonitor(config.sensors, len(robot.joint_names), len(robot.foot_names))
        self._motion = JointMotionFilter(config.kalman, config.sensors)
        self._buffer = WindowBuffer(config.kalman, config.sensors, config.momentum.input_hold == "forward")
        self._disturbance = DisturbanceObserver(config, robot)
        self._instant = InstantFriction(config, robot)
        self._watch = DisturbanceWatch(config.kalman, self.learning.limbs, len(robot.joint_names))
        self.reset()

    def reset(self) -> None:
        """Restart the filters; law and calibration stay."""
        for part in (self._clock, self._noise, self._motion, self._buffer, self._disturbance, self._instant):
            part.reset()
        self._watch.reset()
        self.learning.reset()
        self._time = 0.0
        self._window_length = self._config.window

    def forget(self) -> None:
        """Reset, and drop law and calibration too."""
        self.learning.forget()
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
        wrenches = (frame.wrenches - self.learning.learned.wrench_bias) * (1.0 - self.learning.learned.wrench_gain)
        sensed = dataclasses.replace(frame, wrenches=wrenches), attitude, phase, dynamics
        disturbance = self._disturbed(sensed, motion, law)
        self._learn(frame, attitude, motion, law)
        return self._friction(sensed, law, disturbance)

    def _law_now(self, motion: JointMotion, effort: FloatArray) -> LawNow:
        """The law at a velocity that is known to a standard deviation only."""
        learned, motors = self.learning.learned, self._motors
        regressor, torque, variance = self.laws.expected_friction(
            learned.parameters,
            motors.velocity(motion.velocity),
            motors.torque(effort),
            motors.velocity_std(motion.velocity_std),
        )
        return LawNow(
            regressor,
            variance,
            motors.at_joints(torque),
            motors.law_variance(regressor, learned.covariance),
            motors.variance_at_joints(variance),
        )

    def _retune(self, noise: SensorNoise) -> None:
        """The sensors are noisier than was told."""
        for part in (self._motion, self._buffer.fit, self.learning, self._disturbance):
            part.retune(noise)

    def _disturbed(self, sensed: Sensed, motion: JointMotion, law: LawNow) -> Disturbance:
        """Watch for pushes."""
        learned = self.learning.learned
        expected = law.torque + learned.calibration_torque
        variance = law.variance + law.velocity_variance + learned.calibration_variance + self._mismatch_variance
        disturbance = self._disturbance.step(*sensed, motion, expected, variance)
        lasting = self._watch.step(disturbance, law.torque, sensed[0].dt)
        if not self.frozen:
            self.learning.relearn(lasting)
        return disturbance

    def _learn(self, frame: SensorFrame, attitude: Attitude, motion: JointMotion, law: LawNow) -> None:
        """Gather the frame; let the limbs use the windows that become complete."""
        imu = attitude.angular_velocity, attitude.specific_force, attitude.angular_acceleration
        sample = WindowSample.of(
            self._time, frame, imu, motion, law.regressor, law.regressor_variance, self._watch.pushed
        )
        window = self._buffer.add(sample)
        if window is not None:
            self._window_length = max(self._config.window, window.duration)
            self.settle()
            self.learning.open(window, self._noise.ready)
        else:
            self.learning.step(self.frozen)

    def settle(self) -> None:
        """Let all limbs use the newest window that is complete."""
        self.learning.settle(self.frozen)

    def _friction(self, sensed: Sensed, law: LawNow, disturbance: Disturbance) -> JointFriction:
        """Law and mismatch, or while nothing can be measured the law alone."""
        learned = self.learning.learned
        recent = self._time - learned.measured_at < _STALE * self._window_length
        measured: BoolArray = recent & ~self._watch.pushed
        mismatch = np.where(measured, self._motors.at_joints(learned.mismatch), 0.0)
        unmodelled = (self._config.load_error * sensed[0].effort) ** 2
        alone = law.variance + self._mismatch_variance + unmodelled
        together = self._motors.friction_variance(law.regressor, learned.covariance)
        variance = np.where(measured, together + unmodelled, alone)
        correctable = measured & ~self.learning.touching
        friction, velocity_variance = self._instant.correct(
            law.torque + mismatch,
            np.where(correctable, law.velocity_variance, 0.0),
            sensed,
            (learned.calibration_torque, learned.calibration_variance),
        )
        velocity_variance = np.where(correctable, velocity_variance, law.velocity_variance)
        return JointFriction(
            friction=friction,
            sigma=np.sqrt(variance + velocity_variance),
            measured=measured,
            model=law.torque,
            model_sigma=np.sqrt(alone + law.velocity_variance),
            parameters=learned.parameters,
            parameters_sigma=learned.parameters_sigma,
            coulomb=learned.coulomb,
            viscous=learned.viscous,
            coulomb_sigma=learned.coulomb_sigma,
            viscous_sigma=learned.viscous_sigma,
            external_torque=disturbance.torque + mismatch,
            external_torque_sigma=disturbance.sigma,
            consistency=learned.consistency,
            calibration_torque=learned.explained_torque,
            disturbed=self._watch.pushed,
        )

    @property
    def _mismatch_variance(self) -> FloatArray:
        """Of the joints (n,), when nothing is measured [(N m)^2]."""
        return self._motors.variance_at_joints(self.learning.learned.mismatch_variance)

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart; joints that share motors are saved motor by motor."""
        self.settle()
        learned, n, p = self.learning.learned, len(self._motors.names), self.laws.parameter_count
        samples = np.zeros(n)
        for limb, limb_filter in zip(self.learning.limbs, self.learning.filters, strict=True):
            samples[limb.joints] = limb_filter.windows
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
            values=learned.parameters,
            covariance=learned.covariance[:, :p, :p],
            residual_variance=learned.mismatch_variance,
            measurement_variance=np.zeros(n),
            samples=samples,
        )

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        row_of = dict(zip(here, there, strict=True))
        width = min(self.laws.parameter_count, identified.values.shape[1])
        for limb, limb_filter in zip(self.learning.limbs, self.learning.filters, strict=True):
            own = own_columns(limb_filter.layout, limb.joints.size, self.laws.parameter_count)[:, :width]
            for row, joint in enumerate(limb.joints.tolist()):
                if joint in row_of:
                    saved = row_of[joint]
                    limb_filter.replace(
                        own[row], identified.values[saved, :width], identified.covariance[saved, :width, :width]
                    )
                    limb_filter.windows = max(limb_filter.windows, int(identified.samples[saved]))
                    limb_filter.mismatch_variance[row] = identified.residual_variance[saved]
        self.learning.gather()
