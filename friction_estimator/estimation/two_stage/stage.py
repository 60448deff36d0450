"""The friction stage ``two_stage``: every frame gives friction, every window information, now and then a solution.

every frame     encoders ─► joint motion ─┐
                dynamics, readings ───────┴─► step_frame ─► friction, sigma, external torque; sums of the window
every window    sums ─► step_window, limb by limb ─► information
every 0.1 s     information ─► LimbSolution ─► Learned ─► every frame
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from friction_estimator.base.contact_phase import CONTACT_FRACTION, UnloadedFeet, add_collisions_of_feet
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.ripple import RIPPLE_TEST_INTERVAL, RippleSearch
from friction_estimator.estimation.kalman.sensor_changes import ChangeComparison
from friction_estimator.estimation.motion.joint_motion import JointMotionFilter, MotionSource, RotationFilter
from friction_estimator.estimation.motion.sensor_monitor import SensorNoiseMonitor, StampClock
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.estimation.two_stage.balance import Learned, RobotMaps, empty_records
from friction_estimator.estimation.two_stage.frame import EXTERNAL_BANDWIDTH, correct_by_fbse, step_frame
from friction_estimator.estimation.two_stage.limb import WINDOW, LimbObserver
from friction_estimator.estimation.two_stage.solution import one_sided_friction
from friction_estimator.estimation.two_stage.terms import (
    DRY_FRICTION_SPEED,
    find_limbs,
    make_terms,
    model_error_std,
    motor_strength,
)
from friction_estimator.estimation.two_stage.window import ModelErrors, begin_window, step_window
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.kernels.records import set_scalars, to_buffer
from friction_estimator.laws.identified import IdentifiedParameters, common_rows
from friction_estimator.laws.joint_laws import JointLaws, laws_of_joints
from friction_estimator.laws.linear import ADDED_TERMS
from friction_estimator.linear_algebra import is_bounded
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    JointFriction,
    LawEstimate,
    SensorCalibration,
    SensorFrame,
)

SOLUTION_INTERVAL = 0.1
"""Time between two solutions [s]."""
_MAX_WINDOWS = 3.0
"""A window that lasts for more of its lengths has lost samples."""
_MAX_RESTING_SPEED = 0.02
"""A limb whose motors are all slower learns nothing: every window would repeat the same equation [rad/s]."""
_MIN_SIGN_STD = 0.1
"""Standard deviation of the friction by an unknown sign of the velocity, over the dry friction, from which on foot-base
sensor estimation may correct it; below it, that method is noisier."""
_RIPPLE_FOUND = (
    "Ripple: the friction has {} periods per turn. Identification goes on with the ripple, which saved parameters "
    "contain from now on, and sigma is larger for some seconds."
)
_RIPPLE_CORRECTED = "Ripple: the friction has {} periods per turn (was {})."


class TwoStageFriction:
    """Friction stage: a two-stage Kalman filter for every limb (Friedland 1969).

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``feet``, ``identifier`` (laws), ``momentum.input_hold``
    robot : the model that also makes the :class:`Dynamics`
    health : gets an event when a ripple is found
    motion : joint motion of every frame; without it a :class:`JointMotionFilter`

    Attributes
    ----------
    laws : friction laws of the motors
    frozen : True while laws and errors of the sensors stay as they are
    limbs : both stages of every limb
    ripples : (n,) periods of the motors' friction in a turn; (0,) while none is found
    time : since the restart [s]
    """

    def __init__(self, config: Config, robot: RobotModel, health: Health, motion: MotionSource | None = None) -> None:
        self._robot, self._health, self._motors = robot, health, robot.motors
        names = laws_of_joints(config.friction_law, config.identifier.joint_laws, robot.motors.names)
        self.laws, self._all_laws = JointLaws(names), JointLaws(names, tuple(ADDED_TERMS))
        self.frozen = self._sensors_wrong = False
        n, k = len(robot.joint_names), len(robot.foot_names)
        self._clock = StampClock(n)
        self._fbse = FootBaseSensorEstimation(config, robot)
        self._noise = SensorNoiseMonitor(config.sensors, n, k)
        self._motion: MotionSource = motion or JointMotionFilter(config.kalman, config.sensors, robot.joint_names)
        self._rotation = RotationFilter(config.kalman, config.sensors)
        self._strength, self._model_std = motor_strength(robot), model_error_std(robot, config)
        self.limbs, limb_of_joint = list[LimbObserver](), np.zeros(n, dtype=np.int64)
        bounds = law_bounds(self._all_laws)
        for number, joints in enumerate(find_limbs(robot)):
            limb_of_joint[joints] = number
            terms = make_terms(joints, self._all_laws, config, robot)
            self.limbs.append(LimbObserver(terms, self._strength[joints], bounds[joints]))
        self._limbs_in_contact = np.unique(limb_of_joint[robot.in_unmeasured_contact])
        held = config.momentum.inputs_are_held
        maps = RobotMaps(
            robot.motors.table, robot.motors.couples, robot.limb, limb_of_joint, robot.imu_lever, robot.base_dofs, held
        )
        self._maps_buffer = to_buffer(maps)
        firm, bias = CONTACT_FRACTION * robot.weight, float(self.limbs[0].terms.wrench_std[0, 0])
        self._unloaded_feet = UnloadedFeet(k, config.sensors.force_std, bias, firm)
        self.visited = VisitedVelocities(self._all_laws)
        sizes = n, k, self._all_laws.parameter_count, len(ADDED_TERMS["presliding"]), len(self.limbs)
        self._template, learned, memory, sums = empty_records(*sizes)
        self._learned_buffer, self._learned = learned
        self._memory_buffer, self._memory = memory
        self._sums_buffer, self._sums = sums
        self._retune(config.sensors)
        self.reset_to_prior()

    def reset_to_prior(self) -> None:
        """Start from the prior."""
        for limb in self.limbs:
            limb.reset_to_prior()
        self.ripples: FloatArray = np.zeros(0)
        limbs = [limb.newest for limb in self.limbs]
        self._changes = ChangeComparison(limbs, self._robot.joint_names, self._robot.foot_names)
        self._search: RippleSearch | None = RippleSearch(len(self._motors.names))
        self.visited.reset_to_prior()
        self.reset()

    def reset(self) -> None:
        """Restart the filters; laws and errors of the sensors stay, or are those of a second ago if not finite."""
        for part in (self._clock, self._noise, self._motion, self._fbse, self._rotation):
            part.reset()
        for one in (*self._memory, *self._sums):
            one[...] = 0.0
        self._memory.momentum[:] = self._memory.collisions[:] = np.nan
        self._memory.initial_strain[:], self._memory.covariance[:] = 1.0, np.diag([0.0, 1.0, 1.0])
        self._reset_pushes()
        self._sums.unknown[:] = True
        self._unloaded_feet.reset()
        self._standing: BoolArray = np.zeros(len(self._motors.names), dtype=bool)
        for limb in self.limbs:
            if not limb.is_finite:
                limb.go_back()
            limb.interrupt()
        if not is_bounded(self.visited.rows):
            self.visited.reset_to_prior()
        self._learned.delay_torque[:] = 0.0
        self.time = self._solved_at = self._ripple_tested_at = 0.0
        self._nis: FloatArray = np.full(len(self._motors.names), np.nan)
        self._publish(np.zeros(len(self._motors.names)))

    def _reset_pushes(self) -> None:
        """Reset the detection of pushes; limbs with unmeasured contacts count as pushed at all times."""
        memory, limbs = self._memory, self._limbs_in_contact
        memory.since_push[:] = memory.since_release[:] = math.inf
        memory.pushed_for[:] = 0.0
        memory.since_push[limbs] = memory.since_release[limbs] = memory.pushed_for[limbs] = -math.inf

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> JointFriction:
        """Friction of one frame; each complete window also gives information.

        Raises
        ------
        FloatingPointError
            When a result, or what a limb has learned, is not finite; call :meth:`reset` then.
        """
        dt = self._clock.interval(frame.dt, frame.position)
        if dt != frame.dt:
            frame = dataclasses.replace(frame, dt=dt)
        self.time += dt
        if self._noise.add(self.time, frame):
            self._retune(self._noise.noise)
        motion = self._motion.step(frame.position, frame.velocity, dt)
        rotation, out = self._rotation.step(attitude.angular_velocity, dt), self._template.new()
        expired, finite = step_frame(
            self._maps_buffer, self._all_laws.table_buffer, self._learned_buffer, dynamics.buffer, motion.buffer,
            rotation.buffer, frame.effort, frame.wrenches, frame.imu_fresh, frame.wrench_fresh,
            frame.readings_per_sample, dt, self.ripples, self._memory_buffer, self._sums_buffer, out.buffer,
        )  # fmt: skip
        if not finite:
            raise FloatingPointError("the friction of the identified law was not finite")
        external, external_sigma = out.external_torque, out.external_torque_sigma
        add_collisions_of_feet(
            dynamics.foot_jacobian, out.wrenches, phase.contact, math.exp(-EXTERNAL_BANDWIDTH * dt),
            self._memory.collisions, external, external_sigma,
        )  # fmt: skip
        if self._standing.any() and (out.sign_variance > self._least_sign_variance).any():
            measured = self._fbse.measure(frame, out.wrenches, attitude, phase, dynamics)
            correct_by_fbse(
                self._maps_buffer, self._learned_buffer, frame.effort, self._standing, *measured, out.buffer
            )
        for number, limb in enumerate(self.limbs if expired and not self.frozen else ()):
            if expired >> number & 1:  # a torque that was taken for a push has lasted too long: laws have changed
                limb.forget_laws(np.arange(limb.terms.joints.size))
        if self._sums.duration[0] > WINDOW - 0.5 * dt or dt == 0.0:
            self._end_window(frame, dynamics, out)
        return JointFriction(
            friction=out.friction,
            sigma=out.sigma,
            measured=out.measured,
            model=out.model,
            model_sigma=out.model_sigma,
            external_torque=external,
            external_torque_sigma=external_sigma,
            nis=self._nis,
            calibration_torque=out.errors,
            disturbed=out.disturbed,
            law=self._law,
        )

    def _end_window(self, frame: SensorFrame, dynamics: Dynamics, out: Any) -> None:
        """Use the window that ends with this frame, solve where that is due, and begin the next window."""
        sums, ready = self._sums, self._noise.ready
        if sums.duration[0] > 0.0:
            complete = ready and sums.duration[0] < _MAX_WINDOWS * WINDOW
            self._use_window(dynamics, out, complete)
            self.visited.add_velocities(out.regressor, out.velocity, out.velocity_std, float(sums.duration[0]))
            if ready and not (self.frozen or self._sensors_wrong):
                self._find_ripple(frame)
            self._changes.advance(self.time)
        begin_window(self._sums_buffer)
        if self.time - self._solved_at >= SOLUTION_INTERVAL - 0.5 * frame.dt:
            duration, self._solved_at = self.time - self._solved_at, self.time
            if not self.frozen:
                for limb in self.limbs:
                    limb.solve(duration)
                    if not limb.is_finite:
                        joints = ", ".join(self._motors.names[joint] for joint in limb.terms.joints)
                        raise FloatingPointError(f"what was learned of {joints} was not finite and is that of before")
                    limb.save_checkpoint(self.time)
            self._publish(frame.effort)

    def _use_window(self, dynamics: Dynamics, out: Any, complete: bool) -> None:
        """Let every limb use a window, if its sensors delivered and nothing pushes it."""
        sums = self._sums
        speed = np.abs(sums.velocity) / sums.duration[0]
        self._nis = self._nis.copy()
        at_rest, measured = np.zeros(3 + speed.size), sums.wrenches / sums.duration[0]
        model = ModelErrors(
            self._robot.position_error_columns(dynamics, at_rest, measured),
            np.ascontiguousarray(self._robot.link_error_columns(dynamics, at_rest)),
        )
        wrenches = self._unloaded_feet.classify(sums._replace(wrenches=sums.wrenches / sums.duration[0]))
        firm = ~np.logical_or(self._unloaded_feet.contact_transition, self._unloaded_feet.unloaded)
        self._standing = np.asarray((self._robot.limb & firm[:, None]).any(axis=0))
        for number, limb in enumerate(self.limbs):
            joints = limb.terms.joints
            if sums.unknown[number] or not complete:
                limb.interrupt()
                continue
            learns = bool(speed[joints].max() > _MAX_RESTING_SPEED) and not self.frozen
            for place, foot in enumerate(limb.terms.feet.tolist() if learns else ()):
                if self._unloaded_feet.unloaded[foot]:
                    limb.add_unloaded_foot(
                        place, wrenches[foot], self._noise.noise, float(sums.reading_counts[1 + foot])
                    )
            step_window(
                self._maps_buffer, limb.terms_buffer, self._learned_buffer, dynamics.buffer, to_buffer(model),
                self._sums_buffer, out.buffer, limb.solution.rows, learns, limb.buffer, limb.solution.information,
            )  # fmt: skip
            if learns:
                limb.note_window()
            self._learned.delay_torque[joints], self._nis[joints] = limb.stage.delay_torque, limb.stage.nis

    def _publish(self, effort: FloatArray) -> None:
        """Write what all limbs have learned into the record that frames read; ``effort`` (n,) of the joints [N m]."""
        learned, n = self._learned, len(self._motors.names)
        offset, variance, offset_std, friction = np.zeros((4, n))
        for limb in self.limbs:
            joints = limb.terms.joints
            limb.write(learned)
            offset[joints], variance[joints], friction[joints] = limb.constant_torque()
            offset_std[joints] = limb.terms.offset_std
        learned.effort_offset[:] = offset
        one_sided = one_sided_friction(offset, variance, offset_std, friction, self._model_std)
        learned.one_sided[:], learned.one_sided_variance[:] = one_sided
        phi = self._all_laws.regressor(np.full(n, DRY_FRICTION_SPEED), self._motors.torque(effort))
        mean = np.maximum((phi * learned.law).sum(axis=1), 0.0)
        learned.dry[:] = np.sqrt(mean**2 + np.einsum("ni,nij,nj->n", phi, learned.law_covariance, phi))
        self._least_sign_variance = self._motors.variance_at_joints((_MIN_SIGN_STD * learned.dry) ** 2)
        self._publish_law()

    def _publish_law(self) -> None:
        """Make the published law anew."""
        learned, motors, p = self._learned, self._motors, self.laws.parameter_count
        rows, P = self.visited.rows, learned.law_covariance
        line, spread = (rows * learned.law).sum(axis=2), np.einsum("anp,npq,bnq->abn", rows, P, rows)
        spread[0, 0], spread[1, 1] = np.maximum(spread[0, 0], 0.0), np.maximum(spread[1, 1], 0.0)
        self._law = LawEstimate(
            parameters=learned.law[:, :p].copy(),
            parameters_sigma=np.sqrt(np.maximum(np.diagonal(P, axis1=1, axis2=2)[:, :p], 0.0)),
            coulomb=motors.coulomb_at_joints(line[0]),
            viscous=motors.variance_at_joints(line[1]),
            coulomb_sigma=np.sqrt(motors.variance_at_joints(spread[0, 0])),
            viscous_sigma=np.sqrt(motors.variance_at_joints(motors.variance_at_joints(spread[1, 1]))),
            coulomb_viscous_covariance=spread[0, 1],
            velocity_range=self.visited.velocity_range.copy(),
            known=self.visited.known,
        )

    def _find_ripple(self, frame: SensorFrame) -> None:
        """Use the newest window in the search for a ripple; from its number on, the laws have its terms."""
        search, sums, n = self._search, self._sums, len(self._motors.names)
        if search is None or self.time < self._ripple_tested_at:
            return
        duration, columns = float(sums.duration[0]), self._all_laws.added["ripple"]
        speed = sums.velocity / duration
        middle, unexplained = self._motors.velocity(frame.position) - 0.5 * duration * speed, np.full((2, n), np.nan)
        for limb in self.limbs:
            unexplained[:, limb.terms.joints] = limb.stage.unexplained, limb.stage.unexplained_variance
        search.add(middle, speed, sums.regressor / duration, self._learned.law.copy(), unexplained, columns)
        if self.time - self._ripple_tested_at < RIPPLE_TEST_INTERVAL:
            return
        self._ripple_tested_at = self.time
        known = int(self.ripples[0]) if self.ripples.size else 0
        found = search.detect(known)
        if found == known:
            self._search = None if search.is_over else search
            return
        self._ripple_tested_at += RIPPLE_TEST_INTERVAL  # the law must be known first
        text = _RIPPLE_CORRECTED.format(found, known) if known else _RIPPLE_FOUND.format(found)
        self._health.add_event("ripple", frame.stamp_ns, text)
        self.ripples, self._search = np.full(n, float(found)), RippleSearch(n)
        for limb in self.limbs:
            limb.begin_ripple(columns)

    def _retune(self, noise: SensorNoise) -> None:
        """Use this noise in every part that weighs readings."""
        self._motion.retune(noise, self._noise.encoder_step)
        self._unloaded_feet.retune(noise.force_std)
        self._fbse.retune(noise)
        self._rotation.retune(noise)
        set_scalars(Learned, self._learned_buffer, WINDOW, noise.force_std, noise.moment_std)

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters, to keep over a restart; joints that share motors are saved motor by motor."""
        learned, n, p = self._learned, len(self._motors.names), self.laws.parameter_count
        added, windows = dict[str, FloatArray](), np.zeros(n)
        for kind, columns in self._all_laws.added.items():
            if kind == "presliding" or self.ripples.size:
                values, covariance = learned.law[:, columns], learned.law_covariance[:, columns, columns]
                added |= {kind: values.copy(), f"{kind}_covariance": covariance.copy()}
        for limb in self.limbs:
            windows[limb.terms.joints] = limb.windows
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
            values=learned.law[:, :p].copy(),
            covariance=learned.law_covariance[:, :p, :p].copy(),
            residual_variance=learned.law_error_std**2,
            measurement_variance=np.zeros(n),
            samples=windows,
            velocity_range=self.visited.velocity_range.copy(),
            ripples=self.ripples if self.ripples.size else None,
            **added,
        )

    def copy_identified(self, other: TwoStageFriction) -> None:
        """Copy laws and errors of the sensors from another stage of the same robot."""
        for limb, source in zip(self.limbs, other.limbs, strict=True):
            limb.copy_identified(source)
        self.ripples = other.ripples
        self._publish(np.zeros(len(self._motors.names)))

    def set_sensor_fault(self, wrong: bool, wrong_for: float) -> None:
        """Note that readings of sensors are known to be wrong, for at most this time [s], or right again.

        What was identified from wrong readings is dropped when they are right again. With a time of zero nothing is
        dropped.
        """
        self._sensors_wrong = wrong
        for limb in self.limbs:
            if wrong:
                limb.mark_checkpoint(wrong_for)
            elif wrong_for > 0.0:
                limb.rollback_to_mark()
        if not wrong:
            self._reset_pushes()
            self._publish(np.zeros(len(self._motors.names)))

    def sensor_calibration(self) -> SensorCalibration:
        """Errors of the sensors; that of the IMU is the mean of all limbs, weighted by their variances."""
        delay, gain = np.full((2, len(self._robot.foot_names)), np.nan), np.full((2, len(self._motors.names)), np.nan)
        weight, weighted = np.zeros(3), np.zeros(3)
        for limb in self.limbs:
            terms, std = limb.terms, limb.terms.specific_force_std
            delays, gains = (terms.wrench_delay, terms.torque_delay), (terms.gain, terms.accelerometer)
            biases = terms.accelerometer, terms.wrench_delay
            spread = np.sqrt(np.diagonal(limb.error_covariance(*delays)))
            delay[:, terms.feet] = terms.wrench_delay_std * np.stack((limb.errors(*delays), spread))
            P = terms.effort_gain @ limb.error_covariance(*gains) @ terms.effort_gain.T
            gain[:, terms.joints] = terms.effort_gain @ limb.errors(*gains), np.sqrt(np.diagonal(P))
            if std > 0.0:
                information = 1.0 / (np.diagonal(limb.error_covariance(*biases)) * std**2)
                weight += information
                weighted += information * limb.errors(*biases) * std
        variance = np.divide(1.0, weight, out=np.full(3, np.inf), where=weight > 0.0)
        bias = weighted * np.where(weight > 0.0, variance, 0.0)
        return SensorCalibration(delay, np.stack((bias, np.sqrt(variance))), gain, self._changes.found)

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        row_of, p = dict(zip(here, there, strict=True)), self.laws.parameter_count
        if identified.has_ripple and identified.ripples is not None:
            self.ripples = np.full(len(self._motors.names), float(identified.ripples[there].max()))
        for limb in self.limbs:
            for motor, joint in enumerate(limb.terms.joints.tolist()):
                if (row := row_of.get(joint)) is None:
                    continue
                width = min(p, identified.values.shape[1])
                known = [(slice(width), (identified.values[row, :width], identified.covariance[row, :width, :width]))]
                for kind, columns in self._all_laws.added.items():
                    if (saved := identified.added(kind, row)) is not None:
                        known.append((columns, saved))
                for columns, (values, covariance) in known:
                    limb.solution.set_law(motor, columns, values, covariance, limb.terms.law_std[motor])
                limb.windows = max(limb.windows, float(identified.samples[row]))
            limb.solution.solve()
            limb.newest.reset()
        self.visited.restore(identified, here, there)
        self._publish(np.zeros(len(self._motors.names)))
