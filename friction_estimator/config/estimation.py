"""Parameters of the stages that every observer needs: from the synchronizer to compensation and diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, advanced, parameter


@dataclass(frozen=True, slots=True)
class SynchronizerConfig(Validated):
    """How samples of different sensors become one frame."""

    max_wait: float = advanced(
        0.005, "Longest time that a joint sample waits for readings that are overdue, in header time.", "s", 0.0, 1.0
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
        "Forgetting factor per sample of recursive least squares. 1: all samples count equally, as published.",
        "",
        0.9,
        1.0,
    )
    initial_covariance: float = 10.0
    """Initial covariance of F_c and F_v in recursive least squares, times the identity (Table II)."""


@dataclass(frozen=True, slots=True)
class CompensationConfig(Validated):
    """Feed-forward torque that cancels the identified friction (section 7.4)."""

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
        "Speed below which the compensation torque fades to zero. At least three standard deviations of a measured "
        "velocity.",
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
