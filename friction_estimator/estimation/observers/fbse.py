"""Foot-base sensor estimation: friction of standing limbs (Hashlamon & Erbatur 2014, section 5, eqs. 34-49).

A standing foot has no acceleration. With the base acceleration from the IMU that fixes the joint accelerations, and
with them the reduced model gives the link torque; motor torque minus link torque is friction.

The base frame's origin is taken at the IMU, whose acceleration is a measurement; elsewhere it would need the base
angular acceleration, which is among the unknowns. Seen from the frame that moves with the IMU, gravity is minus the
specific force, so that the base velocity drops out of eqs. 35-49 and the attitude out of all but the feet's
acceleration (eq. 41), by Galilean invariance (a test compares with the world frame).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import Config, SensorNoise
from friction_estimator.config.robot import constant_vector, white_vector
from friction_estimator.linear_algebra import solve_positive
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import (
    GRAVITY,
    Attitude,
    BoolArray,
    ContactPhase,
    Dynamics,
    FloatArray,
    IntArray,
    MeasuredFriction,
    SensorFrame,
)

_ANGULAR_ACCELERATION_STD = 0.3
"""Standard deviation of the base angular acceleration that the method assumes or differentiates [rad/s^2]."""
_SETTLING_TIME = 0.05
"""A foot that has landed moves for this long [s]; until then its limb is not measured."""


@dataclass(frozen=True, slots=True)
class SupportSet:
    """Index bookkeeping of one set of standing feet.

    Attributes
    ----------
    rows : (f*6,) constraint rows in the flattened (k*6) stack, fewer for point feet
    columns : (3 + j,) generalised velocities solved for: base angular acceleration, joints of the standing limbs
    joints : (m,) joints whose link torque is known: all joints coupled to them are among the columns
    available : (n,) True for these joints
    """

    rows: IntArray
    columns: IntArray
    joints: IntArray
    available: BoolArray


@kernel
def minimum_norm(J: FloatArray, upsilon: FloatArray, solution: FloatArray) -> bool:
    """``J^T (J J^T)^{-1} upsilon`` (c,) of eqs. 42 and 46; False where the rows of J (r, c) depend on each other."""
    multipliers, regular = solve_positive(J @ J.T, upsilon.reshape((upsilon.size, 1)))
    solution[:] = J.T @ multipliers[:, 0].copy()
    return regular


@kernel("M", unchecked=True)
def _regular_inverse(A: FloatArray) -> tuple[FloatArray, bool]:
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


@kernel("T M M V M I I M M V", unchecked=True)
def constrain(
    foot_jacobian: FloatArray,
    drift: FloatArray,
    rotation: FloatArray,
    specific_force: FloatArray,
    lever: FloatArray,
    rows: IntArray,
    columns: IntArray,
    J: FloatArray,
    linear: FloatArray,
    upsilon: FloatArray,
) -> None:
    """Write the constraint of the standing feet (eqs. 43, 44, 47, 48), base origin moved to the IMU.

    Parameters
    ----------
    foot_jacobian, drift : (k, 6, nv), and Jdot v (k, 6)
    rotation : (3, 3) base to world
    specific_force : (3,) base axes [m/s^2]
    lever : (3, 3) of the cross product with the position of the IMU in the base
    rows, columns : of :class:`SupportSet`
    J : (r, 3 + j) output: J_DS or J_SS
    linear : (r, 3) output: its columns of the base velocity
    upsilon : (r,) output: minus the feet's acceleration by the motion so far, and by that of the IMU
    """
    for a in range(rows.size):
        foot, axis = rows[a] // 6, rows[a] % 6
        upsilon[a] = -drift[foot, axis]
        for i in range(3):  # gravity in base axes is minus the last row of the rotation
            linear[a, i] = foot_jacobian[foot, axis, i]
            upsilon[a] -= linear[a, i] * (specific_force[i] - GRAVITY * rotation[2, i])
        for b in range(columns.size):
            J[a, b] = foot_jacobian[foot, axis, columns[b]]
        for b in range(3):
            for i in range(3):
                J[a, b] += linear[a, i] * lever[i, b]


@kernel("M V T M V V M I I V V", unchecked=True)
def friction_of_support(
    H: FloatArray,
    b: FloatArray,
    foot_jacobian: FloatArray,
    wrenches: FloatArray,
    effort: FloatArray,
    solution: FloatArray,
    lever: FloatArray,
    columns: IntArray,
    joints: IntArray,
    friction: FloatArray,
    acceleration: FloatArray,
) -> None:
    """Write the friction of the ``joints`` by eqs. 35, 45 and 49.

    Parameters
    ----------
    H, b : (nv, nv), (nv,) of the dynamics
    solution : (3 + j,) accelerations of the ``columns``; unsolved joints stay at zero
    friction : (n,) output; other joints than these keep their values
    acceleration : (nv,) output: generalised acceleration seen from the IMU
    """
    acceleration[:] = 0.0
    for c in range(columns.size):
        acceleration[columns[c]] = solution[c]
    for i in range(3):
        acceleration[i] = lever[i, 0] * solution[0] + lever[i, 1] * solution[1] + lever[i, 2] * solution[2]
    for a in range(joints.size):
        row = 6 + joints[a]
        link_torque = b[row]
        for j in range(b.size):
            link_torque += H[row, j] * acceleration[j]
        for foot in range(wrenches.shape[0]):
            for axis in range(6):
                link_torque -= foot_jacobian[foot, axis, row] * wrenches[foot, axis]
        friction[joints[a]] = effort[joints[a]] - link_torque


@kernel("T M M V V b1 M M V M V I I I M M V V V", unchecked=True)
def standing_friction(
    foot_jacobian: FloatArray,
    drift: FloatArray,
    rotation: FloatArray,
    specific_force: FloatArray,
    alpha: FloatArray,
    gyro: bool,
    lever: FloatArray,
    H: FloatArray,
    b: FloatArray,
    wrenches: FloatArray,
    effort: FloatArray,
    rows: IntArray,
    columns: IntArray,
    joints: IntArray,
    J: FloatArray,
    linear: FloatArray,
    upsilon: FloatArray,
    friction: FloatArray,
    acceleration: FloatArray,
) -> bool:
    """Write the friction of the standing limbs (eqs. 42-49); False where a leg is singular, as with a stretched knee.

    Parameters
    ----------
    foot_jacobian, ..., effort : of :func:`constrain` and :func:`friction_of_support`
    alpha : (3,) angular acceleration of the base [rad/s^2]
    gyro : True to take ``alpha`` as given, False for that of eqs. 42 and 46
    rows, columns, joints : of :class:`SupportSet`
    J, linear, upsilon : output of :func:`constrain`
    friction, acceleration : output of :func:`friction_of_support`
    """
    constrain(foot_jacobian, drift, rotation, specific_force, lever, rows, columns, J, linear, upsilon)
    solution = np.empty(columns.size)
    if gyro:
        moved, joint_solution = upsilon.copy(), np.empty(columns.size - 3)
        for i in range(3):
            solution[i] = alpha[i]
            for a in range(moved.size):
                moved[a] -= J[a, i] * alpha[i]
        regular = minimum_norm(J[:, 3:].copy(), moved, joint_solution)
        solution[3:] = joint_solution
    else:
        regular = minimum_norm(J, upsilon, solution)
    friction_of_support(
        H, b, foot_jacobian, wrenches, effort, solution, lever, columns, joints, friction, acceleration
    )  # fmt: skip
    return regular


@kernel("M M T T M M M M M M T V M I I I M V V f8", unchecked=True)
def friction_variances(
    torque_q: FloatArray,
    torque_v: FloatArray,
    foot_q: FloatArray,
    foot_v: FloatArray,
    linear: FloatArray,
    inverse: FloatArray,
    free: FloatArray,
    H: FloatArray,
    rotation: FloatArray,
    tilt: FloatArray,
    foot_jacobian: FloatArray,
    effort: FloatArray,
    wrenches: FloatArray,
    rows: IntArray,
    columns: IntArray,
    joints: IntArray,
    lever: FloatArray,
    white: FloatArray,
    constant: FloatArray,
    alpha_std: float,
) -> tuple[FloatArray, FloatArray]:
    """First-order propagation of the sensor errors to the friction (m,): white, lasting [(N m)^2].

    Through eq. 49 directly, and through the accelerations of eqs. 42, 46; plus the angular acceleration of the base,
    which the constraint leaves free and which is known to ``alpha_std`` only.

    Parameters
    ----------
    torque_q, torque_v, foot_q, foot_v : derivatives by positions and velocities
    linear : (r, 3) of :func:`constrain`
    inverse, free : (c, r), (c, 3) how the solution moves with upsilon and with the base angular acceleration
    tilt : (3, 3) covariance of the attitude
    white, constant : variances in the order of :mod:`friction_estimator.config.robot`
    """
    m, r, c, n, nv = joints.size, rows.size, columns.size, effort.size, H.shape[0]
    columns_of_mass = np.empty((m, c))
    for a in range(m):
        for j in range(c):
            columns_of_mass[a, j] = H[6 + joints[a], columns[j]]
        for j in range(3):
            for i in range(3):
                columns_of_mass[a, j] += H[6 + joints[a], i] * lever[i, j]
    through = -(columns_of_mass @ inverse)
    by_acceleration = through @ linear
    by_alpha = columns_of_mass @ free
    # gravity turns with the tilt: R^T skew([0, 0, -g])
    gravity_by_angle = np.empty((3, 3))
    for i in range(3):
        gravity_by_angle[i, 0], gravity_by_angle[i, 1] = -GRAVITY * rotation[1, i], GRAVITY * rotation[0, i]
        gravity_by_angle[i, 2] = 0.0
    by_angle = by_acceleration @ gravity_by_angle
    noise, lasting = np.empty(m), np.empty(m)
    for a in range(m):
        row = 6 + joints[a]
        white_sum, constant_sum = white[1], constant[0] * effort[joints[a]] ** 2
        for j in range(n):
            derivative = torque_q[row, j]
            for k in range(r):
                derivative += through[a, k] * foot_q[rows[k] // 6, rows[k] % 6, j]
            white_sum += derivative**2 * white[0]
        for j in range(3, nv):
            derivative = torque_v[row, j]
            for k in range(r):
                derivative += through[a, k] * foot_v[rows[k] // 6, rows[k] % 6, j]
            white_sum += derivative**2 * (white[6] if j < 6 else white[5])
            constant_sum += derivative**2 * constant[5] if j < 6 else 0.0
        for i in range(3):
            derivative = H[row, i] + by_acceleration[a, i]
            white_sum += derivative**2 * white[2]
            constant_sum += derivative**2 * constant[1] + (by_alpha[a, i] * alpha_std) ** 2
            for j in range(3):
                constant_sum += by_angle[a, i] * tilt[i, j] * by_angle[a, j]
        for foot in range(wrenches.shape[0]):
            for axis in range(6):
                square, kind = foot_jacobian[foot, axis, row] ** 2, 3 if axis < 3 else 4
                white_sum += square * white[kind]
                constant_sum += square * (constant[kind - 1] + constant[4] * wrenches[foot, axis] ** 2)
        noise[a], lasting[a] = white_sum, constant_sum
    return noise, lasting


class FootBaseSensorEstimation:
    """The FBSE observer.

    Parameters
    ----------
    config : ``fbse``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._gyro = config.fbse.base_angular_acceleration == "gyro"
        self._robot = robot
        self._row_mask = np.array([foot.held_axes for foot in config.feet])
        self._support_sets: dict[bytes, SupportSet] = {}
        self._sigma_period_ns = round(1e9 / config.sensors.sigma_rate)
        self._lever = robot.imu_lever
        self._unknown: FloatArray = np.full(len(robot.joint_names), np.nan)
        self._nowhere: BoolArray = np.zeros(len(robot.joint_names), dtype=bool)
        self.retune(config.sensors)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the standard deviations of this noise from now on."""
        self._white, self._constant = white_vector(noise), constant_vector(noise)

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
        self,
        frame: SensorFrame,
        wrenches: FloatArray,
        attitude: Attitude,
        phase: ContactPhase,
        dynamics: Dynamics,
    ) -> MeasuredFriction:
        """The same with wrenches (k, 6) of the ground on the feet that may be calibrated."""
        standing = phase.contact & frame.wrench_fresh & (phase.since >= _SETTLING_TIME)
        key = standing.tobytes()
        support = self._support_sets.get(key) or self._support_set(standing)
        if not frame.imu_fresh or not support.joints.size:
            return MeasuredFriction(self._unknown, self._unknown, self._unknown, self._nowhere)
        r, c = support.rows.size, support.columns.size
        J, linear, upsilon = np.empty((r, c)), np.empty((r, 3)), np.empty(r)
        friction, acceleration = self._unknown.copy(), np.empty(dynamics.bias.size)
        regular = standing_friction(
            dynamics.foot_jacobian,
            dynamics.foot_bias_acceleration,
            attitude.rotation_base_to_world,
            dynamics.specific_force,
            attitude.angular_acceleration,
            self._gyro,
            self._lever,
            dynamics.mass_matrix,
            dynamics.bias,
            wrenches,
            frame.effort,
            support.rows,
            support.columns,
            support.joints,
            J,
            linear,
            upsilon,
            friction,
            acceleration,
        )
        if not regular:
            friction_of_support(
                dynamics.mass_matrix,
                dynamics.bias,
                dynamics.foot_jacobian,
                wrenches,
                frame.effort,
                self._solution(J, upsilon, attitude),
                self._lever,
                support.columns,
                support.joints,
                friction,
                acceleration,
            )
        # by stamps: the correction of the Kalman observer does not call at every frame
        if key != self._sigma_key or frame.stamp_ns - self._sigma_stamp_ns >= self._sigma_period_ns:
            self._sigma_key, self._sigma_stamp_ns = key, frame.stamp_ns
            white, lasting = self._variances(J, linear, frame, wrenches, attitude, dynamics, support, acceleration)
            self._sigma, self._noise_sigma = self._unknown.copy(), self._unknown.copy()
            self._sigma[support.joints], self._noise_sigma[support.joints] = np.sqrt(white + lasting), np.sqrt(white)
        return MeasuredFriction(friction, self._sigma, self._noise_sigma, support.available)

    def _support_set(self, standing: BoolArray) -> SupportSet:
        robot, feet = self._robot, np.flatnonzero(standing)
        solved = robot.limb[feet].any(axis=0)
        complete = solved & ~(robot.coupled & ~solved).any(axis=1)
        support = SupportSet(
            rows=np.flatnonzero((self._row_mask & standing[:, None]).ravel()),
            columns=np.concatenate(([3, 4, 5], 6 + np.flatnonzero(solved))),
            joints=np.flatnonzero(complete),
            available=np.asarray(complete),
        )
        self._support_sets[standing.tobytes()] = support
        return support

    def _solution(self, J: FloatArray, upsilon: FloatArray, attitude: Attitude) -> FloatArray:
        """Accelerations (3 + j,) of base and standing limbs seen from the IMU, where a leg is singular."""
        if not self._gyro:
            return np.asarray(_pseudo_inverse(J) @ upsilon)
        alpha = attitude.angular_acceleration
        return np.concatenate((alpha, _pseudo_inverse(J[:, 3:].copy()) @ (upsilon - J[:, :3] @ alpha)))

    def _variances(
        self,
        J: FloatArray,
        linear: FloatArray,
        frame: SensorFrame,
        wrenches: FloatArray,
        attitude: Attitude,
        dynamics: Dynamics,
        support: SupportSet,
        acceleration: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """White and lasting variance (m,) of the friction: :func:`friction_variances`."""
        joint_inverse = _pseudo_inverse(J[:, 3:].copy())
        free = np.vstack((np.eye(3), -joint_inverse @ J[:, :3]))
        inverse = np.vstack((np.zeros((3, J.shape[0])), joint_inverse)) if self._gyro else _pseudo_inverse(J)
        return friction_variances(
            *self._robot.inverse_dynamics_derivatives(dynamics, acceleration, wrenches),
            *self._robot.foot_acceleration_derivatives(dynamics, acceleration),
            linear,
            inverse,
            free,
            dynamics.mass_matrix,
            attitude.rotation_base_to_world,
            attitude.covariance,
            dynamics.foot_jacobian,
            frame.effort,
            wrenches,
            support.rows,
            support.columns,
            support.joints,
            self._lever,
            self._white,
            self._constant,
            _ANGULAR_ACCELERATION_STD,
        )
