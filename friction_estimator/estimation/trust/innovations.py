"""Normalised innovations squared over time, and how large their mean may be by chance."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from friction_estimator.config import TrustConfig
from friction_estimator.estimation.trust.fading_mean import FadingMean
from friction_estimator.types import FloatArray


class Innovations:
    """Windowed test of the normalised innovation squared (NIS; Bar-Shalom, Li & Kirubarajan 2001, section 5.4.2).

    Parameters
    ----------
    config : confidence, largest counted innovation
    joints : n
    """

    def __init__(self, config: TrustConfig, joints: int) -> None:
        self._config = config
        self._mean = FadingMean(1, joints)
        self._newest: FloatArray = np.full(joints, np.nan)

    def add(self, consistency: FloatArray, keep: float) -> None:
        """Look at the newest NIS (n,); one that stands still is an old one and does not count again."""
        fresh = np.isfinite(consistency) & (consistency != self._newest)
        self._newest = consistency
        cut = np.minimum(consistency, self._config.largest_innovation**2)
        self._mean.add(cut[None], fresh, keep)

    @property
    def count(self) -> FloatArray:
        """(n,) how many innovations count."""
        return self._mean.weight

    def mean_and_limit(self) -> tuple[FloatArray, FloatArray]:
        """Mean NIS (n,), and the upper end of its chi-square band (n,).

        The sum of N independent NIS of one joint has N degrees of freedom. Those of a low-passed measurement are not
        independent; then the band is wider than this, and ``consistency_slack`` has to cover it.
        """
        count = np.maximum(self._mean.effective_count, 1.0)
        limit = self._config.consistency_slack * chdtri(count, 1.0 - self._config.confidence) / count
        return self._mean.mean[0], limit
