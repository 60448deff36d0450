"""Friction law of a motor as columns of a linear problem: Stribeck velocity given, slope at standstill constrained."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.laws import make_linear_law
from friction_estimator.laws.linear import ASYMMETRIC_STRIBECK, STRIBECK_VELOCITY
from friction_estimator.laws.nonlinear import AsymmetricStribeckScaled, stribeck_columns
from friction_estimator.types import BoolArray, FloatArray

ZERO_SLOPES = ("none", "positive", "negative", "both")
SLOW_SAMPLES = 20
"""Fewer samples within one Stribeck velocity of standstill do not show a static friction."""
_DIRECTIONS = {(False, False): "none", (True, False): "positive", (False, True): "negative", (True, True): "both"}


@dataclass(frozen=True, slots=True)
class MotorLaw:
    """A linear law, or the asymmetric Stribeck law at a Stribeck velocity of choice.

    Attributes
    ----------
    name : of a linear law that needs no load
    stribeck_velocity : of ``asymmetric_stribeck`` [rad/s]; other laws have none of their own here
    zero_slope : directions in which friction must leave standstill with zero slope (section 4.1.2): at ``0+`` the
        slope of ``asymmetric_stribeck`` is ``K_v - (sigma+ - K_c) / v_s``, so ``sigma+ = K_c + v_s K_v``
    no_static : directions in which nothing slides slowly enough to show a static friction: there it is K_c, which an
        extrapolation by ``exp(|dq| / v_s)`` would miss by thousands of N m
    """

    name: str
    stribeck_velocity: float = STRIBECK_VELOCITY
    zero_slope: str = "none"
    no_static: str = "none"

    def __post_init__(self) -> None:
        make_linear_law(self.name)
        if self.zero_slope not in ZERO_SLOPES:
            raise ConfigError(f"unknown zero slope {self.zero_slope!r}; it is one of {choices(ZERO_SLOPES)}")
        if not self.is_stribeck and (self.zero_slope != "none" or self.stribeck_velocity != STRIBECK_VELOCITY):
            raise ConfigError(
                f"a Stribeck velocity and a zero slope at standstill are for the law {ASYMMETRIC_STRIBECK.name!r}, "
                f"not for {self.name!r}"
            )
        if not self.stribeck_velocity > 0.0:
            raise ConfigError(f"the Stribeck velocity is {self.stribeck_velocity!r} rad/s, it must be above zero")

    @property
    def is_stribeck(self) -> bool:
        """Whether the law has a Stribeck velocity that can be chosen."""
        return self.name == ASYMMETRIC_STRIBECK.name

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """(p)."""
        return make_linear_law(self.name).parameter_names

    def columns(self, velocity: FloatArray) -> FloatArray:
        """Regressor (r, p) at velocities (r,) [rad/s]."""
        if self.is_stribeck:
            return stribeck_columns(velocity, self.stribeck_velocity)
        return make_linear_law(self.name).regressor(velocity)

    @property
    def offset_shows(self) -> bool:
        """Whether a constant torque can be told from the friction: not when both directions have their own dry part."""
        velocity = np.concatenate((np.linspace(-1.0, 1.0, 101), np.geomspace(1e-3, 1.0, 50)))
        columns, ones = self.columns(velocity), np.ones(velocity.size)
        rest = ones - columns @ np.linalg.lstsq(columns, ones, rcond=None)[0]
        return bool(np.linalg.norm(rest[velocity != 0.0]) > 1e-6)

    def as_seen(self, velocity: FloatArray) -> MotorLaw:
        """The law without the static friction that velocities (r,) of a sliding motor do not show."""
        if not self.is_stribeck:
            return self
        slow = velocity[np.abs(velocity) < self.stribeck_velocity]
        unseen = [bool(np.count_nonzero(sign * slow > 0.0) < SLOW_SAMPLES) for sign in (1.0, -1.0)]
        return replace(self, no_static=_DIRECTIONS[unseen[0], unseen[1]])

    @property
    def constrained(self) -> BoolArray:
        """(p) True for a parameter that a constraint gives, and the others leave free."""
        return self._sides(self.zero_slope) | self._sides(self.no_static)

    def _sides(self, directions: str) -> BoolArray:
        """(p) True for the static friction of these directions."""
        sides = {"none": (), "positive": (2,), "negative": (3,), "both": (2, 3)}[directions]
        return np.isin(np.arange(len(self.parameter_names)), sides)

    @property
    def basis(self) -> FloatArray:
        """N (p, k): the parameters that meet the constraint are ``N z``, z the free ones in their order."""
        held = self.constrained
        basis = np.eye(held.size)
        basis[held, 0] = 1.0
        basis[self._sides(self.zero_slope), 1] = self.stribeck_velocity
        return basis[:, ~held]

    def basis_rate(self, free: FloatArray) -> FloatArray:
        """Change (p,) of the parameters ``N z`` with the Stribeck velocity, z (k,) kept."""
        return np.where(self._sides(self.zero_slope), free[1], 0.0)

    def rate(self, velocity: FloatArray, values: FloatArray) -> FloatArray:
        """Change (r,) of the friction with the Stribeck velocity, parameters (p,) kept [N m s/rad].

        ``sgn(dq) (sigma - K_c) e |dq| / v_s^2``.
        """
        fading = np.exp(-np.abs(velocity) / self.stribeck_velocity)
        static = np.where(velocity > 0.0, values[2], values[3])
        return np.asarray((static - values[0]) * fading * velocity / self.stribeck_velocity**2)


def registered_law(law: MotorLaw, searched: bool) -> str:
    """Name under which the registry knows the law: with the Stribeck velocity as a parameter unless it is 1 deg/s."""
    scaled = law.is_stribeck and (searched or law.stribeck_velocity != STRIBECK_VELOCITY)
    return AsymmetricStribeckScaled.name if scaled else law.name
