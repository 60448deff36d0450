"""What the newest estimates say about themselves: excitation, passivity and drift of the identified friction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.types import FloatArray, FrictionEstimate

_DRIFT_PERIODS = 10


@dataclass(frozen=True, slots=True)
class EstimateQuality:
    """Figures of one reporting period.

    Attributes
    ----------
    rms_velocity : (n,) excitation of each joint [rad/s]
    driving : (n,) part of the samples in which the friction drives its joint by more than two sigma; passive means 0
    coulomb_drift : (n,) change of F_c over the last ten periods [N m]
    """

    rms_velocity: FloatArray
    driving: FloatArray
    coulomb_drift: FloatArray


class EstimateStatistics:
    """Running sums over the estimates of one reporting period.

    Parameters
    ----------
    joints : n
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self._coulomb: deque[FloatArray] = deque(maxlen=_DRIFT_PERIODS + 1)
        self._clear()

    def _clear(self) -> None:
        self._samples = 0
        self._velocity_square = np.zeros(self._joints)
        self._driving = np.zeros(self._joints)
        self._newest: FrictionEstimate | None = None

    def add(self, estimate: FrictionEstimate) -> None:
        """Look at one estimate."""
        self._samples += 1
        self._velocity_square += estimate.velocity**2
        self._driving += -estimate.friction * np.sign(estimate.velocity) > 2.0 * estimate.sigma
        self._newest = estimate

    def take(self) -> EstimateQuality | None:
        """Figures since the call before, None when nothing came."""
        if self._newest is None:
            return None
        self._coulomb.append(self._newest.coulomb)
        quality = EstimateQuality(
            np.sqrt(self._velocity_square / self._samples),
            self._driving / self._samples,
            self._coulomb[-1] - self._coulomb[0],
        )
        self._clear()
        return quality
