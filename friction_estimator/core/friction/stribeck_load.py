"""Stribeck friction with a load-dependent part, as injected by Lim et al."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import register_law, required_load
from friction_estimator.core.types import FloatArray


@register_law
class StribeckLoad:
    """``sgn(dq) (f_c + (f_s - f_c) exp(-|dq / v_s|) + k_l |tau|^2) + k_v dq`` (Lim et al. 2024, eq. 23, our sign)."""

    name: ClassVar[str] = "stribeck_load"
    parameter_names: ClassVar[tuple[str, ...]] = ("coulomb", "static", "stribeck_velocity", "viscous", "load_quadratic")
    units: ClassVar[tuple[str, ...]] = ("N m", "N m", "rad/s", "N m s/rad", "1/(N m)")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True, True)
    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]] = (None, None, (1e-3, 10.0), None, None)

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5) and load = motor torque (n,) [N m]."""
        load = required_load(self.name, load)
        f_c, f_s, v_s, k_v, k_l = parameters.T
        dry = f_c + (f_s - f_c) * np.exp(-np.abs(velocity / v_s)) + k_l * load**2
        return np.sign(velocity) * dry + k_v * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``4 v_s``: two percent of the Stribeck effect are left there, (n, 5) -> (n,) [rad/s]."""
        return np.asarray(4.0 * parameters[..., 2])
