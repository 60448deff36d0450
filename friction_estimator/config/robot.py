"""Parameters of the robot and its sensors: model, coupled joints, IMU, feet, sensor noise."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components

from friction_estimator.config.validation import Validated, check_name, parameter
from friction_estimator.errors import ConfigError, choices, located
from friction_estimator.kernels.records import unbuffered_record
from friction_estimator.types import BoolArray, FloatArray, IntArray

_MAX_CONDITION = 1e8
"""Beyond it the inverse of a coupling matrix is rounding; real transmissions stay below 100."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """``joint velocity = T motor velocity``, ``joint torque = T^-T motor torque`` (Guedelha et al. 2017, eqs. 33-34).

    :class:`~friction_estimator.robot.transmission.Transmission` maps velocities and torques with it.

    Motor quantities are those at the output of the motor's own gearbox (point G of the paper), so that T holds only
    what the differential or the belts behind the gearboxes do. Power is the same on both sides.

    Raises
    ------
    ConfigError
        When names are missing, repeated or exchanged, or the matrix is not n by n, not finite, or not invertible.
    """

    joint_names: tuple[str, ...]  # (n) rows of the matrix
    motor_names: tuple[str, ...]  # (n) columns of the matrix
    matrix: FloatArray  # (n, n) T

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        for kind, names in (("joint", self.joint_names), ("motor", self.motor_names)):
            for name in names:
                check_name(f"the name of a {kind} of a coupling", name)
            repeated = {name for name in names if names.count(name) > 1}
            if not names or repeated:
                raise ConfigError(f"a coupling needs {kind} names, each once; repeated: {choices(repeated)}")
        if len(self.motor_names) != n:
            raise ConfigError(
                f"a coupling needs as many motors as joints; it has the joints {choices(self.joint_names)} and the "
                f"motors {choices(self.motor_names)}"
            )
        if self.matrix.shape != (n, n):
            raise ConfigError(
                f"the coupling of {n} joints and {n} motors needs a square matrix with one row per joint and one "
                f"column per motor; it is {' x '.join(map(str, self.matrix.shape))}"
            )
        pairs = zip(self.motor_names, self.joint_names, strict=True)
        elsewhere = [motor for motor, joint in pairs if motor != joint and motor in self.joint_names]
        if elsewhere:
            raise ConfigError(
                f"a motor of a coupling has the name of another joint: {choices(elsewhere)}; friction is saved by the "
                "name of the motor, so rename it"
            )
        if not np.isfinite(self.matrix).all():
            raise ConfigError("the coupling matrix contains numbers that are not finite: write finite ones")
        self._check_connections()
        if np.linalg.cond(self.matrix) > _MAX_CONDITION:
            raise ConfigError(
                f"the coupling matrix of the joints {choices(self.joint_names)} cannot be inverted: some motion "
                "of the motors would move no joint; check robot.coupling.matrix row by row"
            )

    def _check_connections(self) -> None:
        """Raise ConfigError with the joints and motors whose zeros in the matrix make it singular."""
        connected = self.matrix != 0.0
        for kind, names, used in (
            ("joints", self.joint_names, connected.any(axis=1)),
            ("motors", self.motor_names, connected.any(axis=0)),
        ):
            if not used.all():
                idle = [name for name, drives in zip(names, used, strict=True) if not drives]
                raise ConfigError(
                    f"the rows or columns of the {kind} {choices(idle)} in the coupling matrix are zero: leave them out"
                )
        for joints, motors in _groups(connected):
            if len(joints) != len(motors):
                raise ConfigError(
                    f"the coupling matrix lets {len(motors)} motors ({choices(self.motor_names[k] for k in motors)}) "
                    f"move {len(joints)} joints ({choices(self.joint_names[k] for k in joints)}); both numbers must be "
                    "equal"
                )

    @property
    def groups(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """Joints and motors of each block of T."""
        return tuple((part.joint_names, part.motor_names) for part in self.parts)

    @property
    def parts(self) -> tuple[Coupling, ...]:
        """One coupling per block of T."""
        return tuple(
            Coupling(
                tuple(self.joint_names[k] for k in joints),
                tuple(self.motor_names[k] for k in motors),
                self.matrix[np.ix_(joints, motors)],
            )
            for joints, motors in _groups(self.matrix != 0.0)
        )

    def part_of(self, motor: str) -> Coupling | None:
        """The block of T that has this motor; None: the coupling does not name it."""
        return next((part for part in self.parts if motor in part.motor_names), None)


def uncoupled(joint_names: Sequence[str]) -> Coupling:
    """Coupling of joints that have one motor each, with the name of the joint."""
    names = tuple(joint_names)
    return Coupling(names, names, np.eye(len(names)))


def combined(couplings: Sequence[Coupling]) -> Coupling:
    """Join several couplings in one block-diagonal matrix.

    Raises
    ------
    ConfigError
        When two of them name the same joint or motor.
    """
    joints = tuple(name for coupling in couplings for name in coupling.joint_names)
    motors = tuple(name for coupling in couplings for name in coupling.motor_names)
    return Coupling(joints, motors, block_diag(*(coupling.matrix for coupling in couplings)))


def _groups(connected: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """Rows and columns of every connected part of a bipartite graph (n, n), in the order of the rows."""
    n = len(connected)
    graph = np.block([[np.zeros((n, n), dtype=bool), connected], [connected.T, np.zeros((n, n), dtype=bool)]])
    count, label = connected_components(graph, directed=False)
    return [(np.flatnonzero(label[:n] == k), np.flatnonzero(label[n:] == k)) for k in range(count)]


@dataclass(frozen=True, slots=True)
class CouplingConfig(Validated):
    """Motors that move several joints together; joints that are not named have a motor each."""

    joints: tuple[str, ...] = parameter(
        (), "Joints that share motors, such as those of a differential ankle. Empty: every joint has one motor."
    )
    motors: tuple[str, ...] = parameter(
        (),
        "Motors of robot.coupling.joints, as many as joints. Friction laws are identified and saved under these names.",
    )
    matrix: tuple[float, ...] = parameter(
        (),
        "Coupling matrix, row after row, one row per joint: joint velocity = matrix * motor velocity after the "
        "gearboxes.",
    )

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        self.coupling()

    def coupling(self) -> Coupling | None:
        """Coupling of the joints; None where nothing is coupled.

        Raises
        ------
        ConfigError
            When the matrix does not fit these joints and motors.
        """
        n = len(self.joints)
        if not (n or self.motors or self.matrix):
            return None
        if len(self.matrix) != n * n:
            raise ConfigError(
                f"robot.coupling.matrix has {len(self.matrix)} numbers; the {n} joints of robot.coupling.joints need "
                f"{n} rows of {n} numbers, one after the other"
            )
        with located("robot.coupling"):
            return Coupling(self.joints, self.motors, np.array(self.matrix).reshape(n, n))


@dataclass(frozen=True, slots=True)
class RobotConfig(Validated):
    """Which robot: its URDF and the joints whose friction is estimated."""

    urdf: str = parameter(
        "", "URDF file: a path, package://..., or a file name in this package's urdf/. Empty: robot_description."
    )
    joints: tuple[str, ...] = parameter(
        (), "Joints whose friction is estimated. All other joints are locked. Empty: every movable joint."
    )
    armature: tuple[float, ...] = parameter(
        (),
        "Rotor inertia reflected to the joint, one value for each of robot.joints. Empty: zero.",
        "kg m^2",
        0.0,
        1e3,
    )
    fixed_base: bool = parameter(
        False,
        "True for a robot that is bolted to the ground, without IMU and base state. The observer fbse refuses it.",
    )
    unmeasured_contacts: tuple[str, ...] = parameter(
        (),
        "Joints, or patterns such as *_wrist, of limbs that touch things without a force sensor. Torque beyond their "
        "law counts as external torque.",
    )
    coupling: CouplingConfig = CouplingConfig()

    def in_unmeasured_contact(self, joint_names: Sequence[str]) -> BoolArray:
        """Which joints (n,) :attr:`unmeasured_contacts` names.

        Raises
        ------
        ConfigError
            When an entry names none of them.
        """
        rows = [[fnmatchcase(joint, entry) for joint in joint_names] for entry in self.unmeasured_contacts]
        for entry, row in zip(self.unmeasured_contacts, rows, strict=True):
            if not any(row):
                raise ConfigError(
                    f"robot.unmeasured_contacts: {entry!r} matches no joint; the joints are {choices(joint_names)}"
                )
        return np.asarray(np.array(rows, dtype=bool).reshape(-1, len(joint_names)).any(axis=0))


@dataclass(frozen=True, slots=True)
class ImuConfig(Validated):
    """The inertial measurement unit, on a body that no leg moves: the root link, or above a waist."""

    frame: str = parameter("imu_link", "URDF frame of the IMU.")
    message_frame: str = parameter(
        "", "The frame_id of the IMU messages, where it is another name of `imu.frame`. Empty: the same name."
    )
    topic: str = parameter("imu/data", "Topic of the IMU messages (sensor_msgs/Imu).")
    delay: float = parameter(0.0, "Age of the IMU readings at the time of their stamp.", "s", 0.0, 0.1)


_FOOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class FootConfig(Validated):
    """One foot with a force/torque sensor."""

    name: str
    frame: str = parameter("", "URDF frame of the sole. The wrench is expressed in and about this frame.")
    message_frame: str = parameter(
        "",
        "The frame_id of the wrench messages, where it is another name of the frame of this sole. Empty: the same "
        "name.",
    )
    topic: str = parameter(
        "", "Topic of the foot wrench (geometry_msgs/WrenchStamped). Empty: `FOOT/wrench` with the name of the foot."
    )
    delay: float = parameter(0.0, "Age of the wrenches at the time of their stamp.", "s", 0.0, 0.1)
    flip: bool = parameter(False, "True for a sensor that reports the wrench of the foot on the ground.")
    contact: str = parameter(
        "surface",
        "Contact with the ground. surface: the standing foot neither moves nor turns. point: it may turn.",
        choices=("surface", "point"),
    )
    phase: str = parameter("", "Name of the contact phase in which only this foot stands. Empty: the name of the foot.")
    sole_size: tuple[float, ...] = parameter(
        (),
        "Length and width of the sole around its frame. Only the simulation needs it, for soles that are meshes in "
        "the URDF.",
        "m",
        1e-3,
        10.0,
    )

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        if not _FOOT.fullmatch(self.name):
            raise ConfigError(
                f"feet.names has the name {self.name!r}: a foot has one word of a-z, A-Z, 0-9 and _ that does not "
                "begin with a digit, at most 100 characters, because parameters and topics contain them"
            )
        if self.phase:
            check_name(f"feet.{self.name}.phase", self.phase)

    @property
    def wrench_topic(self) -> str:
        """Topic of the wrench messages."""
        return self.topic or f"{self.name}/wrench"

    @property
    def support_name(self) -> str:
        """Name of the contact phase in which only this foot stands."""
        return self.phase or self.name

    @property
    def held_axes(self) -> tuple[bool, ...]:
        """Axes of the sole that the ground holds while the foot stands: three translations, three rotations."""
        return (True,) * 3 + (self.contact == "surface",) * 3


@dataclass(frozen=True, slots=True)
class SensorNoise(Validated):
    """Standard deviations of the sensor errors, from which every published standard deviation follows.

    Noise is white, one draw per sample; biases and gains are constant, so no filter averages them out.
    """

    position_std: float = parameter(
        1e-7, "Standard deviation of the white noise of one position reading of each joint.", "rad", 0.0, 1.0
    )
    velocity_std: float = parameter(
        2e-3, "Standard deviation of the white noise of one velocity reading of each joint.", "rad/s", 0.0, 10.0
    )
    effort_std: float = parameter(
        0.0, "Standard deviation of the white noise of one torque reading of each motor.", "N m", 0.0, 1e3
    )
    specific_force_std: float = parameter(
        1e-4, "Standard deviation of the white noise of one accelerometer reading, each axis.", "m/s^2", 0.0, 10.0
    )
    angular_velocity_std: float = parameter(
        5e-3, "Standard deviation of the white noise of one gyroscope reading, each axis.", "rad/s", 0.0, 10.0
    )
    force_std: float = parameter(
        1.0, "Standard deviation of the white noise of one force reading of each foot, each axis.", "N", 0.0, 1e3
    )
    moment_std: float = parameter(
        0.1, "Standard deviation of the white noise of one moment reading of each foot, each axis.", "N m", 0.0, 1e3
    )
    specific_force_bias_std: float = parameter(
        0.0,
        "Standard deviation of the constant accelerometer bias. The observer kalman takes at least 0.3 m/s^2 while it "
        "calibrates the sensors.",
        "m/s^2",
        0.0,
        10.0,
    )
    angular_velocity_bias_std: float = parameter(
        0.0, "Standard deviation of the constant gyroscope bias.", "rad/s", 0.0, 1.0
    )
    force_bias_std: float = parameter(
        0.0,
        "Standard deviation of the constant bias of each foot force. The observer kalman takes at least 2 N while it "
        "calibrates the sensors.",
        "N",
        0.0,
        1e3,
    )
    moment_bias_std: float = parameter(
        0.0,
        "Standard deviation of the constant bias of each foot moment. The observer kalman takes at least 0.1 N m while "
        "it calibrates the sensors.",
        "N m",
        0.0,
        1e3,
    )
    force_gain_std: float = parameter(
        0.0,
        "Standard deviation of the relative gain error of the foot sensors. The observer kalman takes at least 0.01 "
        "while it calibrates the sensors.",
        "",
        0.0,
        1.0,
    )
    effort_gain_std: float = parameter(
        0.0,
        "Standard deviation of the relative gain error of each motor torque. The observer kalman takes at least 0.01 "
        "while it calibrates the sensors.",
        "",
        0.0,
        1.0,
    )
    velocity_cutoff: float = parameter(
        0.0,
        "Cutoff of the driver's low-pass filter, if it differentiates positions to get joint velocities. "
        "0: velocities are measured.",
        "Hz",
        0.0,
        1e6,
    )

    @property
    def independent_velocity_std(self) -> float:
        """Standard deviation of the joint velocities [rad/s]; infinite where they are differentiated positions."""
        return math.inf if self.velocity_cutoff > 0.0 else self.velocity_std

    def without_velocity(self) -> SensorNoise:
        """The same sensors where nothing measures the joint velocities."""
        return replace(self, velocity_cutoff=self.velocity_cutoff or _UNMEASURED_CUTOFF)


_UNMEASURED_CUTOFF = 1000.0
"""Cutoff that stands for velocities that no sensor measures [Hz]; that there is one makes filters ignore them."""

SIGMA_RATE = 50.0
"""Rate at which observers propagate the sensor errors to the standard deviation of the friction [Hz]."""
SURE_SIGN_SIGMAS = 3.0
"""The sign of a measured velocity is sure above this many standard deviations of its noise."""


@unbuffered_record
class SensorVariances(NamedTuple):
    """Variances of the sensors' errors, in the units of :class:`SensorNoise`, squared."""

    # white noise
    position: float
    velocity: float
    effort: float
    angular_velocity: float
    specific_force: float
    force: float
    moment: float
    # constant errors, of gains relative ones
    effort_gain: float
    force_gain: float
    angular_velocity_bias: float
    specific_force_bias: float
    force_bias: float
    moment_bias: float


def sensor_variances(noise: SensorNoise) -> SensorVariances:
    """Variances of these sensors' errors."""
    stds = SensorVariances(
        position=noise.position_std,
        velocity=noise.velocity_std,
        effort=noise.effort_std,
        angular_velocity=noise.angular_velocity_std,
        specific_force=noise.specific_force_std,
        force=noise.force_std,
        moment=noise.moment_std,
        effort_gain=noise.effort_gain_std,
        force_gain=noise.force_gain_std,
        angular_velocity_bias=noise.angular_velocity_bias_std,
        specific_force_bias=noise.specific_force_bias_std,
        force_bias=noise.force_bias_std,
        moment_bias=noise.moment_bias_std,
    )
    return SensorVariances._make(std * std for std in stds)
