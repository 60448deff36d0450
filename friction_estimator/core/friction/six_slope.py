"""Six hyperbolic tangents and a viscous term: dry friction from sharp to soft, Stribeck-like shapes included."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law
from friction_estimator.core.friction.three_slope import fill_slopes
from friction_estimator.core.types import FloatArray

SLOPE_VELOCITIES = np.array([0.002, 0.01, 10.0**-1.5, 0.1, 10.0**-0.5, 1.0])
"""Velocities at which the tangents saturate [rad/s]: the sharpest is a sign to any encoder, the rest has no gap."""
SLOPE_VELOCITIES.setflags(write=False)


@register_law
class SixSlope(LinearFrictionLaw):
    """``sum_k a_k tanh(dq/v_k) + F_v dq`` with ``v_k`` = 0.002, 0.01, 0.032, 0.1, 0.32, 1 rad/s.

    From 0.01 on neighbouring tangents overlap so far that a tangent of any slope between is met to a few percent. As in
    the three-slope law single coefficients may be negative; their sum, the plateau, is F_c. The softest has a
    narrow prior: where a joint is never fast enough to tell it from F_v, friction counts as viscous.
    """

    name: ClassVar[str] = "six_slope"
    parameter_names: ClassVar[tuple[str, ...]] = (
        "tanh_0.002",
        "tanh_0.01",
        "tanh_0.032",
        "tanh_0.1",
        "tanh_0.32",
        "tanh_1",
        "viscous",
    )
    units: ClassVar[tuple[str, ...]] = (*("N m",) * 6, "N m s/rad")
    nonnegative: ClassVar[tuple[bool, ...]] = (*(False,) * 6, True)
    prior_std: ClassVar[tuple[float, ...]] = (*(10.0,) * 5, 0.3, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """The tangents and ``dq``, (..., 7)."""
        phi = np.empty((*velocity.shape, 7))
        fill_slopes(phi, velocity, SLOPE_VELOCITIES)
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Plateau of the tangents, without load [N m]."""
        return np.asarray(parameters[..., :6].sum(axis=-1))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 6]
