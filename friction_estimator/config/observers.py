"""The printed friction observers."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError


@dataclass(frozen=True, slots=True)
class FbseConfig(Validated):
    """Foot-base sensor estimation (section 5)."""

    base_angular_acceleration: str = parameter(
        "minimum_norm",
        "minimum_norm: eqs. 42 and 46 as printed; gyro: the differentiated, low-passed gyroscope fills the null space",
        choices=("minimum_norm", "gyro"),
    )
    angular_acceleration_std: float = parameter(
        0.3, "how far the base angular acceleration may be from the value used", "rad/s^2", 0.0, 1e3
    )


@dataclass(frozen=True, slots=True)
class MomentumConfig(Validated):
    """Discrete momentum observer (Lim et al. 2024, section 3.2), driven by the IMU."""

    gain: float = parameter(30.0, "K_0: bandwidth of the observer", "rad/s", 0.1, 1e4)
    input_hold: str = parameter(
        "forward",
        "forward: torque, wrench and specific force stamped t act until the next sample; "
        "trapezoid: they are samples of continuous signals",
        choices=("forward", "trapezoid"),
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
        "what is differentiated: position twice, as in the thesis; velocity once",
        choices=("position", "velocity"),
    )
    differences: str = parameter(
        "central",
        "central: in the middle of the window (eqs. 6.2, 7.7), half a window late; "
        "backward: at its newest sample (eq. 6.3), without delay but with a phase error",
        choices=("central", "backward"),
    )
    window: int = parameter(51, "L: samples that the polynomial is fitted to; odd for central", "samples", 2, 2001)
    order: int = parameter(4, "of the polynomial (eq. 7.1), below the window", "", 1, 8)
    trim_start: float = parameter(0.1, "after any foot has landed or left nothing is measured", "s", 0.0, 10.0)
    trim_end: float = parameter(
        0.05, "nor before; known afterwards only, so the estimate is at least this much late", "s", 0.0, 10.0
    )
    position_controlled: tuple[str, ...] = parameter(
        (), "joints that a position controller holds: no acceleration (eq. 5.4c), and their friction is not measured"
    )
    double_support: str = parameter(
        "unavailable",
        "limbs of feet that stand together share torque in a way that accelerations do not tell: unavailable, or "
        "regularised: the least friction (eq. 6.1)",
        choices=("unavailable", "regularised"),
    )
    regularisation: float = parameter(1e-8, "Lambda / W of eq. 6.1", "(rad/s^2)^2/(N m)^2", 0.0, 1e6)
    friction_std: float = parameter(2.0, "size of friction that eq. 6.1 may miss", "N m", 0.0, 1e6)
    motion_frequency: float = parameter(
        10.0,
        "highest frequency of the motion (section 7.1.2): what the differences miss there, sigma covers",
        "Hz",
        0.0,
        1e3,
    )
    max_sigma: float = parameter(
        1.5, "friction less certain than this is not given: standing limbs, mostly", "N m", 0.0, 1e9
    )

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        if self.differences == "central" and self.window % 2 == 0:
            raise ConfigError(f"window = {self.window} has no middle: choose an odd one for central differences")
        lowest = 2 if self.signal == "position" else 1
        if not lowest <= self.order < self.window:
            raise ConfigError(
                f"order = {self.order} must be from {lowest} (signal: {self.signal}) to {self.window - 1} (window - 1)"
            )
