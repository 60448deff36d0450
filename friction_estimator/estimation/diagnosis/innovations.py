"""By how much innovations are larger than predicted: sigma grows with them.

Windowed test of the normalised innovation squared (NIS; Bar-Shalom, Li & Kirubarajan 2001, section 5.4.2): the sum of N
independent NIS of one joint has N degrees of freedom, so their mean is within a chi-square band.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from friction_estimator.estimation.health import Health
from friction_estimator.types import BoolArray, FloatArray, JointEstimate

PERIOD = 0.05
"""Time between the estimates that are used [s]."""
_MEMORY = 1.0
"""Time constant of the mean [s]."""
_LONGEST_PAUSE = 10.0
"""Estimates farther apart than this are a jump of the clock [s]."""
_CONFIDENCE = 0.999
"""Probability below the upper end of the chi-square band of the mean."""
_SLACK = 1.15
"""Factor on the upper end of that band: innovations of a low-passed measurement are not independent."""
_LARGEST_INNOVATION = 5.0
"""Larger innovations count as this many standard deviations: impacts are no error of the noise model."""


class InnovationExcess:
    """Fading mean of the NIS of every joint, and the size of the innovations where that is beyond its band.

    Parameters
    ----------
    health : whose ``innovation_excess`` is written
    limbs : (k, n) True where a joint lies between the base and that foot

    Attributes
    ----------
    excess : (n,) size of the innovations of the last second, in standard deviations: the largest of each limb that is
        inconsistent, else one
    """

    def __init__(self, health: Health, limbs: BoolArray) -> None:
        self._health, self._limbs = health, limbs
        self.reset()

    def reset(self) -> None:
        """Drop all innovations."""
        n = self._limbs.shape[1]
        self._sum, self._weight, self._squares = np.zeros((3, n))
        self._newest: FloatArray = np.full(n, np.nan)
        self._stamp_ns: int | None = None
        self.excess, self._health.innovation_excess = np.ones(n), 1.0

    def add(self, estimate: JointEstimate) -> None:
        """Use the innovations of an estimate, unless less than a period has passed since the one before."""
        elapsed = math.inf if self._stamp_ns is None else 1e-9 * (estimate.stamp_ns - self._stamp_ns)
        if 0.0 <= elapsed < PERIOD * (1.0 - 1e-9):
            return
        self._stamp_ns, passed = estimate.stamp_ns, elapsed if 0.0 <= elapsed <= _LONGEST_PAUSE else PERIOD
        mean, limit = self.mean_and_limit(estimate.nis, math.exp(-passed / _MEMORY))
        excess = np.sqrt(np.where(mean > limit, mean, 1.0))
        for limb in self._limbs:
            excess[limb] = excess[limb].max(initial=1.0)
        self.excess, self._health.innovation_excess = excess, float(excess.max(initial=1.0))

    def mean_and_limit(self, nis: FloatArray, keep: float) -> tuple[FloatArray, FloatArray]:
        """Add the newest NIS (n,), older ones times ``keep``: their mean (n,), and the upper end of its band (n,).

        A value that has not changed does not count again.
        """
        fresh = np.isfinite(nis) & (nis != self._newest)
        self._newest = nis.copy()
        self._sum = keep * self._sum + np.where(fresh, np.minimum(nis, _LARGEST_INNOVATION**2), 0.0)
        self._weight, self._squares = keep * self._weight + fresh, keep * keep * self._squares + fresh
        count = np.maximum(self._weight**2 / np.where(self._squares > 0.0, self._squares, 1.0), 1.0)
        mean = self._sum / np.where(self._weight > 0.0, self._weight, np.nan)
        return mean, _SLACK * chdtri(count, 1.0 - _CONFIDENCE) / count
