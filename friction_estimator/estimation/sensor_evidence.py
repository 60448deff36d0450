"""What a second of frames shows about the sensors: sums from which :mod:`sensor_checks` draws conclusions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, Dynamics, FloatArray, SensorFrame

LOADED, UNLOADED = 0.1, 0.02
"""A foot is loaded above, and free of load below, these fractions of the weight."""
LEAST_SPEED = 0.05
"""Speed above which a joint moves [rad/s or m/s]: friction at rest may hold any torque."""
_ROUNDING, _LEAST = 1e-12, 1e-9
"""Differences of equal readings: relative, because interpolation rounds, and absolute, which no sensor resolves."""


class Evidence:
    """What the frames of a block show, about one second of them.

    Quantities are compared by three sums of products: their product, the square of the first, the square of the second.

    Parameters
    ----------
    robot : with n joints and k feet

    Attributes
    ----------
    sums : all of the following sums in one array; they are views of it
    imu, force : (2,) number of frames with a reading of the IMU, sum of its size; (3,) specific force in base axes
    loaded, load, gravity : (k,) frames in which a foot is loaded; (k, 3) its force [N], specific force in its axes
    turning : (4,) angular velocity of the base by standing legs and by gyroscope, number of readings [rad/s]
    newton, moments : (7,) number of frames with all sensors, foot forces over the mass and specific force, base axes
        [m/s^2]; (6, 6) products of the last six
    share : (k,) force of a foot times specific force, over the mass
    limb : (k, 3) torques of a foot's force at the joints of its limb, and motor torques minus gravity
    idle : (k, 4) torques of the whole weight at an unloaded foot, and motor torques minus gravity; number of frames
    torque : (4, n) torque that gravity and foot forces need in moving joints, and motor torque; number of frames
    speed : (6, n) step of the position by the velocities, and measured step; number of steps; sum of the steps by the
        velocities, and of the products of two in a row, each by the velocity at its end alone
    first : (3 n + 6 + 6 k) first readings: joint positions, velocities, efforts; rate, specific force; wrenches
    unchanged : (3 n + 2 + k,) one where a sensor, in the order of ``first``, has kept all bits of it
    low, high : (2 n,) ends of the joint positions, and of the distances travelled by the joint velocities
    """

    def __init__(self, robot: RobotModel) -> None:
        n, k = len(robot.joint_names), len(robot.foot_names)
        shapes: tuple[tuple[int, ...], ...] = (
            (2,), (3,), (k,), (k, 3), (k, 3), (4,), (7,), (6, 6), (k,), (k, 3), (k, 4), (4, n), (6, n)
        )  # fmt: skip
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        self.sums = np.zeros(ends[-1])
        starts = [0, *ends[:-1]]
        parts = (self.sums[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True))
        (
            self.imu, self.force, self.loaded, self.load, self.gravity, self.turning, self.newton, self.moments,
            self.share, self.limb, self.idle, self.torque, self.speed,
        ) = parts  # fmt: skip
        self.first, self.unchanged = np.zeros(3 * n + 6 + 6 * k), np.ones(3 * n + 2 + k)
        self.low, self.high = np.full(2 * n, np.inf), np.full(2 * n, -np.inf)

    def include(self, others: Sequence[Evidence]) -> Evidence:
        """Become what all these blocks show together."""
        self.first = others[-1].first
        for out, name, join in (
            (self.sums, "sums", np.add), (self.unchanged, "unchanged", np.minimum), (self.low, "low", np.minimum),
            (self.high, "high", np.maximum),
        ):  # fmt: skip
            join.reduce([getattr(other, name) for other in others], axis=0, out=out)
        return self


class EvidenceCollector:
    """Adds frames to the evidence of the present block.

    Parameters
    ----------
    robot : the model that also makes the dynamics
    flat : (k,) feet whose soles do not turn while they stand
    """

    def __init__(self, robot: RobotModel, flat: BoolArray) -> None:
        self._robot, self._flat = robot, flat
        self._travelled, self._no_effort = np.zeros(len(robot.joint_names)), np.full(len(robot.joint_names), np.nan)
        self._position = self._velocity = self._travelled
        self.restart()

    def restart(self) -> None:
        """Begin a block without a frame before it."""
        self._stamp_ns: int | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a block."""
        self.frames, self.block = 0, Evidence(self._robot)

    def add(self, frame: SensorFrame, dynamics: Dynamics) -> None:
        """Use a frame."""
        effort = frame.effort if frame.effort.size else self._no_effort
        self._compare_readings(frame, effort)
        if self._robot.base_dofs and frame.imu_fresh:
            self._sum_forces(frame, dynamics, effort)
        elif not self._robot.base_dofs:
            forces = np.where(frame.wrench_fresh[:, None], frame.wrenches, 0.0)
            needed = dynamics.bias - np.einsum("kij,ki->j", dynamics.foot_jacobian, forces)
            self._add_torques(needed, effort, np.abs(frame.velocity) > LEAST_SPEED)
        self.frames += 1
        self._stamp_ns = frame.stamp_ns

    def _compare_readings(self, frame: SensorFrame, effort: FloatArray) -> None:
        """Compare a frame with the one before, and with the first one of the block."""
        block, n = self.block, frame.position.size
        if self._stamp_ns is not None:
            step = 1e-9 * (frame.stamp_ns - self._stamp_ns)
            expected, change = 0.5 * step * (frame.velocity + self._velocity), frame.position - self._position
            lagged = step * step * frame.velocity * self._velocity
            one = np.ones(n)
            block.speed += np.stack((expected * change, expected**2, change**2, one, expected, lagged))
            self._travelled = self._travelled + expected
        self._position, self._velocity = frame.position, frame.velocity
        places = np.concatenate((frame.position, self._travelled))
        block.low, block.high = np.minimum(block.low, places), np.maximum(block.high, places)
        sensors = frame.angular_velocity, frame.specific_force, frame.wrenches.ravel()
        row = np.concatenate((frame.position, frame.velocity, effort, *sensors))
        if not self.frames:
            block.first = row
        same = np.abs(row - block.first) <= np.maximum(_ROUNDING * np.abs(block.first), _LEAST)
        starts = np.concatenate((np.arange(3 * n), [3 * n, 3 * n + 3], np.arange(3 * n + 6, row.size, 6)))
        fresh = np.concatenate((np.ones(3 * n), [frame.imu_fresh] * 2, frame.wrench_fresh))
        block.unchanged *= np.logical_and.reduceat(same, starts) * fresh

    def _sum_forces(self, frame: SensorFrame, dynamics: Dynamics, effort: FloatArray) -> None:
        """Add what IMU, foot sensors and motor torques show of the same forces in a frame whose IMU is fresh."""
        robot, block, velocity = self._robot, self.block, frame.velocity
        f = robot.rotation_imu_to_base @ frame.specific_force
        rate = robot.rotation_imu_to_base @ frame.angular_velocity
        block.imu += 1.0, np.linalg.norm(f)
        block.force += f
        R, J, fresh = dynamics.foot_rotation_to_base, dynamics.foot_jacobian[:, :, 6:], frame.wrench_fresh
        F = np.where(fresh[:, None], frame.wrenches, 0.0)
        size = np.linalg.norm(F[:, :3], axis=1)
        loaded, unloaded = fresh & (size > LOADED * robot.weight), fresh & (size < UNLOADED * robot.weight)
        block.loaded += loaded
        block.load += loaded[:, None] * F[:, :3]
        block.gravity += loaded[:, None] * (f @ R)
        legs = -(R @ (J[:, 3:] @ velocity)[..., None])[loaded & self._flat, :, 0]
        block.turning += (legs * rate).sum(), (legs**2).sum(), len(legs) * (rate**2).sum(), len(legs)
        held, contact = dynamics.mass_matrix[6:, :3] @ f, -(F[:, None] @ J)[:, 0]
        motor = np.where(robot.limb, effort - held, 0.0)
        block.limb += fresh[:, None] * _products(contact, motor)
        weighted = np.where(unloaded[:, None], -robot.weight * J[:, 2], 0.0)
        block.idle[:, :3] += _products(weighted, np.where(unloaded[:, None], motor, 0.0))
        block.idle[:, 3] += unloaded
        if fresh.size and fresh.all():
            parts = (R @ F[:, :3, None])[..., 0] / robot.mass
            both = np.concatenate((parts.sum(axis=0), f))
            block.share += parts @ f
            block.newton += np.concatenate(([1.0], both))
            block.moments += np.outer(both, both)
            moving = (np.abs(velocity) > LEAST_SPEED) & robot.limb.any(axis=0)
            self._add_torques(held + contact.sum(axis=0), effort, moving)

    def _add_torques(self, needed: FloatArray, effort: FloatArray, moving: BoolArray) -> None:
        """Add the torque (n,) that gravity and foot forces need, and the motor torque (n,), of the moving joints."""
        products = np.stack((needed * effort, needed**2, effort**2, np.ones_like(needed)))
        used = moving & ~self._robot.touched
        self.block.torque[:, used] += products[:, used]


def _products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Sums (k, 3) of the products of the rows of two arrays (k, n), and of their squares."""
    return np.stack(((first * second).sum(axis=1), (first**2).sum(axis=1), (second**2).sum(axis=1)), axis=1)
