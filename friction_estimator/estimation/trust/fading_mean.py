"""Means over the newest samples, of several quantities of every joint at once."""

from __future__ import annotations

import numpy as np

from friction_estimator.types import BoolArray, FloatArray


class FadingMean:
    """Means of ``r`` quantities of ``n`` joints over the samples that count for a joint, old ones less and less.

    Parameters
    ----------
    rows, joints : r, n

    Attributes
    ----------
    weight : (n,) sum of the weights of the samples that counted; the newest weighs one
    """

    def __init__(self, rows: int, joints: int) -> None:
        self._sum = np.zeros((rows, joints))
        self._weight_square = np.zeros(joints)
        self.weight: FloatArray = np.zeros(joints)

    def add(self, values: FloatArray, where: BoolArray, keep: float) -> None:
        """Add one sample.

        Parameters
        ----------
        values : (r, n), only read where the sample counts
        where : (n,) for which joints it counts
        keep : what is left of the weight of each older sample, 0 to 1
        """
        self._sum = keep * self._sum + np.where(where, values, 0.0)
        self._weight_square = keep * keep * self._weight_square + where
        self.weight = keep * self.weight + where

    @property
    def mean(self) -> FloatArray:
        """(r, n); NaN for a joint without samples."""
        weight = np.where(self.weight > 0.0, self.weight, np.nan)
        return np.asarray(self._sum / weight)

    @property
    def effective_count(self) -> FloatArray:
        """(n,) how many samples of equal weight would have a mean as certain as this one."""
        return np.asarray(self.weight**2 / np.where(self._weight_square > 0.0, self._weight_square, 1.0))
