"""The filters of all limbs, and their estimates joint by joint for every frame to use.

    window ─► UnloadedFeet │ WindowDynamics │ wrong links │ limbs, group by group ─► LimbEstimates      │ the next frame

The limbs take turns so that no frame bears the work of all of them (:class:`LimbSchedule`). Their estimates are
published together, after the last one, so that their order does not matter.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.limb_filter import FREE_AT_REST, Learned, LimbFilter
from friction_estimator.estimation.kalman.limb_state import (
    Limb,
    LimbState,
    LimbWindow,
    MotorPriors,
    find_limbs,
    joint_state_indices,
    law_bounds,
    lay_out,
    move_within_bounds,
    sensor_errors,
)
from friction_estimator.estimation.kalman.sensor_monitor import UnloadedFeet
from friction_estimator.estimation.kalman.window_dynamics import WindowDynamics, WindowTerms
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.linear_algebra import bounded, is_covariance
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, FloatArray, IntArray, SensorCalibration, record

_SHARED_PARTS = 5
"""Parts of the work of a window besides the limbs: feet, robot model, wrong links, what was learned, publication."""
_RESTING_SPEED = 0.02
"""A limb whose joints are all slower keeps its law: every window would repeat the same equation [rad/s]."""
_RIPPLE_PART = 0.25
"""Lower bound on the model-error standard deviation, over the ripple of the Coulomb friction: the friction that rises
towards zero velocity ripples, too, and no term of the ripple represents that."""
_LEARNED = 0.5
"""Data show something of presliding when the standard deviation of its torque is below this part of the prior."""
_NO_MOTOR, _ALL_MOTORS = 0.65, 2.0
"""No motor has presliding when no z is above the first, and the squares of the negative ones exceed those of the
positive ones by the second. Sigma of z holds errors that last over many windows, so z is small: with LuGre friction of
2 mrad some z stay above 0.65, and walks without presliding leave its terms after 1 to 16 s."""


@record(frozen=True, slots=True)
class LimbEstimates:
    """Estimates of all joints after the newest window. Never changed once they are published.

    Attributes
    ----------
    parameters : (n, p) of the friction laws, motor by motor, within their bounds
    model_error : (n,) of the laws now, motor by motor [N m]
    covariance : (n, g (p + 1), g (p + 1)) of both, of the g motors that act on each joint; g = 1 without coupling
    model_error_variance : (n,) of the model error when nothing is measured [(N m)^2]
    calibration_torque : (n,) of wrong links, drive gains and accelerometer [N m]; wrenches are calibrated apart
    calibration_variance : (n,) of all calibration [(N m)^2]
    explained_torque : (n,) of all calibration, the wrenches' too [N m]
    offset, offset_variance : (n,) constant torque that law and model lack [N m], [(N m)^2]
    consistency : (n,) squared innovation over its variance, NaN before the first window
    measured_at : (n,) since the restart, when a window was last used [s]
    sliding_variance : (n,) of the model error of a motor that moves [(N m)^2]
    rest_part : (n,) variance of the model error of a motor at rest, over the square of ``dry_friction``
    dry_friction : (n,) largest friction that may hold a motor at rest [N m]
    wrench_bias, wrench_gain : (k, 6)
    parameters_sigma : (n, p)
    coulomb, viscous, coulomb_sigma, viscous_sigma : (n,) of each joint that moves alone [N m], [N m s/rad]
    coulomb_viscous_covariance : (n,) [(N m)^2 s/rad]
    """

    parameters: FloatArray
    model_error: FloatArray
    covariance: FloatArray
    model_error_variance: FloatArray
    calibration_torque: FloatArray
    calibration_variance: FloatArray
    explained_torque: FloatArray
    offset: FloatArray
    offset_variance: FloatArray
    consistency: FloatArray
    measured_at: FloatArray
    sliding_variance: FloatArray
    rest_part: FloatArray
    dry_friction: FloatArray
    wrench_bias: FloatArray
    wrench_gain: FloatArray
    parameters_sigma: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    coulomb_sigma: FloatArray
    viscous_sigma: FloatArray
    coulomb_viscous_covariance: FloatArray

    @staticmethod
    def empty(joints: int, parameters: int, feet: int, group: int = 1) -> LimbEstimates:
        """Estimates before any window: n joints, p parameters, k feet, g motors that act on a joint."""
        n, p, k, g = joints, parameters, feet, group
        arrays = {name: np.zeros(n) for name in _ARRAYS}
        arrays |= {"parameters": np.zeros((n, p)), "parameters_sigma": np.zeros((n, p))}
        arrays |= {"covariance": np.zeros((n, g * (p + 1), g * (p + 1)))}
        arrays |= {"wrench_bias": np.zeros((k, 6)), "wrench_gain": np.zeros((k, 6))}
        arrays |= {"consistency": np.full(n, np.nan), "measured_at": np.full(n, -math.inf)}
        return LimbEstimates(**arrays)

    def copy(self) -> LimbEstimates:
        """Copy of all arrays; it may be changed until it is published."""
        return LimbEstimates(*[getattr(self, name).copy() for name in _ARRAYS])


_ARRAYS = tuple(field.name for field in dataclasses.fields(LimbEstimates))


@kernel
def _weigh(rows: FloatArray, weights: FloatArray, group: IntArray, out: FloatArray) -> None:
    """Write the vector (g (p + 1),) whose product with a joint's parameters is ``sum_g weights_g rows[group_g]``."""
    p = rows.shape[1]
    out[:] = 0.0
    for a in range(group.size):
        for i in range(p):
            out[a * (p + 1) + i] = weights[a] * rows[group[a], i]


@kernel
def _spread(left: FloatArray, P: FloatArray, right: FloatArray) -> float:
    """``left^T P right``."""
    total = 0.0
    for i in range(left.size):
        if left[i] != 0.0:
            row, part = P[i], 0.0
            for j in range(right.size):
                part += row[j] * right[j]
            total += left[i] * part
    return total


@kernel("I V M V V B i8 i8 M IM M T M M M V T V V V M V V V V V")
def gather_limb(
    rows: IntArray,
    state: FloatArray,
    P: FloatArray,
    sliding: FloatArray,
    at_rest: FloatArray,
    free_at_rest: BoolArray,
    law: int,
    model_error_start: int,
    to_joints: FloatArray,
    group: IntArray,
    weights: FloatArray,
    bounds: FloatArray,
    coulomb_rows: FloatArray,
    viscous_rows: FloatArray,
    parameters: FloatArray,
    model_error: FloatArray,
    covariance: FloatArray,
    model_error_variance: FloatArray,
    sliding_variance: FloatArray,
    rest_part: FloatArray,
    parameters_sigma: FloatArray,
    coulomb: FloatArray,
    viscous: FloatArray,
    coulomb_sigma: FloatArray,
    viscous_sigma: FloatArray,
    coulomb_viscous_covariance: FloatArray,
) -> bool:
    """Write a limb's law and model error, and all that follows from them, into its rows of the estimates.

    Returns
    -------
    False, and nothing is written, where the state is not finite or P is no covariance

    Parameters
    ----------
    rows : (m,) joints of the limb
    sliding, at_rest, free_at_rest : (m,) of :class:`LimbFilter`
    law, model_error_start : first state of the law and of the model error
    to_joints, group, weights : (m, m), (m, g), (m, g) of the limb's motors
    bounds : (n, b, p)
    coulomb_rows, viscous_rows : (n, p) of :class:`VisitedVelocities`
    """
    m, g = group.shape
    p = coulomb_rows.shape[1]
    if not (bounded(state) and is_covariance(P) and bounded(sliding) and bounded(at_rest)):
        return False
    for a in range(m):
        joint = rows[a]
        for b in range(g):
            for c in range(g):
                for i in range(p + 1):
                    left = law + group[a, b] * p + i if i < p else model_error_start + group[a, b]
                    for j in range(p + 1):
                        right = law + group[a, c] * p + j if j < p else model_error_start + group[a, c]
                        covariance[joint, b * (p + 1) + i, c * (p + 1) + j] = P[left, right]
        for i in range(p):
            parameters[joint, i] = state[law + a * p + i]
            parameters_sigma[joint, i] = math.sqrt(max(P[law + a * p + i, law + a * p + i], 0.0))
        move_within_bounds(parameters[joint], covariance[joint, :p, :p], bounds[joint])
        model_error[joint] = state[model_error_start + a]
        model_error_variance[joint], sliding_variance[joint] = sliding[a] + at_rest[a], sliding[a]
        rest_part[joint] = FREE_AT_REST if free_at_rest[a] else 0.0
    limb_coulomb, limb_viscous = coulomb_rows[rows], viscous_rows[rows]
    along_coulomb, along_viscous = np.empty(g * (p + 1)), np.empty(g * (p + 1))
    for a in range(m):
        joint = rows[a]
        coulomb[joint] = viscous[joint] = 0.0
        for b in range(m):
            if to_joints[a, b] != 0.0:
                for i in range(p):
                    coulomb[joint] += abs(to_joints[a, b]) * limb_coulomb[b, i] * parameters[rows[b], i]
                    viscous[joint] += to_joints[a, b] ** 2 * limb_viscous[b, i] * parameters[rows[b], i]
        _weigh(limb_coulomb, np.abs(weights[a]), group[a], along_coulomb)
        _weigh(limb_viscous, weights[a] ** 2, group[a], along_viscous)
        coulomb_sigma[joint] = math.sqrt(max(_spread(along_coulomb, covariance[joint], along_coulomb), 0.0))
        viscous_sigma[joint] = math.sqrt(max(_spread(along_viscous, covariance[joint], along_viscous), 0.0))
        coulomb_viscous_covariance[joint] = _spread(along_coulomb, covariance[joint], along_viscous)
    return True


@kernel("I I I V M M V f8 V V V V V V V M M")
def write_calibration(
    rows: IntArray,
    feet: IntArray,
    starts: IntArray,
    x: FloatArray,
    P: FloatArray,
    columns: FloatArray,
    limb_consistency: FloatArray,
    time: float,
    torque: FloatArray,
    variance: FloatArray,
    explained: FloatArray,
    offset: FloatArray,
    offset_variance: FloatArray,
    consistency: FloatArray,
    measured_at: FloatArray,
    wrench_bias: FloatArray,
    wrench_gain: FloatArray,
) -> None:
    """Write what a limb's calibration explains, and how well its window fitted, into its rows of the estimates.

    Parameters
    ----------
    rows, feet : (m,), (f,) joints and feet of the limb
    starts : first state of each block, in the order of :class:`LimbState`
    x, P : state (size,) and covariance of the limb's filter
    columns : (m, size) torque per unit of every state; nothing is written where they are not finite
    limb_consistency : (m,)
    time : end of the window [s]
    torque, ..., wrench_gain : output, fields of :class:`LimbEstimates`
    """
    if not bounded(columns):
        return
    m, size = columns.shape
    first, foot_bias, foot_gain, wrench_stop = starts[3], starts[4], starts[5], starts[6]
    for a in range(m):
        joint, spread = rows[a], np.zeros(size - first)
        torque[joint] = variance[joint] = explained[joint] = 0.0
        for i in range(first, size):
            factor, row = columns[a, i], P[i, first:]
            if factor != 0.0:
                part = factor * x[i]
                explained[joint] += part
                if i < foot_bias or i >= wrench_stop:
                    torque[joint] += part
                for j in range(spread.size):
                    spread[j] += factor * row[j]
        for j in range(spread.size):
            variance[joint] += spread[j] * columns[a, first + j]
        consistency[joint], measured_at[joint] = limb_consistency[a], time
        own = starts[10] + a
        offset[joint], offset_variance[joint] = x[own], P[own, own]
    for place in range(feet.size):
        for axis in range(6):
            wrench_bias[feet[place], axis] = x[foot_bias + 6 * place + axis]
            wrench_gain[feet[place], axis] = x[foot_gain + 6 * place + axis]


def presliding_evidence(limb_filter: LimbFilter) -> FloatArray:
    """Whether the friction of each motor of a limb builds up over a distance, (m,); zero where the data show nothing.

    ``z = c / sigma_c`` of ``c = sum_k m_k - F_c / 2`` with the torques m of presliding: the sum is near F_c with
    presliding and near zero without, also where the law misses something else.
    """
    layout, built_up = limb_filter.layout, limb_filter.presliding
    m, p = built_up.shape
    states = layout.law.start + np.arange(m * p).reshape(m, p)
    law, P = limb_filter.state[states], limb_filter.covariance[states[:, :, None], states[:, None, :]]
    beyond_half = built_up - 0.5 * limb_filter.coulomb_weights
    c = (beyond_half * law).sum(axis=1)
    variance, spread = (np.einsum("mi,mij,mj->m", weights, P, weights) for weights in (beyond_half, built_up))
    prior = (built_up * layout.prior_std[states] ** 2).sum(axis=1)
    shown = (spread < _LEARNED**2 * prior) & (variance > 0.0)
    return np.divide(c, np.sqrt(np.where(shown, variance, 1.0)), out=np.zeros(m), where=shown)


def _coulomb_ripple(laws: JointLaws) -> IntArray:
    """Columns of sine and cosine of the Coulomb friction, (2,), or (0,) without ripple."""
    columns = laws.added["ripple"]
    return np.arange(columns.start, columns.stop)[:2]


class LimbBank:
    """The filters of all limbs and what follows from them.

    Parameters
    ----------
    config : ``kalman``, ``sensors``, ``contact_phase.on_fraction``
    robot : whose limbs they are
    laws : friction laws of the motors

    Attributes
    ----------
    limbs, filters : joints that couple, and their filters
    estimates : from all windows that all limbs have used
    visited : velocities of the motors
    newest : window that the limbs use, or have used; None before the first one
    missed : (2, n) torque of the motors in it that their laws do not explain, and its variance; NaN where nothing was
        measured [N m], [(N m)^2]
    contact_transition : (n,) True for joints of limbs with a foot that is neither in the air nor firmly on the ground
    """

    def __init__(self, config: Config, robot: RobotModel, laws: JointLaws) -> None:
        group = robot.motors.group.shape[1]
        self._config, self._floating = config, bool(robot.base_dofs)
        self._names, self.priors = robot.joint_names, MotorPriors.of(robot)
        self._shape = len(robot.joint_names), laws.parameter_count, len(robot.foot_names), group
        self.visited = VisitedVelocities(laws)
        self._bounds = law_bounds(laws)
        self._rippling = _coulomb_ripple(laws)
        self.limbs = find_limbs(robot)
        self._motors = [robot.motors.select(limb.joints) for limb in self.limbs]
        self.filters = [
            LimbFilter(
                self._layout(limb, laws),
                config.kalman,
                self._bounds[limb.joints],
                laws.presliding[limb.joints],
            )
            for limb in self.limbs
        ]
        self._held: list[Learned | None] = [None] * len(self.limbs)
        self._dynamics = WindowDynamics(config, robot, laws)
        self._unloaded_feet = UnloadedFeet(
            len(robot.foot_names),
            config.sensors.force_std,
            sensor_errors(config.kalman, config.sensors).force_bias_std,
            config.contact_phase.on_fraction * robot.weight,
        )
        self.reset()

    def reset(self) -> None:
        """Restart the filters; law and calibration stay."""
        self._dynamics.reset()
        self._unloaded_feet.reset()
        self.contact_transition: BoolArray = np.ones(self._shape[0], dtype=bool)
        self._next = LimbEstimates.empty(*self._shape)
        self._failed: dict[int, str] = {}
        self._used: dict[int, LimbWindow] = {}
        self.newest: WindowTerms | None = None
        self.missed: FloatArray = np.full((2, self._shape[0]), np.nan)
        for limb_filter in self.filters:
            limb_filter.restart()
        self.refresh()

    def _layout(self, limb: Limb, laws: JointLaws) -> LimbState:
        return lay_out(limb, laws, self._config.kalman, self._config.sensors, self._floating, self.priors)

    def shows_no_presliding(self) -> bool:
        """True when the data show that no motor has presliding; see :func:`presliding_evidence`.

        Motors of a robot are alike, and some hardly move, so all of them decide together.
        """
        z = np.concatenate([presliding_evidence(limb_filter) for limb_filter in self.filters])
        return bool((z < _NO_MOTOR).all() and -(z * np.abs(z)).sum() > _ALL_MOTORS)

    def know_no_presliding(self) -> None:
        """Use that the torques of presliding are zero, from now on."""
        for limb_filter in self.filters:
            limb_filter.know_no_presliding()
        self.refresh()

    def turn_ripple(self, columns: slice, angle: FloatArray, spread: FloatArray) -> None:
        """Use another number of ripples a turn.

        The waves are turned so that those of before and those of now agree in the middle of each motor's range.

        Parameters
        ----------
        columns : of the ripple among the parameters
        angle : (n,) by which sine and cosine are turned there
        spread : (n,) standard deviation of that angle over the motor's range
        """
        for limb, one in zip(self.limbs, self.filters, strict=True):
            law, model_error = one.layout.law.start, one.layout.model_error.start
            states = joint_state_indices(law, model_error, limb.joints.size, self._shape[1])[:, columns]
            for motor, rows in zip(limb.joints.tolist(), states, strict=True):
                c, s = math.cos(angle[motor]), math.sin(angle[motor])
                turn = np.kron(np.eye(2), np.array([[c, -s], [s, c]]))
                values, P = turn @ one.state[rows], one.covariance[np.ix_(rows, rows)]
                amplitude = np.repeat((values**2).reshape(2, 2).sum(axis=1), 2)
                one.replace(rows, values, turn @ P @ turn.T + np.diag(spread[motor] ** 2 * amplitude))
            one.drop_copies()
        self.refresh()

    def use_laws(self, laws: JointLaws) -> None:
        """Leave the terms of presliding out, after :meth:`know_no_presliding`."""
        n, _, k, g = self._shape
        p = laws.parameter_count
        self._shape, self._bounds = (n, p, k, g), law_bounds(laws)
        self._rippling = _coulomb_ripple(laws)
        self.visited.use_laws(laws)
        self._dynamics.laws = laws
        self._held = [None] * len(self.limbs)
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            limb_filter.use_law(self._layout(limb, laws), self._bounds[limb.joints], laws.presliding[limb.joints])
        empty = LimbEstimates.empty(*self._shape)
        self._next = dataclasses.replace(
            self.estimates,
            parameters=empty.parameters,
            parameters_sigma=empty.parameters_sigma,
            covariance=empty.covariance,
        )
        self.refresh()

    def retune(self, noise: SensorNoise) -> None:
        """Use the variances of this noise from now on."""
        self._dynamics.retune(noise)
        self._unloaded_feet.retune(noise.force_std)

    def open(self, window: Window) -> None:
        """Begin with a new window: which feet stand, and room for the next estimates."""
        self._next = self.estimates.copy()
        self._readings = self._unloaded_feet.step(window)
        landing = self._unloaded_feet.contact_transition
        for limb in self.limbs:
            self.contact_transition[limb.joints] = any(landing[foot] for foot in limb.feet.tolist())

    def evaluate(self, window: Window) -> WindowTerms:
        """Evaluate the robot model at the end of the window."""
        self.newest = self._dynamics.advance(window)
        self.missed.fill(np.nan)
        return self.newest

    def link_columns(self, terms: WindowTerms) -> tuple[FloatArray, FloatArray]:
        """As of :meth:`WindowDynamics.link_columns`."""
        return self._dynamics.link_columns(terms)

    def use(
        self, index: int, terms: WindowTerms, link_columns: tuple[FloatArray, FloatArray], usable: bool, frozen: bool
    ) -> None:
        """Let one limb use a window, if its sensors delivered and nothing pushes it.

        Parameters
        ----------
        index : of the limb
        terms, link_columns : of :meth:`evaluate` and :meth:`link_columns`
        usable : False when the noise of the sensors is not known yet
        frozen : True keeps law and calibration as they are
        """
        limb, limb_filter, window = self.limbs[index], self.filters[index], terms.window
        known = window.complete and window.imu_fresh and all(window.wrench_fresh[limb.feet].tolist())
        if not known or not usable or window.disturbed[limb.joints[0]]:
            limb_filter.skip(window.duration)
        elif limb_filter.running and window.duration > 0.0:
            if not self._step(index, terms, link_columns, frozen):
                self._failed[index] = "the readings of a window were not finite"
        else:
            limb_filter.begin(*self._dynamics.momentum(terms, limb))

    def gather(self, time: float) -> None:
        """Take over what all limbs have learned from a window with this end [s].

        Raises
        ------
        FloatingPointError
            When the window was not finite, or a filter is not any more: it has gone back to an older state then.
        """
        (failed, used), self._failed, self._used = (self._failed, self._used), {}, {}
        for index, limb_filter in enumerate(self.filters):
            if index in used:
                self._note_calibration(self.limbs[index], limb_filter, used[index], time)
            if mended := self._gather(index):
                failed[index] = mended
            elif index not in failed:
                limb_filter.keep_copy(time)
        if failed:
            raise FloatingPointError("; ".join(f"{text} ({self._joints_of(index)})" for index, text in failed.items()))

    def _joints_of(self, index: int) -> str:
        return ", ".join(self._names[joint] for joint in self.limbs[index].joints)

    def sensor_calibration(self) -> SensorCalibration:
        """Errors of IMU and foot sensors; that of the IMU is the mean of all limbs, weighted by their variances."""
        delay, delay_sigma = np.full((2, self._shape[2]), np.nan)
        weight, weighted = np.zeros(3), np.zeros(3)
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            layout, variance = limb_filter.layout, np.diagonal(limb_filter.covariance)
            delay[limb.feet] = limb_filter.state[layout.wrench_delay]
            delay_sigma[limb.feet] = np.sqrt(variance[layout.wrench_delay])
            bias = variance[layout.accelerometer_bias]
            if (bias > 0.0).all():
                weight += 1.0 / bias
                weighted += limb_filter.state[layout.accelerometer_bias] / bias
        variance = np.divide(1.0, weight, out=np.full(3, np.inf), where=weight > 0.0)
        bias = weighted * np.where(weight > 0.0, variance, 0.0)
        return SensorCalibration(delay, delay_sigma, bias, np.sqrt(variance))

    def hold_copies(self, age: float) -> None:
        """Hold what each limb had learned at least this time ago [s], as far back as there are copies."""
        self._held = [limb_filter.copy_before(age) for limb_filter in self.filters]

    def go_back_to_held(self) -> None:
        """Drop what the limbs have learned since the time of :meth:`hold_copies`."""
        for limb_filter, copy in zip(self.filters, self._held, strict=True):
            limb_filter.go_back_to(copy)
        self.refresh()

    def take_over(self, other: LimbBank) -> None:
        """Use what the filters of another bank with the same laws have identified, and the velocities of its motors."""
        self.visited = other.visited
        for mine, theirs in zip(self.filters, other.filters, strict=True):
            mine.take_over(theirs)
        self._next = dataclasses.replace(self.estimates, dry_friction=other.estimates.dry_friction)
        self.refresh()

    def wrench_delay(self) -> FloatArray:
        """Delay of each foot's wrenches after the motor torques, by the filter of its limb (k,) [s]."""
        delay = np.zeros(self._shape[2])
        for limb, limb_filter in zip(self.limbs, self.filters, strict=True):
            delay[limb.feet] = limb_filter.state[limb_filter.layout.wrench_delay]
        return delay

    def publish(self) -> None:
        """Let all limbs' newest estimates count."""
        self.estimates = self._next

    def refresh(self) -> None:
        """Take over what has been changed in the filters from outside."""
        self._next = self._next.copy()
        for index in range(len(self.limbs)):
            self._gather(index)
        self.publish()

    def _step(self, index: int, terms: WindowTerms, link_columns: tuple[FloatArray, FloatArray], frozen: bool) -> bool:
        limb, limb_filter, window = self.limbs[index], self.filters[index], terms.window
        layout, state = limb_filter.layout, limb_filter.state
        limb_window = self._dynamics.of_limb(
            terms, link_columns, limb, self._motors[index], layout, state, limb_filter.covariance
        )
        fastest = max(map(abs, window.end.velocity[limb.joints].tolist()))
        resting = fastest < _RESTING_SPEED
        touching = bool(self.contact_transition[limb.joints[0]])
        if not limb_filter.step(limb_window, frozen or resting, touching):
            return False
        if self._rippling.size:
            ripple = self.estimates.parameters[np.ix_(limb.joints, self._rippling)]
            least = _RIPPLE_PART**2 * (ripple**2).sum(axis=1)
            np.maximum(limb_filter.model_error_variance, least, out=limb_filter.model_error_variance)
        if not frozen:
            for place, foot in enumerate(limb.feet):
                if self._unloaded_feet.unloaded[foot]:
                    variance = self._dynamics.wrench_variance / window.readings[1 + foot]
                    limb_filter.update_foot_bias(place, self._readings[foot], variance)
        self._next.dry_friction[limb.joints] = limb_window.dry_friction
        self.missed[:, limb.joints] = limb_filter.missed
        self._used[index] = limb_window
        return True

    def _note_calibration(self, limb: Limb, limb_filter: LimbFilter, window: LimbWindow, time: float) -> None:
        """Errors of model and sensors by now, and how well the window fitted."""
        estimates = self._next
        write_calibration(
            limb.joints,
            limb.feet,
            limb_filter.layout.starts,
            limb_filter.state,
            limb_filter.covariance,
            window.force_columns,
            limb_filter.consistency,
            time,
            estimates.calibration_torque,
            estimates.calibration_variance,
            estimates.explained_torque,
            estimates.offset,
            estimates.offset_variance,
            estimates.consistency,
            estimates.measured_at,
            estimates.wrench_bias,
            estimates.wrench_gain,
        )

    def _gather(self, index: int) -> str:
        """Law and model error of a limb's motors, and their covariance joint by joint.

        A filter that is not finite, or has no covariance, goes back to an older state; returns what was done, in words.
        """
        limb_filter, motors, estimates = self.filters[index], self._motors[index], self._next
        sound = gather_limb(
            self.limbs[index].joints,
            limb_filter.state,
            limb_filter.covariance,
            limb_filter.model_error_variance,
            limb_filter.variance_at_rest,
            limb_filter.free_at_rest,
            limb_filter.layout.law.start,
            limb_filter.layout.model_error.start,
            motors.to_joints,
            motors.group,
            motors.weights,
            self._bounds,
            self.visited.rows[0],
            self.visited.rows[1],
            estimates.parameters,
            estimates.model_error,
            estimates.covariance,
            estimates.model_error_variance,
            estimates.sliding_variance,
            estimates.rest_part,
            estimates.parameters_sigma,
            estimates.coulomb,
            estimates.viscous,
            estimates.coulomb_sigma,
            estimates.viscous_sigma,
            estimates.coulomb_viscous_covariance,
        )
        if sound:
            return ""
        mended = f"the filter of a limb was not finite, and {limb_filter.recover()}"
        self._gather(index)
        return mended

    def inflate_law_covariance(self, limbs: Sequence[int]) -> None:
        """Widen the covariance of these limbs' laws: what was taken for a push has lasted too long to be one."""
        for index in limbs:
            self.filters[index].inflate_law_covariance()


def share_out(costs: Sequence[float]) -> list[list[int]]:
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


class LimbSchedule:
    """Spreads the work of a window over the frames after it.

    First come the feet, the robot model at its end, and the torques of wrong links, then one group of limbs a frame,
    then what all limbs have learned, last its publication. The largest limb alone is a group. A group of smaller limbs
    costs at most as much as the largest. Where a window has fewer samples than that, each frame does more.

    Parameters
    ----------
    bank : of the filters
    """

    def __init__(self, bank: LimbBank) -> None:
        self._bank = bank
        self._groups = share_out([limb_filter.layout.size**2 for limb_filter in bank.filters])
        self._frozen, self._stride = False, 1
        self.reset()

    def reset(self) -> None:
        """Drop the window that waits to be used."""
        self._work: Iterator[None] | None = None

    def open(self, window: Window, usable: bool) -> None:
        """A window is complete; every :meth:`step` from now on does a part of its work."""
        self._work = self._parts(window, usable)
        self._stride = math.ceil((_SHARED_PARTS + len(self._groups)) / max(window.samples, 1))

    def step(self, frozen: bool) -> bool:
        """Do the next part of the work, if any is left; True when the estimates are new."""
        if self._work is None:
            return False
        self._frozen = frozen
        for _ in range(self._stride):
            if next(self._work, True):
                self._work = None
                self._bank.publish()
                return True
        return False

    def finish(self, frozen: bool) -> bool:
        """Do all the work that is left; True when the estimates are new."""
        new = False
        while self._work is not None:
            new = self.step(frozen)
        return new

    def _parts(self, window: Window, usable: bool) -> Iterator[None]:
        bank = self._bank
        bank.open(window)
        yield
        terms = bank.evaluate(window)
        yield
        links = bank.link_columns(terms)
        for group in self._groups:
            yield
            for limb in group:
                bank.use(limb, terms, links, usable, self._frozen)
        yield
        bank.gather(window.time)
        yield
