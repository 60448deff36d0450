"""Coulomb and viscous friction: the law that Hashlamon & Erbatur identify online."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law
from friction_estimator.core.types import FloatArray


@register_law
class CoulombViscous(LinearFrictionLaw):
    """``F_c sgn(dq) + F_v dq`` (Hashlamon & Erbatur 2014, eq. 57)."""

    name: ClassVar[str] = "coulomb_viscous"
    parameter_names: ClassVar[tuple[str, ...]] = ("coulomb", "viscous")
    units: ClassVar[tuple[str, ...]] = ("N m", "N m s/rad")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """One row ``[sgn(dq), dq]`` a velocity, (..., 2): the nonzeros of eq. 59."""
        phi = np.empty((*velocity.shape, 2))
        np.sign(velocity, out=phi[..., 0])
        phi[..., 1] = velocity
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """F_c [N m]."""
        return parameters[..., 0]

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 1]
