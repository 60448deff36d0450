"""Leaves out what the data do not show: one insignificant parameter after the other."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.types import BoolArray, FloatArray


def insignificant(
    values: FloatArray, covariance: FloatArray, candidates: BoolArray, relative_sigma: float
) -> tuple[int, ...]:
    """Parameters to leave out, worst first (Hamon et al. 2010, §IV.D; relative deviation of eq. 16).

    When one is left out, the others move as their covariance with it says (they are conditioned on its being zero), and
    their standard deviations shrink: what looked insignificant beside a twin may become significant without it.

    Parameters
    ----------
    values : (p,)
    covariance : (p, p) the honest one: with the printed one, almost everything is significant
    candidates : (p,) which may go
    relative_sigma : sigma over absolute value above which a parameter is not significant
    """
    values, covariance = values.copy(), covariance.copy()
    remaining = candidates.copy()
    eliminated: list[int] = []
    while remaining.any():
        variance = np.maximum(np.diagonal(covariance), np.finfo(float).tiny)
        ratio = np.where(remaining, np.sqrt(variance) / np.maximum(np.abs(values), np.finfo(float).tiny), 0.0)
        worst = int(np.argmax(ratio))
        if ratio[worst] <= relative_sigma:
            break
        gain = covariance[:, worst] / variance[worst]
        values -= gain * values[worst]
        covariance -= np.outer(gain, covariance[worst])
        remaining[worst] = False
        eliminated.append(worst)
    return tuple(eliminated)
