"""The three-slope basis with dry friction that grows with the load: linear, smooth, for the live estimator."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import LinearFrictionLaw, register_law, required_load
from friction_estimator.core.friction.three_slope import fill_slopes
from friction_estimator.core.types import FloatArray

SLOPE_VELOCITIES = np.array([0.008, 0.06, 0.3])
"""As of the three-slope law, the first one steeper: friction that depends on load is dry friction [rad/s]."""
SLOPE_VELOCITIES.setflags(write=False)
LOAD_VELOCITY = 0.002
"""Velocity at which the load-dependent part saturates [rad/s]; benchmarks/friction_laws.py compares."""


@register_law
class TanhLoad(LinearFrictionLaw):
    """Three slopes ``+ (k_l |tau| + k_q tau^2) tanh(dq/0.002)``.

    The linear term is that of Hamon et al. 2010, eq. 17, the quadratic one that of Lim et al. 2024, eq. 23, with the
    motor torque as the load. Both coefficients are held nonnegative: a curve that bends down would make friction drive
    the joint at loads beyond those seen.
    """

    name: ClassVar[str] = "tanh_load"
    parameter_names: ClassVar[tuple[str, ...]] = (
        "tanh_steep",
        "tanh_middle",
        "tanh_flat",
        "viscous",
        "load_linear",
        "load_quadratic",
    )
    units: ClassVar[tuple[str, ...]] = ("N m", "N m", "N m", "N m s/rad", "", "1/(N m)")
    nonnegative: ClassVar[tuple[bool, ...]] = (False, False, False, True, True, True)
    prior_std: ClassVar[tuple[float, ...]] = (10.0, 10.0, 10.0, 10.0, 0.3, 0.01)

    def regressor(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Columns of the three slopes, then ``tanh(dq/0.002) |tau|`` and ``tanh(dq/0.002) tau^2``, (..., 6)."""
        load = np.abs(required_load(self.name, load))
        phi = np.empty((*velocity.shape, 6))
        fill_slopes(phi, velocity, SLOPE_VELOCITIES)
        np.multiply(np.tanh(velocity / LOAD_VELOCITY), load, out=phi[..., 4])
        np.multiply(phi[..., 4], load, out=phi[..., 5])
        return phi

    def coulomb(self, parameters: FloatArray) -> FloatArray:
        """Plateau of the tangents without load [N m]."""
        return np.asarray(parameters[..., :3].sum(axis=-1))

    def viscous(self, parameters: FloatArray) -> FloatArray:
        """F_v [N m s/rad]."""
        return parameters[..., 3]
