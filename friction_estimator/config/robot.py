"""The robot and its sensors: model, IMU, feet, noise, and how samples find together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.config.coupling import Coupling
from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CouplingConfig(Validated):
    """Motors that move several joints together; joints that are not named have a motor of their own."""

    joints: tuple[str, ...] = parameter((), "joints that share their motors; none given: every joint has its own")
    motors: tuple[str, ...] = parameter(
        (), "their motors, as many: friction laws are learned and saved under these names"
    )
    matrix: tuple[float, ...] = parameter(
        (), "row after row, one a joint: joint velocity = matrix * motor velocity, behind the gearboxes"
    )

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        self.coupling()

    def coupling(self) -> Coupling | None:
        """As a matrix; None where nothing is coupled.

        Raises
        ------
        ConfigError
            When the matrix is not one of these joints and motors.
        """
        n = len(self.joints)
        if not (n or self.motors or self.matrix):
            return None
        if len(self.matrix) != n * n:
            raise ConfigError(
                f"matrix holds {len(self.matrix)} numbers; {n} joints need {n} rows of {n} numbers, one after the other"
            )
        return Coupling(self.joints, self.motors, np.array(self.matrix).reshape(n, n))


@dataclass(frozen=True, slots=True)
class RobotConfig(Validated):
    """Which robot: its URDF and the joints whose friction is wanted."""

    urdf: str = parameter(
        "", "URDF file: a path, package://..., or a file name of this package's urdf/; empty: robot_description"
    )
    joints: tuple[str, ...] = parameter(
        (), "joints to estimate, the others are locked; none given: every movable joint"
    )
    armature: tuple[float, ...] = parameter(
        (),
        "rotor inertia reflected to the joint, one value for each of robot.joints; none given: zero",
        "kg m^2",
        0.0,
        1e3,
    )
    max_velocity: float = parameter(100.0, "joint velocities beyond are refused as glitches", "rad/s", 1e-3, 1e6)
    max_effort: float = parameter(1e4, "motor torques beyond are refused as glitches", "N m", 1e-3, 1e9)
    fixed_base: bool = parameter(
        False, "True for an arm bolted to the ground: no IMU and no base state; the observer fbse is refused"
    )
    coupling: CouplingConfig = CouplingConfig()


@dataclass(frozen=True, slots=True)
class ImuConfig(Validated):
    """The inertial measurement unit on the trunk."""

    frame: str = parameter("imu_link", "URDF frame of the IMU")
    topic: str = parameter("imu/data", "topic of the sensor_msgs/Imu messages")
    max_rate: float = parameter(100.0, "angular rates beyond are refused as glitches", "rad/s", 1e-3, 1e6)
    max_specific_force: float = parameter(2000.0, "readings beyond are refused as glitches", "m/s^2", 1e-3, 1e6)


@dataclass(frozen=True, slots=True)
class FootConfig(Validated):
    """One foot with a force/torque sensor."""

    name: str
    frame: str = parameter("", "URDF frame of the sole, in and about which the wrench is given")
    topic: str = parameter("", "topic of the geometry_msgs/WrenchStamped messages; empty: <foot name>/wrench")
    flip: bool = parameter(False, "True when the sensor reports the wrench of the foot on the ground")
    max_force: float = parameter(1e5, "forces [N] and moments [N m] beyond are refused as glitches", "", 1e-3, 1e9)
    contact: str = parameter(
        "surface",
        "surface: the standing foot neither moves nor turns; point: it may turn",
        choices=("surface", "point"),
    )
    phase: str = parameter("", "name of the phase in which only this foot stands; empty: the name of the foot")
    sole_size: tuple[float, ...] = parameter(
        (),
        "length and width of the sole about its frame, for the simulation of feet that the URDF draws as meshes only",
        "m",
        1e-3,
        10.0,
    )

    @property
    def wrench_topic(self) -> str:
        """Topic of the wrench messages."""
        return self.topic or f"{self.name}/wrench"

    @property
    def support_name(self) -> str:
        """Name of the contact phase in which only this foot stands."""
        return self.phase or self.name


@dataclass(frozen=True, slots=True)
class SensorNoise(Validated):
    """Standard deviations of the sensors: where every published sigma starts.

    Noise is white, one draw a sample; biases and gains are constant, so no filter averages them out.
    """

    position_std: float = parameter(1e-7, "joint position", "rad", 0.0, 1.0)
    velocity_std: float = parameter(2e-3, "joint velocity", "rad/s", 0.0, 10.0)
    effort_std: float = parameter(0.0, "motor torque", "N m", 0.0, 1e3)
    specific_force_std: float = parameter(1e-4, "accelerometer", "m/s^2", 0.0, 10.0)
    angular_velocity_std: float = parameter(5e-3, "gyroscope", "rad/s", 0.0, 10.0)
    force_std: float = parameter(1.0, "foot force", "N", 0.0, 1e3)
    moment_std: float = parameter(0.1, "foot moment", "N m", 0.0, 1e3)
    specific_force_bias_std: float = parameter(0.0, "constant bias of the accelerometer", "m/s^2", 0.0, 10.0)
    angular_velocity_bias_std: float = parameter(0.0, "constant bias of the gyroscope", "rad/s", 0.0, 1.0)
    force_bias_std: float = parameter(0.0, "constant bias of the foot force", "N", 0.0, 1e3)
    moment_bias_std: float = parameter(0.0, "constant bias of the foot moment", "N m", 0.0, 1e3)
    force_gain_std: float = parameter(0.0, "relative gain error of the foot sensors", "", 0.0, 1.0)
    effort_gain_std: float = parameter(0.0, "relative gain error of the motor torque", "", 0.0, 1.0)
    velocity_cutoff: float = parameter(
        0.0,
        "joint velocities are differentiated positions behind a first-order low-pass of this frequency, and tell "
        "the kalman observer nothing new; 0: readings of their own",
        "Hz",
        0.0,
        1e6,
    )
    sigma_rate: float = parameter(50.0, "how often these are propagated to the friction", "Hz", 0.1, 1e4)

    @property
    def independent_velocity_std(self) -> float:
        """Standard deviation of the joint velocities [rad/s]; infinite where they are differentiated positions."""
        return math.inf if self.velocity_cutoff > 0.0 else self.velocity_std


@dataclass(frozen=True, slots=True)
class SynchronizerConfig(Validated):
    """How samples of different sensors become one frame."""

    max_wait: float = parameter(
        0.005, "a joint sample waits this long (header time) for the other sensors", "s", 0.0, 1.0
    )
    stale_periods: float = parameter(
        3.0,
        "a gap of a sensor is bridged up to this many of its usual periods, and held for half as long",
        "",
        1.0,
        1e3,
    )
    stale_after: float = parameter(0.1, "a sensor silent for longer than this is never used", "s", 1e-3, 10.0)
    reset_after: float = parameter(
        0.5, "a gap or a jump back of the joint-state clock by more than this restarts the filters", "s", 1e-2, 60.0
    )
