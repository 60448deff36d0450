"""Limbs of a robot, the state of their Kalman filters with its layout and prior, and what may hold a motor at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray, IndexMatrix, Indices, IntArray, Matrix

_REST_SPEED = 2e-3
"""Speed below which dry friction may hold a joint at rest [rad/s]."""
DRY_FRICTION_SPEED = 0.02
"""Speed at which the dry friction of a joint is evaluated [rad/s]."""
UNIFORM_VARIANCE = 1.0 / 3.0
"""Variance of what may be anywhere between -1 and 1: a strain, or the friction at rest over its largest size."""
_SENSOR_ERRORS = {
    "force_bias_std": 2.0,  # [N]
    "moment_bias_std": 0.1,  # [N m]
    "force_gain_std": 0.01,
    "effort_gain_std": 0.01,
    "specific_force_bias_std": 0.3,  # [m/s^2]: also an IMU whose mounting is wrong by two degrees
}
"""Usual standard deviations of constant sensor errors: lower bounds on those of ``sensors``, often left at zero."""
_WRENCH_DELAY_STD, _TORQUE_DELAY_STD = 3e-3, 3e-4
"""Usual standard deviations of delays [s]: of wrenches after motor torques, and of both after the joint motion."""
_OFFSET_OVER_LIMIT = 0.005
"""Standard deviation of a torque sensor's constant error, over the effort limit: that of usual strain gauges."""
_ARMATURE_OVER_LIMIT, _ARMATURE_OVER_GIVEN = 3e-4, 0.1
"""Standard deviations of a rotor inertia that the configuration lacks, over the effort limit [s^2], and of one that it
gives, over its value: motors of humanoids accelerate their rotors by 1e3 to 1e5 rad/s^2, and the first is the root
mean square over all powers of ten in between."""
_DEFLECTION_AT_LIMIT = 0.0075
"""Standard deviation of the deflection of a gear at the effort limit [rad]: that of 1.3e4 N m/rad at 100 N m."""
CHANGED_FACTOR, SLIP_STD = 4.0, 0.1
"""Errors of a sensor or link that has changed, over usual ones; and standard deviation of an encoder's slip [rad]."""
_WEIGHT_LEVER = 0.3
"""Lever arm of the robot's weight that gives the assumed effort limit of a motor without one [m]."""


@record
class Limb(NamedTuple):
    """Joints of one branch of the base: a leg, a torso with arms and head, or both legs behind a waist.

    Seen from the IMU on the base, the joint rows of the mass matrix couple joints of the same branch only.
    """

    joints: Indices  # (m,) indices
    feet: Indices  # (f,) indices of the feet that hang on them
    # (m, m), (m, g), (m, g) of the limb's motors, see Transmission
    to_joints: Matrix
    group: IndexMatrix
    weights: Matrix


def find_limbs(robot: RobotModel) -> tuple[Limb, ...]:
    """All limbs of a robot, in the order of their first joints.

    Raises
    ------
    ConfigError
        When motors move joints of two limbs.
    """
    count, label = connected_components(robot.coupled, directed=False)
    limbs = []
    for branch in range(count):
        joints = np.flatnonzero(label == branch)
        feet, motors = np.flatnonzero(robot.limb[:, joints].any(axis=1)), robot.motors.select(joints)
        limbs.append(Limb(joints, feet, motors.to_joints, motors.group, motors.weights))
    return tuple(sorted(limbs, key=lambda limb: int(limb.joints[0])))


@dataclass(frozen=True, slots=True)
class MotorPriors:
    """Priors of the errors that grow with the size of a motor."""

    offset_std: FloatArray  # (n,) of the torque sensors' constant errors [N m]
    armature_std: FloatArray  # (n,) of the rotor inertia, reflected to the joint, beyond that of the model [kg m^2]
    compliance_std: FloatArray  # (n,) of gears between encoder and joint [rad/(N m)]

    @staticmethod
    def from_robot(robot: RobotModel) -> MotorPriors:
        """Priors in proportion to the effort limits of the URDF.

        A joint without a limit is taken for as strong as the robot's weight on a lever of :data:`_WEIGHT_LEVER`.
        """
        strength = np.where(np.isfinite(robot.effort_limit), robot.effort_limit, _WEIGHT_LEVER * robot.weight)
        given = robot.armature
        armature = np.where(given > 0.0, _ARMATURE_OVER_GIVEN * given, _ARMATURE_OVER_LIMIT * strength)
        return MotorPriors(_OFFSET_OVER_LIMIT * strength, armature, _DEFLECTION_AT_LIMIT / strength)


@record
class BlockStarts(NamedTuple):
    """First state of every block of a limb's filter, for ``m`` joints, ``f`` feet and laws of ``p`` parameters.

    All blocks from ``links`` on are called calibration. The priors are in :func:`make_layout`. Joints that share motors
    have law error and law motor by motor.
    """

    momentum: int  # (m,) at the end of the window [kg m^2/s]
    law_error: int  # (m,) of the laws [N m]
    law: int  # (m, p) parameters of the laws, those of presliding and ripple included
    links: int  # (m, 4) errors of each link's mass, relative, and of its centre of mass [m]
    foot_bias: int  # (f, 6) of the wrenches [N], [N m]
    foot_gain: int  # (f, 6) relative errors of the wrenches
    effort_gain: int  # (m,) relative errors of the motor torques
    accelerometer_bias: int  # (3,) [m/s^2]
    wrench_delay: int  # (f,) of the wrenches, on top of `torque_delay` [s]
    torque_delay: int  # (1,) of motor torques and wrenches after the joint motion [s]
    effort_offset: int  # (m,) of the torque sensors [N m]
    armature: int  # (m,) rotor inertia, reflected to the joint, beyond that of the model [kg m^2]
    compliance: int  # (m,) of the gears between encoder and joint [rad/(N m)]
    position_offset: int  # (m,) slips of the encoders; zero until something has changed [rad]


@dataclass(frozen=True, slots=True)
class LimbStateLayout:
    """Layout of the state of a limb: ``layout["law"]`` are the states of that block, a slice."""

    limb: Limb  # whose state it is
    first_state: BlockStarts  # first state of each block
    prior_std: FloatArray  # (size,) before any data; zero for what is known, or switched off

    def __getitem__(self, block: str) -> slice:
        place = BlockStarts._fields.index(block)
        return slice(self.first_state[place], (*self.first_state[1:], self.size)[place])

    @property
    def size(self) -> int:
        """Number of states."""
        return self.prior_std.size

    @property
    def calibration(self) -> slice:
        """All errors of model and sensors."""
        return slice(self.first_state.links, self.size)

    @property
    def law_states(self) -> IntArray:
        """States (m, p) of the parameters of the laws."""
        return np.arange(self.first_state.law, self.first_state.links).reshape(self.limb.joints.size, -1)

    @property
    def common_gain_variance(self) -> float:
        """Variance that is subtracted from the covariance of each two torque gains.

        Only foot sensors and masses separate a common scale of all motor torques from the scale of friction, and they
        have usual errors, too. Usual gain errors of the motor torques therefore add up to zero, and the filter keeps it
        so; larger ones, by ``sensors.effort_gain_std``, need not.
        """
        gains = np.minimum(self.prior_std[self["effort_gain"]], _SENSOR_ERRORS["effort_gain_std"])
        return float((gains**2).sum()) / gains.size**2

    def prior_covariance(self) -> FloatArray:
        """Covariance before any data, (size, size)."""
        covariance = np.diag(self.prior_std**2)
        gains = self["effort_gain"]
        covariance[gains, gains] -= self.common_gain_variance
        return covariance

    def changed_covariance(self) -> FloatArray:
        """Covariance (c, c) of the calibration after a change whose cause is not known: sensors, links and encoders."""
        part, free = self.calibration, self.prior_std[self["effort_offset"]] > 0.0
        slip = np.zeros(self.size)
        slip[self["position_offset"]] = SLIP_STD * free
        return np.asarray(CHANGED_FACTOR**2 * self.prior_covariance()[part, part] + np.diag(slip[part] ** 2))

    def joint_calibration(self, joint: int) -> IntArray:
        """States (8,) of a joint: :data:`~friction_estimator.laws.identified.CALIBRATION`."""
        first_state, links = self.first_state, self.first_state.links + 4 * joint
        single = (
            first_state.effort_gain, first_state.effort_offset, first_state.armature, first_state.compliance
        )  # fmt: skip
        return np.r_[links : links + 4, [start + joint for start in single]]

    def learned_states(self, columns: IntArray) -> IntArray:
        """States that are learned: these columns (q,) of every law, and all calibration."""
        return np.r_[self.law_states[:, columns].ravel(), self.calibration]

    def foot_bias(self, foot: int) -> slice:
        """States of the bias of the limb's foot number ``foot``."""
        start = self.first_state.foot_bias + 6 * foot
        return slice(start, start + 6)


def sensor_errors(config: KalmanConfig, noise: SensorNoise) -> SensorNoise:
    """Sensor noise whose standard deviations of biases and gains are raised to usual ones while sensors are calibrated.

    Usual ones are those of ``_SENSOR_ERRORS``.
    """
    if not config.calibrate_sensors:
        return noise
    return replace(noise, **{name: max(usual, getattr(noise, name)) for name, usual in _SENSOR_ERRORS.items()})


def make_layout(
    limb: Limb, laws: JointLaws, config: KalmanConfig, noise: SensorNoise, floating: bool, motors: MotorPriors
) -> LimbStateLayout:
    """State of a limb.

    Parameters
    ----------
    floating : False for a fixed base, which has no accelerometer
    motors : of all joints
    """
    m, f = limb.joints.size, limb.feet.size
    errors = sensor_errors(config, noise)
    prior = {
        "momentum": np.zeros(m),
        "law_error": np.full(m, config.law_error_std),
        "law": laws.prior_std[limb.joints].ravel(),
        "links": np.tile((config.link_mass_std, *(config.link_com_std,) * 3), m),
        "foot_bias": np.tile(np.repeat((errors.force_bias_std, errors.moment_bias_std), 3), f),
        "foot_gain": np.full(6 * f, errors.force_gain_std),
        "effort_gain": np.full(m, errors.effort_gain_std),
        "accelerometer_bias": np.full(3, errors.specific_force_bias_std if floating else 0.0),
        "wrench_delay": np.full(f, _WRENCH_DELAY_STD if config.calibrate_sensors else 0.0),
        "torque_delay": np.full(1, _TORQUE_DELAY_STD if config.calibrate_sensors else 0.0),
        "effort_offset": motors.offset_std[limb.joints] * config.calibrate_sensors,
        "armature": motors.armature_std[limb.joints] * (config.link_mass_std > 0.0),
        "compliance": motors.compliance_std[limb.joints] * (config.link_mass_std > 0.0),
        "position_offset": np.zeros(m),
    }
    blocks = [prior[name] for name in BlockStarts._fields]
    starts = np.cumsum([0, *(block.size for block in blocks)])[:-1].tolist()
    return LimbStateLayout(limb, BlockStarts(*starts), np.concatenate(blocks))


@kernel
def stick_probability(velocity: float, std: float) -> float:
    """1 for a motor at rest, nearly 0 for a moving one, by its velocity and the standard deviation of it [rad/s]."""
    square = velocity * velocity / (_REST_SPEED**2 + std * std)
    return 1.0 / (1.0 + square * square)
