"""The six-slope basis with dry friction that grows with the load: what the Kalman observer learns unless told."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import register_law, required_load
from friction_estimator.core.friction.six_slope import SLOPE_VELOCITIES, SixSlope
from friction_estimator.core.friction.three_slope import fill_slopes
from friction_estimator.core.types import FloatArray


@register_law
class SixSlopeLoad(SixSlope):
    """Six slopes ``+ (k_l |tau| + k_q tau^2) tanh(dq/0.002)``.

    The load terms are those of :class:`~friction_estimator.core.friction.tanh_load.TanhLoad`, with narrower priors:
    where friction does not depend on the load they stay near zero.
    """

    name: ClassVar[str] = "six_slope_load"
    parameter_names: ClassVar[tuple[str, ...]] = (*SixSlope.parameter_names, "load_linear", "load_quadratic")
    units: ClassVar[tuple[str, ...]] = (*SixSlope.units, "", "1/(N m)")
    nonnegative: ClassVar[tuple[bool, ...]] = (*SixSlope.nonnegative, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (*SixSlope.prior_std, 0.02, 0.0005)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Columns of the six slopes, then the sharpest times ``|tau|`` and ``tau^2``, (..., 9)."""
        load = np.abs(required_load(self.name, load))
        phi = np.empty((*velocity.shape, 9))
        fill_slopes(phi, velocity, SLOPE_VELOCITIES)
        np.multiply(phi[..., 0], load, out=phi[..., 7])
        np.multiply(phi[..., 7], load, out=phi[..., 8])
        return phi
