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

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 5) and load = motor torque (n,) [N m]."""
        load = required_load(self.name, load)
        f_c, f_s, v_s, k_v, k_l = parameters.T
        dry = f_c + (f_s - f_c) * np.exp(-np.abs(velocity / v_s)) + k_l * load**2
        return np.sign(velocity) * dry + k_v * velocity
