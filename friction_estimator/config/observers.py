"""Parameters of the observers that measure friction: the Kalman filter, and the published methods."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, advanced, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class KalmanConfig(Validated):
    """Kalman filter of every limb, which calibrates model and sensors along with the friction law.

    The last fields are constants of the method: studies change them in Python, and no YAML has them.
    """

    link_mass_std: float = parameter(
        0.1, "Relative standard deviation of each link's mass. 0: the masses are exact.", "", 0.0, 1.0
    )
    link_com_std: float = parameter(
        0.005,
        "Standard deviation of each coordinate of each link's centre of mass. 0: the centres of mass are exact.",
        "m",
        0.0,
        1.0,
    )
    asymmetry_std: float = parameter(
        0.2,
        "Usual relative difference of the friction of one direction from the mean of both, learned from all joints "
        "together. 0: both directions are the same.",
        "",
        0.0,
        1.0,
    )
    calibrate_sensors: bool = advanced(
        True, "Identify usual biases and gain errors of the sensors, even where the section sensors has smaller ones."
    )
    window: float = advanced(0.01, "Duration of the windows of readings that the limb filters use.", "s", 1e-3, 1.0)

    jerk_densities: tuple[float, ...] = (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e7, 1e9)
    """White-jerk densities of the joint-motion filters that run in parallel [rad^2/s^5]."""
    acceleration_densities: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    """White-acceleration densities of further such filters, for joints that keep their velocity [rad^2/s^3]."""
    law_process_noise: float = 1e-4
    """Random walk of the law's parameters by wear and temperature, over their prior standard deviation [1/sqrt(s)]."""
    calibration_process_noise: float = 5e-3
    """Random walk of the model and sensor errors, over their prior standard deviation [1/sqrt(s)]."""
    model_error_std: float = 0.1
    """Initial standard deviation of the model error of the friction law [N m]."""
    model_error_memory: float = 1.5
    """Time constant of the model-error variance estimate [s]."""
    innovation_gate: float = 2.5
    """Normalised innovation squared per joint above which a window contains an impact."""


@dataclass(frozen=True, slots=True)
class FbseConfig(Validated):
    """Foot-base sensor estimation (section 5)."""

    base_angular_acceleration: str = advanced(
        "minimum_norm",
        "Base angular acceleration. minimum_norm: least-norm solution of eqs. 42 and 46, as published. gyro: "
        "differentiated gyroscope.",
        choices=("minimum_norm", "gyro"),
    )


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
        "Signal from which joint accelerations are differentiated. position: twice, as published. velocity: once.",
        choices=("position", "velocity"),
    )
    differences: str = advanced(
        "central",
        "Instant of the joint accelerations. central: middle of the window (eqs. 6.2, 7.7). backward: newest sample "
        "(eq. 6.3).",
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
        4, "Order of the differentiating polynomial (eq. 7.1). It must be below the window.", "", 1, 8
    )
    trim_start: float = advanced(
        0.1, "Time after a foot has landed or left the ground during which friction is not measured.", "s", 0.0, 10.0
    )
    trim_end: float = advanced(
        0.05,
        "Time before a foot lands or leaves the ground during which friction is not measured. It delays the estimate.",
        "s",
        0.0,
        10.0,
    )
    position_controlled: tuple[str, ...] = advanced(
        (),
        "Joints that a position controller holds (eq. 5.4c). They do not accelerate, and their friction is not "
        "measured.",
    )
    double_support: str = advanced(
        "unavailable",
        "Friction of limbs whose feet stand together. unavailable: not measured. regularised: smallest possible "
        "friction (Egle 2021, eq. 6.1).",
        choices=("unavailable", "regularised"),
    )
    max_sigma: float = advanced(
        1.5,
        "Standard deviation above which the friction of a joint, mostly of a standing limb, is not measured.",
        "N m",
        0.0,
        1e9,
    )
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
