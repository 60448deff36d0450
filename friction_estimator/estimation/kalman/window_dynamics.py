"""From a window of readings to the input of each limb's filter: momentum, forces, and columns of all unknowns."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.arrays import arrays, buffer_of, leaves
from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import white_vector
from friction_estimator.estimation.kalman.limb_equations import LimbMemory
from friction_estimator.estimation.kalman.limb_state import FirstStates, LimbWindow, stick_probability
from friction_estimator.estimation.kalman.link_errors import LinkColumns, LinkErrors
from friction_estimator.estimation.kalman.local_motion import SIGNIFICANT_RATIO
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Block, Dynamics, FloatArray, IndexTable, Indices, Matrix, Vector

_FINEST_MOMENTUM = 1e-5
_FINEST_DURATION = 1e-9
DRY_SPEED = 0.02
"""Speed at which the dry friction of a joint is evaluated [rad/s]."""
_KNOWN = 0.5
"""Standard deviation of a dry friction that is known, at most, over the friction."""
CORRELATION_TIME = 0.1
"""Time for which errors of readings and model last while a joint moves [s]: velocities that lag, torques that are
early, a law that misses a little.

The variance of a window is multiplied by this time over the length of the window: as white noise from window to window
it then leaves as much uncertainty over many windows as such errors do. A walk repeats them in every step.
"""


@arrays
class EndDynamics(NamedTuple):
    """Dynamics at the end of a window; rows of the joints.

    Attributes
    ----------
    momentum : (n,) [kg m^2/s]
    joint_inertia : (n, n)
    gyro_lever : (n, 3) momentum per angular velocity of the base, lever arm of the IMU included
    accelerometer_lever : (n, 3) torque per specific force, zero columns for a fixed base
    bias : (n,) ``C^T v - g`` less the torque of the specific force [N m]
    foot_jacobian : (k, 6, n)
    """

    momentum: Vector
    joint_inertia: Matrix
    gyro_lever: Matrix
    accelerometer_lever: Matrix
    bias: Vector
    foot_jacobian: Block


@kernel("[Dynamics] V M i8 (EndDynamics)")
def end_dynamics(
    dynamics: Dynamics, specific_force: FloatArray, lever: FloatArray, base: int, out: EndDynamics
) -> None:
    """Write the dynamics at the end of a window.

    Parameters
    ----------
    specific_force : (3,) mean over the window
    lever : (3, 3) of the cross product with the position of the IMU
    base : 6, or 0 for a fixed base
    """
    H, v = dynamics.mass_matrix, dynamics.velocity
    n = v.size - base
    for i in range(n):
        row = base + i
        out.momentum[i], out.bias[i] = 0.0, dynamics.momentum_bias[row]
        for j in range(v.size):
            out.momentum[i] += H[row, j] * v[j]
        for j in range(n):
            out.joint_inertia[i, j] = H[row, base + j]
        for axis in range(3):
            out.accelerometer_lever[i, axis] = out.gyro_lever[i, axis] = 0.0
        if base:
            for axis in range(3):
                out.accelerometer_lever[i, axis] = H[row, axis]
                out.gyro_lever[i, axis] = H[row, 3 + axis]
                out.bias[i] += H[row, axis] * specific_force[axis]
                for other in range(3):
                    out.gyro_lever[i, axis] += H[row, other] * lever[other, axis]
    for foot in range(len(dynamics.foot_jacobian)):
        for axis in range(6):
            for j in range(n):
                out.foot_jacobian[foot, axis, j] = dynamics.foot_jacobian[foot, axis, base + j]


@arrays
class WindowTerms(NamedTuple):
    """What all limbs need of a window, but for the torques of wrong links.

    Attributes
    ----------
    window : the readings
    start, end : dynamics at both ends; where there is no window before, both are those of the end
    effort_before, wrenches_before : (n,), (k, 6) means of the window before
    speed : (n,) mean velocity of the motors [rad/s]; infinite in the first window
    dry_regressor : (n, p) of the laws at a slow motion under the load of the window
    repeats : (n,) factor on the variance of the window, for errors that last longer than it
    """

    window: Window
    start: EndDynamics
    end: EndDynamics
    effort_before: Vector
    wrenches_before: Matrix
    speed: Vector
    dry_regressor: Matrix
    repeats: Vector


@arrays
class LimbPlace(NamedTuple):
    """Where a limb is among joints, feet and motors of the robot.

    Attributes
    ----------
    joints, feet : (m,), (f,) indices
    to_joints, group, weights : (m, m), (m, g), (m, g) of the limb's motors, see :class:`Transmission`
    """

    joints: Indices
    feet: Indices
    to_joints: Matrix
    group: IndexTable
    weights: Matrix


@kernel("[LimbPlace] (WindowTerms) V M")
def limb_momentum(place: LimbPlace, terms: WindowTerms, p: FloatArray, covariance: FloatArray) -> None:
    """Write the momentum of a limb's joints (m,) at the end of the window, and the covariance (m, m) of its noise."""
    rows, end, motion, repeats = place.joints, terms.end, terms.window.end, terms.repeats
    m = rows.size
    for a in range(m):
        p[a] = end.momentum[rows[a]]
        for b in range(a + 1):
            value = 0.0
            for c in range(m):
                joint = rows[c]
                value += (
                    end.joint_inertia[rows[a], joint] * motion.velocity_std[joint] ** 2
                    * end.joint_inertia[rows[b], joint]
                )  # fmt: skip
            for axis in range(3):
                std = motion.angular_velocity_std[axis]
                value += end.gyro_lever[rows[a], axis] * std**2 * end.gyro_lever[rows[b], axis]
            value *= math.sqrt(repeats[rows[a]] * repeats[rows[b]])
            covariance[a, b] = covariance[b, a] = value
        covariance[a, a] += _FINEST_MOMENTUM**2


@kernel
def _variance_of_mean(noise: float, rough: float, readings: float) -> float:
    """Variance of a window's mean, of readings with this noise, or of what shakes, where that is clearly more."""
    return rough if rough > SIGNIFICANT_RATIO * noise else noise / readings


@kernel
def _joint_terms(
    place: LimbPlace, first: FirstStates, terms: WindowTerms, links: LinkColumns, noise: FloatArray, out: LimbWindow
) -> None:
    """Write what joints and IMU add to force, columns and variance."""
    window, rows, m, p = terms.window, place.joints, place.joints.size, terms.window.regressor.shape[1]
    force, columns, variance = out.force, out.force_columns, out.force_variance
    for a in range(m):
        i = rows[a]
        force[a] = window.effort[i] + 0.5 * (terms.start.bias[i] + terms.end.bias[i])
        variance[a, a] = noise[0] / window.samples
        columns[a, first.effort_gain + a] = terms.effort_before[i]
        columns[a, first.torque_delay] = -window.effort_rate[i]
        columns[a, first.effort_offset + a] = 1.0
        columns[a, first.armature + a] = links.acceleration[i]
        for b in range(m):
            j = rows[b]
            columns[a, first.compliance + b] = links.position[i, j] * window.effort[j]  # the gear of j deflects
            columns[a, first.position_offset + b] = links.position[i, j]
            columns[a, first.model_error + b] = place.to_joints[a, b]
            for parameter in range(p):
                columns[a, first.law + b * p + parameter] = place.to_joints[a, b] * window.regressor[j, parameter]
            for error in range(4):
                columns[a, first.links + 4 * b + error] = links.torque[i, j, error]
    lever, start, end = np.empty(m), terms.start.accelerometer_lever, terms.end.accelerometer_lever
    for axis in range(3):
        white = _variance_of_mean(noise[1], window.specific_force_roughness[axis], window.readings[0])
        for a in range(m):
            lever[a] = 0.5 * (start[rows[a], axis] + end[rows[a], axis])
            force[a] -= lever[a] * window.specific_force[axis]
            columns[a, first.accelerometer_bias + axis] = -lever[a]
        for a in range(m):
            for b in range(m):
                variance[a, b] += lever[a] * white * lever[b]


@kernel
def _foot_terms(
    place: LimbPlace, first: FirstStates, terms: WindowTerms, state: FloatArray, noise: FloatArray, out: LimbWindow
) -> None:
    """Add what the wrenches of the feet add to force, columns and variance."""
    window, rows, m = terms.window, place.joints, place.joints.size
    force, columns, variance, lever = out.force, out.force_columns, out.force_variance, np.empty(place.joints.size)
    for number in range(place.feet.size):
        foot = place.feet[number]
        for axis in range(6):
            bias_state, gain_state = first.foot_bias + 6 * number + axis, first.foot_gain + 6 * number + axis
            rate = window.wrench_rate[foot, axis]
            white = _variance_of_mean(noise[2 + axis], window.wrench_roughness[foot, axis], window.readings[1 + foot])
            # Gains multiply the readings of the window before: their noise must not meet itself in this window's force
            calibrated = terms.wrenches_before[foot, axis] - state[bias_state]
            for a in range(m):
                start, end = terms.start.foot_jacobian[foot, axis], terms.end.foot_jacobian[foot, axis]
                lever[a] = 0.5 * (start[rows[a]] + end[rows[a]])
                force[a] += lever[a] * (window.wrenches[foot, axis] - rate * window.wrench_shift[foot])
                columns[a, bias_state] = lever[a]
                columns[a, gain_state] = lever[a] * calibrated
                columns[a, first.wrench_delay + number] -= lever[a] * rate
                columns[a, first.torque_delay] -= lever[a] * rate
            for a in range(m):
                for b in range(m):
                    variance[a, b] += lever[a] * white * lever[b]


@kernel("[LimbPlace] (FirstStates) (WindowTerms) (LinkColumns) V M V (LimbWindow)")
def limb_terms(
    place: LimbPlace,
    first: FirstStates,
    terms: WindowTerms,
    links: LinkColumns,
    state: FloatArray,
    covariance: FloatArray,
    noise: FloatArray,
    out: LimbWindow,
) -> None:
    """Write the balance of momentum of a limb over a window, all fields but the duration.

    Parameters
    ----------
    state, covariance : (size,), (size, size) of the limb's filter
    noise : (8,) variances of the white noise of motor torque, accelerometer, and the six components of a wrench
    """
    rows, variance, m = place.joints, out.force_variance, place.joints.size
    out.force_columns[:], variance[:] = 0.0, 0.0
    _joint_terms(place, first, terms, links, noise, out)
    _foot_terms(place, first, terms, state, noise, out)
    for a in range(m):
        out.repeats[a] = terms.repeats[rows[a]]
        for b in range(m):
            variance[a, b] *= math.sqrt(terms.repeats[rows[a]] * terms.repeats[rows[b]])
    for c in range(m):
        of_law = terms.window.regressor_variance[rows[c]] * (CORRELATION_TIME / terms.window.duration)
        for a in range(m):
            for b in range(m):
                variance[a, b] += place.to_joints[a, c] * of_law * place.to_joints[b, c]
    rest_of_limb(place, first.law, terms, state, covariance, out)
    limb_momentum(place, terms, out.momentum, out.momentum_covariance)


@kernel
def rest_of_limb(place: LimbPlace, law: int, terms: WindowTerms, x: FloatArray, P: FloatArray, out: LimbWindow) -> None:
    """Write the largest friction that may hold the motors of a limb, and its square as far as they rest.

    It is that of the law, in the root mean square over the law's uncertainty, so that the friction of a joint that has
    not moved yet may be anything.
    """
    p = terms.dry_regressor.shape[1]
    for a in range(place.joints.size):
        joint = place.joints[a]
        mean, variance, first, phi = 0.0, 0.0, law + a * p, terms.dry_regressor[joint]
        for i in range(p):
            mean += phi[i] * x[first + i]
            for j in range(p):
                variance += phi[i] * P[first + i, first + j] * phi[j]
        mean, variance = max(mean, 0.0), max(variance, 0.0)
        out.dry_is_known[a] = variance < _KNOWN**2 * mean * mean
        out.dry_friction[a] = math.sqrt(mean * mean + variance)
        out.rest_variance[a] = (out.dry_friction[a] * stick_probability(terms.speed[joint], 0.0)) ** 2


@kernel("V f8")
def errors_that_last(speed: FloatArray, duration: float) -> FloatArray:
    """Factor (n,) on the variance of a window of this length [s], at mean velocities (n,) of the motors [rad/s].

    A joint at rest has a friction that may be anything, and no errors of motion that would last.
    """
    factor, lasting = np.ones(speed.size), max(CORRELATION_TIME / max(duration, _FINEST_DURATION), 1.0)
    for joint in range(speed.size):
        factor[joint] += (lasting - 1.0) * (1.0 - stick_probability(speed[joint], 0.0))
    return factor


class WindowDynamics:
    """Evaluates the robot model at the ends of windows, once for all limbs.

    Parameters
    ----------
    config : ``sensors``, ``kalman``
    robot : whose model is used
    laws : of the motors; may be replaced
    """

    def __init__(self, config: Config, robot: RobotModel, laws: JointLaws) -> None:
        self._robot, self.laws = robot, laws
        self._links = LinkErrors(robot)
        self._dry_speed = np.full(len(robot.joint_names), DRY_SPEED)
        self.retune(config.sensors)
        self._lever = robot.imu_lever
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the variances of this noise from now on."""
        self._noise = white_vector(noise)[[1, 2, 3, 3, 3, 4, 4, 4]]
        self.wrench_variance: FloatArray = self._noise[2:]

    def reset(self) -> None:
        """Forget the window before."""
        self._before: WindowTerms | None = None
        self._links.reset()

    def advance(self, window: Window) -> WindowTerms:
        """Evaluate the robot model at the end of a window."""
        robot, end, before = self._robot, window.end, self._before
        self._dynamics = robot.dynamics(end.position, end.velocity, end.angular_velocity, window.specific_force)
        n, k = window.effort.size, len(window.wrenches)
        levers = np.empty((n, 3)), np.empty((n, 3))
        now = EndDynamics(np.empty(n), np.empty((n, n)), *levers, np.empty(n), np.empty((k, 6, n)))
        end_dynamics(buffer_of(self._dynamics), window.specific_force, self._lever, robot.base_dofs, *now)
        speed: FloatArray = np.full(n, np.inf)
        if before is not None:
            moved = end.position - before.window.end.position
            speed = robot.motors.velocity(moved / max(window.duration, _FINEST_DURATION))
        self._before = WindowTerms(
            window=window,
            start=now if before is None else before.end,
            end=now,
            effort_before=np.zeros(n) if before is None else before.window.effort,
            wrenches_before=np.zeros((k, 6)) if before is None else before.window.wrenches,
            speed=speed,
            dry_regressor=self.laws.regressor(self._dry_speed, robot.motors.torque(window.effort)),
            repeats=errors_that_last(speed, window.duration),
        )
        self._arrays = tuple(leaves(self._before))
        return self._before

    def position_columns(self) -> FloatArray:
        """Torques (n, n) per error of the positions at the end of the window of :meth:`advance` [N m/rad]."""
        assert self._before is not None
        return self._links.of_positions(self._before.window, self._dynamics)

    def link_columns(self, position: FloatArray) -> LinkColumns:
        """Torques per error of the links over that window, with :meth:`position_columns`; once for each window."""
        assert self._before is not None
        return self._links.over(self._before.window, self._dynamics, position)

    def momentum(self, place: tuple[FloatArray, LimbPlace]) -> tuple[FloatArray, FloatArray]:
        """Momentum of a limb at the end of the newest window (m,), and the covariance of its noise (m, m)."""
        m = place[1].joints.size
        momentum, covariance = np.empty(m), np.empty((m, m))
        limb_momentum(place[0], *self._arrays, momentum, covariance)
        return momentum, covariance

    def of_limb(
        self,
        links: LinkColumns,
        place: tuple[FloatArray, LimbPlace],
        first: FirstStates,
        memory: LimbMemory,
    ) -> LimbWindow:
        """Balance of momentum of a limb over the newest window, linearised at what the limb has learned."""
        assert self._before is not None
        window = LimbWindow.empty(self._before.window.duration, place[1].joints.size, memory.state.size)
        limb_terms(place[0], *first, *self._arrays, *links, memory.state, memory.covariance, self._noise, *window)
        return window
