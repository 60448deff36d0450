"""From a window of readings to the input of each limb's filter: momentum, forces, and columns of all unknowns.

Errors of the links act with the mean acceleration of the window. That of the window's readings alone is in time, and
noisy; that of the filters is smooth, and late. Where the two differ by clearly more than noise explains, the readings
count,

    a = a_filter + k (a_readings - a_filter)        k = max(0, 1 - 4 var(noise) / E (a_readings - a_filter)^2)

and elsewhere not at all: their noise is that of the momentum too, and would pull the calibration after it.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import white_vector
from friction_estimator.estimation.kalman.limb_state import Limb, LimbState, LimbWindow, part_at_rest
from friction_estimator.estimation.kalman.windows import CLEARLY, Window
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.linear_algebra import LARGEST
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, Dynamics, FloatArray, IntArray, record

_FINEST_MOMENTUM = 1e-5
_FINEST_DURATION = 1e-9
_MEMORY = 1.0
"""Time over which the square difference of both accelerations is averaged [s]."""
DRY_SPEED = 0.02
"""Speed at which the dry friction of a joint is evaluated [rad/s]."""
_KNOWN = 0.5
"""Standard deviation of a dry friction that is known, at most, over the friction."""
_CORRELATION_TIME = 0.1
"""Time for which errors of readings and model last while a joint moves [s]: velocities that lag, torques that are
early, a law that misses a little.

The variance of a window is multiplied by this time over the length of the window: as white noise from window to window
it then leaves as much uncertainty over many windows as such errors do. A walk repeats them in every step.
"""


@record(frozen=True, slots=True)
class EndDynamics:
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

    momentum: FloatArray
    joint_inertia: FloatArray
    gyro_lever: FloatArray
    accelerometer_lever: FloatArray
    bias: FloatArray
    foot_jacobian: FloatArray


@kernel("M V V V T M i8 M V T V M M M V T M V T")
def end_dynamics(
    H: FloatArray,
    v: FloatArray,
    beta: FloatArray,
    specific_force: FloatArray,
    J: FloatArray,
    lever: FloatArray,
    base: int,
    accelerometer_before: FloatArray,
    bias_before: FloatArray,
    feet_before: FloatArray,
    momentum: FloatArray,
    inertia: FloatArray,
    gyro: FloatArray,
    accelerometer: FloatArray,
    bias: FloatArray,
    feet: FloatArray,
    mean_accelerometer: FloatArray,
    mean_bias: FloatArray,
    mean_feet: FloatArray,
) -> None:
    """Write the fields of :class:`EndDynamics` from those of :class:`~friction_estimator.types.Dynamics`, and means.

    Parameters
    ----------
    H, v, beta, J : mass matrix, velocity, momentum bias, foot Jacobians
    lever : (3, 3) of the cross product with the position of the IMU
    base : 6, or 0 for a fixed base
    accelerometer_before, bias_before, feet_before : fields at the start of the window; those of its end where there is
        no start
    mean_accelerometer, mean_bias, mean_feet : output: means of both
    """
    nv, k = v.size, J.shape[0]
    n = nv - base
    for i in range(n):
        row = base + i
        momentum[i], bias[i] = 0.0, beta[row]
        for j in range(nv):
            momentum[i] += H[row, j] * v[j]
        for j in range(n):
            inertia[i, j] = H[row, base + j]
        for axis in range(3):
            accelerometer[i, axis] = gyro[i, axis] = 0.0
        if base:
            for axis in range(3):
                accelerometer[i, axis] = H[row, axis]
                gyro[i, axis] = H[row, 3 + axis]
                bias[i] += H[row, axis] * specific_force[axis]
                for other in range(3):
                    gyro[i, axis] += H[row, other] * lever[other, axis]
    for foot in range(k):
        for axis in range(6):
            for j in range(n):
                feet[foot, axis, j] = J[foot, axis, base + j]
    mean_accelerometer[:] = 0.5 * (accelerometer_before + accelerometer)
    mean_bias[:] = 0.5 * (bias_before + bias)
    mean_feet[:] = 0.5 * (feet_before + feet)


@record(frozen=True, slots=True)
class WindowTerms:
    """What all limbs need of a window, but for the torques of wrong links.

    Attributes
    ----------
    window : the readings
    dynamics, now : dynamics at its end
    mean_accelerometer_lever, mean_bias, mean_foot_jacobian : (n, 3), (n,), (k, 6, n) halfway between both ends
    effort_before, wrenches_before : (n,), (k, 6) means of the window before
    speed : (n,) mean velocity of the motors [rad/s]; infinite in the first window
    dry_regressor : (n, p) of the laws at a slow motion under the load of the window
    regressor : (n, p) mean of the laws, see :meth:`WindowDynamics.advance`
    repeats : (n,) factor on the variance of the window, for errors that last longer than it
    """

    window: Window
    dynamics: Dynamics
    now: EndDynamics
    mean_accelerometer_lever: FloatArray
    mean_bias: FloatArray
    mean_foot_jacobian: FloatArray
    effort_before: FloatArray
    wrenches_before: FloatArray
    speed: FloatArray
    dry_regressor: FloatArray
    regressor: FloatArray
    repeats: FloatArray


@kernel("I V M M V V V V M")
def limb_momentum(
    rows: IntArray,
    momentum: FloatArray,
    inertia: FloatArray,
    gyro_lever: FloatArray,
    velocity_std: FloatArray,
    gyro_std: FloatArray,
    repeats: FloatArray,
    p: FloatArray,
    covariance: FloatArray,
) -> None:
    """Write the momentum of a limb's joints (m,) and the covariance (m, m) of its noise."""
    m = rows.size
    for a in range(m):
        p[a] = momentum[rows[a]]
        for b in range(a + 1):
            value = 0.0
            for c in range(m):
                joint = rows[c]
                value += inertia[rows[a], joint] * velocity_std[joint] ** 2 * inertia[rows[b], joint]
            for axis in range(3):
                value += gyro_lever[rows[a], axis] * gyro_std[axis] ** 2 * gyro_lever[rows[b], axis]
            value *= math.sqrt(repeats[rows[a]] * repeats[rows[b]])
            covariance[a, b] = covariance[b, a] = value
        covariance[a, a] += _FINEST_MOMENTUM**2


@kernel
def _variance_of_mean(noise: float, rough: float, readings: float) -> float:
    """Variance of a window's mean, of readings with this noise, or of what shakes, where that is clearly more."""
    return rough if rough > CLEARLY * noise else noise / readings


@kernel("I I I M V V M V V T T V M V V M M V M V M V V i8 V f8 V V M M")
def limb_terms(
    rows: IntArray,
    feet: IntArray,
    starts: IntArray,
    to_joints: FloatArray,
    state: FloatArray,
    effort: FloatArray,
    wrenches: FloatArray,
    specific_force: FloatArray,
    bias: FloatArray,
    foot_jacobian: FloatArray,
    link_columns: FloatArray,
    acceleration: FloatArray,
    accelerometer: FloatArray,
    effort_before: FloatArray,
    regressor_variance: FloatArray,
    wrenches_before: FloatArray,
    regressor: FloatArray,
    force_roughness: FloatArray,
    wrench_roughness: FloatArray,
    effort_rate: FloatArray,
    wrench_rate: FloatArray,
    wrench_shift: FloatArray,
    variances: FloatArray,
    samples: int,
    readings: FloatArray,
    duration: float,
    repeats: FloatArray,
    force: FloatArray,
    columns: FloatArray,
    variance: FloatArray,
) -> None:
    """Write mean force (m,), its columns (m, size) and the covariance (m, m) of its noise: see :class:`LimbWindow`.

    Parameters
    ----------
    rows, feet : (m,), (f,) the limb's joints and feet among those of the robot
    starts : first state of each block, in the order of :class:`LimbState`
    to_joints : (m, m) S of the limb's motors
    state : (size,) of the limb's filter
    effort_rate, wrench_rate, wrench_shift : of :class:`~friction_estimator.estimation.kalman.windows.Window`
    variances : (8,) of the white noise of motor torque, accelerometer, and the six components of a wrench
    samples, readings : of the joints, and (1 + k,) of IMU and foot sensors
    """
    model_error, law, links, foot_bias, foot_gain, effort_gain, accelerometer_bias, wrench_delay, torque_delay = (
        starts[1], starts[2], starts[3], starts[4], starts[5], starts[6], starts[7], starts[8], starts[9],
    )  # fmt: skip
    effort_offset, armature = starts[10], starts[11]
    m, p = rows.size, regressor.shape[1]
    columns[:], variance[:] = 0.0, 0.0
    for a in range(m):
        i = rows[a]
        force[a] = effort[i] + bias[i]
        variance[a, a] = variances[0] / samples
        columns[a, effort_gain + a] = effort_before[i]
        columns[a, torque_delay] = -effort_rate[i]
        columns[a, effort_offset + a] = 1.0
        columns[a, armature + a] = acceleration[i]
        for b in range(m):
            j = rows[b]
            columns[a, model_error + b] = to_joints[a, b]
            for parameter in range(p):
                columns[a, law + b * p + parameter] = to_joints[a, b] * regressor[j, parameter]
            for error in range(4):
                columns[a, links + 4 * b + error] = link_columns[i, j, error]
        for axis in range(3):
            force[a] -= accelerometer[i, axis] * specific_force[axis]
            columns[a, accelerometer_bias + axis] = -accelerometer[i, axis]
    for axis in range(3):
        white = _variance_of_mean(variances[1], force_roughness[axis], readings[0])
        for a in range(m):
            for b in range(m):
                variance[a, b] += accelerometer[rows[a], axis] * white * accelerometer[rows[b], axis]
    for place in range(feet.size):
        foot = feet[place]
        for axis in range(6):
            bias_state, gain_state = foot_bias + 6 * place + axis, foot_gain + 6 * place + axis
            white = _variance_of_mean(variances[2 + axis], wrench_roughness[foot, axis], readings[1 + foot])
            # Gains multiply the readings of the window before: their noise must not meet itself in this window's force
            calibrated = wrenches_before[foot, axis] - state[bias_state]
            for a in range(m):
                lever = foot_jacobian[foot, axis, rows[a]]
                force[a] += lever * (wrenches[foot, axis] - wrench_rate[foot, axis] * wrench_shift[foot])
                columns[a, bias_state] = lever
                columns[a, gain_state] = lever * calibrated
                columns[a, wrench_delay + place] -= lever * wrench_rate[foot, axis]
                columns[a, torque_delay] -= lever * wrench_rate[foot, axis]
                for b in range(m):
                    variance[a, b] += lever * white * foot_jacobian[foot, axis, rows[b]]
    for a in range(m):
        for b in range(m):
            variance[a, b] *= math.sqrt(repeats[rows[a]] * repeats[rows[b]])
    for c in range(m):
        of_law = regressor_variance[rows[c]] * (_CORRELATION_TIME / duration)
        for a in range(m):
            for b in range(m):
                variance[a, b] += to_joints[a, c] * of_law * to_joints[b, c]


@kernel("I M V V M i8 V V B")
def rest_of_limb(
    rows: IntArray,
    dry_regressor: FloatArray,
    speed: FloatArray,
    x: FloatArray,
    P: FloatArray,
    law: int,
    dry: FloatArray,
    rest: FloatArray,
    known: BoolArray,
) -> None:
    """Write the largest friction that may hold the motors of a limb (m,), and its square as far as they rest (m,).

    It is that of the law, in the root mean square over the law's uncertainty, so that the friction of a joint that has
    not moved yet may be anything.

    Parameters
    ----------
    rows : (m,) the limb's motors among those of the robot
    dry_regressor : (n, p) of the laws at a slow motion under the present load
    speed : (n,) mean velocity of the motors over the window
    x, P, law : (size,), (size, size) state of the limb, covariance, and first state of the laws
    known : (m,) output: True where the law shows its dry friction
    """
    p = dry_regressor.shape[1]
    for a in range(rows.size):
        mean, variance, first, phi = 0.0, 0.0, law + a * p, dry_regressor[rows[a]]
        for i in range(p):
            mean += phi[i] * x[first + i]
            for j in range(p):
                variance += phi[i] * P[first + i, first + j] * phi[j]
        mean, variance = max(mean, 0.0), max(variance, 0.0)
        known[a] = variance < _KNOWN**2 * mean * mean
        dry[a] = math.sqrt(mean * mean + variance)
        rest[a] = (dry[a] * part_at_rest(speed[rows[a]], 0.0)) ** 2


class LinkColumns:
    """Torque that errors of the links have added over a window: the mean of its start and its end.

    Parameters
    ----------
    robot : whose model is used
    """

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self.reset()

    def reset(self) -> None:
        """Forget the window before, and how far both accelerations differ."""
        self._before: tuple[Dynamics, FloatArray] | None = None
        self._power = np.zeros(3 + len(self._robot.joint_names))

    def over(self, window: Window, dynamics: Dynamics) -> tuple[FloatArray, FloatArray]:
        """Mean columns (n, n, 4) of a window, by the dynamics at its end, and mean acceleration of the joints (n,)."""
        acceleration, before = _acceleration(window), self._before
        self._before = dynamics, acceleration
        if before is None or window.duration <= 0.0:
            return self._columns(dynamics, acceleration), acceleration[3:]
        missing = missing_acceleration(
            window.mean_acceleration,
            window.mean_acceleration_std,
            before[1],
            acceleration,
            self._power,
            min(window.duration / _MEMORY, 1.0),
        )
        at_start = self._columns(before[0], before[1] + missing)
        columns = 0.5 * (at_start + self._columns(dynamics, acceleration + missing))
        return columns, 0.5 * (before[1] + acceleration)[3:] + missing[3:]

    def _columns(self, dynamics: Dynamics, acceleration: FloatArray) -> FloatArray:
        return self._robot.link_error_columns(dynamics, acceleration[:3], acceleration[3:])


def _acceleration(window: Window) -> FloatArray:
    """Acceleration (3 + n,) of base and joints at the end of a window, by the filters."""
    return np.concatenate((window.angular_acceleration, window.acceleration))


@kernel("V V V V V f8")
def missing_acceleration(
    readings: FloatArray, std: FloatArray, first: FloatArray, last: FloatArray, power: FloatArray, part: float
) -> FloatArray:
    """What the filters' mean acceleration (c,) of both ends lacks; the mean square difference ``power`` in place."""
    more = np.empty(power.size)
    for i in range(power.size):
        difference = readings[i] - 0.5 * (first[i] + last[i])
        power[i] += part * (difference * difference - power[i])
        if not power[i] <= LARGEST:
            power[i] = 0.0
        noise = CLEARLY * std[i] ** 2
        more[i] = (1.0 - noise / power[i]) * difference if power[i] > noise else 0.0
    return more


@kernel("V f8")
def errors_that_last(speed: FloatArray, duration: float) -> FloatArray:
    """Factor (n,) on the variance of a window of this length [s], at mean velocities (n,) of the motors [rad/s].

    A joint at rest has a friction that may be anything, and no errors of motion that would last.
    """
    factor, lasting = np.ones(speed.size), max(_CORRELATION_TIME / max(duration, _FINEST_DURATION), 1.0)
    for joint in range(speed.size):
        factor[joint] += (lasting - 1.0) * (1.0 - part_at_rest(speed[joint], 0.0))
    return factor


def _load_apart(window: Window, variance: float) -> FloatArray:
    """Torques (n,) after a window, or of the window where they clearly differ; ``variance`` of a reading [(N m)^2]."""
    difference = window.effort - window.effort_after
    noise = CLEARLY * variance * (1.0 / window.samples + 1.0 / max((window.samples - 1) // 2, 1))
    square = difference**2
    return window.effort_after + difference * np.maximum(1.0 - noise / np.maximum(square, noise), 0.0)


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
        self._links = LinkColumns(robot)
        self._dry_speed = np.full(len(robot.joint_names), DRY_SPEED)
        self.retune(config.sensors)
        self._lever = robot.imu_lever
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the variances of this noise from now on."""
        self._variances = white_vector(noise)[[1, 2, 3, 3, 3, 4, 4, 4]]
        self.wrench_variance: FloatArray = self._variances[2:]

    def reset(self) -> None:
        """Forget the window before."""
        self._before: WindowTerms | None = None
        self._links.reset()

    def advance(self, window: Window) -> WindowTerms:
        """Evaluate the end of a window.

        Noise of the torques is in this window's force, and that of torques before it in the momentum. In the load of
        the laws it would meet itself: friction that opposes the motion and its load term then learn from the noise
        that they are proportional. So the laws take the load from readings after the window, as far as those of the
        window do not clearly differ from them.
        """
        robot, end, before = self._robot, window.end, self._before
        dynamics = robot.dynamics(end.position, end.velocity, end.angular_velocity, window.specific_force)
        n, k = window.effort.size, len(window.wrenches)
        shapes = n, (n, n), (n, 3), (n, 3), n, (k, 6, n)
        fields, means = [np.empty(shape) for shape in shapes], [np.empty(shape) for shape in shapes[3:]]
        start = fields[3:]
        if before is not None:
            start = [before.now.accelerometer_lever, before.now.bias, before.now.foot_jacobian]
        end_dynamics(
            dynamics.mass_matrix,
            dynamics.velocity,
            dynamics.momentum_bias,
            window.specific_force,
            dynamics.foot_jacobian,
            self._lever,
            robot.base_dofs,
            *start,
            *fields,
            *means,
        )
        now = EndDynamics(*fields)
        speed: FloatArray = np.full(n, np.inf)
        if before is not None:
            moved = end.position - before.window.end.position
            speed = robot.motors.velocity(moved / max(window.duration, _FINEST_DURATION))
        regressor = window.regressor
        if before is not None and self._variances[0] > 0.0:
            load = robot.motors.torque(_load_apart(window, self._variances[0]))
            regressor = regressor + self.laws.regressor(speed, load)
            regressor -= self.laws.regressor(speed, robot.motors.torque(window.effort))
        self._before = WindowTerms(
            window=window,
            dynamics=dynamics,
            now=now,
            mean_accelerometer_lever=means[0],
            mean_bias=means[1],
            mean_foot_jacobian=means[2],
            effort_before=np.zeros_like(window.effort) if before is None else before.window.effort,
            wrenches_before=np.zeros_like(window.wrenches) if before is None else before.window.wrenches,
            speed=speed,
            dry_regressor=self.laws.regressor(self._dry_speed, robot.motors.torque(window.effort)),
            regressor=regressor,
            repeats=errors_that_last(speed, window.duration),
        )
        return self._before

    def link_columns(self, terms: WindowTerms) -> tuple[FloatArray, FloatArray]:
        """Torques per error of the links, (n, n, 4), and acceleration of the joints (n,): means over the window.

        To be called once for each window.
        """
        return self._links.over(terms.window, terms.dynamics)

    def momentum(self, terms: WindowTerms, limb: Limb) -> tuple[FloatArray, FloatArray]:
        """Momentum of a limb at the end of the window (m,), and the covariance of its noise (m, m)."""
        now, end, m = terms.now, terms.window.end, limb.joints.size
        momentum, covariance = np.empty(m), np.empty((m, m))
        limb_momentum(
            limb.joints,
            now.momentum,
            now.joint_inertia,
            now.gyro_lever,
            end.velocity_std,
            end.angular_velocity_std,
            terms.repeats,
            momentum,
            covariance,
        )
        return momentum, covariance

    def of_limb(
        self,
        terms: WindowTerms,
        link_columns: tuple[FloatArray, FloatArray],
        limb: Limb,
        motors: Transmission,
        layout: LimbState,
        state: FloatArray,
        covariance: FloatArray,
    ) -> LimbWindow:
        """Input of the filter of a limb with these motors, this state (size,) and covariance."""
        window, m = terms.window, limb.joints.size
        force, columns, variance = np.empty(m), np.empty((m, layout.size)), np.empty((m, m))
        limb_terms(
            limb.joints,
            limb.feet,
            layout.starts,
            motors.to_joints,
            state,
            window.effort,
            window.wrenches,
            window.specific_force,
            terms.mean_bias,
            terms.mean_foot_jacobian,
            *link_columns,
            terms.mean_accelerometer_lever,
            terms.effort_before,
            window.regressor_variance,
            terms.wrenches_before,
            terms.regressor,
            window.specific_force_roughness,
            window.wrench_roughness,
            window.effort_rate,
            window.wrench_rate,
            window.wrench_shift,
            self._variances,
            window.samples,
            window.readings,
            window.duration,
            terms.repeats,
            force,
            columns,
            variance,
        )
        dry, rest, known = np.empty(m), np.empty(m), np.empty(m, dtype=bool)
        law = state, covariance, layout.law.start
        rest_of_limb(limb.joints, terms.dry_regressor, terms.speed, *law, dry, rest, known)
        momentum, repeats = self.momentum(terms, limb), terms.repeats[limb.joints]
        return LimbWindow(window.duration, force, columns, variance, *momentum, dry, rest, known, repeats)
