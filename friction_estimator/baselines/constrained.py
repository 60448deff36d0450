"""Constrained-dynamics observer: friction from joint accelerations, without force sensors (Egle 2021, chapters 5-7).

    M a + h = S^T (tau - tau_friction) + J^T lambda,    J a = b        (eqs. 5.5, our sign of friction)

``M`` (nv, nv) mass matrix, ``h`` (nv,) Coriolis, centrifugal and gravity terms, ``J`` (r, nv) the constraints stacked:
standing feet and position-controlled joints (eq. 5.6), ``S`` the selection of the torque-controlled joints (eq. 5.3).
The thesis adds the friction torque to the motor torque; we subtract it, so that ours is minus the published one.
All is in the inertial frame that moves with the IMU at that instant: accelerations are the true ones there, gravity is
the attitude's, and the base velocity drops out. No foot wrench and no accelerometer reading is used.

The acceleration that the motor torques would cause without friction is compared with the differentiated one; the
difference, times the inertia that the constraints leave, is the friction. Foot sensors only show which feet stand. In
single support and for swinging limbs the friction is unique, but where much of the robot hangs on a joint the least
error of its acceleration is a large torque: friction less certain than ``max_sigma`` is not given.

Central differences and the trimmed end of a phase need the future, so the estimate is that of an earlier instant, and
``filter`` delays other signals alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.baselines.differentiation import DelayLine, DerivativeWeights, Differentiator, Instant
from friction_estimator.config import Config
from friction_estimator.config.robot import SIGMA_RATE, sensor_variances
from friction_estimator.errors import ConfigError, choices
from friction_estimator.linear_algebra import skew, solve_positive
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


@dataclass(frozen=True, slots=True)
class ConstrainedDynamics:
    """How forces and the constraint accelerate the robot: ``a = mobility @ force + constraint_gain @ b``."""

    # (nv, nv) `M^{-1} (I - J^T (J M^{-1} J^T)^{-1} J M^{-1})`, the matrix of eq. 5.10 that removes what acts on
    # the constraints; symmetric, rank `nv - r`
    mobility: FloatArray
    constraint_gain: FloatArray  # (nv, r) `M^{-1} J^T (J M^{-1} J^T)^{-1}`

    def acceleration(self, force: FloatArray, b: FloatArray) -> FloatArray:
        """Generalised acceleration (nv,) under the force ``S^T tau - h`` (nv,) and the constraint b (r,) (eq. 5.10)."""
        return np.asarray(self.mobility @ force + self.constraint_gain @ b)

    def constraint_force(self, residual: FloatArray) -> FloatArray:
        """Lagrange multipliers (r,) from ``M a + h - S^T tau`` (nv,): what the constraints must add (eq. 5.9)."""
        return np.asarray(self.constraint_gain.T @ residual)

    def response(self, joints: IntArray) -> FloatArray:
        """``M_mod^{-1} = S M^{-1} N S^T``, (m, m): joint accelerations per friction torque (eq. 5.12)."""
        return self.mobility[np.ix_(joints, joints)]


def eliminate_constraint_forces(M: FloatArray, J: FloatArray) -> ConstrainedDynamics:
    """Eliminate the constraint forces from mass matrix (nv, nv) and constraints (r, nv) (Egle 2021, eqs. 5.7-5.10).

    Constraints that repeat each other (two feet on a stretched leg) count once, by the pseudo-inverse.
    """
    inverse = _inverse(M)
    by_force = inverse @ J.T
    gain = by_force @ _inverse(J @ by_force)  # eqs. 5.8 and 5.9
    mobility = inverse - gain @ by_force.T
    return ConstrainedDynamics(0.5 * (mobility + mobility.T), gain)


def _unique_inverse(response: FloatArray) -> FloatArray | None:
    """``M_mod`` of eq. 5.13, (m, m), where the friction is unique; None where ``response`` is singular."""
    inverse, definite = solve_positive(np.ascontiguousarray(response), np.eye(response.shape[0]))
    return inverse if definite else None


def regularised_inverse(response: FloatArray, weight: float) -> FloatArray:
    """Matrix (m, m) from the acceleration difference to the friction in the solution of eq. 6.1 of Egle 2021.

    With ``W = I`` and ``Lambda = weight * I`` the minimum is ``(K^2 + weight I)^{-1} K``, K being ``response``; by
    eigenvalues, so that it stays exact to rounding where K is singular (feet that stand together). ``weight`` towards
    zero is the pseudo-inverse, the least friction that explains the accelerations.
    """
    values, vectors = np.linalg.eigh(response)
    floor = 1e-12 * max(values[-1], 0.0)
    gains = np.where(values > floor, values / (values**2 + weight), 0.0)
    return np.asarray((vectors * gains) @ vectors.T)


def _inverse(A: FloatArray) -> FloatArray:
    """Inverse of a symmetric positive definite matrix, pseudo-inverse of a semi-definite one."""
    if not A.size:
        return A
    inverse = _unique_inverse(A)
    return np.asarray(np.linalg.pinv(A, rcond=1e-10, hermitian=True)) if inverse is None else inverse


@dataclass(frozen=True, slots=True)
class ConstrainedSolution:
    """Friction of one instant, with the quantities from which it was computed."""

    instant: Instant  # sensors, attitude, contact and dynamics
    rows: IntArray  # constraint rows of the standing feet in the flattened (k*6) stack
    system: ConstrainedDynamics  # the constrained dynamics
    inertia: FloatArray  # (m, m) M_mod of eq. 5.13, or what stands for it in eq. 6.1
    friction: FloatArray  # (m,) of the torque-controlled joints [N m]
    acceleration: FloatArray  # (nv,) with that friction, base included
    constraint_force: FloatArray  # (r,) wrenches of the standing feet, then torques of the position-controlled joints


class ConstrainedFriction:
    """Friction of one robot from its accelerations under constraints (Egle 2021, eqs. 5.3-5.13 and 6.1).

    Parameters
    ----------
    config : ``constrained``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the dynamics

    Attributes
    ----------
    joints : (m,) indices of the torque-controlled joints

    Raises
    ------
    ConfigError
        When ``constrained.position_controlled`` names a joint that the robot lacks, or all joints.
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        self._settings = config.constrained
        self._noise = config.sensors
        self._robot = robot
        held = _held_joints(self._settings.position_controlled, robot.joint_names)
        self.joints: IntArray = np.flatnonzero(~held)
        self._columns = robot.base_dofs + self.joints
        self._held_rows = np.eye(robot.base_dofs + held.size)[robot.base_dofs :][held]  # S_pc of eq. 5.3
        rows = [foot.held_axes for foot in config.feet]
        self._row_mask = np.array(rows, dtype=bool).reshape(-1, 6)

    def unique(self, standing: BoolArray) -> BoolArray:
        """Joints, among all n, whose friction follows from the accelerations while these feet (k,) stand.

        Forces between two standing feet, or between a foot and a fixed base, load the joints between them without
        moving any: these joints are ambiguous (section 5.3).
        """
        result = np.zeros(len(self._robot.joint_names), dtype=bool)
        result[self.joints] = True
        if self._loops(standing):
            result &= ~self._robot.limb[standing].any(axis=0)
        return result

    def solve(self, instant: Instant, joint_acceleration: FloatArray) -> ConstrainedSolution:
        """Friction of the torque-controlled joints from the accelerations (n,) of all joints [rad/s^2]."""
        dynamics, standing = instant.dynamics, instant.phase.contact
        rows = np.flatnonzero((self._row_mask & standing[:, None]).ravel())
        feet = dynamics.foot_jacobian.reshape(-1, dynamics.velocity.size)[rows]
        b = np.concatenate((-dynamics.foot_bias_acceleration.ravel()[rows], np.zeros(len(self._held_rows))))
        system = eliminate_constraint_forces(dynamics.mass_matrix, np.vstack((feet, self._held_rows)))
        force = -self._bias(instant)
        force[self._columns] += instant.frame.effort[self.joints]
        difference = joint_acceleration[self.joints] - system.acceleration(force, b)[self._columns]  # eq. 5.12
        response = system.response(self._columns)
        inertia = None if self._loops(standing) else _unique_inverse(response)
        if inertia is None:
            inertia = regularised_inverse(response, self._settings.regularisation)
        friction = -inertia @ difference  # eq. 5.13, our sign
        force[self._columns] -= friction
        acceleration = system.acceleration(force, b)
        constraint_force = system.constraint_force(dynamics.mass_matrix @ acceleration - force)
        return ConstrainedSolution(instant, rows, system, inertia, friction, acceleration, constraint_force)

    def variances(
        self, solution: ConstrainedSolution, weights: DerivativeWeights, motion: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """First-order propagation of the errors to ``solution.friction``: white, lasting (m,) [(N m)^2].

        Lasting are attitude, constant sensor errors, the motion that the differences miss, and the friction that
        eq. 6.1 leaves out.

        Parameters
        ----------
        solution, weights : what was measured, and how it was differentiated
        motion : (n,) mean square of the joint accelerations of late [(rad/s^2)^2]
        """
        by_position, by_velocity = self._motion_derivatives(solution)
        by_acceleration = np.zeros_like(by_position)
        by_acceleration[:, self.joints] = -solution.inertia
        resolved = solution.inertia @ solution.system.response(self._columns)  # the identity where unique
        gains = self._gains(by_position, by_velocity, by_acceleration, weights)

        effort, base = solution.instant.frame.effort, self._robot.base_dofs
        sensors = sensor_variances(self._noise)
        by_rate = gains[1][:, 3:6].sum(axis=1) if base else np.zeros(self.joints.size)
        noise = (resolved**2).sum(axis=1) * sensors.effort + gains[0].sum(axis=1) * sensors.position
        noise += gains[1][:, base:].sum(axis=1) * sensors.velocity + by_rate * sensors.angular_velocity
        biases = resolved**2 @ effort[self.joints] ** 2 * sensors.effort_gain + by_rate * sensors.angular_velocity_bias
        smoothed = weights.relative_error**2 * by_acceleration**2 @ motion
        ambiguous = ((np.eye(self.joints.size) - resolved) ** 2).sum(axis=1) * self._settings.friction_std**2
        systematic = smoothed + ambiguous + self._tilt_variance(solution)
        return noise, systematic + biases

    def _gains(
        self, by_position: FloatArray, by_velocity: FloatArray, by_acceleration: FloatArray, weights: DerivativeWeights
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of the friction per variance of positions, (m, n), and of generalised velocities, (m, nv).

        The sample at the instant itself enters through the dynamics and through the differences.
        """
        middle = weights.values[weights.middle]
        others = weights.values @ weights.values - middle**2
        if self._settings.signal == "position":
            return (by_position + middle * by_acceleration) ** 2 + others * by_acceleration**2, by_velocity**2
        gains, joints = by_velocity**2, slice(self._robot.base_dofs, None)
        gains[:, joints] = (by_velocity[:, joints] + middle * by_acceleration) ** 2 + others * by_acceleration**2
        return by_position**2, gains

    def _motion_derivatives(self, solution: ConstrainedSolution) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the friction by joint positions, (m, n), and generalised velocities, (m, nv)."""
        instant, robot = solution.instant, self._robot
        wrenches = np.zeros(instant.frame.wrenches.size)
        wrenches[solution.rows] = solution.constraint_force[: solution.rows.size]
        relative = solution.acceleration.copy()  # to the IMU, as the model's gravity is
        relative[: 3 if robot.base_dofs else 0] -= self._imu_acceleration(instant)
        torques = robot.inverse_dynamics_derivatives(instant.dynamics, relative, wrenches.reshape(-1, 6))
        feet = robot.foot_acceleration_derivatives(instant.dynamics, solution.acceleration)
        by_force = solution.inertia @ solution.system.mobility[self._columns]
        by_constraint = solution.inertia @ solution.system.constraint_gain[self._columns, : solution.rows.size]
        by_position, by_velocity = (
            -by_force @ torque - by_constraint @ foot.reshape(-1, foot.shape[-1])[solution.rows]
            for torque, foot in zip(torques, feet, strict=True)
        )
        return by_position, by_velocity

    def _tilt_variance(self, solution: ConstrainedSolution) -> FloatArray:
        """Variance of the friction from the direction of gravity, (m,)."""
        if not self._robot.base_dofs:
            return np.zeros(self.joints.size)
        attitude, M = solution.instant.attitude, solution.instant.dynamics.mass_matrix
        by_gravity = solution.inertia @ solution.system.mobility[self._columns] @ M[:, :3]
        by_angle = by_gravity @ attitude.rotation_base_to_world.T @ skew(np.array([0.0, 0.0, -GRAVITY]))
        return np.asarray(np.einsum("ij,jk,ik->i", by_angle, attitude.covariance, by_angle))

    def _bias(self, instant: Instant) -> FloatArray:
        """Coriolis, centrifugal and gravity terms with the true gravity, (nv,)."""
        dynamics = instant.dynamics
        if not self._robot.base_dofs:
            return dynamics.bias
        return dynamics.bias - dynamics.mass_matrix[:, :3] @ self._imu_acceleration(instant)

    def _imu_acceleration(self, instant: Instant) -> FloatArray:
        """Specific force plus gravity, base axes, (3,): what the shared dynamics leave out; (0,) for a fixed base."""
        if not self._robot.base_dofs:
            return np.zeros(0)
        attitude = instant.attitude
        return attitude.specific_force - GRAVITY * attitude.rotation_base_to_world[2]

    def _loops(self, standing: BoolArray) -> bool:
        """True where the ground closes a kinematic loop."""
        return int(standing.sum()) > (1 if self._robot.base_dofs else 0)


def _held_joints(names: tuple[str, ...], joint_names: tuple[str, ...]) -> BoolArray:
    """Mask of the position-controlled joints, (n,)."""
    unknown = [name for name in names if name not in joint_names]
    if unknown:
        raise ConfigError(
            f"constrained.position_controlled names {choices(unknown)}; the joints are {choices(joint_names)}"
        )
    held = np.isin(joint_names, names)
    if held.all():
        raise ConfigError("constrained.position_controlled names all joints, so none has a friction to measure")
    return held


class ConstrainedDynamicsObserver:
    """Friction at an instant up to half a window or ``trim_end`` ago, whichever is longer.

    Parameters
    ----------
    config : ``constrained``, ``sensors`` and the feet's kind of contact
    robot : the model that also made the :class:`Dynamics`
    """

    def __init__(self, config: Config, robot: RobotModel) -> None:
        settings = config.constrained
        self._signal, self._trim_start, self._max_sigma = settings.signal, settings.trim_start, settings.max_sigma
        self._motion_frequency = settings.motion_frequency
        self._regularised = settings.double_support == "regularised"
        self._friction = ConstrainedFriction(config, robot)
        after = settings.window // 2 if settings.differences == "central" else 0
        self._line = DelayLine(settings.window - 1 - after, after, settings.trim_end)
        derivative = 2 if settings.signal == "position" else 1
        self._differentiator = Differentiator(settings.order, derivative, settings.motion_frequency)
        self._sigma_period = 1.0 / SIGMA_RATE
        self._unknown = np.full(len(robot.joint_names), np.nan)
        self.reset()

    def reset(self) -> None:
        """Begin with an empty window at the next frame."""
        self._line.reset()
        self._quiet_for = 0.0
        self._sigma_key = b""
        self._sigma_age = math.inf
        self._sigma = self._noise_sigma = np.empty(0)
        self._motion = np.zeros(self._unknown.size)

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """The signal as it was at the instant whose friction the last step gave."""
        return self._line.filter(signal)

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Friction at the delayed instant, of the joints whose friction is unique and certain enough there."""
        self._line.push(frame, attitude, phase, dynamics)
        self._update_quiet_time(frame, phase)
        self._sigma_age += frame.dt
        friction, sigma, noise_sigma = self._unknown.copy(), self._unknown.copy(), self._unknown.copy()
        available = np.zeros(friction.size, dtype=bool)
        if self._line.ready and self._quiet_for > self._required_quiet_time():
            standing = self._line.delayed.phase.contact
            unique = self._friction.unique(standing)
            if unique.any() or self._regularised:
                joints = self._friction.joints
                friction[joints] = self._measure(standing.tobytes())
                sigma[joints], noise_sigma[joints] = self._sigma, self._noise_sigma
                available = (unique | (self._regularised & np.isfinite(sigma))) & (sigma <= self._max_sigma)
                for values in (friction, sigma, noise_sigma):
                    values[~available] = np.nan
        return MeasuredFriction(friction, sigma, noise_sigma, available)

    def _update_quiet_time(self, frame: SensorFrame, phase: ContactPhase) -> None:
        """Count how long all sensors have sent readings and no foot has landed or left [s]."""
        self._quiet_for = min(self._quiet_for + frame.dt, float(phase.since.min(initial=math.inf)))
        if not (frame.imu_fresh and frame.wrench_fresh.all()):
            self._quiet_for = 0.0

    def _required_quiet_time(self) -> float:
        """The whole window, and ``trim_start`` before the delayed instant, must lie in one phase [s]."""
        return max(self._line.age, self._line.lag + self._trim_start) - 1e-9

    def _measure(self, key: bytes) -> FloatArray:
        """Friction of the torque-controlled joints at the delayed instant, (m,); refreshes its sigma."""
        times, frames = self._line.window()
        weights = self._differentiator.weights(times)
        samples = np.array([getattr(frame, self._signal) for frame in frames])
        acceleration = weights.values @ samples
        decay = min(self._motion_frequency * self._line.delayed.frame.dt, 1.0)
        self._motion = np.maximum(acceleration**2, self._motion + decay * (acceleration**2 - self._motion))
        solution = self._friction.solve(self._line.delayed, acceleration)
        self._refresh_sigma(solution, weights, key)
        return solution.friction

    def _refresh_sigma(self, solution: ConstrainedSolution, weights: DerivativeWeights, key: bytes) -> None:
        if key == self._sigma_key and self._sigma_age < self._sigma_period:
            return
        self._sigma_key, self._sigma_age = key, 0.0
        white, systematic = self._friction.variances(solution, weights, self._motion)
        self._sigma, self._noise_sigma = np.sqrt(white + systematic), np.sqrt(white)
