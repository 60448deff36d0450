"""Parameters of the stages: synchronizer, attitude, base state, identification, compensation, and the observers."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, advanced, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SynchronizerConfig(Validated):
    """How samples of different sensors become one frame."""

    max_wait: float = advanced(
        0.005,
        "Time, in header stamps, that a joint sample waits beyond the period of the slowest sensor for overdue "
        "readings.",
        "s",
        0.0,
        1.0,
    )


@dataclass(frozen=True, slots=True)
class AttitudeConfig(Validated):
    """Gravity Kalman filter and quaternion extended Kalman filter (Hashlamon & Erbatur 2014, section 3).

    These are constants of the method: studies change them in Python, and no YAML has them.
    """

    acceleration_std: float = 0.5
    """Standard deviation of the trunk's linear acceleration [m/s^2]."""
    gyro_bias_std: float = 0.01
    """Standard deviation of the gyroscope bias at the start [rad/s]."""
    angular_acceleration_cutoff: float = 8.0
    """Cutoff of the low-pass filter on the differentiated gyroscope [Hz]."""


@dataclass(frozen=True, slots=True)
class BaseStateConfig(Validated):
    """Position, velocity and heading of the base: legged odometry, or the published filter (eqs. 7-33, Table II)."""

    method: str = advanced(
        "odometry",
        "Estimator of the base state. odometry: standing feet and IMU. lipm: published filter on the linear inverted "
        "pendulum.",
        choices=("lipm", "odometry"),
    )


@dataclass(frozen=True, slots=True)
class IdentifierConfig(Validated):
    """Friction laws, and recursive least squares per joint (section 6, eqs. 57-67, Table II)."""

    law: str = parameter(
        "",
        "Friction law of every joint. Empty: six_slope_load for the observer kalman, coulomb_viscous for the others.",
    )
    joint_laws: tuple[str, ...] = parameter(
        (),
        "Friction laws of single joints, as entries joint=law. The joint is a name or a pattern such as *_knee.",
    )
    phases: str = advanced(
        "stance",
        "Joints whose law adapts in recursive least squares. stance: joints of a standing limb, as published. "
        "all: every measured joint.",
        choices=("stance", "all"),
    )
    forgetting: float = advanced(
        1.0,
        "Forgetting factor per sample of recursive least squares (Hashlamon & Erbatur 2014, eqs. 64-67). 1: all "
        "samples count equally.",
        "",
        0.9,
        1.0,
    )
    initial_covariance: float = 10.0
    """Initial covariance of F_c and F_v in recursive least squares, times the identity (Table II)."""


@dataclass(frozen=True, slots=True)
class CompensationConfig(Validated):
    """Feed-forward torque that cancels the identified friction (Hashlamon & Erbatur 2014, section 7.4)."""

    enabled: bool = parameter(False, "Publish the topic friction_compensation: the torque to add to the motor command.")
    velocity: str = parameter(
        "measured",
        "Velocity at which the law is evaluated. measured: from the joint states. desired: from the commands, without "
        "noise and delay.",
        choices=("measured", "desired"),
    )
    desired_topic: str = parameter(
        "joint_commands", "Topic of the desired joint velocities (sensor_msgs/JointState) for friction compensation."
    )
    gain: float = parameter(
        0.8,
        "Fraction of the friction that is compensated. Below one, a law that is a little too large does not drive the "
        "joint. It may change at run time.",
        "",
        0.0,
        1.0,
    )
    limit: float = parameter(
        10.0,
        "Largest compensation torque of a joint. The effort limit of the URDF applies as well.",
        "N m",
        0.0,
        1e9,
    )
    fade_velocity: float = advanced(
        0.01,
        "Speed below which the compensation torque shrinks with the speed, to zero at rest. With measured velocities "
        "it is at least 3 sensors.velocity_std.",
        "rad/s",
        0.0,
        100.0,
    )
    slew_rate: float = advanced(500.0, "Largest rate of change of the compensation torque.", "N m/s", 1e-3, 1e12)
    timeout: float = advanced(
        0.1,
        "Age of the joint states or desired velocities above which the compensation torque is zero.",
        "s",
        1e-3,
        10.0,
    )


@dataclass(frozen=True, slots=True)
class KalmanConfig(Validated):
    """Kalman filter of every limb, which calibrates model and sensors along with the friction law.

    The last fields are constants of the method: studies change them in Python, and no YAML has them.
    """

    link_mass_std: float = parameter(
        0.1,
        "Prior standard deviation of the error of each link's mass, as a fraction of the mass in the URDF. "
        "0: the masses are exact.",
        "",
        0.0,
        1.0,
    )
    link_com_std: float = parameter(
        0.005,
        "Prior standard deviation of the error of each coordinate of each link's centre of mass. "
        "0: the centres of mass are exact.",
        "m",
        0.0,
        1.0,
    )
    asymmetry_std: float = parameter(
        0.2,
        "Scale of the prior on half the friction difference between the directions, over the mean friction. The "
        "difference is learned from all joints together. 0: none.",
        "",
        0.0,
        1.0,
    )
    calibrate_sensors: bool = advanced(
        True, "Identify biases and gain errors of the sensors, even where the section sensors has small or zero ones."
    )
    window: float = advanced(0.01, "Duration of the windows of readings that the limb filters use.", "s", 1e-3, 1.0)

    jerk_densities: tuple[float, ...] = (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e7, 1e9)
    """White-jerk densities of the joint-motion filters that run in parallel [rad^2/s^5]."""
    acceleration_densities: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    """White-acceleration densities of further such filters, for joints that keep their velocity [rad^2/s^3]."""
    law_process_noise: float = 1e-3
    """Random walk of the law's parameters by wear and temperature, over their prior standard deviation [1/sqrt(s)]."""
    calibration_process_noise: float = 5e-3
    """Random walk of the model and sensor errors, over their prior standard deviation [1/sqrt(s)]."""
    law_error_std: float = 0.1
    """Initial standard deviation of the error of the friction law [N m]."""
    law_error_memory: float = 1.5
    """Time constant of the law-error variance estimate [s]."""
    innovation_gate: float = 2.5
    """Normalised innovation squared per joint above which a window contains an impact."""
    min_change_duration: float = 0.025
    """Impacts of the same direction for this long mean that something has changed [s]: landings are shorter."""
    max_impact_duration: float = 0.25
    """Impacts of any direction for this long mean that something has changed, too [s]: no impact lasts that long."""


@dataclass(frozen=True, slots=True)
class FbseConfig(Validated):
    """Parameters of the observer ``fbse`` (Hashlamon & Erbatur 2014, section 5)."""

    base_angular_acceleration: str = advanced(
        "minimum_norm",
        "Base angular acceleration. minimum_norm: least-norm solution of Hashlamon & Erbatur 2014, eqs. 42 and 46. "
        "gyro: differentiated gyroscope.",
        choices=("minimum_norm", "gyro"),
    )
    angular_acceleration_std: float = 0.3
    """Standard deviation of the base angular acceleration that the method assumes or differentiates [rad/s^2]."""


@dataclass(frozen=True, slots=True)
class MomentumConfig(Validated):
    """Discrete momentum observer (Lim et al. 2024, section 3.2), driven by the IMU."""

    gain: float = advanced(30.0, "Bandwidth K_0 of the momentum observer.", "rad/s", 0.1, 1e4)
    input_hold: str = advanced(
        "forward",
        "Torques, wrenches and specific force between two samples. forward: constant from their stamp on. "
        "trapezoid: linear.",
        choices=("forward", "trapezoid"),
    )

    @property
    def inputs_are_held(self) -> bool:
        """Whether torque, wrench and specific force act until the next sample."""
        return self.input_hold == "forward"


@dataclass(frozen=True, slots=True)
class ConstrainedConfig(Validated):
    """Constrained dynamics (Egle 2021, chapters 5-7): friction from joint accelerations, without force sensors."""

    signal: str = advanced(
        "position",
        "Joint signal whose derivative is the acceleration. position: second derivative, as published. velocity: "
        "first derivative.",
        choices=("position", "velocity"),
    )
    differences: str = advanced(
        "central",
        "Instant of the joint accelerations (Egle 2021). central: middle of the window (eqs. 6.2, 7.7). backward: "
        "newest sample (eq. 6.3).",
        choices=("central", "backward"),
    )
    window: int = advanced(
        51,
        "Number of samples to which the differentiating polynomial is fitted. It must be odd for central differences.",
        "samples",
        2,
        2001,
    )
    order: int = advanced(
        4, "Order of the differentiating polynomial (Egle 2021, eq. 7.1). It must be below the window.", "", 1, 8
    )
    trim_start: float = advanced(
        0.1, "Time after a foot has landed or left the ground during which friction is not measured.", "s", 0.0, 10.0
    )
    trim_end: float = advanced(
        0.05,
        "Friction is not measured within this time before a foot lands or leaves the ground. It delays the estimates.",
        "s",
        0.0,
        10.0,
    )
    position_controlled: tuple[str, ...] = advanced(
        (),
        "Joints that a position controller holds (Egle 2021, eq. 5.4c). They do not accelerate, and their friction is "
        "not measured.",
    )
    double_support: str = advanced(
        "unavailable",
        "Friction of limbs whose feet stand together. unavailable: not measured. regularised: smallest possible "
        "friction (Egle 2021, eq. 6.1).",
        choices=("unavailable", "regularised"),
    )
    max_sigma: float = 1.5
    """Largest standard deviation of a usable measurement: a joint above it, often one of a standing limb, counts as not
    measured [N m]."""
    regularisation: float = 1e-8
    """Lambda / W of eq. 6.1 [(rad/s^2)^2/(N m)^2]: it decides only where the accelerations determine nothing."""
    friction_std: float = 2.0
    """Standard deviation of friction that eq. 6.1 leaves out [N m]."""
    motion_frequency: float = 10.0
    """Highest frequency of the motion (section 7.1.2), for the differentiation error in the standard deviation [Hz]."""

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        if self.differences == "central" and self.window % 2 == 0:
            raise ConfigError(
                f"constrained.window = {self.window} is even: with constrained.differences: central it must be odd"
            )
        lowest = 2 if self.signal == "position" else 1
        if not lowest <= self.order < self.window:
            raise ConfigError(
                f"constrained.order = {self.order} must be from {lowest} (constrained.signal: {self.signal}) to "
                f"{self.window - 1} (constrained.window - 1)"
            )
