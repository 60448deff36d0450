"""What a second of frames shows about the sensors: sums from which :mod:`sensor_checks` draws conclusions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray, Dynamics, FloatArray, SensorFrame

LOADED, UNLOADED = 0.1, 0.02
"""A foot is loaded above, and free of load below, these fractions of the weight."""
LEAST_SPEED = 0.05
"""Speed above which a joint moves [rad/s or m/s]: friction at rest may hold any torque."""
_ROUNDING = 1e-12
"""Relative difference of two equal readings: interpolation between them rounds."""


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
        self.parts = [
            self.sums[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True)
        ]
        (
            self.imu, self.force, self.loaded, self.load, self.gravity, self.turning, self.newton, self.moments,
            self.share, self.limb, self.idle, self.torque, self.speed,
        ) = self.parts  # fmt: skip
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
        self._joints = np.zeros((3, len(robot.joint_names)))
        self._no_effort = np.full(len(robot.joint_names), np.nan)
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
        robot, block, effort = self._robot, self.block, frame.effort if frame.effort.size else self._no_effort
        step = 0.0 if self._stamp_ns is None else 1e-9 * (frame.stamp_ns - self._stamp_ns)
        sensors = frame.angular_velocity, frame.specific_force, frame.wrenches.ravel()
        row = np.concatenate((frame.position, frame.velocity, effort, *sensors))
        fresh = frame.imu_fresh, frame.wrench_fresh
        motion = block.speed, block.low, block.high
        compare_readings(step, not self.frames, row, *fresh, self._joints, block.first, block.unchanged, *motion)
        if robot.base_dofs and frame.imu_fresh:
            terms = dynamics.foot_rotation_to_base, dynamics.foot_jacobian, dynamics.mass_matrix
            constants = robot.rotation_imu_to_base, robot.limb, self._flat, robot.weight, robot.mass
            sum_forces(row, frame.wrench_fresh, *terms, *constants, *block.parts[:-1])
        elif not robot.base_dofs:
            self._add_torques(frame, dynamics, effort)
        self.frames += 1
        self._stamp_ns = frame.stamp_ns

    def _add_torques(self, frame: SensorFrame, dynamics: Dynamics, effort: FloatArray) -> None:
        """Add what gravity and foot forces need in the moving joints of a fixed base, and the motor torques."""
        forces = np.where(frame.wrench_fresh[:, None], frame.wrenches, 0.0)
        needed = dynamics.bias - np.einsum("kij,ki->j", dynamics.foot_jacobian, forces)
        moving = np.abs(frame.velocity) > LEAST_SPEED
        products = np.stack((needed * effort, needed**2, effort**2, np.ones_like(needed)))
        self.block.torque[:, moving] += products[:, moving]


@kernel("f8 b1 V b1 B M V V M V V", unchecked=True)
def compare_readings(
    step: float,
    begins: bool,
    row: FloatArray,
    imu_fresh: bool,
    wrench_fresh: BoolArray,
    joints: FloatArray,
    first: FloatArray,
    unchanged: FloatArray,
    speed: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Compare a frame with the one before, and with the first one of the block.

    Parameters
    ----------
    step : time since the frame before; zero: there is none [s]
    begins : True for the first frame of the block
    row : readings of the frame, in the order of ``first``
    imu_fresh, wrench_fresh : of the frame
    joints : (3, n) positions and velocities of the frame before, and distances travelled by the velocities
    first, unchanged, speed, low, high : see :class:`Evidence`
    """
    n, k = joints.shape[1], wrench_fresh.size
    position, velocity = row[:n], row[n : 2 * n]
    if step > 0.0:
        for joint in range(n):
            expected = 0.5 * step * (velocity[joint] + joints[1, joint])
            _add_products(speed[:, joint], expected, position[joint] - joints[0, joint])
            speed[3, joint] += 1.0
            speed[4, joint] += expected
            speed[5, joint] += step * step * velocity[joint] * joints[1, joint]
            joints[2, joint] += expected
    joints[0], joints[1] = position, velocity
    for joint in range(n):
        for kind in range(2):
            low[kind * n + joint] = min(low[kind * n + joint], joints[2 * kind, joint])
            high[kind * n + joint] = max(high[kind * n + joint], joints[2 * kind, joint])
    if begins:
        first[:] = row
    start = 0
    for sensor in range(3 * n + 2 + k):
        size = 1 if sensor < 3 * n else 3 if sensor < 3 * n + 2 else 6
        for i in range(start, start + size):
            if not abs(row[i] - first[i]) <= _ROUNDING * abs(first[i]):
                unchanged[sensor] = 0.0
        start += size
    for sensor in range(2 + k):
        if not (imu_fresh if sensor < 2 else wrench_fresh[sensor - 2]):
            unchanged[3 * n + sensor] = 0.0


@kernel
def _add_products(sums: FloatArray, first: float, second: float) -> None:
    sums[0] += first * second
    sums[1] += first * first
    sums[2] += second * second


@kernel("V B T T M M BM B f8 f8 V V V M M V V M V M M M", unchecked=True)
def sum_forces(
    row: FloatArray,
    wrench_fresh: BoolArray,
    R: FloatArray,
    J: FloatArray,
    H: FloatArray,
    rotation_imu_to_base: FloatArray,
    limbs: BoolArray,
    flat: BoolArray,
    weight: float,
    mass: float,
    imu: FloatArray,
    force: FloatArray,
    loaded: FloatArray,
    load: FloatArray,
    gravity: FloatArray,
    turning: FloatArray,
    newton: FloatArray,
    moments: FloatArray,
    share: FloatArray,
    limb: FloatArray,
    idle: FloatArray,
    torque: FloatArray,
) -> None:
    """Add what IMU, foot sensors and motor torques show of the same forces in a frame whose IMU is fresh.

    Parameters
    ----------
    row, wrench_fresh : readings of the frame, in the order of ``Evidence.first``
    R, J, H : rotations of the soles to the base, their Jacobians, mass matrix
    rotation_imu_to_base, limbs, flat, weight, mass : of the robot; (k, n) joints of a foot's limb; (k,)
    imu, ..., torque : see :class:`Evidence`
    """
    k, n = limbs.shape
    velocity, effort, wrenches = row[n : 2 * n], row[2 * n : 3 * n], row[3 * n + 6 :].reshape((k, 6))
    f, rate, both = np.zeros(3), np.zeros(3), np.zeros(6)
    for i in range(3):
        for j in range(3):
            rate[i] += rotation_imu_to_base[i, j] * row[3 * n + j]
            f[i] += rotation_imu_to_base[i, j] * row[3 * n + 3 + j]
    imu[0] += 1.0
    imu[1] += math.sqrt((f * f).sum())
    force += f
    both[3:] = f
    held, needed = np.zeros(n), np.zeros(n)
    for joint in range(n):
        for i in range(3):
            held[joint] += H[6 + joint, i] * f[i]
        needed[joint] = held[joint]
    everything = k > 0
    for foot in range(k):
        everything = everything and wrench_fresh[foot]
        if not wrench_fresh[foot]:
            continue
        F = wrenches[foot]
        size = math.sqrt(F[0] ** 2 + F[1] ** 2 + F[2] ** 2)
        if size > LOADED * weight:
            loaded[foot] += 1.0
            for i in range(3):
                load[foot, i] += F[i]
                for j in range(3):
                    gravity[foot, i] += R[foot, j, i] * f[j]
        if size > LOADED * weight and flat[foot]:
            turning[3] += 1.0
            for i in range(3):
                leg = 0.0
                for j in range(3):
                    for joint in range(n):
                        leg -= R[foot, i, j] * J[foot, 3 + j, 6 + joint] * velocity[joint]
                _add_products(turning, leg, rate[i])
        unloaded = size < UNLOADED * weight
        idle[foot, 3] += unloaded
        for joint in range(n):
            contact = 0.0
            for i in range(6):
                contact -= J[foot, i, 6 + joint] * F[i]
            needed[joint] += contact
            motor = effort[joint] - held[joint] if limbs[foot, joint] else 0.0
            _add_products(limb[foot], contact, motor)
            if unloaded:
                _add_products(idle[foot], -weight * J[foot, 2, 6 + joint], motor)
    if not everything:
        return
    for foot in range(k):
        for i in range(3):
            part = 0.0
            for j in range(3):
                part += R[foot, i, j] * wrenches[foot, j] / mass
            both[i] += part
            share[foot] += part * f[i]
    newton[0] += 1.0
    newton[1:] += both
    for i in range(6):
        for j in range(6):
            moments[i, j] += both[i] * both[j]
    for joint in range(n):
        if abs(velocity[joint]) > LEAST_SPEED and limbs[:, joint].any():
            _add_products(torque[:, joint], needed[joint], effort[joint])
            torque[3, joint] += 1.0
