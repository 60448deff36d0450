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
    units: ClassVar[tuple[str, ...]] = ("N m", "N m s/rad", "N m", "N m s/rad")
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
    units: ClassVar[tuple[str, ...]] = ("N m", "N m s/rad", "N m", "N m")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0, 10.0, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """``[sgn(dq) (1 - e), dq, e where dq > 0, -e where dq < 0]``, (..., 4)."""
        return stribeck_columns(velocity, STRIBECK_VELOCITY)

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """K_c [N m]."""
        return parameters[..., 0]

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """K_v [N m s/rad]."""
        return parameters[..., 1]


@register_law
class AsymmetricStribeckScaled:
    """The law `AsymmetricStribeck` with ``e = exp(-|dq| / v_s)``: the velocity over which it fades is a parameter.

    The print leaves the unit of the exponent open; with v_s = 1 deg/s it is `AsymmetricStribeck`.
    """

    name: ClassVar[str] = "asymmetric_stribeck_scaled"
    parameter_names: ClassVar[tuple[str, ...]] = (*AsymmetricStribeck.parameter_names, "stribeck_velocity")
    units: ClassVar[tuple[str, ...]] = (*AsymmetricStribeck.units, "rad/s")
    nonnegative: ClassVar[tuple[bool, ...]] = (*AsymmetricStribeck.nonnegative, True)
    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]] = (None, None, None, None, (1e-3, 10.0))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5)."""
        return np.asarray((stribeck_columns(velocity, parameters[..., 4]) * parameters[..., :4]).sum(axis=-1))

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, 5) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 4])


def stribeck_columns(velocity: FloatArray, stribeck_velocity: FloatArray | float) -> FloatArray:
    """Columns of K_c, K_v, sigma+ and sigma- (Guedelha et al. 2017, eqs. 29-31, with the signs of eqs. 23-25).

    Parameters
    ----------
    velocity : (...) [rad/s]
    stribeck_velocity : v_s in ``e = exp(-|dq| / v_s)``, broadcasts against it [rad/s]

    Returns
    -------
    (..., 4) : ``[sgn(dq) (1 - e), dq, e where dq > 0, -e where dq < 0]``
    """
    direction = np.sign(velocity)
    fading = direction * np.exp(-np.abs(velocity) / stribeck_velocity)
    forward, backward = np.maximum(fading, 0.0), np.minimum(fading, 0.0)
    return np.stack((direction - fading, velocity, forward, backward), axis=-1)
