"""Feet in the air: their force sensors read what they read without a load."""

from __future__ import annotations

from collections import deque

import numpy as np

from friction_estimator.core.kalman.windows import Window
from friction_estimator.core.types import BoolArray, FloatArray

_WINDOWS = 7
"""A foot is in the air when the force was small and steady for so many windows; the middle one is then believed."""
_STEADY = 6.0
"""Range of the windows' mean forces, in standard deviations of one mean."""


class EmptyFeet:
    """Finds feet in the air, and what their sensors read there.

    Whether a force is small is not judged by the bias found so far: a bias learned too early, while the foot was still
    leaving the ground, would otherwise hide every later reading.

    Parameters
    ----------
    foot_count : k
    force_std : white noise of the force sensors [N]
    bias_std : of their bias, before any data [N]
    firm_force : a foot that carries more than this stands firmly [N]

    Attributes
    ----------
    empty : (k,) True where the foot has carried nothing in all of the last windows
    touching : (k,) True where it is neither in the air nor firmly on the ground: it lands, lifts off, slips
    """

    def __init__(self, foot_count: int, force_std: float, bias_std: float, firm_force: float) -> None:
        self._count = foot_count
        self._bias_std = bias_std
        self.retune(force_std)
        self._firm_force = firm_force
        self.reset()

    def retune(self, force_std: float) -> None:
        """Other limits from now on, for this noise."""
        self._force_std = force_std
        self._small = 4.0 * force_std + 3.0 * self._bias_std

    def reset(self) -> None:
        """Nothing is known."""
        self._last: deque[Window] = deque(maxlen=_WINDOWS)
        self._small_windows = np.zeros(self._count, dtype=int)
        self.empty: BoolArray = np.zeros(self._count, dtype=bool)
        self.touching: BoolArray = np.ones(self._count, dtype=bool)

    def step(self, window: Window) -> FloatArray:
        """Judge a window; return the mean wrenches (k, 6) of the middle one, biases where ``empty``."""
        small = (np.abs(window.normal_force) < self._small).all(axis=0) & window.wrench_fresh
        self._small_windows = np.where(small, self._small_windows + 1, 0)
        self._last.append(window)
        means = np.array([other.wrenches[:, 2] for other in self._last])
        steady = np.ptp(means, axis=0) <= _STEADY * self._force_std / np.sqrt(max(window.samples, 1))
        self.empty = (self._small_windows >= _WINDOWS) & steady
        self.touching = ~self.empty & (window.normal_force[0] < self._firm_force)
        return self._last[len(self._last) // 2].wrenches
