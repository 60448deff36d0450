"""Sensors of random robots: from the exact signals of a walk to readings with the errors that were drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from benchmarks.random_robots.robots import RandomRobot, encoder_step
from benchmarks.random_robots.walks import PERIOD, Walk
from friction_estimator.types import FloatArray, ImuSample, IntArray, JointSample, Reading, WrenchSample

_START_NS = 1_000_000_000  # stamp of the first reading
_MAX_JITTER = 0.45  # of a millisecond
_WRENCH_UNIT = np.repeat((1.0, 0.1), 3)  # forces and moments


@dataclass(frozen=True, slots=True)
class SensorErrors:
    """Constant errors of the sensors of one robot.

    Attributes
    ----------
    effort_gain : (n,) relative errors
    tilt : (3, 3) from the frame of the IMU in the URDF to its own axes
    rate_bias, force_bias : (3,) of the IMU [rad/s], [m/s^2]
    wrench_gain, wrench_bias : (k, 6) relative errors; [N], [N m]
    """

    effort_gain: FloatArray
    tilt: FloatArray
    rate_bias: FloatArray
    force_bias: FloatArray
    wrench_gain: FloatArray
    wrench_bias: FloatArray


def draw_errors(robot: RandomRobot) -> SensorErrors:
    """Errors of a robot; those of another robot with the same seed have the same random numbers."""
    rng, joints, feet = np.random.default_rng([robot.seed, 2]), len(robot.dry), 2
    return SensorErrors(
        robot.effort_gain_std * rng.standard_normal(joints),
        _rotation(robot.tilt, rng.standard_normal(3)),
        robot.angular_velocity_bias * rng.standard_normal(3),
        robot.specific_force_bias * rng.standard_normal(3),
        robot.force_gain_std * rng.standard_normal((feet, 6)),
        robot.force_bias * _WRENCH_UNIT * rng.standard_normal((feet, 6)),
    )


def readings(walk: Walk, robot: RandomRobot, errors: SensorErrors) -> tuple[list[Reading], IntArray, IntArray]:
    """Readings in the order in which they come; stamps of the joint samples [ns], and their rows in the walk.

    Parameters
    ----------
    walk : exact signals
    robot : whose sensors read them: that of the walk, or :meth:`RandomRobot.corrected`
    errors : its constant errors, :func:`draw_errors`
    """
    rng = np.random.default_rng([robot.seed, 3])
    count = len(walk.position)
    joint_rows, imu_rows, foot_rows = (_rows(rate, count) for rate in robot.rates)
    stamps = [_stamps(rows, robot.jitter, rng) for rows in (joint_rows, imu_rows, foot_rows)]
    joints = _joint_readings(walk, robot, errors, joint_rows, rng)
    rate, force = _imu_readings(walk, robot, errors, imu_rows, rng)
    wrenches = _foot_readings(walk, robot, errors, foot_rows, rng)
    made: list[tuple[int, int, Reading]] = []
    for stamp, *one in zip(stamps[2].tolist(), *wrenches.swapaxes(0, 1), strict=True):
        made += [(stamp, 0, WrenchSample(stamp, foot, wrench)) for foot, wrench in enumerate(one)]
    imu = zip(stamps[1].tolist(), rate, force, strict=True)
    made += [(stamp, 1, ImuSample(stamp, *values)) for stamp, *values in imu]
    made += [
        (stamp, 2, JointSample(stamp, *values)) for stamp, *values in zip(stamps[0].tolist(), *joints, strict=True)
    ]
    made.sort(key=lambda one: one[:2])
    return [reading for _, _, reading in made], stamps[0], joint_rows


def _rows(rate: int, count: int) -> IntArray:
    """Rows of the walk at which a sensor with this rate [Hz] reads."""
    return np.floor(np.arange(0.0, count * PERIOD, 1.0 / rate) / PERIOD + 1e-6).astype(int)


def _stamps(rows: IntArray, jitter: float, rng: np.random.Generator) -> IntArray:
    errors = np.clip(jitter * rng.standard_normal(rows.size), -_MAX_JITTER * PERIOD, _MAX_JITTER * PERIOD)
    return _START_NS + np.rint(1e9 * (rows * PERIOD + errors)).astype(np.int64)


def _joint_readings(
    walk: Walk, robot: RandomRobot, errors: SensorErrors, rows: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity and effort (m, n); the torque is held between the moments at which the controller sets it."""
    step, n, period = encoder_step(robot), walk.position.shape[1], 1.0 / robot.rates[0]
    position = step * np.round(walk.position[rows] / step)
    if robot.velocity_cutoff:
        keep = math.exp(-2.0 * math.pi * robot.velocity_cutoff * period)
        difference = np.diff(position, axis=0, prepend=position[:1]) / period
        velocity = lfilter([1.0 - keep], [1.0, -keep], difference, axis=0)
    else:
        velocity = walk.velocity[rows] + robot.velocity_std * rng.standard_normal((rows.size, n))
    late = np.floor(rows - robot.effort_delay / PERIOD + 1e-6).astype(int)
    effort = walk.torque[np.maximum(late, 0)]
    effort = effort * (1.0 + errors.effort_gain) + robot.effort_offset
    effort = effort + robot.effort_std * rng.standard_normal(effort.shape)
    if robot.effort_quantum:
        effort = robot.effort_quantum * np.round(effort / robot.effort_quantum)
    return position, velocity, effort


def _imu_readings(
    walk: Walk, robot: RandomRobot, errors: SensorErrors, rows: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Angular velocity and specific force (m, 3) of an IMU that is turned by the tilt about a random axis."""
    rate = walk.angular_velocity[rows] @ errors.tilt.T + errors.rate_bias
    force = walk.specific_force[rows] @ errors.tilt.T + errors.force_bias
    rate += robot.angular_velocity_std * rng.standard_normal(rate.shape)
    force += robot.specific_force_std * rng.standard_normal(force.shape)
    return rate, force


def _foot_readings(
    walk: Walk, robot: RandomRobot, errors: SensorErrors, rows: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Wrenches (m, k, 6) of the time before the delay, between two milliseconds in proportion."""
    late = np.maximum(rows - robot.wrench_delay / PERIOD, 0.0)
    before = np.floor(late).astype(int)
    part = (late - before)[:, None, None]
    after = np.minimum(before + 1, len(walk.wrenches) - 1)
    exact = (1.0 - part) * walk.wrenches[before] + part * walk.wrenches[after]
    exact = exact * (1.0 + errors.wrench_gain) + errors.wrench_bias
    return exact + robot.force_std * _WRENCH_UNIT * rng.standard_normal(exact.shape)


def _rotation(angle: float, axis: FloatArray) -> FloatArray:
    """Rotation (3, 3) by an angle [rad] about an axis (Rodrigues' formula)."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
