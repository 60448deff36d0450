"""Coulomb, viscous and Stribeck friction made smooth, as injected by Egle."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import register_law
from friction_estimator.core.types import FloatArray


@register_law
class TanhStribeck:
    """``F_v dq + F_c tanh(a dq) (1 + S exp(-|dq / v_s|^2)) + tau_os`` (Egle 2021, eq. 3.5 with delta_s = 2).

    Not linear in S, v_s and a. The order of the parameters is that of the thesis' Table 6.1.
    """

    name: ClassVar[str] = "tanh_stribeck"
    parameter_names: ClassVar[tuple[str, ...]] = (
        "viscous",
        "coulomb",
        "stribeck",
        "stribeck_velocity",
        "offset",
        "slope",
    )
    units: ClassVar[tuple[str, ...]] = ("N m s/rad", "N m", "", "rad/s", "N m", "s/rad")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True, False, True)
    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]] = (
        None,
        None,
        (0.0, 10.0),
        (1e-3, 10.0),
        None,
        (0.1, 1e3),
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = F_v, F_c, S, v_s, tau_os, a."""
        f_v, f_c, s, v_s, offset, a = parameters.T
        bell = 1.0 + s * np.exp(-((velocity / v_s) ** 2))
        return f_v * velocity + f_c * np.tanh(a * velocity) * bell + offset

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2 v_s``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.0 * parameters[..., 3])
