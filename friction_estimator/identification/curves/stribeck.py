"""The asymmetric Stribeck law in the form in which it is fitted: static friction as its excess over Coulomb friction.

Where nothing slides slowly, no excess is identified and static friction is Coulomb friction; an extrapolation of
``exp(|dq| / v_s)`` from fast samples would be thousands of newton metres.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from friction_estimator.errors import ConfigError, choices
from friction_estimator.laws import FrictionLaw, Parameter, Role, make_law
from friction_estimator.laws.published import ASYMMETRIC_STRIBECK, ASYMMETRIC_STRIBECK_SCALED, STRIBECK_VELOCITY
from friction_estimator.types import FloatArray

ZERO_SLOPES = {"none": (), "positive": (0,), "negative": (1,), "both": (0, 1)}
"""Directions in which friction leaves standstill with zero slope, by the value of the option."""
_COULOMB, _VISCOUS, *_STATIC, _VELOCITY = ASYMMETRIC_STRIBECK_SCALED.parameters
_EXCESS = tuple(Parameter(one.name, Role.STRIBECK, bounds=(-math.inf, math.inf), optional=True) for one in _STATIC)


class StribeckExcess(FrictionLaw):
    """``f = K_c sgn(dq) + K_v dq + s sgn(dq) exp(-|dq| / v_s)``, static friction ``sigma = K_c + s`` by direction.

    Parameters
    ----------
    velocity : v_s [rad/s]; None: a parameter
    zero_slope : of :data:`ZERO_SLOPES`; there ``s = v_s K_v`` (Guedelha et al. 2017, section 4.1.2)
    unseen : directions, 0 and 1, that show no excess, and its standard deviation [N m]

    Raises
    ------
    ConfigError
        When the velocity is not above zero, or the slope is unknown.
    """

    def __init__(
        self,
        velocity: float | None = STRIBECK_VELOCITY,
        zero_slope: str = "none",
        unseen: Mapping[int, float] | None = None,
    ) -> None:
        if zero_slope not in ZERO_SLOPES:
            raise ConfigError(f"unknown zero slope {zero_slope!r}; it is one of {choices(ZERO_SLOPES)}")
        if velocity is not None and not velocity > 0.0:
            raise ConfigError(f"the Stribeck velocity is {velocity!r} rad/s, it must be above zero")
        self.name = (ASYMMETRIC_STRIBECK if velocity == STRIBECK_VELOCITY else ASYMMETRIC_STRIBECK_SCALED).name
        self.velocity, self.zero_slope, self.unseen = velocity, zero_slope, dict(unseen or {})
        self._sloped = ZERO_SLOPES[zero_slope]
        self._free = tuple(side for side in (0, 1) if side not in self._sloped and side not in self.unseen)
        self._searched = velocity is None and bool(self._free or self._sloped)
        shape = (_VELOCITY,) * self._searched
        self.parameters = (_COULOMB, _VISCOUS, *(_EXCESS[side] for side in self._free), *shape)

    @cached_property
    def at_published_velocity(self) -> StribeckExcess:
        """The law with the published Stribeck velocity in place of one that is searched: linear."""
        return self if self.velocity is not None else StribeckExcess(STRIBECK_VELOCITY, self.zero_slope, self.unseen)

    def without(self, names: Mapping[str, float]) -> StribeckExcess:
        """The law without excess in the directions whose static friction has these names; standard deviations."""
        sides = {side: names[_EXCESS[side].name] for side in self._free if _EXCESS[side].name in names}
        return StribeckExcess(self.velocity, self.zero_slope, self.unseen | sides)

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, p)."""
        return ASYMMETRIC_STRIBECK_SCALED.torque(self._published(parameters), velocity, load)

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """That of the published law; zero where no excess is in this one."""
        region = ASYMMETRIC_STRIBECK_SCALED.stribeck_region(self._published(parameters))
        return region * bool(self._free or self._sloped)

    def _published(self, parameters: FloatArray) -> FloatArray:
        """K_c, K_v, sigma+, sigma-, v_s (..., 5) of parameters (..., p)."""
        coulomb, viscous = parameters[..., 0], parameters[..., 1]
        given = STRIBECK_VELOCITY if self.velocity is None else self.velocity
        scale = parameters[..., -1] if self._searched else np.full_like(coulomb, given)
        excess = [np.zeros_like(coulomb), np.zeros_like(coulomb)]
        for place, side in enumerate(self._free):
            excess[side] = parameters[..., 2 + place]
        for side in self._sloped:
            excess[side] = scale * viscous
        return np.stack([coulomb, viscous, coulomb + excess[0], coulomb + excess[1], scale], axis=-1)

    def registered(self, values: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters (q,) of the law of this name in the registry, and their covariance (q, q)."""
        step = 1e-6 * np.eye(values.size)
        J = (self._published(values + step) - self._published(values - step)).T / 2e-6  # bilinear: exact
        spread = J @ covariance @ J.T
        for side, sigma in self.unseen.items():
            spread[2 + side, 2 + side] += sigma**2
        if self.velocity is None and not self._searched:
            low, high = _VELOCITY.bounds
            spread[4, 4] = (STRIBECK_VELOCITY * math.log(high / low)) ** 2 / 12.0
        q = len(make_law(self.name).parameters)
        return self._published(values)[:q], spread[:q, :q]


def fitted_law(name: str) -> FrictionLaw:
    """The law of the registry, in the form in which it is fitted."""
    forms = {ASYMMETRIC_STRIBECK.name: STRIBECK_VELOCITY, ASYMMETRIC_STRIBECK_SCALED.name: None}
    return StribeckExcess(forms[name]) if name in forms else make_law(name)
