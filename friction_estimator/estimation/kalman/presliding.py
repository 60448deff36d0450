"""Whether any motor has presliding, from what the limb filters have identified.

Every filter starts with the torques m of presliding beside the friction law. For each motor

    c = sum_k m_k - F_c / 2,    z = c / sigma_c

tells whether more than half of its Coulomb friction builds up over a distance. With presliding the sum is near F_c,
without it near zero, also where the law misses something else. Motors of a robot are alike, and some hardly move, so
all of them decide together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.types import FloatArray

PERIOD = 0.5
"""Interval between two looks at the filters [s]."""
_LEARNED = 0.5
"""A motor counts when the standard deviation of its torque of presliding has fallen to this part of the prior."""
_NO_MOTOR, _ALL_MOTORS = 2.0, 40.0
"""No motor has presliding when no z is above the first, and the squares of the negative ones exceed those of the
positive ones by the second."""


def evidence(limb_filter: LimbFilter) -> FloatArray:
    """The z of every motor of a limb (m,), zero where the windows so far tell nothing."""
    layout = limb_filter.layout
    m, p = limb_filter.presliding.shape
    states = layout.law.start + np.arange(m * p).reshape(m, p)
    law, P = limb_filter.state[states], limb_filter.covariance[states[:, :, None], states[:, None, :]]
    built_up = limb_filter.presliding
    beyond_half = built_up - 0.5 * limb_filter.coulomb_weights
    c = (beyond_half * law).sum(axis=1)
    variance, spread = (np.einsum("mi,mij,mj->m", weights, P, weights) for weights in (beyond_half, built_up))
    prior = (built_up * layout.prior_std[states] ** 2).sum(axis=1)
    learned = (spread < _LEARNED**2 * prior) & (variance > 0.0)
    return np.divide(c, np.sqrt(np.where(learned, variance, 1.0)), out=np.zeros(m), where=learned)


def is_absent(filters: Sequence[LimbFilter]) -> bool:
    """True when the filters of all limbs show that no motor has presliding."""
    z = np.concatenate([evidence(limb_filter) for limb_filter in filters])
    return bool((z < _NO_MOTOR).all() and -(z * np.abs(z)).sum() > _ALL_MOTORS)
