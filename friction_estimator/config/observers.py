"""Parameters of the observers that measure friction: the Kalman filter, and the published methods."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class KalmanConfig(Validated):
    """Kalman filter of every limb, which calibrates model and sensors along with the friction law."""

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
    calibrate_sensors: bool = parameter(
        True,
        "Identify usual biases and gain errors of the sensors, even where the section sensors has smaller ones.",
        advanced=True,
    )
    window: float = parameter(
        0.01, "Duration of the windows of readings that the limb filters use.", "s", 1e-3, 1.0, advanced=True
    )
    jerk_densities: tuple[float, ...] = parameter(
        (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e7, 1e9),
        "White-jerk densities of the joint-motion filters that run in parallel.",
        "rad^2/s^5",
        1e-9,
        1e12,
        advanced=True,
    )
    acceleration_densities: tuple[float, ...] = parameter(
        (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        "White-acceleration densities of further joint-motion filters, for joints that keep their velocity.",
        "rad^2/s^3",
        1e-12,
        1e12,
        advanced=True,
    )
    law_process_noise: float = parameter(
        1e-4,
        "Random walk of the law's parameters by wear and temperature, relative to their prior standard deviation.",
        "1/sqrt(s)",
        0.0,
        1.0,
        advanced=True,
    )
    calibration_process_noise: float = parameter(
        5e-3,
        "Random walk of the model and sensor errors, relative to their prior standard deviation.",
        "1/sqrt(s)",
        0.0,
        1.0,
        advanced=True,
    )
    model_error_std: float = parameter(
        0.1, "Initial standard deviation of the model error of the friction law.", "N m", 0.0, 1e3, advanced=True
    )
    model_error_memory: float = parameter(
        1.5, "Time constant of the model-error variance estimate.", "s", 1e-2, 1e4, advanced=True
    )
    innovation_gate: float = parameter(
        2.5,
        "Normalised innovation squared per joint above which a window contains an impact.",
        "",
        1.0,
        1e6,
        advanced=True,
    )
    change_ratio: float = parameter(
        0.5,
        "Uncertainty that is added to each parameter of the law when friction has changed, relative to its value.",
        "",
        0.0,
        10.0,
        advanced=True,
    )


@dataclass(frozen=True, slots=True)
class FbseConfig(Validated):
    """Foot-base sensor estimation (section 5)."""

    base_angular_acceleration: str = parameter(
        "minimum_norm",
        "Base angular acceleration. minimum_norm: least-norm solution of eqs. 42 and 46, as published. gyro: "
        "differentiated gyroscope.",
        choices=("minimum_norm", "gyro"),
        advanced=True,
    )


@dataclass(frozen=True, slots=True)
class MomentumConfig(Validated):
    """Discrete momentum observer (Lim et al. 2024, section 3.2), driven by the IMU."""

    gain: float = parameter(30.0, "Bandwidth K_0 of the momentum observer.", "rad/s", 0.1, 1e4, advanced=True)
    input_hold: str = parameter(
        "forward",
        "Torques, wrenches and specific force between two samples. forward: constant from their stamp on. "
        "trapezoid: linear.",
        choices=("forward", "trapezoid"),
        advanced=True,
    )

    @property
    def inputs_are_held(self) -> bool:
        """Whether torque, wrench and specific force act until the next sample."""
        return self.input_hold == "forward"


@dataclass(frozen=True, slots=True)
class ConstrainedConfig(Validated):
    """Constrained dynamics (Egle 2021, chapters 5-7): friction from joint accelerations, without force sensors."""

    signal: str = parameter(
        "position",
        "Signal from which joint accelerations are differentiated. position: twice, as published. velocity: once.",
        choices=("position", "velocity"),
        advanced=True,
    )
    differences: str = parameter(
        "central",
        "Instant of the joint accelerations. central: middle of the window (eqs. 6.2, 7.7). backward: newest sample "
        "(eq. 6.3).",
        choices=("central", "backward"),
        advanced=True,
    )
    window: int = parameter(
        51,
        "Number of samples to which the differentiating polynomial is fitted. It must be odd for central differences.",
        "samples",
        2,
        2001,
        advanced=True,
    )
    order: int = parameter(
        4, "Order of the differentiating polynomial (eq. 7.1). It must be below the window.", "", 1, 8, advanced=True
    )
    trim_start: float = parameter(
        0.1,
        "Time after a foot has landed or left the ground during which friction is not measured.",
        "s",
        0.0,
        10.0,
        advanced=True,
    )
    trim_end: float = parameter(
        0.05,
        "Time before a foot lands or leaves the ground during which friction is not measured. It delays the estimate.",
        "s",
        0.0,
        10.0,
        advanced=True,
    )
    position_controlled: tuple[str, ...] = parameter(
        (),
        "Joints that a position controller holds (eq. 5.4c). They do not accelerate, and their friction is not "
        "measured.",
        advanced=True,
    )
    double_support: str = parameter(
        "unavailable",
        "Friction of limbs whose feet stand together. unavailable: not measured. regularised: smallest possible "
        "friction (Egle 2021, eq. 6.1).",
        choices=("unavailable", "regularised"),
        advanced=True,
    )
    motion_frequency: float = parameter(
        10.0,
        "Highest frequency of the motion (section 7.1.2), for the differentiation error in the standard deviation.",
        "Hz",
        0.0,
        1e3,
        advanced=True,
    )
    max_sigma: float = parameter(
        1.5,
        "Standard deviation above which the friction of a joint, mostly of a standing limb, is not measured.",
        "N m",
        0.0,
        1e9,
        advanced=True,
    )

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
