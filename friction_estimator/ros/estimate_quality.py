"""What the newest estimates say about themselves: excitation, passivity and drift of the identified friction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.types import FloatArray, FrictionEstimate

_DRIFT_POINTS = 10


@dataclass(frozen=True, slots=True)
class EstimateQuality:
    """Figures of one reporting period.

    Attributes
    ----------
    samples : estimates looked at
    rms_velocity : (n,) excitation of each joint [rad/s]
    active : (n,) part of the samples in which the friction drives its joint by more than two sigma; passive means 0
    coulomb_drift : (n,) change of F_c over the last ten periods [N m]
    """

    samples: int
    rms_velocity: FloatArray
    active: FloatArray
    coulomb_drift: FloatArray


class EstimateStatistics:
    """Running sums over the estimates of one reporting period.

    Parameters
    ----------
    joints : n
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self._coulomb: deque[FloatArray] = deque(maxlen=_DRIFT_POINTS)
        self._clear()

    def _clear(self) -> None:
        self._samples = 0
        self._velocity_square = np.zeros(self._joints)
        self._active = np.zeros(self._joints)

    def add(self, estimate: FrictionEstimate) -> None:
        """Look at one estimate."""
        self._samples += 1
        self._velocity_square += estimate.velocity**2
        against = -estimate.friction * np.sign(estimate.velocity)
        self._active += against > 2.0 * estimate.sigma
        self._newest_coulomb = estimate.coulomb

    def take(self) -> EstimateQuality | None:
        """Figures since the call before, None when nothing came."""
        if not self._samples:
            return None
        self._coulomb.append(self._newest_coulomb)
        quality = EstimateQuality(
            self._samples,
            np.sqrt(self._velocity_square / self._samples),
            self._active / self._samples,
            self._coulomb[-1] - self._coulomb[0],
        )
        self._clear()
        return quality
