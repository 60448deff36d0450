"""Feet in the air: a force sensor that carries nothing reads its bias."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from friction_estimator.estimation.kalman.windows import Window
from friction_estimator.types import FloatArray

_MIN_WINDOWS = 7
"""A foot is in the air when the force was small and steady for this many windows; the middle one gives the bias."""
_MAX_RANGE = 6.0
"""Range of the windows' mean forces, in standard deviations of one mean."""


class UnloadedFeet:
    """Finds feet in the air, and what their sensors read there.

    Such a foot carries next to nothing along any axis, and less than a foot that stands. Whether a force is small does
    not depend on the bias found so far: a bias identified too early, while the foot was still leaving the ground, would
    otherwise hide every later reading.

    Parameters
    ----------
    foot_count : k
    force_std : white noise of the force sensors [N]
    bias_std : of their bias, before any data [N]
    firm_force : a foot that carries more than this stands firmly [N]

    Attributes
    ----------
    unloaded : k, True where the foot has carried nothing in all of the last windows
    contact_transition : k, True where it is neither in the air nor firmly on the ground: it lands, lifts off, slips
    """

    def __init__(self, foot_count: int, force_std: float, bias_std: float, firm_force: float) -> None:
        self._count = foot_count
        self._bias_std, self._firm_force = bias_std, firm_force
        self.retune(force_std)
        self.reset()

    def retune(self, force_std: float) -> None:
        """Use the limits of this noise from now on."""
        self._force_std = force_std
        self._small = min(4.0 * force_std + 3.0 * self._bias_std, self._firm_force)

    def reset(self) -> None:
        """Forget the windows so far."""
        self._last: deque[FloatArray] = deque(maxlen=_MIN_WINDOWS)
        self._small_windows = [0] * self._count
        self.unloaded = [False] * self._count
        self.contact_transition = [True] * self._count

    def classify(self, window: Window) -> FloatArray:
        """Classify the feet by a window; return mean wrenches (k, 6) of an earlier one, biases where ``unloaded``."""
        self._last.append(window.wrenches)
        lowest, highest = window.normal_force.tolist()
        for foot, fresh in enumerate(window.wrench_fresh.tolist()):
            small = -self._small < lowest[foot] and highest[foot] < self._small and fresh
            small = small and float(np.abs(window.wrenches[foot, :2]).max()) < self._small
            self._small_windows[foot] = self._small_windows[foot] + 1 if small else 0
            unloaded = self._small_windows[foot] >= _MIN_WINDOWS and self._steady(foot, window.reading_counts[1 + foot])
            self.unloaded[foot] = unloaded
            self.contact_transition[foot] = not unloaded and lowest[foot] < self._firm_force
        return self._last[len(self._last) // 2]

    def _steady(self, foot: int, reading_count: float) -> bool:
        """Whether the mean normal forces of the last windows differ by their noise only."""
        means = [wrenches[foot, 2] for wrenches in self._last]
        return bool(max(means) - min(means) <= _MAX_RANGE * self._force_std / math.sqrt(max(reading_count, 1.0)))
