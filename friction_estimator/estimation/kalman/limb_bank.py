"""The filters of all limbs, and their estimates joint by joint for every frame to use.

    window ─► UnloadedFeet │ WindowDynamics │ wrong positions │ wrong links │ limbs, group by group ─► LimbEstimates

Each frame after a window does one part of this work, so that no frame bears all of it. The estimates of all limbs are
published together, after the last one, so that their order does not matter.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from friction_estimator.base import contact_phase
from friction_estimator.base.contact_phase import UnloadedFeet
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.law_bounds import law_bounds
from friction_estimator.estimation.kalman.limb_estimates import (
    EstimateBuffers,
    LimbEstimates,
    empty_estimates,
    split_offset,
    write_limb_estimates,
)
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import MotorPriors, find_limbs, make_layout, sensor_errors
from friction_estimator.estimation.kalman.sensor_changes import ChangeComparison, LimbFilterChanges
from friction_estimator.estimation.kalman.window_dynamics import CORRELATION_TIME, WindowDynamics
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.kernels.records import flatten
from friction_estimator.laws.identified import CALIBRATION, IdentifiedParameters
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, IntArray, SensorCalibration

_MAX_RESTING_SPEED = 0.02
"""A limb whose joints are all slower keeps its law: every window would repeat the same equation [rad/s]."""
_MIN_STD_OVER_RIPPLE = 0.25
"""Lower bound on the law-error standard deviation, over the ripple of the Coulomb friction: the friction that rises
towards zero velocity ripples, too, and no term of the ripple represents that."""


def first_fit_decreasing(costs: Sequence[float]) -> list[list[int]]:
    """Groups of tasks of which none costs more than the largest task: each goes into the first group with room."""
    groups: list[list[int]] = []
    room: list[float] = []
    for index in sorted(range(len(costs)), key=lambda index: -costs[index]):
        place = next((place for place, left in enumerate(room) if left >= costs[index]), len(groups))
        if place == len(groups):
            groups.append([])
            room.append(max(costs))
        groups[place].append(index)
        room[place] -= costs[index]
    return groups


class FrameSchedule:
    """Work of a window, spread over the frames after it."""

    def __init__(self) -> None:
        self._parts, self._parts_per_frame = deque[Callable[[], None]](), 1

    @property
    def pending(self) -> bool:
        """True while a part of the work is left."""
        return bool(self._parts)

    def begin(self, parts: Sequence[Callable[[], None]], frames: int) -> None:
        """Begin work, whose parts the next frames do in this order."""
        self._parts, self._parts_per_frame = deque(parts), math.ceil(len(parts) / max(frames, 1))

    def do_next(self) -> bool:
        """Do the parts of the work that are due in one frame; True when no part is left after them."""
        was_pending = self.pending
        for _ in range(min(self._parts_per_frame, len(self._parts))):
            self._parts.popleft()()
        return was_pending and not self.pending


class LimbBank:
    """The filters of all limbs and what follows from them.

    The work of a window is spread over the frames after it, in the parts of :meth:`begin_window`. The largest limb
    alone is a group, and a group of smaller limbs costs at most as much. Where a window has fewer samples than there
    are parts, each frame does more.

    Parameters
    ----------
    config : ``kalman``, ``sensors``
    robot : whose limbs they are
    laws : friction laws of the motors

    Attributes
    ----------
    filters : of all limbs
    dynamics : robot model at the ends of the windows
    visited : velocities of the motors
    newest : window that the limbs use, or have used, and mean velocities of the motors (n,); None before the first one
    unexplained : (2, n) torque of the motors in it that their laws do not explain, and its variance; NaN where nothing
        was measured [N m], [(N m)^2]
    contact_transition : (n,) True for joints of limbs with a foot that is neither in the air nor firmly on the ground;
        with a fixed base no foot has to stand, and none lands
    """

    def __init__(self, config: Config, robot: RobotModel, laws: JointLaws) -> None:
        self._config, self._floating = config, bool(robot.base_dofs)
        self._names, self._motors, self.priors = robot.joint_names, robot.motors, MotorPriors.from_robot(robot)
        self._offset_std = self.priors.offset_std * config.kalman.calibrate_sensors
        self._joint_count, self._foot_count = n, k = len(robot.joint_names), len(robot.foot_names)
        self._no_estimates = empty_estimates(n, laws.parameter_count, k, robot.motors.group.shape[1])
        self.visited = VisitedVelocities(laws)
        bounds = law_bounds(laws)
        ripple = laws.added["ripple"]
        self._rippling = np.arange(ripple.start, ripple.stop)[:2]  # sine and cosine of the Coulomb friction
        self.filters = list[LimbFilter]()
        for limb in find_limbs(robot):
            layout = make_layout(limb, laws, config.kalman, config.sensors, self._floating, self.priors)
            self.filters.append(LimbFilter(layout, config.kalman, bounds[limb.joints], laws.presliding[limb.joints]))
        limbs = [LimbFilterChanges(limb_filter) for limb_filter in self.filters]
        self._changes = ChangeComparison(limbs, self._names, robot.foot_names)
        self._checkpoints: list[tuple[FloatArray, int] | None] = [None] * len(self.filters)
        self.dynamics = WindowDynamics(config, robot, laws)
        self._groups = first_fit_decreasing([limb_filter.layout.size**2 for limb_filter in self.filters])
        self._frozen = False
        self._unloaded_feet = UnloadedFeet(
            k,
            config.sensors.force_std,
            sensor_errors(config.kalman, config.sensors).force_bias_std,
            contact_phase.CONTACT_FRACTION * robot.weight,
        )
        self.reset()

    def reset(self) -> None:
        """Restart the filters and discard the window in progress; law and calibration stay."""
        self._schedule = FrameSchedule()
        self.dynamics.reset()
        self._unloaded_feet.reset()
        self.contact_transition: BoolArray = np.ones(self._joint_count, dtype=bool)
        self._estimates = EstimateBuffers(self._no_estimates)
        self._failed, self._used = dict[int, str](), set[int]()
        self.newest: tuple[Window, FloatArray] | None = None
        self.unexplained: FloatArray = np.full((2, self._joint_count), np.nan)
        for limb_filter in self.filters:
            limb_filter.reset()
        self.refresh_estimates()

    @property
    def estimates(self) -> LimbEstimates:
        """Estimates from all windows that all limbs have used."""
        return self._estimates.published

    @property
    def estimates_buffer(self) -> FloatArray:
        """Buffer behind :attr:`estimates`, for kernels."""
        return self._estimates.published_buffer

    def fix_presliding_at_zero(self) -> None:
        """Correct all filters with torques of presliding that are zero."""
        for limb_filter in self.filters:
            limb_filter.fix_presliding_at_zero()
        self.refresh_estimates()

    def retune(self, noise: SensorNoise) -> None:
        """Use the variances of this noise from now on."""
        self.dynamics.retune(noise)
        self._unloaded_feet.retune(noise.force_std)

    def begin_window(self, window: Window, usable: bool) -> None:
        """Take a complete window; every :meth:`advance_work` from now on does a part of the work on it.

        Parameters
        ----------
        usable : False when the noise of the sensors is not known yet
        """
        groups = [partial(self._use_window_in_group, group, window, usable) for group in self._groups]
        collect = partial(self._collect_results, window.time)
        parts: list[Callable[[], None]] = [partial(self._classify_feet, window), *self.dynamics.parts(window), *groups]
        self._schedule.begin([*parts, collect, self._estimates.publish], window.samples)

    def advance_work(self, frozen: bool) -> bool:
        """Do the next part of the work on a window, if any is left; True when the estimates are new.

        Parameters
        ----------
        frozen : True keeps law and calibration as they are
        """
        self._frozen = frozen
        return self._schedule.do_next()

    def complete_work(self, frozen: bool) -> bool:
        """Do all work on a window that is left; True when the estimates are new."""
        new = False
        while self._schedule.pending:
            new = self.advance_work(frozen)
        return new

    def _classify_feet(self, window: Window) -> None:
        """Find the feet in the air, and those that land or lift off."""
        self._mean_wrenches = self._unloaded_feet.classify(window)
        landing = self._unloaded_feet.contact_transition
        for limb in (limb_filter.limb for limb_filter in self.filters):
            self.contact_transition[limb.joints] = self._floating and any(landing[foot] for foot in limb.feet.tolist())
        self.unexplained.fill(np.nan)

    def _use_window_in_group(self, group: list[int], window: Window, usable: bool) -> None:
        """Let the limbs with these numbers use a window."""
        self.newest = window, self.dynamics.speed
        for limb_index in group:
            self._use_window(limb_index, window, usable, self._frozen)

    def _use_window(self, index: int, window: Window, usable: bool, frozen: bool) -> None:
        """Let one limb use a window, if its sensors delivered and nothing pushes it."""
        limb_filter = self.filters[index]
        limb = limb_filter.limb
        known = window.complete and window.imu_fresh and all(window.wrench_fresh[limb.feet].tolist())
        disturbed = window.disturbed[limb.joints[0]]
        if not known or not usable or disturbed:
            limb_filter.skip(window.duration)
            if disturbed and window.duration > 0.0:  # the torque of the calibration is still published
                self._evaluate_limb(index)
        elif limb_filter.running and window.duration > 0.0:
            if not self._filter_window(index, window, frozen):
                self._failed[index] = "the readings of a window were not finite"
        else:
            limb_filter.start_from(*self.dynamics.momentum(limb_filter.buffers.limb, limb.joints.size))

    def _collect_results(self, time: float) -> None:
        """Take over what all limbs have learned from a window with this end [s].

        Raises
        ------
        FloatingPointError
            When the window was not finite, or a filter is not any more: it has gone back to an older state then.
        """
        (failed, used), self._failed, self._used = (self._failed, self._used), {}, set()
        for index, limb_filter in enumerate(self.filters):
            measured_at = math.nan
            if index in used:
                last = self._estimates.next.measured_at[limb_filter.limb.joints[0]]
                measured_at = time if limb_filter.running else float(last)
            if recovery := self._update_estimates(index, measured_at):
                failed[index] = recovery
            elif index not in failed:
                limb_filter.save_checkpoint(time)
        self._split_offset()
        self._changes.advance(time)
        if failed:
            joints = {index: [self._names[joint] for joint in self.filters[index].limb.joints] for index in failed}
            texts = (f"{text} ({', '.join(joints[index])})" for index, text in failed.items())
            raise FloatingPointError("; ".join(texts))

    def _split_offset(self) -> None:
        """Split the constant torques of all joints into offsets and friction."""
        dry = self._motors.coulomb_at_joints(self._estimates.next.dry_friction)
        split_offset(self._estimates.next_buffer, dry, self._offset_std, self._config.kalman.asymmetry_std)

    def sensor_calibration(self) -> SensorCalibration:
        """Errors of the sensors; that of the IMU is the mean of all limbs, weighted by their variances."""
        delay, gain = np.full((2, self._foot_count), np.nan), np.full((2, self._joint_count), np.nan)
        weight, weighted = np.zeros(3), np.zeros(3)
        for limb_filter in self.filters:
            limb, layout, variance = limb_filter.limb, limb_filter.layout, np.diagonal(limb_filter.covariance)
            known = np.stack((limb_filter.state, np.sqrt(variance)))
            delay[:, limb.feet] = known[:, layout["wrench_delay"]]
            gain[:, limb.joints] = known[:, layout["effort_gain"]]
            imu_states = layout["accelerometer_bias"]
            bias = variance[imu_states]
            if (bias > 0.0).all():
                weight += 1.0 / bias
                weighted += limb_filter.state[imu_states] / bias
        variance = np.divide(1.0, weight, out=np.full(3, np.inf), where=weight > 0.0)
        bias = weighted * np.where(weight > 0.0, variance, 0.0)
        return SensorCalibration(delay, np.stack((bias, np.sqrt(variance))), gain, self._changes.found)

    def window_counts(self) -> FloatArray:
        """Number of windows (n,) that each joint has learned from."""
        windows = np.zeros(self._joint_count)
        for limb_filter in self.filters:
            windows[limb_filter.limb.joints] = limb_filter.windows
        return windows

    def calibration(self) -> tuple[FloatArray, FloatArray]:
        """Errors of model and torque sensor of every joint, :data:`CALIBRATION`: (n, c) and covariance (n, c, c)."""
        n, c = self._joint_count, len(CALIBRATION)
        values, covariance = np.zeros((n, c)), np.zeros((n, c, c))
        for limb_filter in self.filters:
            for row, joint in enumerate(limb_filter.limb.joints.tolist()):
                states = limb_filter.layout.joint_calibration(row)
                values[joint] = limb_filter.state[states]
                covariance[joint] = limb_filter.covariance[np.ix_(states, states)]
        return values, covariance

    def restore(
        self,
        identified: IdentifiedParameters,
        here: Sequence[int],
        there: Sequence[int],
        parameters: int,
        added: Mapping[str, slice],
    ) -> None:
        """Start from saved parameters.

        Parameters
        ----------
        here, there : motors, and their rows among the saved ones
        parameters : of a law, without the terms that the data have added
        added : columns of these terms
        """
        row_of = dict(zip(here, there, strict=True))
        for limb_filter in self.filters:
            for motor, joint in enumerate(limb_filter.limb.joints.tolist()):
                if joint in row_of:
                    limb_filter.restore(motor, identified, row_of[joint], parameters, added)
        self.visited.restore(identified, here, there)

    def mark_checkpoint(self, age: float) -> None:
        """Note the checkpoint of each limb that is at least this old [s], or the oldest one."""
        self._checkpoints = [limb_filter.checkpoint_before(age) for limb_filter in self.filters]

    def rollback_to_mark(self) -> None:
        """Go back to what the limbs had learned at the checkpoint of :meth:`mark_checkpoint`."""
        for limb_filter, checkpoint in zip(self.filters, self._checkpoints, strict=True):
            limb_filter.rollback(checkpoint)
        self.refresh_estimates()

    def copy_identified(self, other: LimbBank, columns: tuple[IntArray, IntArray]) -> None:
        """Copy what the filters of another bank have identified, and the velocities of its motors.

        Parameters
        ----------
        columns : of the parameters of each law that both have, see :meth:`JointLaws.common_columns`
        """
        self.visited.copy_identified(other.visited, columns)
        for mine, theirs in zip(self.filters, other.filters, strict=True):
            mine.copy_identified(theirs, columns)
        self._estimates.next.dry_friction[:] = other.estimates.dry_friction
        self.refresh_estimates()

    def continue_from(self, other: LimbBank, columns: tuple[IntArray, IntArray]) -> None:
        """Replace another bank in mid-run, in the middle of a window; ``columns`` of :meth:`copy_identified`."""
        self._unloaded_feet, self.contact_transition = other._unloaded_feet, other.contact_transition
        for own, known in zip(flatten(self._estimates.next), flatten(other.estimates), strict=True):
            if own.shape == known.shape:
                own[:] = known
        self.dynamics.continue_from(other.dynamics)
        self.visited.copy_identified(other.visited, columns)
        for mine, theirs in zip(self.filters, other.filters, strict=True):
            mine.continue_from(theirs, columns)
        self.refresh_estimates()

    def wrench_delay(self) -> FloatArray:
        """Delay of each foot's wrenches after the motor torques, by the filter of its limb (k,) [s]."""
        delay = np.zeros(self._foot_count)
        for limb_filter in self.filters:
            delay[limb_filter.limb.feet] = limb_filter.state[limb_filter.layout["wrench_delay"]]
        return delay

    def refresh_estimates(self) -> None:
        """Publish the estimates anew, after filters have been changed by anything but a window."""
        for index in range(len(self.filters)):
            self._update_estimates(index)
        self._split_offset()
        self._estimates.publish()

    def _evaluate_limb(self, index: int) -> FloatArray:
        """Write the momentum balance of a limb over the newest window into the buffer of its filter, and return it."""
        buffers = self.filters[index].buffers
        self.dynamics.balance_of_limb(buffers.limb, buffers.table, buffers.memory, buffers.balance)
        self._used.add(index)
        return buffers.balance

    def _filter_window(self, index: int, window: Window, frozen: bool) -> bool:
        """Use a window in the filter of a limb, and the bias of its unloaded feet; False where it was not finite."""
        limb_filter = self.filters[index]
        limb, balance = limb_filter.limb, self._evaluate_limb(index)
        fastest = max(map(abs, window.end_motion.velocity[limb.joints].tolist()))
        resting = fastest < _MAX_RESTING_SPEED
        if not limb_filter.update(balance, frozen or resting, bool(self.contact_transition[limb.joints[0]])):
            self._used.discard(index)
            return False
        if self._rippling.size:
            ripple = self.estimates.parameters[np.ix_(limb.joints, self._rippling)]
            variance = limb_filter.memory.law_error_variance
            np.maximum(variance, _MIN_STD_OVER_RIPPLE**2 * (ripple**2).sum(axis=1), out=variance)
        if not frozen:
            for place, foot in enumerate(limb.feet):
                if self._unloaded_feet.unloaded[foot]:
                    lasting = max(CORRELATION_TIME / window.duration, 1.0)
                    noise = self.dynamics.wrench_variance * (lasting / window.reading_counts[1 + foot])
                    limb_filter.correct_foot_bias(place, self._mean_wrenches[foot], noise)
        self._estimates.next.dry_friction[limb.joints] = limb_filter.balance.dry_friction
        self.unexplained[:, limb.joints] = limb_filter.fit.unexplained
        return True

    def _update_estimates(self, index: int, measured_at: float = math.nan) -> str:
        """Law and law error of a limb's motors, and their covariance joint by joint.

        A filter that is not finite, or has no covariance, goes back to an older state; returns a text about that for
        the log, else an empty one.
        """
        limb_filter = self.filters[index]
        own = limb_filter.buffers
        records = own.limb, own.memory, own.fit, own.table, own.balance
        if write_limb_estimates(*records, measured_at, self.visited.rows, self._estimates.next_buffer):
            return ""
        recovery = f"the filter of a limb was not finite, and {limb_filter.recover()}"
        self._update_estimates(index)
        return recovery

    def inflate_after_long_push(self, limbs: int) -> None:
        """Inflate the covariance of limbs, given as bits, whose push has lasted too long to be one."""
        for index, limb_filter in enumerate(self.filters):
            if limbs >> index & 1:
                limb_filter.inflate_after_long_push()
