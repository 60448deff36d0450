"""Parameters of the robot and its sensors: model, coupled joints, IMU, feet, sensor noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError


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
        try:
            return Coupling(self.joints, self.motors, np.array(self.matrix).reshape(n, n))
        except ConfigError as error:
            raise ConfigError(f"robot.coupling: {error}") from None


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
        False, "True for a robot that is bolted to the ground, without IMU and base state. Not for the observer fbse."
    )
    max_velocity: float = parameter(
        100.0, "Joint velocities above this are rejected as glitches.", "rad/s", 1e-3, 1e6, advanced=True
    )
    max_effort: float = parameter(
        1e4, "Motor torques above this are rejected as glitches.", "N m", 1e-3, 1e9, advanced=True
    )
    coupling: CouplingConfig = CouplingConfig()


@dataclass(frozen=True, slots=True)
class ImuConfig(Validated):
    """The inertial measurement unit on the trunk."""

    frame: str = parameter("imu_link", "URDF frame of the IMU.")
    topic: str = parameter("imu/data", "Topic of the IMU messages (sensor_msgs/Imu).")
    max_rate: float = parameter(
        100.0, "Angular rates above this are rejected as glitches.", "rad/s", 1e-3, 1e6, advanced=True
    )
    max_specific_force: float = parameter(
        2000.0, "Specific forces above this are rejected as glitches.", "m/s^2", 1e-3, 1e6, advanced=True
    )


@dataclass(frozen=True, slots=True)
class FootConfig(Validated):
    """One foot with a force/torque sensor."""

    name: str
    frame: str = parameter("", "URDF frame of the sole. The wrench is expressed in and about this frame.")
    topic: str = parameter("", "Topic of the foot wrench (geometry_msgs/WrenchStamped). Empty: <foot name>/wrench.")
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
        advanced=True,
    )
    max_force: float = parameter(
        1e5, "Forces [N] and moments [N m] above this are rejected as glitches.", "", 1e-3, 1e9, advanced=True
    )

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

    position_std: float = parameter(1e-7, "Standard deviation of the joint position noise.", "rad", 0.0, 1.0)
    velocity_std: float = parameter(2e-3, "Standard deviation of the joint velocity noise.", "rad/s", 0.0, 10.0)
    effort_std: float = parameter(0.0, "Standard deviation of the motor torque noise.", "N m", 0.0, 1e3)
    specific_force_std: float = parameter(1e-4, "Standard deviation of the accelerometer noise.", "m/s^2", 0.0, 10.0)
    angular_velocity_std: float = parameter(5e-3, "Standard deviation of the gyroscope noise.", "rad/s", 0.0, 10.0)
    force_std: float = parameter(1.0, "Standard deviation of the foot force noise.", "N", 0.0, 1e3)
    moment_std: float = parameter(0.1, "Standard deviation of the foot moment noise.", "N m", 0.0, 1e3)
    specific_force_bias_std: float = parameter(
        0.0, "Standard deviation of the constant accelerometer bias.", "m/s^2", 0.0, 10.0
    )
    angular_velocity_bias_std: float = parameter(
        0.0, "Standard deviation of the constant gyroscope bias.", "rad/s", 0.0, 1.0
    )
    force_bias_std: float = parameter(0.0, "Standard deviation of the constant foot force bias.", "N", 0.0, 1e3)
    moment_bias_std: float = parameter(0.0, "Standard deviation of the constant foot moment bias.", "N m", 0.0, 1e3)
    force_gain_std: float = parameter(
        0.0, "Standard deviation of the relative gain error of the foot sensors.", "", 0.0, 1.0
    )
    effort_gain_std: float = parameter(
        0.0, "Standard deviation of the relative gain error of each motor torque.", "", 0.0, 1.0
    )
    velocity_cutoff: float = parameter(
        0.0,
        "Cutoff of the first-order low-pass filter behind joint velocities that are differentiated positions. "
        "0: measured velocities.",
        "Hz",
        0.0,
        1e6,
    )
    sigma_rate: float = parameter(
        50.0,
        "Rate at which the sensor errors are propagated to the standard deviation of the friction.",
        "Hz",
        0.1,
        1e4,
        advanced=True,
    )

    @property
    def independent_velocity_std(self) -> float:
        """Standard deviation of the joint velocities [rad/s]; infinite where they are differentiated positions."""
        return math.inf if self.velocity_cutoff > 0.0 else self.velocity_std
