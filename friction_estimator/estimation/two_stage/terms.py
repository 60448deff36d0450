"""What the observer estimates of a limb: one table of terms, each with its prior standard deviation.

    z = [law of every motor (m, p) | errors of sensors (c,)]          whitened: every term has the prior N(0, 1)

The balance of a motor depends on its own law and on the errors of its limb, so that its row has ``p + c`` columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from friction_estimator.config import Config, SensorNoise
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GRAVITY, FloatArray, Indices, IntArray, Matrix, Vector

DRY_FRICTION_SPEED = 0.02
"""Speed at which the dry friction of a motor is evaluated [rad/s]."""
_REST_SPEED = 2e-3
"""Speed below which dry friction may hold a motor at rest [rad/s]."""
_WEIGHT_LEVER = 0.3
"""Lever arm of the robot's weight that gives the assumed effort limit of a motor without one [m]."""
_FRICTION_OVER_LIMIT, _LAW_UNIT = 0.01, 10.0
"""Prior standard deviation of the friction over the effort limit; the laws' own priors are for this friction [N m]."""
_OFFSET_OVER_LIMIT = 0.005
"""Standard deviation of a torque sensor's constant error, over the effort limit: that of usual strain gauges."""
_FORCE_BIAS, _MOMENT_BIAS, _WRENCH_GAIN, _EFFORT_GAIN, _SPECIFIC_FORCE_BIAS = 2.0, 0.1, 0.01, 0.01, 0.3
"""Usual standard deviations of constant errors of the sensors [N], [N m], relative, relative, [m/s^2]; the last one is
also that of an IMU whose mounting is wrong by two degrees. Larger ones of the configuration replace them."""
_WRENCH_DELAY, _TORQUE_DELAY = 3e-3, 3e-4
"""Usual standard deviations of delays [s]: of wrenches after motor torques, and of both after the joint motion."""


@record
class LimbTerms(NamedTuple):
    """Motors and feet of a limb, and where its terms are; standard deviations are the columns' units.

    Seen from the IMU on the base, the mass matrix couples joints of the same limb only: those of one branch.
    """

    joints: Indices  # (m,) indices
    feet: Indices  # (f,) indices of the feet that hang on them
    law_std: Matrix  # (m, p) prior standard deviations of the laws' parameters
    wrench_std: Matrix  # (2, 6) of biases and of relative errors of the foot wrenches
    effort_gain: Matrix  # (m, m) errors of the torque gains are this matrix times their terms
    offset_std: Vector  # (m,) of constant torques [N m]
    specific_force_std: float  # of the accelerometer's bias [m/s^2]
    wrench_delay_std: float  # of delays [s]
    torque_delay_std: float
    link_std: Vector  # (4,) of an error of a link: relative mass, centre of mass [m]
    # first column of each kind of error in a row; the law is before them
    foot_bias: int  # (f, 6)
    foot_gain: int  # (f, 6)
    gain: int  # (m,)
    accelerometer: int  # (3,)
    wrench_delay: int  # (f,)
    torque_delay: int  # (1,)
    offset: int  # (m,)
    width: int  # number of all terms so far, which are estimated
    # further columns, in SI units, that only a comparison of changes uses: own gain (m,), encoders, links
    positions: int  # (m,) offsets of the encoders
    links: int  # (m, 4) error of every link's mass, relative, and of its centre of mass
    size: int  # number of all columns without that of the balance itself


def find_limbs(robot: RobotModel) -> list[IntArray]:
    """Joints of every limb of a robot, in the order of their first joints."""
    count, label = connected_components(robot.coupled, directed=False)
    return sorted((np.flatnonzero(label == one) for one in range(count)), key=lambda joints: int(joints[0]))


def motor_strength(robot: RobotModel) -> FloatArray:
    """Effort limits (n,) [N m]; a joint without one is as strong as the robot's weight on a lever."""
    return np.where(np.isfinite(robot.effort_limit), robot.effort_limit, _WEIGHT_LEVER * robot.weight)


def link_error_std(config: Config) -> FloatArray:
    """Standard deviations (4,) of the error of a link: relative mass, centre of mass [m]."""
    return np.array([config.kalman.link_mass_std, *[config.kalman.link_com_std] * 3])


def model_error_std(robot: RobotModel, config: Config) -> FloatArray:
    """Standard deviation (n,) of the constant torque by errors of the links: in the neutral posture, upright [N m]."""
    n = len(robot.joint_names)
    gravity = np.array([0.0, 0.0, GRAVITY])
    at_rest = robot.dynamics(np.zeros(n), np.zeros(n), np.zeros(3), gravity)
    columns = robot.link_error_columns(at_rest, np.zeros(3 + n))
    return np.sqrt(((columns * link_error_std(config)) ** 2).sum(axis=(1, 2)))


def law_prior(laws: JointLaws, robot: RobotModel) -> FloatArray:
    """Prior standard deviations (n, p) of the laws' parameters: torques in proportion to the strength of the motor."""
    scale = _FRICTION_OVER_LIMIT / _LAW_UNIT * motor_strength(robot)
    is_torque = laws.table.codes[..., 1] == 0  # a power of the load makes a number of another unit
    return laws.prior_std * np.where(is_torque, scale[:, None], 1.0)


def make_terms(joints: IntArray, laws: JointLaws, config: Config, robot: RobotModel) -> LimbTerms:
    """Terms of the limb with these joints (m,)."""
    noise, kalman = config.sensors, config.kalman
    feet = np.flatnonzero(robot.limb[:, joints].any(axis=1))
    m, f, p, calibrates = joints.size, feet.size, laws.parameter_count, float(kalman.calibrate_sensors)
    usual = _usual_errors(noise, calibrates)
    starts = np.cumsum([p, 6 * f, 6 * f, m, 3, f, 1, m, m, m, 4 * m]).tolist()
    common = np.eye(m) - np.full((m, m), 1.0 / m)  # a common gain of all motors cannot be told from their friction
    gain = min(usual[3], _EFFORT_GAIN) * common + max(usual[3] - _EFFORT_GAIN, 0.0) * np.eye(m)
    return LimbTerms(
        joints, feet, law_prior(laws, robot)[joints], np.array([[usual[0]] * 3 + [usual[1]] * 3, [usual[2]] * 6]), gain,
        calibrates * _OFFSET_OVER_LIMIT * motor_strength(robot)[joints], usual[4] if robot.base_dofs else 0.0,
        calibrates * _WRENCH_DELAY, calibrates * _TORQUE_DELAY, link_error_std(config), *starts,
    )  # fmt: skip


def _usual_errors(noise: SensorNoise, calibrates: float) -> tuple[float, ...]:
    """Standard deviations of the sensors' constant errors: those of the configuration, or larger usual ones."""
    given = (
        noise.force_bias_std, noise.moment_bias_std, noise.force_gain_std, noise.effort_gain_std,
        noise.specific_force_bias_std,
    )  # fmt: skip
    usual = _FORCE_BIAS, _MOMENT_BIAS, _WRENCH_GAIN, _EFFORT_GAIN, _SPECIFIC_FORCE_BIAS
    return tuple(max(one, calibrates * other) for one, other in zip(given, usual, strict=True))


@kernel
def stick_probability(velocity: float, std: float) -> float:
    """1 for a motor at rest, nearly 0 for a moving one, by its velocity and the standard deviation of it [rad/s]."""
    square = velocity * velocity / (_REST_SPEED**2 + std * std)
    return 1.0 / (1.0 + square * square)
