"""Dry friction of load and velocity, different where the joint drives and where it is driven (Hamon et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law, required_load
from friction_estimator.core.friction.load_quadrants import LoadQuadrants
from friction_estimator.core.types import FloatArray

_DRY = ("coulomb", "static", "load", "load_static")
_DRY_UNITS = ("N m", "N m", "", "")
_NAMES = tuple(f"{name}_{side}" for side in ("motor", "generator") for name in _DRY) + ("viscous", "offset")
_UNITS = (*_DRY_UNITS, *_DRY_UNITS, "N m s/rad", "N m")
_NONNEGATIVE = (True,) * 9 + (False,)
_PRIOR_STD = (*(10.0, 10.0, 0.3, 0.3) * 2, 10.0, 5.0)


@dataclass(frozen=True, slots=True)
class LoadVelocityAt(LinearFrictionLaw):
    """The law `LoadVelocity` at one Stribeck velocity, linear in what is left (Hamon et al. 2010, eqs. 25-30).

    Attributes
    ----------
    stribeck_velocity : q_s [rad/s]
    """

    name: ClassVar[str] = "load_velocity at a Stribeck velocity"
    parameter_names: ClassVar[tuple[str, ...]] = _NAMES
    units: ClassVar[tuple[str, ...]] = _UNITS
    nonnegative: ClassVar[tuple[bool, ...]] = _NONNEGATIVE
    prior_std: ClassVar[tuple[float, ...]] = _PRIOR_STD
    stribeck_velocity: float

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Columns of beta, delta, alpha and gamma of both quadrants, viscous friction and offset, (..., 10)."""
        return load_velocity_columns(velocity, required_load(LoadVelocity.name, load), self.stribeck_velocity)

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Dry friction without load beyond the Stribeck region, mean of motor and generator [N m]."""
        return np.asarray(0.5 * (parameters[..., 0] + parameters[..., 4]))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 8]


@register_law
class LoadVelocity:
    """``[alpha |tau| + beta + ((gamma - alpha) |tau| + delta - beta) exp(-|dq| / q_s)] sgn(dq) + F_v dq + offset``.

    Hamon et al. 2010, eqs. 22-30: beta is ``coulomb``, delta ``static``, alpha ``load`` and gamma ``load_static``, each
    with one value where the motor drives (``tau dq > 0``) and one where it is driven. As in `LoadQuadrants`, which this
    law is without the exponential, tau is the motor torque: docs/equations.md.
    """

    name: ClassVar[str] = "load_velocity"
    parameter_names: ClassVar[tuple[str, ...]] = (*_NAMES, "stribeck_velocity")
    units: ClassVar[tuple[str, ...]] = (*_UNITS, "rad/s")
    nonnegative: ClassVar[tuple[bool, ...]] = (*_NONNEGATIVE, True)
    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]] = (*(None,) * 10, (1e-3, 10.0))

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 11) and load = motor torque (n,) [N m]."""
        columns = load_velocity_columns(velocity, required_load(self.name, load), parameters[..., 10])
        return np.asarray((columns * parameters[..., :10]).sum(axis=-1))

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 q_s``: two percent of the Stribeck effect are left there, (n, 11) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 10])


def load_velocity_columns(velocity: FloatArray, load: FloatArray, stribeck_velocity: FloatArray | float) -> FloatArray:
    """Columns of the ten parameters that the torque is linear in (Hamon et al. 2010, eqs. 26-30).

    Parameters
    ----------
    velocity : (...) [rad/s]
    load : (...) broadcasts against it [N m]
    stribeck_velocity : q_s, broadcasts against it [rad/s]

    Returns
    -------
    (..., 10)
    """
    dry = LoadQuadrants().regressor(velocity, load)
    fading = np.exp(-np.abs(velocity) / stribeck_velocity)
    columns = np.empty((*velocity.shape, 10))
    for first, side in ((0, 0), (4, 2)):
        for place, column in ((first, dry[..., side]), (first + 2, dry[..., side + 1])):
            columns[..., place] = column * (1.0 - fading)
            columns[..., place + 1] = column * fading
    columns[..., 8:] = dry[..., 4:]
    return columns
