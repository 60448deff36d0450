"""The Kalman stage: friction of every frame, identification in every window.

every frame     encoders ─► joint motion ─► regressor of the law ─► friction = law + law error, sigma
                                 │                │                        ▲
                                 │                ▼                        │
                                 ├────► disturbance observer ─► disturbed? changed?
                                 ▼                                │        │
every window    window buffer ─► momentum, forces, columns ─► limb filters ┘
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from friction_estimator.base.attitude import ANGULAR_ACCELERATION
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.frame import FrameContext, FrameEvaluation
from friction_estimator.estimation.kalman.instant_correction import CORRECTION_THRESHOLD, correct_by_measurements
from friction_estimator.estimation.kalman.limb_bank import LimbBank
from friction_estimator.estimation.kalman.limb_state import DRY_FRICTION_SPEED, find_limbs, stick_probability
from friction_estimator.estimation.kalman.term_selection import TermSelection, load_presliding_variance
from friction_estimator.estimation.kalman.windows import Window, WindowBuffer
from friction_estimator.estimation.motion.joint_motion import JointMotion, JointMotionFilter, MotionSource
from friction_estimator.estimation.motion.sensor_monitor import SensorNoiseMonitor, StampClock
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.laws.identified import IdentifiedParameters, common_rows
from friction_estimator.laws.joint_laws import JointLaws, laws_of_joints
from friction_estimator.laws.linear import ADDED_TERMS
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    ContactPhase,
    Dynamics,
    FloatArray,
    JointFriction,
    LawEstimate,
    SensorCalibration,
    SensorFrame,
)

_RIPPLE_FOUND = (
    "Ripple: the friction has {} periods per turn. Identification goes on with the ripple, which saved parameters "
    "contain from now on, and sigma is larger for some seconds."
)
_RIPPLE_CORRECTED = "Ripple: the friction has {} periods per turn (was {})."
_MAX_WINDOWS_WITHOUT_MEASUREMENT = 3.0
"""Windows without a measurement after which the law error is unknown."""


class KalmanFriction:
    """Friction stage with one filter per limb.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``feet``, ``fbse``, ``identifier`` (laws), ``momentum.input_hold``
    robot : the model that also makes the :class:`Dynamics`
    health : gets an event when a ripple is found
    motion : of the joints, from encoders; None: the live filter

    Attributes
    ----------
    laws : friction laws of the motors
    terms : what the filters identify besides: terms of presliding, and of a ripple
    frozen : True while law and calibration stay as they are
    bank : filters of the limbs and their estimates
    time : since the restart [s]
    unmodelled_variance : (n,) of what the terms of presliding miss [(N m)^2]
    """

    def __init__(self, config: Config, robot: RobotModel, health: Health, motion: MotionSource | None = None) -> None:
        self._config, self._robot, self._health = config, robot, health
        self._motors = motors = robot.motors
        self.laws = JointLaws(laws_of_joints(config.friction_law, config.identifier.joint_laws, motors.names))
        self.terms = TermSelection(self.laws, motors)
        self.frozen = self._sensors_wrong = False
        self._clock = StampClock(len(robot.joint_names))
        self._noise = SensorNoiseMonitor(config.sensors, len(robot.joint_names), len(robot.foot_names))
        self._motion: MotionSource = motion or JointMotionFilter(config.kalman, config.sensors, robot.joint_names)
        self._buffer = WindowBuffer(config.kalman, config.sensors, config.momentum.inputs_are_held)
        self._frames = FrameEvaluation(config, robot, find_limbs(robot))
        self._window = config.kalman.window
        self._fbse = FootBaseSensorEstimation(config, robot)
        self.reset_to_prior()

    def reset_to_prior(self) -> None:
        """Start from the prior, without law and calibration, with terms of presliding and without any of ripple."""
        self.terms.set_terms(np.zeros(0), presliding=True)
        self._start_filters()
        self.reset()

    def _start_filters(self) -> None:
        """Start the filters of the limbs from their prior."""
        self.bank = LimbBank(self._config, self._robot, self.terms.laws)
        self.bank.retune(self._noise.noise)

    def reset(self) -> None:
        """Restart the filters; law and calibration stay."""
        for part in (self._clock, self._noise, self._motion, self._buffer, self._fbse):
            part.reset()
        self._frames.reset(self.terms.distance_count)
        self.terms.reset()
        self.bank.reset()
        self._publish_law()
        self.time = 0.0
        self.unmodelled_variance: FloatArray = np.zeros(len(self._motors.names))
        self._window_length = self._window

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Friction of one frame; each complete window also updates the limbs' filters.

        Raises
        ------
        FloatingPointError
            When a result is not finite. Limbs whose law was not finite have their newest valid law again, or the prior;
            call :meth:`reset` then.
        """
        if self.bank.advance_work(self.frozen):  # a part of the work on the newest complete window
            self._use_estimates(frame.stamp_ns)
        dt = self._clock.interval(frame.dt, frame.position)
        if dt != frame.dt:
            frame = dataclasses.replace(frame, dt=dt)
        self.time += dt
        if self._noise.add(self.time, frame):
            self._retune(self._noise.noise)
        motion = self._motion.step(frame.position, frame.velocity, dt)
        correctable_variance = self._evaluate(frame, attitude, phase, dynamics, motion)
        if math.isnan(correctable_variance):
            raise FloatingPointError("the friction of the identified law was not finite")
        # this frame may complete the next window
        if (window := self._buffer.commit_row(frame.readings_per_sample)) is not None:
            self._identify(window, motion)
        newest, estimates = self._frames.newest, self.bank.estimates
        friction, sigma = newest.friction, newest.sigma
        if correctable_variance >= CORRECTION_THRESHOLD**2:
            friction, sigma = self._corrected_friction(frame, attitude, phase, dynamics, motion)
        return JointFriction(
            friction=friction,
            sigma=sigma,
            measured=newest.measured,
            model=newest.model,
            model_sigma=newest.model_sigma,
            external_torque=newest.external_torque,
            external_torque_sigma=newest.external_torque_sigma,
            nis=estimates.nis,
            calibration_torque=estimates.calibration.torque,
            disturbed=newest.disturbed,
            law=self._law,
        )

    def _use_estimates(self, stamp_ns: int) -> None:
        """Use what the limbs have learned from a window: terms of the law, law on the topics, delay of the wrenches."""
        if not (self.frozen or self._sensors_wrong):
            self._select_terms(stamp_ns)
        self._publish_law()
        self._buffer.wrench_delay = self.bank.wrench_delay()

    def _evaluate(
        self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, motion: JointMotion
    ) -> float:
        """Evaluate a frame; return the largest variance that the friction of the instant may correct [(N m)^2], or NaN.

        A push that has lasted too long to be one makes the laws of its limbs uncertain.
        """
        unmodelled = self.unmodelled_variance
        if not self._has_learned:
            unmodelled = unmodelled + self._stick_variance(motion, frame.effort)
        oldest = self.time - _MAX_WINDOWS_WITHOUT_MEASUREMENT * self._window_length
        angular_acceleration = attitude.buffer[ANGULAR_ACCELERATION]
        context = FrameContext(phase.contact, self.terms.ripples, unmodelled, angular_acceleration, oldest)
        n, p = self.terms.laws.table.scales.shape
        sample = self._buffer.next_row(self.time, n, len(frame.wrenches), p)
        correctable_variance, expired = self._frames.step(
            frame, dynamics, motion, self.terms.laws, self.bank.estimates_buffer, context, sample
        )
        if expired and not self.frozen:
            self.bank.inflate_after_long_push(expired)
        return correctable_variance

    def _corrected_friction(
        self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics, motion: JointMotion
    ) -> FloatArray:
        """Friction of the newest frame and its sigma (2, n), weighed against the friction of the instant [N m]."""
        newest, bank = self._frames.newest, self.bank
        friction, sigma = corrected = np.empty((2, frame.position.size))
        measured = self._fbse.measure(frame, newest.wrenches, attitude, phase, dynamics)
        dry = self._motors.coulomb_at_joints(bank.estimates.dry_friction)
        correct_by_measurements(
            newest.buffer, bank.estimates_buffer, dry, *measured, bank.contact_transition, self.unmodelled_variance,
            motion.velocity, friction, sigma,
        )  # fmt: skip
        return corrected

    def _select_terms(self, stamp_ns: int) -> None:
        """Add or drop terms of the laws as soon as the data show it.

        Filters without terms of a ripple take it for errors of links and sensors, so the covariance grows.
        """
        before = self.terms.ripples
        if found := self.terms.find_ripple(self.time, self.bank):
            ripples = np.full(len(self._motors.names), float(found))
            if before.size:
                self.terms.correct_ripple(ripples, self.bank)
                self._buffer.restart()
                text = _RIPPLE_CORRECTED.format(found, int(before[0]))
            else:
                laws = self.terms.laws
                self.terms.set_terms(ripples, presliding=self.terms.distance_count > 0)
                self._continue_filters(laws)
                text = _RIPPLE_FOUND.format(found)
            self._health.add_event("ripple", stamp_ns, text)
        if self.terms.rejects_presliding(self.time, self.bank):
            self._drop_presliding()

    def _drop_presliding(self) -> None:
        """Go on without the terms of presliding, whose torques are zero."""
        laws = self.terms.laws
        self.bank.fix_presliding_at_zero()
        self.terms.drop_presliding()
        self._continue_filters(laws)
        self._frames.drop_presliding()
        self.unmodelled_variance = np.zeros_like(self.unmodelled_variance)

    def _continue_filters(self, laws: JointLaws) -> None:
        """Replace the filters, which have these laws, by those of the present terms; common terms are copied."""
        before = self.bank
        self._start_filters()
        columns = here, there = self.terms.laws.common_columns(laws)
        self.bank.continue_from(before, columns)
        if here.size == self.terms.laws.parameter_count:
            self._buffer.keep_terms(there)
        else:  # the samples of the window lack the regressor of the new terms
            self._buffer.restart()

    def _retune(self, noise: SensorNoise) -> None:
        """Use this noise in every part that weighs readings."""
        self._motion.retune(noise, self._noise.encoder_step)
        for part in (self._buffer, self.bank, self._frames, self._fbse):
            part.retune(noise)

    def _identify(self, window: Window, motion: JointMotion) -> None:
        """Hand a window that the newest frame has completed to the limbs; ``motion`` is that of the frame."""
        self._update_unmodelled_variance(window)
        motors, law = self._motors, self._frames.newest.law
        speed, std = motors.velocity(motion.velocity), motors.velocity_std(law.velocity_std)
        self.bank.visited.add_velocities(law.regressor, speed, std, self._window)
        self._window_length = max(self._window, window.duration)
        self.finish_pending_updates()
        self.bank.begin_window(window, self._noise.ready)

    def _update_unmodelled_variance(self, window: Window) -> None:
        """Update the variance of the torque that the terms of presliding lack, from the motor torques of a window."""
        if self.terms.distance_count:
            load = self._motors.torque(window.effort)
            unexplained = load_presliding_variance(self.terms.laws, self.bank.estimates.parameters, load)
            self.unmodelled_variance = self._motors.variance_at_joints(unexplained)

    def finish_pending_updates(self) -> None:
        """Finish the work on the newest complete window."""
        if self.bank.complete_work(self.frozen):
            self._publish_law()

    def _publish_law(self) -> None:
        """Rebuild the published law after it has changed."""
        estimates, p = self.bank.estimates, self.laws.parameter_count
        self._has_learned = bool(estimates.dry_friction.any())
        line = estimates.coulomb_viscous
        self._law = LawEstimate(
            parameters=estimates.parameters[:, :p].copy(),
            parameters_sigma=estimates.parameters_sigma[:, :p].copy(),
            coulomb=line.coulomb,
            viscous=line.viscous,
            coulomb_sigma=line.coulomb_sigma,
            viscous_sigma=line.viscous_sigma,
            coulomb_viscous_covariance=line.covariance,
            velocity_range=self.bank.visited.velocity_range.copy(),
            known=self.bank.visited.known,
        )

    def _stick_variance(self, motion: JointMotion, effort: FloatArray) -> FloatArray:
        """Variance (n,) of the friction of joints that rest, before anything is learned [(N m)^2].

        It may be any that the law has, in the root mean square over the law's uncertainty.
        """
        motors, laws, estimates = self._motors, self.terms.laws, self.bank.estimates
        p, speed, std = laws.parameter_count, motors.velocity(motion.velocity), motors.velocity_std(motion.velocity_std)
        phi = laws.regressor(np.full(speed.size, DRY_FRICTION_SPEED), motors.torque(effort))
        mean = np.maximum((phi * estimates.parameters).sum(axis=1), 0.0)
        variance = np.einsum("ni,nij,nj->n", phi, estimates.covariance[:, :p, :p], phi)
        resting = [stick_probability(*motor) for motor in zip(speed.tolist(), std.tolist(), strict=True)]
        return motors.variance_at_joints((mean**2 + variance) * np.square(resting))

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters, to keep over a restart; joints that share motors are saved motor by motor."""
        self.finish_pending_updates()
        estimates, n, p = self.bank.estimates, len(self._motors.names), self.laws.parameter_count
        added = dict[str, FloatArray]()
        for kind, columns in self.terms.laws.added.items():
            s, values = len(ADDED_TERMS[kind]), estimates.parameters[:, columns]
            if values.size:
                added |= {kind: values, f"{kind}_covariance": estimates.covariance[:, columns, columns]}
            elif kind == "presliding":  # the data have shown that there is none
                added |= {kind: np.zeros((n, s)), f"{kind}_covariance": np.zeros((n, s, s))}
        calibration, spread = self.bank.calibration()
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
            values=estimates.parameters[:, :p],
            covariance=estimates.covariance[:, :p, :p],
            residual_variance=estimates.law_error.variance,
            measurement_variance=np.zeros(n),
            samples=self.bank.window_counts(),
            velocity_range=self.bank.visited.velocity_range.copy(),
            ripples=self.terms.ripples if self.terms.ripples.size else None,
            calibration=calibration,
            calibration_covariance=spread,
            **added,
        )

    def set_sensor_fault(self, wrong: bool, wrong_for: float) -> None:
        """Note that readings of sensors are known to be wrong, for at most this time [s], or right again.

        What was identified from wrong readings is dropped when they are right again: the limbs go back to what they had
        learned before. With a time of zero nothing is dropped.
        """
        self._sensors_wrong = wrong
        if wrong:
            self.bank.mark_checkpoint(wrong_for)
        else:
            self.finish_pending_updates()
            if wrong_for > 0.0:
                self.bank.rollback_to_mark()
            self._frames.reset_pushes()
            self._publish_law()

    def copy_identified(self, other: KalmanFriction) -> None:
        """Copy law and calibration from another stage of the same robot."""
        other.finish_pending_updates()
        self._use_terms(other.terms.ripples, presliding=other.terms.distance_count > 0)
        self.bank.copy_identified(other.bank, self.terms.laws.common_columns(other.terms.laws))
        self._publish_law()

    def _use_terms(self, ripples: FloatArray, presliding: bool) -> None:
        """Start anew with these terms of the laws, where they are not those of now."""
        terms = self.terms
        if presliding != (terms.distance_count > 0) or not np.array_equal(ripples, terms.ripples):
            terms.set_terms(ripples, presliding)
            self._start_filters()
            self.reset()

    def sensor_calibration(self) -> SensorCalibration:
        """Constant errors of the sensors, from the filters of all limbs."""
        return self.bank.sensor_calibration()

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        A run that has found no presliding saves torques of zero without variance: then this one has no terms for it.
        A ripple of the parameters replaces that of this run; without one, that of this run stays.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        terms = self.terms
        self._use_terms(terms.ripples_of(identified, there), identified.has_presliding or terms.distance_count > 0)
        self.bank.restore(identified, here, there, self.laws.parameter_count, terms.laws.added)
        spread = identified.presliding_covariance
        everywhere = terms.distance_count and len(here) == len(self._motors.names)
        if everywhere and spread is not None and not spread[there].any():
            self._drop_presliding()
        self.bank.refresh_estimates()
        self._publish_law()
