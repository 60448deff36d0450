"""Coulomb and viscous friction: the law that Hashlamon & Erbatur identify online."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import register_law
from friction_estimator.core.types import FloatArray


@register_law
class CoulombViscous:
    """``F_c sgn(dq) + F_v dq`` (Hashlamon & Erbatur 2014, eq. 57)."""

    name: ClassVar[str] = "coulomb_viscous"
    parameter_names: ClassVar[tuple[str, ...]] = ("coulomb", "viscous")
    coulomb_column: ClassVar[int] = 0
    viscous_column: ClassVar[int] = 1

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """One row ``[sgn(dq), dq]`` a joint, (n, 2): the nonzeros of eq. 59."""
        phi = np.empty((velocity.size, 2))
        np.sign(velocity, out=phi[:, 0])
        phi[:, 1] = velocity
        return phi

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 2) = [F_c, F_v] (eq. 58)."""
        return parameters[:, 0] * np.sign(velocity) + parameters[:, 1] * velocity
