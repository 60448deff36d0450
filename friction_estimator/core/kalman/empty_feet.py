"""Feet in the air: their force sensors read what they read without a load."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.kalman.windows import Window
from friction_estimator.core.types import BoolArray, FloatArray

_QUIET = 2
"""Windows in a row without a load after which the force is taken as zero."""


class EmptyFeet:
    """Finds feet in the air, and what their sensors read there.

    Parameters
    ----------
    foot_count : k
    force_std : white noise of the force sensors [N]
    firm_force : a foot that carries more than this stands firmly [N]

    Attributes
    ----------
    empty : (k,) True where the foot carries nothing, in this window and the one before
    touching : (k,) True where it is neither in the air nor firmly on the ground: it lands, lifts off, slips
    """

    def __init__(self, foot_count: int, force_std: float, firm_force: float) -> None:
        self._count = foot_count
        self._force_std = force_std
        self._firm_force = firm_force
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self._quiet_windows = np.zeros(self._count, dtype=int)
        self._last: Window | None = None
        self.empty: BoolArray = np.zeros(self._count, dtype=bool)
        self.touching: BoolArray = np.ones(self._count, dtype=bool)

    def step(self, window: Window, force_bias: FloatArray, force_bias_std: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Judge a window by how far normal forces are from their bias (k,), known to a standard deviation (k,).

        Returns
        -------
        readings : (k, 6) mean wrenches of the window before
        certain : (k,) True where that window lies between empty ones: only then it is all bias
        """
        limit = 4.0 * self._force_std + 3.0 * force_bias_std
        quiet = (np.abs(window.normal_force - force_bias) < limit).all(axis=0)
        self._quiet_windows = np.where(quiet, self._quiet_windows + 1, 0)
        self.empty = self._quiet_windows >= _QUIET
        self.touching = ~self.empty & (window.normal_force[0] - force_bias < self._firm_force)
        before, self._last = self._last, window
        readings = window.wrenches if before is None else before.wrenches
        return readings, self._quiet_windows > _QUIET
