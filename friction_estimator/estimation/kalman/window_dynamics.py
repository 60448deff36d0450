"""From a window of readings to the input of each limb's filter: momentum, forces, and columns of all unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import SensorVariances, sensor_variances
from friction_estimator.estimation.kalman.limb_equations import MIN_MOMENTUM_STD, FilterTable, LimbBalance, LimbMemory
from friction_estimator.estimation.kalman.limb_state import DRY_FRICTION_SPEED, BlockStarts, Limb, stick_probability
from friction_estimator.estimation.kalman.local_motion import SIGNIFICANT_RATIO, acceleration_correction
from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered_zeros, from_buffer, record, set_scalars, to_buffer
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Dynamics, FloatArray, Matrix, Tensor, Vector

_MIN_DURATION = 1e-9
"""Lower bound on the length of a window that is divided by [s]."""
_POWER_MEMORY = 1.0
"""Time over which the square difference of the accelerations by filters and readings is averaged [s]."""
_MAX_KNOWN_FRICTION_STD = 0.5
"""Standard deviation of a dry friction that is known, at most, over the friction."""
CORRELATION_TIME = 0.1
"""Time for which errors of readings and model last while a joint moves [s]: velocities that lag, torques that are
early, a law that misses a little.

The variance of a window is multiplied by this time over the length of the window: as white noise from window to window
it then leaves as much uncertainty over many windows as such errors do. A walk repeats them in every step.
"""


@record
class WindowBoundary(NamedTuple):
    """Where one window ends and the next one starts: dynamics, rows of the joints, and means over the first one."""

    momentum: Vector  # (n,) [kg m^2/s]
    joint_inertia: Matrix  # (n, n)
    gyro_lever: Matrix  # (n, 3) momentum per angular velocity of the base, lever arm of the IMU included
    accelerometer_lever: Matrix  # (n, 3) torque per specific force, zero columns for a fixed base
    bias: Vector  # (n,) `C^T v - g` less the torque of the specific force [N m]
    foot_jacobian: Tensor  # (k, 6, n)
    # (n,), (k, 6) means
    effort: Vector
    wrenches: Matrix
    speed: Vector  # (n,) mean velocity of the motors [rad/s]; infinite in the first window
    dry_regressor: Matrix  # (n, p) of the laws at a slow motion under the load of the window
    correlation_factor: Vector  # (n,) factor on the variance of the window, for errors that last longer than it


@record
class RobotErrorColumns(NamedTuple):
    """Torques of the joints per error of the robot model (links, rotor inertias, joint positions) over a window."""

    # (n, n, 4) torque of each joint per error of each link: its mass, relative, and shifts of its centre of mass
    # [m]; mean of both ends of the window
    link_errors: Tensor
    acceleration: Vector  # (n,) of the joints [rad/s^2], mean of the window: torque per error of a rotor inertia
    position_errors: Matrix  # (n, n) torque of each joint per error of each joint's position, at the end [N m/rad]


@kernel
def correlated_error_factor(speed: float, duration: float) -> float:
    """Factor on the variance of a window of this length [s], for a motor of this mean velocity [rad/s].

    A joint at rest has a friction that may be anything, and no errors of motion that are correlated over time.
    """
    correlation_factor = max(CORRELATION_TIME / max(duration, _MIN_DURATION), 1.0)
    return 1.0 + (correlation_factor - 1.0) * (1.0 - stick_probability(speed, 0.0))


@entry_point
def write_boundary(
    dynamics: Dynamics, window: Window, lever: Matrix, speed: Vector, dry_regressor: Matrix, out: WindowBoundary
) -> None:
    """Write the dynamics at the end of a window, and the means over the window.

    Parameters
    ----------
    lever : (3, 3) of the cross product with the position of the IMU
    speed, dry_regressor : of :class:`WindowBoundary`
    """
    out.speed[:], out.dry_regressor[:] = speed, dry_regressor
    H, v, n, force = dynamics.mass_matrix, dynamics.velocity, out.momentum.size, window.specific_force
    base = v.size - n
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
                out.bias[i] += H[row, axis] * force[axis]
                for other in range(3):
                    out.gyro_lever[i, axis] += H[row, other] * lever[other, axis]
        out.effort[i] = window.effort[i]
        out.correlation_factor[i] = correlated_error_factor(out.speed[i], window.duration)
    for foot in range(len(dynamics.foot_jacobian)):
        for axis in range(6):
            out.wrenches[foot, axis] = window.wrenches[foot, axis]
            for j in range(n):
                out.foot_jacobian[foot, axis, j] = dynamics.foot_jacobian[foot, axis, base + j]


@entry_point
def _write_limb_momentum(limb: Limb, window: Window, end: WindowBoundary, p: Vector, covariance: Matrix) -> None:
    """Write the momentum of a limb's joints (m,) at the end of the window, and the covariance (m, m) of its noise."""
    rows, motion, correlation_factor = limb.joints, window.end_motion, end.correlation_factor
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
            value *= math.sqrt(correlation_factor[rows[a]] * correlation_factor[rows[b]])
            covariance[a, b] = covariance[b, a] = value
        covariance[a, a] += MIN_MOMENTUM_STD**2


@kernel
def _variance_of_mean(noise: float, rough: float, readings: float) -> float:
    """Variance of a window's mean, of readings with this noise, or of what shakes, where that is clearly more."""
    return rough if rough > SIGNIFICANT_RATIO * noise else noise / readings


@kernel
def _joint_terms(
    limb: Limb,
    first_state: BlockStarts,
    window: Window,
    start: WindowBoundary,
    end: WindowBoundary,
    errors: RobotErrorColumns,
    effort_variance: float,
    out: LimbBalance,
) -> None:
    """Write what the joints add to force, columns and variance."""
    rows, m, p, columns = limb.joints, limb.joints.size, window.regressor.shape[1], out.force_columns
    for a in range(m):
        i = rows[a]
        out.force[a] = window.effort[i] + 0.5 * (start.bias[i] + end.bias[i])
        out.force_variance[a, a] = effort_variance / window.samples
        columns[a, first_state.effort_gain + a] = start.effort[i]
        columns[a, first_state.torque_delay] = -window.effort_rate[i]
        columns[a, first_state.effort_offset + a] = 1.0
        columns[a, first_state.armature + a] = errors.acceleration[i]
        for b in range(m):
            j = rows[b]
            deflection = window.effort[j]  # of the gear of j with a compliance of one
            columns[a, first_state.compliance + b] = errors.position_errors[i, j] * deflection
            columns[a, first_state.position_offset + b] = errors.position_errors[i, j]
            columns[a, first_state.law_error + b] = limb.to_joints[a, b]
            for parameter in range(p):
                columns[a, first_state.law + b * p + parameter] = limb.to_joints[a, b] * window.regressor[j, parameter]
            for error in range(4):
                columns[a, first_state.links + 4 * b + error] = errors.link_errors[i, j, error]


@kernel
def _imu_terms(
    limb: Limb,
    first_state: BlockStarts,
    window: Window,
    start: WindowBoundary,
    end: WindowBoundary,
    specific_force_variance: float,
    out: LimbBalance,
) -> None:
    """Add what the specific force adds to force, columns and variance."""
    rows, m, lever = limb.joints, limb.joints.size, np.empty(limb.joints.size)
    for axis in range(3):
        roughness = window.specific_force_roughness[axis]
        white = _variance_of_mean(specific_force_variance, roughness, window.reading_counts[0])
        for a in range(m):
            lever[a] = 0.5 * (start.accelerometer_lever[rows[a], axis] + end.accelerometer_lever[rows[a], axis])
            out.force[a] -= lever[a] * window.specific_force[axis]
            out.force_columns[a, first_state.accelerometer_bias + axis] = -lever[a]
        for a in range(m):
            for b in range(m):
                out.force_variance[a, b] += lever[a] * white * lever[b]


@kernel
def _foot_terms(
    limb: Limb,
    first_state: BlockStarts,
    window: Window,
    start: WindowBoundary,
    end: WindowBoundary,
    state: FloatArray,
    sensors: SensorVariances,
    out: LimbBalance,
) -> None:
    """Add what the wrenches of the feet add to force, columns and variance."""
    rows, m = limb.joints, limb.joints.size
    force, columns, variance, lever = out.force, out.force_columns, out.force_variance, np.empty(limb.joints.size)
    for number in range(limb.feet.size):
        foot = limb.feet[number]
        for axis in range(6):
            place = 6 * number + axis
            bias_state, gain_state = first_state.foot_bias + place, first_state.foot_gain + place
            rate = window.wrench_rate[foot, axis]
            roughness, readings = window.wrench_roughness[foot, axis], window.reading_counts[1 + foot]
            white = _variance_of_mean(sensors.force if axis < 3 else sensors.moment, roughness, readings)
            # Gains multiply the readings of the window before: their noise must not meet itself in this window's force
            calibrated = start.wrenches[foot, axis] - state[bias_state]
            for a in range(m):
                at_start, at_end = start.foot_jacobian[foot, axis, rows[a]], end.foot_jacobian[foot, axis, rows[a]]
                lever[a] = 0.5 * (at_start + at_end)
                force[a] += lever[a] * (window.wrenches[foot, axis] - rate * window.wrench_shift[foot])
                columns[a, bias_state] = lever[a]
                columns[a, gain_state] = lever[a] * calibrated
                columns[a, first_state.wrench_delay + number] -= lever[a] * rate
                columns[a, first_state.torque_delay] -= lever[a] * rate
            for a in range(m):
                for b in range(m):
                    variance[a, b] += lever[a] * white * lever[b]


@entry_point
def limb_balance(
    limb: Limb,
    table: FilterTable,
    window: Window,
    start: WindowBoundary,
    end: WindowBoundary,
    errors: RobotErrorColumns,
    memory: LimbMemory,
    sensors: SensorVariances,
    out: LimbBalance,
) -> None:
    """Fill ``out`` (all but ``duration``): force, columns of all unknowns and noise of one limb over one window.

    Parameters
    ----------
    limb, table : joints, feet and motors of the limb; first state of each block of its filter
    window, start, end : of the whole robot: mean readings; dynamics at the ends of the window before, and of this one
    errors : torques by errors of the robot model over the window
    memory : what the limb has learned, at which the balance is linearised
    """
    first_state, state = table.first_state, memory.state
    rows, variance, m = limb.joints, out.force_variance, limb.joints.size
    out.force_columns[:], variance[:] = 0.0, 0.0
    _joint_terms(limb, first_state, window, start, end, errors, sensors.effort, out)
    _imu_terms(limb, first_state, window, start, end, sensors.specific_force, out)
    _foot_terms(limb, first_state, window, start, end, state, sensors, out)
    for a in range(m):
        out.correlation_factor[a] = end.correlation_factor[rows[a]]
        for b in range(m):
            variance[a, b] *= math.sqrt(end.correlation_factor[rows[a]] * end.correlation_factor[rows[b]])
    for c in range(m):
        law_variance = window.motor_friction_variance[rows[c]] * (CORRELATION_TIME / window.duration)
        for a in range(m):
            for b in range(m):
                variance[a, b] += limb.to_joints[a, c] * law_variance * limb.to_joints[b, c]
    friction_at_rest(limb, first_state.law, end, state, memory.covariance, out)
    _write_limb_momentum(limb, window, end, out.momentum, out.momentum_covariance)


@kernel
def friction_at_rest(
    limb: Limb, first_law_state: int, end: WindowBoundary, x: FloatArray, P: FloatArray, out: LimbBalance
) -> None:
    """Write the largest friction that may hold the motors of a limb, and its square as far as they rest.

    It is that of the law, in the root mean square over the law's uncertainty, so that the friction of a joint that has
    not moved yet may be anything.

    Parameters
    ----------
    first_law_state : first state of the laws
    end : of the window
    x, P : (size,) state of the limb's filter and (size, size) its covariance
    """
    p = end.dry_regressor.shape[1]
    for a in range(limb.joints.size):
        joint = limb.joints[a]
        mean, variance, first, phi = 0.0, 0.0, first_law_state + a * p, end.dry_regressor[joint]
        for i in range(p):
            mean += phi[i] * x[first + i]
            for j in range(p):
                variance += phi[i] * P[first + i, first + j] * phi[j]
        mean, variance = max(mean, 0.0), max(variance, 0.0)
        out.dry_friction_known[a] = variance < _MAX_KNOWN_FRICTION_STD**2 * mean * mean
        out.dry_friction[a] = math.sqrt(mean * mean + variance)
        out.stick_friction_squared[a] = (out.dry_friction[a] * stick_probability(end.speed[joint], 0.0)) ** 2


class WindowDynamics:
    """Evaluates the robot model at the ends of windows, once for all limbs.

    Parameters
    ----------
    config : ``sensors``, ``kalman``
    robot : whose model is used
    laws : of the motors

    Attributes
    ----------
    error_columns : torques of errors of the robot model over the newest window
    speed : (n,) mean velocities of the motors in it [rad/s], infinite in the first one
    """

    def __init__(self, config: Config, robot: RobotModel, laws: JointLaws) -> None:
        self._robot, self._laws = robot, laws
        self._dry_speed = np.full(len(robot.joint_names), DRY_FRICTION_SPEED)
        self.retune(config.sensors)
        self._lever, n = robot.imu_lever, len(robot.joint_names)
        self._error_buffer, self.error_columns = buffered_zeros(
            RobotErrorColumns, link_errors=(n, n, 4), acceleration=n, position_errors=(n, n)
        )
        k, p = len(robot.foot_names), laws.parameter_count
        self._empty, _ = buffered_zeros(
            WindowBoundary, momentum=n, joint_inertia=(n, n), gyro_lever=(n, 3), accelerometer_lever=(n, 3), bias=n,
            foot_jacobian=(k, 6, n), effort=n, wrenches=(k, 6), speed=n, dry_regressor=(n, p), correlation_factor=n,
        )  # fmt: skip
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the variances of this noise from now on."""
        self._sensors = sensors = sensor_variances(noise)
        self.wrench_variance = np.repeat((sensors.force, sensors.moment), 3)

    def reset(self) -> None:
        """Forget the previous window, and the mean square difference of the accelerations."""
        self._window: Window | None = None
        self._start_buffer: FloatArray = np.zeros(0)
        self._end_buffer = self._start_buffer
        self._motion_at_start: tuple[Dynamics, FloatArray] | None = None
        self._power = np.zeros(3 + len(self._robot.joint_names))
        self.speed: FloatArray = np.full(len(self._robot.joint_names), np.inf)

    def continue_from(self, other: WindowDynamics) -> None:
        """Continue after the windows of another instance, of the same robot with other laws."""
        self._motion_at_start, self._power, self._window = other._motion_at_start, other._power, other._window
        if other._window is not None:
            dry = self._dry_regressor(other._window)
            self._end_buffer = to_buffer(from_buffer(WindowBoundary, other._end_buffer)._replace(dry_regressor=dry))

    def _dry_regressor(self, window: Window) -> FloatArray:
        """Regressor (n, p) of the laws at a slow motion under the load of a window."""
        return self._laws.regressor(self._dry_speed, self._robot.motors.torque(window.effort))

    def parts(self, window: Window) -> tuple[Callable[[], None], ...]:
        """The evaluation of the robot model over a window, to be called in this order: end, positions, links.

        Momentum and balances of the limbs hold for this window after the last part.
        """
        parts = self._evaluate_end, self._evaluate_positions, self._evaluate_links
        return tuple(partial(part, window) for part in parts)

    def _evaluate_end(self, window: Window) -> None:
        """Evaluate the robot model at the end of a window."""
        end = window.end_motion
        dynamics = self._robot.dynamics(end.position, end.velocity, end.angular_velocity, window.specific_force)
        self._motion_at_end = dynamics, np.concatenate((window.angular_acceleration, window.acceleration))
        self._write_boundary(window, dynamics)

    def _evaluate_positions(self, window: Window) -> None:
        """Write the columns of position errors at the end of a window."""
        columns = self._robot.position_error_columns(*self._motion_at_end, window.wrenches)
        self.error_columns.position_errors[:] = columns

    def _write_boundary(self, window: Window, dynamics: Dynamics) -> None:
        """Write what holds at the end of a window, at which the next one starts."""
        before, buffer = self._window, self._empty.copy()
        self.speed = np.full(window.effort.size, np.inf)
        if before is not None:
            moved = window.end_motion.position - before.end_motion.position
            self.speed = self._robot.motors.velocity(moved / max(window.duration, _MIN_DURATION))
        dry = self._dry_regressor(window)
        self._window, self._window_buffer = window, window.buffer
        write_boundary(dynamics.buffer, self._window_buffer, self._lever, self.speed, dry, buffer)
        self._start_buffer = buffer.copy() if before is None else self._end_buffer
        if before is None:
            first = from_buffer(WindowBoundary, self._start_buffer)
            first.effort[:], first.wrenches[:] = 0.0, 0.0
        self._end_buffer = buffer

    def _evaluate_links(self, window: Window) -> None:
        """Write the columns of link errors over a window."""
        errors, before, columns_at = self.error_columns, self._motion_at_start, self._robot.link_error_columns
        self._motion_at_start = dynamics, acceleration = self._motion_at_end
        if before is None or window.duration <= 0.0:
            errors.link_errors[:], errors.acceleration[:] = columns_at(dynamics, acceleration), acceleration[3:]
            return
        missing = acceleration_correction(
            window.mean_acceleration, window.mean_acceleration_std, before[1], acceleration, self._power,
            min(window.duration / _POWER_MEMORY, 1.0),
        )  # fmt: skip
        at_start = columns_at(before[0], before[1] + missing)
        errors.link_errors[:] = 0.5 * (at_start + columns_at(dynamics, acceleration + missing))
        errors.acceleration[:] = 0.5 * (before[1] + acceleration)[3:] + missing[3:]

    def momentum(self, limb: FloatArray, joints: int) -> tuple[FloatArray, FloatArray]:
        """Momentum of a limb (a buffer) at the end of the newest window (m,), and covariance of its noise (m, m)."""
        momentum, covariance = np.empty(joints), np.empty((joints, joints))
        _write_limb_momentum(limb, self._window_buffer, self._end_buffer, momentum, covariance)
        return momentum, covariance

    def balance_of_limb(self, limb: FloatArray, table: FloatArray, memory: FloatArray, out: FloatArray) -> None:
        """Write the balance of momentum of a limb over the newest window, see :func:`limb_balance`; all are buffers."""
        assert self._window is not None
        set_scalars(LimbBalance, out, self._window.duration)
        errors = self._error_buffer
        limb_balance(
            limb, table, self._window_buffer, self._start_buffer, self._end_buffer, errors, memory, *self._sensors, out
        )
