"""The five-slope basis with dry friction that grows with the load: what the Kalman observer learns unless told."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.five_slope import SLOPE_VELOCITIES, FiveSlope
from friction_estimator.core.friction.law import LinearFrictionLaw, register_law, required_load
from friction_estimator.core.friction.three_slope import fill_slopes
from friction_estimator.core.types import FloatArray


@register_law
class FiveSlopeLoad(LinearFrictionLaw):
    """Five slopes ``+ (k_l |tau| + k_q tau^2) tanh(dq/0.002)``.

    The load terms are those of :class:`~friction_estimator.core.friction.tanh_load.TanhLoad`, with narrower priors:
    where friction does not depend on the load they stay near zero.
    """

    name: ClassVar[str] = "five_slope_load"
    parameter_names: ClassVar[tuple[str, ...]] = (*FiveSlope.parameter_names, "load_linear", "load_quadratic")
    units: ClassVar[tuple[str, ...]] = (*FiveSlope.units, "", "1/(N m)")
    nonnegative: ClassVar[tuple[bool, ...]] = (*FiveSlope.nonnegative, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (*FiveSlope.prior_std, 0.02, 0.0005)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Columns of the five slopes, then the sharpest times ``|tau|`` and ``tau^2``, (..., 8)."""
        load = np.abs(required_load(self.name, load))
        phi = np.empty((*velocity.shape, 8))
        fill_slopes(phi, velocity, SLOPE_VELOCITIES)
        np.multiply(phi[..., 0], load, out=phi[..., 6])
        np.multiply(phi[..., 6], load, out=phi[..., 7])
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Plateau of the tangents without load [N m]."""
        return np.asarray(parameters[..., :5].sum(axis=-1))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 5]
