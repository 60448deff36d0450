"""Foot-base sensor estimation: friction of standing limbs (Hashlamon & Erbatur 2014, section 5, eqs. 34-49).

A standing foot has no acceleration. With the base acceleration from the IMU that fixes the joint accelerations, and
with them the reduced model gives the link torque; motor torque minus link torque is friction.

The base frame's origin is taken at the IMU, whose acceleration is a measurement; elsewhere it would need the base
angular acceleration, which is among the unknowns. Seen from the frame that moves with the IMU, gravity is minus the
specific force, so that the base velocity drops out of eqs. 35-49 and the attitude out of all but the feet's
acceleration (eq. 41), by Galilean invariance (a test compares with the world frame).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import SIGMA_RATE, SensorVariances, sensor_variances
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import RecordTemplate, buffered, record, unbuffered_record
from friction_estimator.linear_algebra import solve_positive
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    GRAVITY,
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    Flags,
    FloatArray,
    Indices,
    IntArray,
    Matrix,
    MeasuredFriction,
    SensorFrame,
    Tensor,
    Vector,
)

_SETTLING_TIME = 0.05
"""A foot that has landed moves for this long [s]; until then its limb is not measured."""


@record
class SupportSet(NamedTuple):
    """Feet that stand together: which rows and columns of the equations count, and whose friction they show."""

    rows: Indices  # (f*6,) constraint rows in the flattened (k*6) stack, fewer for point feet
    # (3 + j,) generalised velocities solved for: base angular acceleration, joints of the standing limbs
    columns: Indices
    joints: Indices  # (m,) joints whose link torque is known: all joints coupled to them are among the columns
    available: Flags  # (n,) True for these joints
    lever: Matrix  # (3, 3) of the cross product with the position of the IMU in the base


@record
class Constraint(NamedTuple):
    """Constraint of the standing feet (eqs. 43, 44, 47, 48), base origin moved to the IMU."""

    J: Matrix  # (r, 3 + j) J_DS or J_SS
    linear: Matrix  # (r, 3) its columns of the base velocity
    upsilon: Vector  # (r,) minus the feet's acceleration by the motion so far, and by that of the IMU


@unbuffered_record
class FrictionSensitivities(NamedTuple):
    """How errors of the sensors reach the friction."""

    # (nv, n), (nv, nv) derivatives of the link torque by positions and velocities
    torque_q: Matrix
    torque_v: Matrix
    # (k, 6, n), (k, 6, nv) those of the soles' accelerations
    foot_q: Tensor
    foot_v: Tensor
    # (c, r), (c, 3) how the solution moves with upsilon and with the base angular acceleration
    inverse: Matrix
    free: Matrix
    linear: Matrix  # (r, 3) of :class:`Constraint`


@kernel
def minimum_norm(J: FloatArray, upsilon: FloatArray, solution: FloatArray) -> bool:
    """Write ``J^T (J J^T)^{-1} upsilon`` (c,) of eqs. 42 and 46; False where the rows of J (r, c) are dependent."""
    multipliers, regular = solve_positive(J @ J.T, upsilon.reshape((upsilon.size, 1)))
    solution[:] = J.T @ multipliers[:, 0].copy()
    return regular


@entry_point
def _regular_inverse(A: Matrix) -> tuple[FloatArray, bool]:
    """Pseudo-inverse (c, r) of a matrix (r, c) of full rank, and False where it has not."""
    r, c = A.shape
    if r <= c:
        X, regular = solve_positive(A @ A.T, A)
        return np.ascontiguousarray(X.T), regular
    return solve_positive(A.T @ A, np.ascontiguousarray(A.T))


def _pseudo_inverse(A: FloatArray) -> FloatArray:
    """Pseudo-inverse of J_DS or J_SS: minimum-norm accelerations that keep the feet at rest (eqs. 42 and 46)."""
    inverse, regular = _regular_inverse(A)
    return inverse if regular else np.asarray(np.linalg.pinv(A, rcond=1e-8))


@kernel
def stance_constraint(support: SupportSet, dynamics: Dynamics, rotation: FloatArray, out: Constraint) -> None:
    """Write the constraint of the standing feet; ``rotation`` (3, 3) from base to world."""
    for a in range(support.rows.size):
        foot, axis = support.rows[a] // 6, support.rows[a] % 6
        jacobian = dynamics.foot_jacobian[foot, axis]
        out.upsilon[a] = -dynamics.foot_bias_acceleration[foot, axis]
        for i in range(3):  # gravity in base axes is minus the last row of the rotation
            out.linear[a, i] = jacobian[i]
            out.upsilon[a] -= jacobian[i] * (dynamics.specific_force[i] - GRAVITY * rotation[2, i])
        for b in range(support.columns.size):
            out.J[a, b] = jacobian[support.columns[b]]
        for b in range(3):
            for i in range(3):
                out.J[a, b] += jacobian[i] * support.lever[i, b]


@entry_point
def friction_of_support(
    support: SupportSet,
    dynamics: Dynamics,
    wrenches: Matrix,
    effort: Vector,
    solution: Vector,
    friction: Vector,
    acceleration: Vector,
) -> None:
    """Write the friction of the joints by eqs. 35, 45 and 49.

    Parameters
    ----------
    solution : (3 + j,) accelerations of the columns; unsolved joints stay at zero
    friction : (n,) output; other joints than those of the support keep their values
    acceleration : (nv,) output: generalised acceleration seen from the IMU
    """
    lever = support.lever
    acceleration[:] = 0.0
    for c in range(support.columns.size):
        acceleration[support.columns[c]] = solution[c]
    for i in range(3):
        acceleration[i] = lever[i, 0] * solution[0] + lever[i, 1] * solution[1] + lever[i, 2] * solution[2]
    for joint in support.joints:
        row = 6 + joint
        link_torque = dynamics.bias[row]
        for j in range(acceleration.size):
            link_torque += dynamics.mass_matrix[row, j] * acceleration[j]
        for foot in range(wrenches.shape[0]):
            for axis in range(6):
                link_torque -= dynamics.foot_jacobian[foot, axis, row] * wrenches[foot, axis]
        friction[joint] = effort[joint] - link_torque


@entry_point
def _stance_friction(
    support: SupportSet,
    attitude: Attitude,
    dynamics: Dynamics,
    wrenches: Matrix,
    effort: Vector,
    gyro: bool,
    constraint: Constraint,
    friction: Vector,
    acceleration: Vector,
) -> bool:
    """Write the friction of the standing limbs (eqs. 42-49); False where a leg is singular, as with a stretched knee.

    Parameters
    ----------
    gyro : True to take the base angular acceleration of the gyroscope, False for that of eqs. 42 and 46
    constraint : output of :func:`stance_constraint`
    friction, acceleration : output of :func:`friction_of_support`
    """
    stance_constraint(support, dynamics, attitude.rotation_base_to_world, constraint)
    J, upsilon, solution = constraint.J, constraint.upsilon, np.empty(support.columns.size)
    if gyro:
        moved, joint_solution = upsilon.copy(), np.empty(solution.size - 3)
        for i in range(3):
            solution[i] = attitude.angular_acceleration[i]
            for a in range(moved.size):
                moved[a] -= J[a, i] * solution[i]
        regular = minimum_norm(J[:, 3:].copy(), moved, joint_solution)
        solution[3:] = joint_solution
    else:
        regular = minimum_norm(J, upsilon, solution)
    friction_of_support(support, dynamics, wrenches, effort, solution, friction, acceleration)
    return regular


@entry_point
def _friction_variances(
    support: SupportSet,
    attitude: Attitude,
    dynamics: Dynamics,
    wrenches: Matrix,
    effort: Vector,
    sensitivities: FrictionSensitivities,
    sensors: SensorVariances,
    angular_acceleration_std: float,
) -> tuple[FloatArray, FloatArray]:
    """First-order propagation of the sensor errors to the friction (m,): white, lasting [(N m)^2].

    Through eq. 49 directly, and through the accelerations of eqs. 42, 46; plus the angular acceleration of the base,
    which the constraint leaves free and which is known to ``angular_acceleration_std`` [rad/s^2] only.
    """
    H, joints = dynamics.mass_matrix, support.joints
    m, n, nv = joints.size, effort.size, H.shape[0]
    inertia = _inertia_of_columns(support, H)
    transfer = -(inertia @ sensitivities.inverse)
    by_acceleration, by_alpha = transfer @ sensitivities.linear, inertia @ sensitivities.free
    by_angle = by_acceleration @ _gravity_by_angle(attitude.rotation_base_to_world)
    noise, systematic = np.empty(m), np.empty(m)
    for a in range(m):
        row = 6 + joints[a]
        white_sum, constant_sum = sensors.effort, sensors.effort_gain * effort[joints[a]] ** 2
        for j in range(n):
            derivative = sensitivities.torque_q[row, j] + _weighted_column_sum(
                transfer[a], support.rows, sensitivities.foot_q, j
            )
            white_sum += derivative**2 * sensors.position
        for j in range(3, nv):
            derivative = sensitivities.torque_v[row, j] + _weighted_column_sum(
                transfer[a], support.rows, sensitivities.foot_v, j
            )
            white_sum += derivative**2 * (sensors.angular_velocity if j < 6 else sensors.velocity)
            constant_sum += derivative**2 * sensors.angular_velocity_bias if j < 6 else 0.0
        for i in range(3):
            derivative = H[row, i] + by_acceleration[a, i]
            white_sum += derivative**2 * sensors.specific_force
            constant_sum += (
                derivative**2 * sensors.specific_force_bias + (by_alpha[a, i] * angular_acceleration_std) ** 2
            )
            for j in range(3):
                constant_sum += by_angle[a, i] * attitude.covariance[i, j] * by_angle[a, j]
        for foot in range(wrenches.shape[0]):
            for axis in range(6):
                square, is_force = dynamics.foot_jacobian[foot, axis, row] ** 2, axis < 3
                bias = sensors.force_bias if is_force else sensors.moment_bias
                white_sum += square * (sensors.force if is_force else sensors.moment)
                constant_sum += square * (bias + sensors.force_gain * wrenches[foot, axis] ** 2)
        noise[a], systematic[a] = white_sum, constant_sum
    return noise, systematic


@kernel
def _inertia_of_columns(support: SupportSet, H: FloatArray) -> FloatArray:
    """Torques (m, c) of the support's joints per acceleration of its columns."""
    inertia = np.empty((support.joints.size, support.columns.size))
    for a in range(support.joints.size):
        row = H[6 + support.joints[a]]
        for j in range(support.columns.size):
            inertia[a, j] = row[support.columns[j]]
        for j in range(3):
            for i in range(3):
                inertia[a, j] += row[i] * support.lever[i, j]
    return inertia


@kernel
def _gravity_by_angle(rotation: FloatArray) -> FloatArray:
    """Derivative (3, 3) of gravity in base axes by the tilt, ``R^T skew([0, 0, -g])``."""
    derivative = np.zeros((3, 3))
    for i in range(3):
        derivative[i, 0], derivative[i, 1] = -GRAVITY * rotation[1, i], GRAVITY * rotation[0, i]
    return derivative


@kernel
def _weighted_column_sum(transfer: FloatArray, rows: IntArray, derivatives: FloatArray, column: int) -> float:
    """Sum of one column of the soles' derivatives (k, 6, ...) over the constraint's rows, weighted."""
    total = 0.0
    for k in range(rows.size):
        total += transfer[k] * derivatives[rows[k] // 6, rows[k] % 6, column]
    return total


class FootBaseSensorEstimation:
    """The FBSE observer; with a fixed base, or without feet, it measures nothing.

    Parameters
    ----------
    config : ``fbse``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._gyro = config.fbse.base_angular_acceleration == "gyro"
        self._angular_acceleration_std = config.fbse.angular_acceleration_std
        self._robot = robot
        self._row_mask = np.array([foot.held_axes for foot in config.feet], dtype=bool).reshape(-1, 6)
        self._support_sets: dict[bytes, tuple[FloatArray, SupportSet, RecordTemplate[Constraint]]] = {}
        self._sigma_period_ns = round(1e9 / SIGMA_RATE)
        self._unknown: FloatArray = np.full(len(robot.joint_names), np.nan)
        self._unavailable: BoolArray = np.zeros(len(robot.joint_names), dtype=bool)
        self.retune(config.sensors)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._sensors = sensor_variances(noise)

    def reset(self) -> None:
        """Forget the cached standard deviations."""
        self._sigma_key = b""
        self._sigma_stamp_ns = 0
        self._sigma = self._noise_sigma = self._unknown

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """The signal itself: FBSE has no lag."""
        return signal

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction of the joints of all standing, settled limbs (eqs. 42-49)."""
        return self.measure(frame, frame.wrenches, attitude, phase, dynamics)

    def measure(
        self, frame: SensorFrame, wrenches: FloatArray, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics
    ) -> MeasuredFriction:
        """Friction of the joints of all standing, settled limbs with given foot wrenches (eqs. 42-49).

        Parameters
        ----------
        frame : readings of the sample, whose foot wrenches ``wrenches`` replaces
        wrenches : (k, 6) of the ground on the feet, in and about the sole frames, measured or calibrated [N, N m]
        attitude, phase, dynamics : results of the stages before for the same frame
        """
        standing = phase.contact & frame.wrench_fresh & (phase.since >= _SETTLING_TIME)
        key = standing.tobytes()
        if key not in self._support_sets:
            self._support_sets[key] = self._support_set(standing)
        support_buffer, support, template = self._support_sets[key]
        if not frame.imu_fresh or not support.joints.size:
            return MeasuredFriction(self._unknown, self._unknown, self._unknown, self._unavailable)
        constraint, dynamics_buffer = template.new(), dynamics.buffer
        friction, acceleration, effort = self._unknown.copy(), np.empty(dynamics.bias.size), frame.effort
        regular = _stance_friction(
            support_buffer, attitude.buffer, dynamics_buffer, wrenches, effort, self._gyro, constraint.buffer, friction,
            acceleration,
        )  # fmt: skip
        if not regular:
            solution = self._solution(constraint, attitude)
            friction_of_support(support_buffer, dynamics_buffer, wrenches, effort, solution, friction, acceleration)
        # by stamps: the correction of the Kalman observer does not call at every frame
        if key != self._sigma_key or frame.stamp_ns - self._sigma_stamp_ns >= self._sigma_period_ns:
            self._sigma_key, self._sigma_stamp_ns = key, frame.stamp_ns
            white, systematic = self._variances(
                support_buffer, constraint, frame, wrenches, attitude, dynamics, acceleration
            )
            self._sigma, self._noise_sigma = self._unknown.copy(), self._unknown.copy()
            self._sigma[support.joints], self._noise_sigma[support.joints] = np.sqrt(white + systematic), np.sqrt(white)
        return MeasuredFriction(friction, self._sigma, self._noise_sigma, support.available)

    def _support_set(self, standing: BoolArray) -> tuple[FloatArray, SupportSet, RecordTemplate[Constraint]]:
        robot, feet = self._robot, np.flatnonzero(standing)
        solved = robot.limb[feet].any(axis=0) & bool(robot.base_dofs)
        complete = solved & ~(robot.coupled & ~solved).any(axis=1)
        support = SupportSet(
            rows=np.flatnonzero((self._row_mask & standing[:, None]).ravel()),
            columns=np.concatenate(([3, 4, 5], 6 + np.flatnonzero(solved))),
            joints=np.flatnonzero(complete),
            available=np.asarray(complete),
            lever=robot.imu_lever,
        )
        r, c = support.rows.size, support.columns.size
        return *buffered(support), RecordTemplate(Constraint(np.zeros((r, c)), np.zeros((r, 3)), np.zeros(r)))

    def _solution(self, constraint: Constraint, attitude: Attitude) -> FloatArray:
        """Accelerations (3 + j,) of base and standing limbs seen from the IMU, where a leg is singular."""
        J, _, upsilon = constraint
        if not self._gyro:
            return np.asarray(_pseudo_inverse(J) @ upsilon)
        alpha = attitude.angular_acceleration
        return np.concatenate((alpha, _pseudo_inverse(J[:, 3:].copy()) @ (upsilon - J[:, :3] @ alpha)))

    def _variances(
        self,
        support: FloatArray,
        constraint: Constraint,
        frame: SensorFrame,
        wrenches: FloatArray,
        attitude: Attitude,
        dynamics: Dynamics,
        acceleration: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """White and lasting variance (m,) of the friction: :func:`_friction_variances`."""
        J, linear, _ = constraint
        joint_inverse = _pseudo_inverse(J[:, 3:].copy())
        free = np.vstack((np.eye(3), -joint_inverse @ J[:, :3]))
        inverse = np.vstack((np.zeros((3, J.shape[0])), joint_inverse)) if self._gyro else _pseudo_inverse(J)
        sensitivities = FrictionSensitivities(
            *self._robot.inverse_dynamics_derivatives(dynamics, acceleration, wrenches),
            *self._robot.foot_acceleration_derivatives(dynamics, acceleration),
            inverse,
            free,
            linear,
        )
        return _friction_variances(
            support, attitude.buffer, dynamics.buffer, wrenches, frame.effort, *sensitivities, *self._sensors,
            self._angular_acceleration_std,
        )  # fmt: skip
