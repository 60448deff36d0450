"""Dry friction linear in the load, different where the joint drives and where it is driven (Hamon et al. 2010)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law, required_load
from friction_estimator.core.types import FloatArray


@register_law
class LoadQuadrants(LinearFrictionLaw):
    """``(alpha |tau| + beta) sgn(dq) + F_v dq + offset`` (Hamon et al. 2010, eqs. 17-20).

    alpha and beta take the index m in the two quadrants of (dq, tau) where the load power ``tau dq`` is positive (the
    motor drives), and g in the two where it is negative (it is driven); eq. 26 takes that sign from the motor torque.
    """

    name: ClassVar[str] = "load_quadrants"
    parameter_names: ClassVar[tuple[str, ...]] = (
        "coulomb_motor",
        "load_motor",
        "coulomb_generator",
        "load_generator",
        "viscous",
        "offset",
    )
    units: ClassVar[tuple[str, ...]] = ("N m", "", "N m", "", "N m s/rad", "N m")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True, True, False)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 0.3, 10.0, 0.3, 10.0, 5.0)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """``[P+ sgn(dq), P+ |tau| sgn(dq), P- sgn(dq), P- |tau| sgn(dq), dq, 1]``, (..., 6), P of eqs. 27-28.

        Without load power both halves count, as ``sgn(0) = 0`` makes of the printed P.
        """
        load = required_load(self.name, load)
        direction = np.sign(velocity)
        driving = 0.5 * (1.0 + np.sign(load) * direction)
        phi = np.empty((*velocity.shape, 6))
        phi[..., 0] = driving * direction
        phi[..., 2] = direction - phi[..., 0]
        phi[..., 1:4:2] = phi[..., 0:3:2] * np.abs(load)[..., None]
        phi[..., 4] = velocity
        phi[..., 5] = 1.0
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Dry friction without load, mean of motor and generator [N m]."""
        return np.asarray(0.5 * (parameters[..., 0] + parameters[..., 2]))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 4]
