"""What a second of frames shows about the sensors: sums from which :mod:`sensor_checks` draws conclusions.

All frames of the second are used at once, so that a frame costs next to nothing when it arrives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, Dynamics, FloatArray, SensorFrame

LOADED, UNLOADED = 0.1, 0.02
"""A foot is loaded above, and free of load below, these fractions of the weight."""
LEAST_SPEED = 0.05
"""Speed above which a joint moves [rad/s or m/s]: friction at rest may hold any torque."""
_ROUNDING = 1e-12
"""Relative difference of two equal readings: interpolation between them rounds."""


class Sums:
    """Sums over some frames, all of them views of one array.

    Quantities are compared by three sums of products: their product, the square of the first, the square of the second.

    Parameters
    ----------
    robot : with n joints and k feet

    Attributes
    ----------
    imu, norm, force : number of frames with a reading of the IMU; size (), specific force (3,) in base axes [m/s^2]
    loaded, load, gravity : (k,) frames in which a foot is loaded; (k, 3) its force [N], specific force in its axes
    turning : (4,) angular velocity of the base by standing legs and by gyroscope, number of readings [rad/s]
    all_feet, share : number of frames with all sensors; (k,) force of a foot times specific force, over the mass
    newton, moments : (6,) foot forces over the mass and specific force, base axes [m/s^2]; (6, 6) their products
    limb : (k, 3) torques of a foot's force at the joints of its limb, and motor torques minus gravity
    idle : (k, 4) torques of the whole weight at an unloaded foot, and motor torques minus gravity; number of frames
    torque : (4, n) torque that gravity and foot forces need in moving joints, and motor torque; number of frames
    speed : (4, n) step of the position by the velocities, and measured step; number of steps
    """

    def __init__(self, robot: RobotModel) -> None:
        n, k = len(robot.joint_names), len(robot.foot_names)
        shapes: tuple[tuple[int, ...], ...] = (
            (), (), (3,), (k,), (k, 3), (k, 3), (4,), (), (k,), (6,), (6, 6), (k, 3), (k, 4), (4, n), (4, n)
        )  # fmt: skip
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        self.all = np.zeros(ends[-1])
        parts = zip(np.split(self.all, ends[:-1]), shapes, strict=True)
        (
            self.imu, self.norm, self.force, self.loaded, self.load, self.gravity, self.turning, self.all_feet,
            self.share, self.newton, self.moments, self.limb, self.idle, self.torque, self.speed,
        ) = (part.reshape(shape) for part, shape in parts)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of t frames, one a row.

    Attributes
    ----------
    time : (t,) [s]
    position, velocity, effort : (t, n) of the joints
    imu : (t, 2, 3) angular velocity and specific force
    wrenches : (t, k, 6)
    fresh : (t, 1 + k) True where IMU and feet are fresh
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    imu: FloatArray
    wrenches: FloatArray
    fresh: BoolArray

    @classmethod
    def of(cls, frames: Sequence[SensorFrame]) -> Readings:
        """Readings of frames in their order."""
        return cls(
            1e-9 * np.array([frame.stamp_ns - frames[0].stamp_ns for frame in frames]),
            np.array([frame.position for frame in frames]),
            np.array([frame.velocity for frame in frames]),
            np.array([frame.effort for frame in frames]),
            np.array([(frame.angular_velocity, frame.specific_force) for frame in frames]),
            np.array([frame.wrenches for frame in frames]),
            np.array([(frame.imu_fresh, *frame.wrench_fresh.tolist()) for frame in frames], dtype=bool),
        )

    @property
    def steps(self) -> FloatArray:
        """(t - 1, n) steps of the positions by the velocities."""
        return np.asarray(0.5 * (self.velocity[1:] + self.velocity[:-1]) * np.diff(self.time)[:, None])

    def unchanged(self) -> BoolArray:
        """(3 n + 2 + k,) joint positions, velocities, efforts; rate, specific force; wrenches that keep all bits."""
        imu = same(self.imu).all(axis=1) & self.fresh[:, 0].all()
        feet = same(self.wrenches).all(axis=1) & self.fresh[:, 1:].all(axis=0)
        return np.concatenate((same(self.position), same(self.velocity), same(self.effort), imu, feet))


def same(values: FloatArray) -> BoolArray:
    """Which columns of (t, ...) do not change with time."""
    return np.asarray((np.abs(values - values[0]) <= _ROUNDING * np.abs(values[0])).all(axis=0))


def summed(robot: RobotModel, readings: Readings, dynamics: Sequence[Dynamics], flat: BoolArray) -> Sums:
    """Sums over the frames of a second.

    Parameters
    ----------
    robot : the model that also made the dynamics
    readings, dynamics : of the frames
    flat : (k,) feet whose soles do not turn while they stand
    """
    sums, step = Sums(robot), np.diff(readings.position, axis=0)
    sums.speed[:] = *_products(readings.steps, step), np.full(step.shape[1], len(step))
    if robot.base_dofs:
        _sum_forces(sums, robot, readings, dynamics, flat)
    return sums


def _sum_forces(
    sums: Sums, robot: RobotModel, readings: Readings, dynamics: Sequence[Dynamics], flat: BoolArray
) -> None:
    """Sums of what IMU, foot sensors and motor torques show of the same forces, while the IMU is fresh."""
    usable, weight = readings.fresh[:, 0], robot.weight
    v, effort, F, fresh = (
        part[usable] for part in (readings.velocity, readings.effort, readings.wrenches, readings.fresh[:, 1:])
    )
    rate, f = (readings.imu[usable] @ robot.rotation_imu_to_base.T).swapaxes(0, 1)
    R, J, H = (
        np.array([getattr(one, name) for one in dynamics])[usable]
        for name in ("foot_rotation_to_base", "foot_jacobian", "mass_matrix")
    )
    J = J[..., 6:]
    sums.imu[...], sums.norm[...], sums.force[:] = len(f), np.sqrt((f * f).sum(axis=1)).sum(), f.sum(axis=0)
    gravity = (H[:, 6:, :3] @ f[:, :, None])[..., 0]
    contact = -np.einsum("tkin,tki->tkn", J, F) * fresh[..., None]
    own = (effort - gravity)[:, None] * robot.limb
    size = np.sqrt((F[..., :3] ** 2).sum(axis=2))
    loaded, idle = fresh & (size > LOADED * weight), fresh & (size < UNLOADED * weight)
    sums.loaded[:] = loaded.sum(axis=0)
    sums.load[:] = (F[..., :3] * loaded[..., None]).sum(axis=0)
    sums.gravity[:] = np.einsum("tkij,ti,tk->kj", R, f, loaded)
    legs = -np.einsum("tkij,tkjn,tn->tki", R, J[:, :, 3:], v)
    stands = (loaded & flat)[..., None]
    sums.turning[:3] = [part.sum() for part in _products(legs * stands, rate[:, None] * stands)]
    sums.turning[3] = stands.sum()
    sums.limb[:] = np.stack([part.sum(axis=1) for part in _products(contact, own * fresh[..., None])], axis=1)
    carried = -weight * J[:, :, 2] * idle[..., None]
    sums.idle[:, :3] = np.stack([part.sum(axis=1) for part in _products(carried, own * idle[..., None])], axis=1)
    sums.idle[:, 3] = idle.sum(axis=0)
    every = np.asarray(fresh.all(axis=1))
    if not every.any() or not fresh.size:
        return
    forces = np.einsum("tkij,tkj->tki", R, F[..., :3])[every] / robot.mass
    newton = np.hstack((forces.sum(axis=1), f[every]))
    sums.all_feet[...], sums.newton[:], sums.moments[:] = every.sum(), newton.sum(axis=0), newton.T @ newton
    sums.share[:] = np.einsum("tki,ti->k", forces, f[every])
    moves = (every[:, None] & (np.abs(v) > LEAST_SPEED) & robot.limb.any(axis=0)).astype(float)
    needed = gravity + contact.sum(axis=1)
    sums.torque[:] = *_products(needed * moves, effort * moves), moves.sum(axis=0)


def _products(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums over time of the product and of both squares."""
    return (first * second).sum(axis=0), (first * first).sum(axis=0), (second * second).sum(axis=0)
