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

from friction_estimator.core.base.rotations import skew
from friction_estimator.core.config import Config
from friction_estimator.core.linear_algebra import solve_positive
from friction_estimator.core.observers.noise import SensorVariances, constant_variances, white_variances
from friction_estimator.core.robot_model import RobotModel
from friction_estimator.core.types import (
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


@dataclass(frozen=True, slots=True)
class SupportSet:
    """Index bookkeeping of one set of standing feet.

    Attributes
    ----------
    rows : (f*6,) constraint rows in the flattened (k*6) stack, fewer for point feet
    columns : (3 + j,) generalised velocities solved for: base angular acceleration, joints of the standing limbs
    joints : (m,) joints whose link torque is known: all joints coupled to them are among the columns
    """

    rows: IntArray
    columns: IntArray
    joints: IntArray


def constrained_acceleration(J: FloatArray, upsilon: FloatArray) -> FloatArray:
    """Minimum-norm accelerations that keep the feet at rest, ``J^T (J J^T)^{-1} upsilon`` (eqs. 42 and 46).

    Parameters
    ----------
    J : (r, c) constraint Jacobian, eq. 44 or 48
    upsilon : (r,) eq. 43 or 47

    Returns
    -------
    (c,) base angular acceleration, then joint accelerations
    """
    solution = solve_positive(J @ J.T, upsilon)
    if solution is None:  # a singular leg, stretched knee for instance: the pseudo-inverse still has an answer
        return np.asarray(np.linalg.pinv(J, rcond=1e-8) @ upsilon)
    return np.asarray(J.T @ solution)


class FootBaseSensorEstimation:
    """The FBSE observer.

    Parameters
    ----------
    config : ``fbse``, ``contact_phase.settle``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._config = config.fbse
        self._settle = config.contact_phase.settle
        self._robot = robot
        self._row_mask = np.array([[True] * 3 + [foot.contact == "surface"] * 3 for foot in config.feet])
        self._support_sets: dict[bytes, SupportSet] = {}
        self._noise = config.sensors
        self._sigma_period = 1.0 / config.sensors.sigma_rate
        self._lever = skew(robot.imu_position_in_base)
        self.reset()

    def reset(self) -> None:
        """Forget the cached standard deviations."""
        self._sigma_key = b""
        self._sigma_age = np.inf
        self._sigma = self._noise_sigma = np.empty(0)

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """FBSE has no lag."""
        return signal

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction of the joints of all standing, settled limbs (eqs. 42-49)."""
        n = frame.position.size
        standing = phase.contact & frame.wrench_fresh & (phase.since >= self._settle)
        friction, sigma, noise_sigma = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
        available = np.zeros(n, dtype=bool)
        support = self._support_set(standing)
        if frame.imu_fresh and support.joints.size:
            acceleration = self._acceleration(dynamics, attitude, support)
            joint_rows = 6 + support.joints
            link_torque = (
                dynamics.mass_matrix[joint_rows] @ acceleration
                + dynamics.bias[joint_rows]
                - self._foot_torque(dynamics, frame.wrenches)[joint_rows]
            )  # eqs. 35 and 49
            friction[support.joints] = frame.effort[support.joints] - link_torque  # eq. 45
            self._refresh_sigma(frame, attitude, dynamics, support, acceleration, standing.tobytes())
            sigma[support.joints], noise_sigma[support.joints] = self._sigma, self._noise_sigma
            available[support.joints] = True
        return MeasuredFriction(friction, sigma, noise_sigma, available)

    def _support_set(self, standing: BoolArray) -> SupportSet:
        key = standing.tobytes()
        if key not in self._support_sets:
            robot = self._robot
            feet = np.flatnonzero(standing)
            solved = robot.limb[feet].any(axis=0)
            complete = solved & ~(robot.coupled & ~solved).any(axis=1)
            self._support_sets[key] = SupportSet(
                rows=np.flatnonzero((self._row_mask & standing[:, None]).ravel()),
                columns=np.concatenate(([3, 4, 5], 6 + np.flatnonzero(solved))),
                joints=np.flatnonzero(complete),
            )
        return self._support_sets[key]

    def _constraint_jacobian(self, feet: FloatArray, support: SupportSet) -> FloatArray:
        """J_DS or J_SS (eqs. 44, 48), (r, 3 + j), base origin moved to the IMU; from the resting rows (r, nv)."""
        jacobian = feet[:, support.columns]
        jacobian[:, :3] += feet[:, :3] @ self._lever
        return jacobian

    def _acceleration(self, dynamics: Dynamics, attitude: Attitude, support: SupportSet) -> FloatArray:
        """Generalised acceleration (nv,) seen from the IMU (eqs. 42, 43, 46, 47); unsolved joints stay zero."""
        feet = _resting_rows(dynamics, support)
        J = self._constraint_jacobian(feet, support)
        imu_acceleration = attitude.specific_force + _gravity_in_base(attitude)
        upsilon = -dynamics.foot_bias_acceleration.ravel()[support.rows] - feet[:, :3] @ imu_acceleration
        if self._config.base_angular_acceleration == "gyro":
            omega_dot = attitude.angular_acceleration
            joints = constrained_acceleration(J[:, 3:], upsilon - J[:, :3] @ omega_dot)
            solution = np.concatenate((omega_dot, joints))
        else:
            solution = constrained_acceleration(J, upsilon)
        acceleration = np.zeros(dynamics.velocity.size)
        acceleration[support.columns] = solution
        acceleration[:3] = self._lever @ solution[:3]
        return acceleration

    @staticmethod
    def _foot_torque(dynamics: Dynamics, wrenches: FloatArray) -> FloatArray:
        """Generalised torque of all foot wrenches, ``J^T F`` (eq. 38), (nv,)."""
        return dynamics.foot_jacobian.reshape(-1, dynamics.velocity.size).T @ wrenches.ravel()

    def _refresh_sigma(
        self,
        frame: SensorFrame,
        attitude: Attitude,
        dynamics: Dynamics,
        support: SupportSet,
        acceleration: FloatArray,
        key: bytes,
    ) -> None:
        self._sigma_age += frame.dt
        if key == self._sigma_key and self._sigma_age < self._sigma_period:
            return
        self._sigma_key, self._sigma_age = key, 0.0
        white, lasting = self.variances(frame, attitude, dynamics, support, acceleration)
        self._sigma, self._noise_sigma = np.sqrt(white + lasting), np.sqrt(white)

    def variances(
        self,
        frame: SensorFrame,
        attitude: Attitude,
        dynamics: Dynamics,
        support: SupportSet,
        acceleration: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """First-order propagation of the sensor errors to the friction of ``support.joints``: white, lasting [(N m)^2].

        Through eq. 49 directly, and through the accelerations of eqs. 42, 46; plus the angular acceleration of the
        base, which the constraint leaves free and which is known to ``angular_acceleration_std`` only.
        """
        joint_rows = 6 + support.joints
        torque_q, torque_v = self._robot.inverse_dynamics_derivatives(
            frame.position, dynamics, acceleration, frame.wrenches
        )
        foot_q, foot_v = self._robot.foot_acceleration_derivatives(frame.position, dynamics, acceleration)
        feet = _resting_rows(dynamics, support)
        J = self._constraint_jacobian(feet, support)
        H = self._mass_columns(dynamics, support)
        pseudo_inverse, null_space = self._solution_maps(J)
        through = -H @ pseudo_inverse
        by_q = torque_q[joint_rows] + through @ foot_q.reshape(-1, foot_q.shape[-1])[support.rows]
        by_v = torque_v[joint_rows] + through @ foot_v.reshape(-1, foot_v.shape[-1])[support.rows]
        by_acceleration = through @ feet[:, :3]
        by_force = dynamics.mass_matrix[joint_rows, :3] + by_acceleration
        by_angle = by_acceleration @ attitude.rotation_base_to_world.T @ skew(np.array([0.0, 0.0, -GRAVITY]))
        by_wrench = dynamics.foot_jacobian[:, :, joint_rows]
        free = H @ null_space
        lasting = np.einsum("ij,jk,ik->i", by_angle, attitude.covariance, by_angle)
        lasting += (free**2).sum(axis=1) * self._config.angular_acceleration_std**2

        def propagate(source: SensorVariances) -> FloatArray:
            variance = source.effort[support.joints] + (by_q**2).sum(axis=1) * source.position
            variance += by_v**2 @ source.velocity + (by_force**2).sum(axis=1) * source.specific_force
            return np.asarray(variance + np.einsum("kij,ki->j", by_wrench**2, source.wrench))

        white = propagate(white_variances(self._noise, frame, 6))
        return white, lasting + propagate(constant_variances(self._noise, frame, 6))

    def _mass_columns(self, dynamics: Dynamics, support: SupportSet) -> FloatArray:
        """Columns of H-bar that multiply the solved accelerations, lever arm of the IMU included, (m, 3 + j)."""
        rows = dynamics.mass_matrix[6 + support.joints]
        columns = rows[:, support.columns]
        columns[:, :3] += rows[:, :3] @ self._lever
        return columns

    def _solution_maps(self, J: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How the solution moves with upsilon, (c, r), and with the base angular acceleration, (c, 3)."""
        joint_inverse = np.linalg.pinv(J[:, 3:], rcond=1e-8)
        free = np.vstack((np.eye(3), -joint_inverse @ J[:, :3]))
        if self._config.base_angular_acceleration == "gyro":
            return np.vstack((np.zeros((3, J.shape[0])), joint_inverse)), free
        return np.asarray(np.linalg.pinv(J, rcond=1e-8), dtype=float), free


def _gravity_in_base(attitude: Attitude) -> FloatArray:
    """Gravity in base axes, (3,) [m/s^2]."""
    return -GRAVITY * attitude.rotation_base_to_world[2]


def _resting_rows(dynamics: Dynamics, support: SupportSet) -> FloatArray:
    """Rows of the feet's Jacobians that the contact holds still, (r, nv)."""
    return dynamics.foot_jacobian.reshape(-1, dynamics.velocity.size)[support.rows]
