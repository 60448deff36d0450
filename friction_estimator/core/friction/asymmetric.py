"""Laws with different friction for the two directions of rotation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law
from friction_estimator.core.types import FloatArray

STRIBECK_VELOCITY = np.pi / 180.0
"""The printed ``exp(-omega)`` counts omega in deg/s, as the paper's Table 1 does: it decays over 1 deg/s [rad/s]."""


@register_law
class Asymmetric(LinearFrictionLaw):
    """``F_c+ + F_v+ dq`` for positive velocities, ``-F_c- + F_v- dq`` for negative ones.

    Eq. 19 of Guedelha et al. 2017 with the half-axes of its eqs. 27-28 for both of its terms.
    """

    name: ClassVar[str] = "asymmetric"
    parameter_names: ClassVar[tuple[str, ...]] = (
        "coulomb_positive",
        "viscous_positive",
        "coulomb_negative",
        "viscous_negative",
    )
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0, 10.0, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """``[sgn(dq), dq]`` in the columns of its direction, zero in the other two, (..., 4)."""
        forward, backward = np.maximum(velocity, 0.0), np.minimum(velocity, 0.0)
        return np.stack((np.sign(forward), forward, np.sign(backward), backward), axis=-1)

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Mean F_c of both directions [N m]."""
        return np.asarray(0.5 * (parameters[..., 0] + parameters[..., 2]))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """Mean F_v of both directions [N m s/rad]."""
        return np.asarray(0.5 * (parameters[..., 1] + parameters[..., 3]))


@register_law
class AsymmetricStribeck(LinearFrictionLaw):
    """``K_c sgn(dq) (1 - e) + K_v dq + sigma+- sgn(dq) e`` with ``e = exp(-|dq| / (1 deg/s))``.

    Guedelha et al. 2017, section 3.2.2: static friction sigma+ (sigma-) when starting in the positive (negative)
    direction, fading to one Coulomb and viscous friction. This meets the limits of eqs. 23-25, which eqs. 26 and 29-31
    with their printed signs do not: docs/equations.md.
    """

    name: ClassVar[str] = "asymmetric_stribeck"
    parameter_names: ClassVar[tuple[str, ...]] = ("coulomb", "viscous", "static_positive", "static_negative")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0, 10.0, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """``[sgn(dq) (1 - e), dq, e where dq > 0, -e where dq < 0]``, (..., 4)."""
        direction = np.sign(velocity)
        fading = direction * np.exp(-np.abs(velocity) / STRIBECK_VELOCITY)
        forward, backward = np.maximum(fading, 0.0), np.minimum(fading, 0.0)
        return np.stack((direction - fading, velocity, forward, backward), axis=-1)

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """K_c [N m]."""
        return parameters[..., 0]

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """K_v [N m s/rad]."""
        return parameters[..., 1]
