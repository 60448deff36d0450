"""Attitude, contact phase and base state."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AttitudeConfig(Validated):
    """Gravity Kalman filter and quaternion extended Kalman filter (Hashlamon & Erbatur 2014, section 3)."""

    acceleration_std: float = parameter(0.5, "linear acceleration of the trunk", "m/s^2", 1e-6, 100.0)
    acceleration_time: float = parameter(0.2, "correlation time of that acceleration", "s", 1e-3, 100.0)
    vibration_std: float = parameter(
        1.0, "acceleration beside it that lasts for one sample only: impacts, vibration", "m/s^2", 0.0, 100.0
    )
    acceleration_bias_std: float = parameter(0.02, "accelerometer bias at the start", "m/s^2", 0.0, 10.0)
    gyro_bias_std: float = parameter(0.01, "gyroscope bias at the start", "rad/s", 0.0, 1.0)
    gyro_bias_walk: float = parameter(1e-5, "random walk of the gyroscope bias", "rad/s/sqrt(s)", 0.0, 1.0)
    silent_rate: float = parameter(0.5, "how fast the trunk may turn while the IMU is silent", "rad/s", 0.0, 100.0)
    angular_acceleration_cutoff: float = parameter(8.0, "low-pass of the differentiated gyroscope", "Hz", 0.1, 1e3)


@dataclass(frozen=True, slots=True)
class ContactPhaseConfig(Validated):
    """Hysteresis and debounce on the normal force of each foot."""

    on_fraction: float = parameter(0.03, "a foot lands above this part of the weight", "", 0.0, 1.0)
    off_fraction: float = parameter(0.015, "a foot has left below this part of the weight", "", 0.0, 1.0)
    debounce: float = parameter(0.008, "the threshold must stay crossed for this long", "s", 0.0, 1.0)
    sign_suspect_after: float = parameter(
        0.2, "a foot pulled to the ground for this long has its sensor flipped, probably", "s", 0.0, 60.0
    )
    settle: float = parameter(0.05, "after landing the foot is not yet taken as resting (FBSE)", "s", 0.0, 1.0)

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        if self.off_fraction > self.on_fraction:
            raise ConfigError(
                f"off_fraction = {self.off_fraction} must not exceed on_fraction = {self.on_fraction}: "
                "without hysteresis the contact would chatter"
            )


@dataclass(frozen=True, slots=True)
class BaseStateConfig(Validated):
    """Adaptive Kalman filter on the linear inverted pendulum (eqs. 7-33, Table II)."""

    process_noise: float = parameter(1.0, "Q_0: initial process covariance, times the identity", "", 0.0, 1e6)
    measurement_noise: float = parameter(1e-4, "R_0: initial measurement covariance, times the identity", "", 0.0, 1e6)
    initial_covariance: float = parameter(10.0, "P_0, times the identity", "", 0.0, 1e6)
    measurement_window: float = parameter(1000.0, "N_R of eqs. 20-23", "samples", 2.0, 1e7)
    process_window: float = parameter(5000.0, "N_Q of eqs. 27-31", "samples", 2.0, 1e7)
    method: str = parameter(
        "odometry",
        "lipm: the printed filter; odometry: the standing feet measure base position and velocity instead of the ZMP, "
        "and hold heading and tilt",
        choices=("lipm", "odometry"),
    )
    velocity_noise_time: float = parameter(
        1.0, "odometry: over which the noise of the velocity that the legs tell is measured", "s", 1e-2, 1e3
    )
    acceleration_error_time: float = parameter(
        1.0, "odometry: how long errors of the tilt last, seen as errors of the acceleration", "s", 1e-2, 1e3
    )
    level_time: float = parameter(
        0.02, "odometry: over which the tilt that accelerometer and legs tell is averaged", "s", 1e-4, 10.0
    )
    sole_speed_std: float = parameter(
        0.003, "odometry: how fast standing soles creep and give way; the velocity is never surer", "m/s", 0.0, 1.0
    )
    turning_time: float = parameter(
        0.1, "odometry: how long legs stay in doubt whose standing sole has seemed to turn", "s", 1e-3, 10.0
    )
    landing_std: float = parameter(0.003, "how far a foot settles or slips while it lands", "m", 0.0, 1.0)
    settle_std: float = parameter(
        0.01,
        "odometry: how far the height of a sole changes, a random walk over the way the robot makes; lightly loaded "
        "ones settle more",
        "m/sqrt(m)",
        0.0,
        10.0,
    )
    height_std: float = parameter(0.002, "odometry: error of the height of a sole by the joints", "m", 1e-6, 1.0)
    twist_std: float = parameter(
        0.1,
        "odometry: how far a sole twists about the vertical, a random walk over the way the robot makes; lightly "
        "loaded ones twist more",
        "rad/sqrt(m)",
        0.0,
        10.0,
    )
    twist_gate: float = parameter(3.0, "soles this many sigma from their heading have twisted", "", 0.5, 1e6)
    rest_speed: float = parameter(0.001, "at rest soles twist as if the robot moved this fast", "m/s", 0.0, 1.0)
    rotation_std: float = parameter(0.002, "error of the rotation of a sole by the joints", "rad", 1e-6, 1.0)
