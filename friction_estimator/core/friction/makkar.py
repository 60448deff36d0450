"""The continuously differentiable law of Makkar et al. that generates the paper's true friction."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from friction_estimator.core.friction.law import register_law
from friction_estimator.core.types import FloatArray


@register_law
class Makkar:
    """``g1 (tanh(g2 dq) - tanh(g3 dq)) + g4 tanh(g5 dq) + g6 dq`` (Hashlamon & Erbatur 2014, eq. 56)."""

    name: ClassVar[str] = "makkar"
    parameter_names: ClassVar[tuple[str, ...]] = ("gamma_1", "gamma_2", "gamma_3", "gamma_4", "gamma_5", "gamma_6")
    units: ClassVar[tuple[str, ...]] = ("N m", "s/rad", "s/rad", "N m", "s/rad", "N m s/rad")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, True, True, True, True, True)
    shape_range: ClassVar[tuple[tuple[float, float] | None, ...]] = (
        None,
        (0.1, 1e3),
        (0.1, 1e3),
        None,
        (0.1, 1e3),
        None,
    )

    def torque(self, parameters: FloatArray, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Friction torque (n,) [N m] for parameters (n, 6) = gamma_1..gamma_6."""
        g1, g2, g3, g4, g5, g6 = parameters.T
        stribeck = g1 * (np.tanh(g2 * velocity) - np.tanh(g3 * velocity))
        return stribeck + g4 * np.tanh(g5 * velocity) + g6 * velocity

    def stribeck_region(self, parameters: FloatArray) -> FloatArray:
        """``2.3 / gamma_3``: two percent of the Stribeck effect are left there, (n, 6) -> (n,) [rad/s]."""
        return np.asarray(2.3 / parameters[..., 2])
