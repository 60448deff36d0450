"""Leaves out what the data do not show: one insignificant parameter after the other."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.inverse_dynamics.estimation import Estimate, estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import OFFSET
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.types import BoolArray, FloatArray


def insignificant(
    values: FloatArray, covariance: FloatArray, candidates: BoolArray, relative_sigma: float
) -> tuple[int, ...]:
    """Parameters to leave out, worst first (Hamon et al. 2010, §IV.D; relative deviation of eq. 16).

    When one is left out, the others move as their covariance with it says (they are conditioned on its being zero), and
    their standard deviations shrink: what looked insignificant beside a twin may become significant without it.

    Parameters
    ----------
    values : (p,)
    covariance : (p, p) of the sampling, by blocks of time: with the printed one, almost everything is significant; that
        a law is wrong is no reason to leave out a body
    candidates : (p,) which may go
    relative_sigma : sigma over absolute value above which a parameter is not significant
    """
    values, covariance = values.copy(), covariance.copy()
    remaining = candidates.copy()
    eliminated: list[int] = []
    while remaining.any():
        variance = np.maximum(np.diagonal(covariance), np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            ratio = np.where(remaining, np.sqrt(variance) / np.abs(values), 0.0)
        worst = int(np.argmax(ratio))
        if ratio[worst] <= relative_sigma:
            break
        gain = covariance[:, worst] / variance[worst]
        values -= gain * values[worst]
        covariance -= np.outer(gain, covariance[worst])
        remaining[worst] = False
        eliminated.append(worst)
    return tuple(eliminated)


def without_insignificant(solution: Estimate, relative_sigma: float, solver: SolverOptions) -> tuple[Estimate, str]:
    """Leave out parameters that are not significant; those of friction laws always stay. Also says which went."""
    model = solution.model
    law = np.zeros(len(model.names), dtype=bool)
    law[: model.friction_count] = model.friction.in_law
    optional = np.array([f"/{OFFSET}" in name or "_beta_" in name for name in model.names])
    candidates = (~law | optional)[solution.kept]
    gone = insignificant(solution.fit.values, solution.fit.sampling_covariance, candidates, relative_sigma)
    if not gone:
        return solution, "all parameters are significant"
    allowed = np.zeros(len(model.names), dtype=bool)
    allowed[solution.kept] = True
    allowed[solution.kept[list(gone)]] = False
    names = ", ".join(solution.names[k] for k in gone)
    sentence = f"left out, because sigma is more than {relative_sigma:.0%} of the value: {names}"
    return estimate(model, solution.observations, solution.usable, solver, allowed), sentence
