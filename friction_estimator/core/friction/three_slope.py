"""Three hyperbolic tangents of different slope and a viscous term: Stribeck-like friction, linear in its parameters."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law
from friction_estimator.core.types import FloatArray

SLOPE_VELOCITIES = np.array([0.015, 0.06, 0.3])
"""Velocities at which the three tangents saturate [rad/s]: dry friction, the Stribeck dip, what is left of it."""
SLOPE_VELOCITIES.setflags(write=False)


@register_law
class ThreeSlope(LinearFrictionLaw):
    """``k_1 tanh(dq/0.015) + k_2 tanh(dq/0.06) + k_3 tanh(dq/0.3) + F_v dq``.

    Differences of tangents of fixed slope draw a Stribeck curve as eq. 56 of Hashlamon & Erbatur 2014 does, but stay
    linear in what is unknown. Single coefficients may therefore be negative; their sum, the plateau, is F_c.
    """

    name: ClassVar[str] = "three_slope"
    parameter_names: ClassVar[tuple[str, ...]] = ("tanh_steep", "tanh_middle", "tanh_flat", "viscous")
    units: ClassVar[tuple[str, ...]] = ("N m", "N m", "N m", "N m s/rad")
    nonnegative: ClassVar[tuple[bool, ...]] = (False, False, False, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0, 10.0, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """The tangents and ``dq``, (..., 4)."""
        phi = np.empty((*velocity.shape, 4))
        fill_slopes(phi, velocity)
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Plateau of the tangents [N m]."""
        return np.asarray(parameters[..., :3].sum(axis=-1))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 3]


def fill_slopes(phi: FloatArray, velocity: FloatArray, slope_velocities: FloatArray = SLOPE_VELOCITIES) -> None:
    """Write the tangents and the velocity (...) into the first columns of ``phi`` (..., p)."""
    count = slope_velocities.size
    np.tanh(velocity[..., None] / slope_velocities, out=phi[..., :count])
    phi[..., count] = velocity
