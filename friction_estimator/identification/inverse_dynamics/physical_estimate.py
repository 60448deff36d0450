"""An estimate whose inertial parameters are those of real bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.rigid_body.physical_bounds import PhysicalInertia, nearest_physical
from friction_estimator.types import BoolArray


def physical_inertia(solution: Estimate) -> PhysicalInertia | None:
    """Real bodies nearest to the base parameters of an estimate; None when it has none, or drives only."""
    inertial = _inertial(solution)
    body = solution.model.body
    if not inertial.any() or not body.link_reference.size:
        return None
    rows = solution.kept[inertial] - solution.model.friction_count - solution.model.gain_count
    return nearest_physical(
        body.base.grouping[rows],
        solution.fit.values[inertial],
        solution.fit.covariance[np.ix_(inertial, inertial)],
        body.link_reference,
    )


def with_physical_inertia(solution: Estimate, bodies: PhysicalInertia) -> Estimate:
    """Move the base parameters to those of the bodies, and all others as their covariance with them says."""
    inertial = _inertial(solution)
    V = solution.fit.covariance
    step = np.linalg.lstsq(V[np.ix_(inertial, inertial)], bodies.base - solution.fit.values[inertial], rcond=1e-12)[0]
    fitted = solution.fit.values + V[:, inertial] @ step
    fitted[inertial] = bodies.base
    problem = solution.fit.problem
    fitted = np.where(problem.nonnegative, np.maximum(fitted, 0.0), fitted)
    residual = problem.y - problem.W @ fitted
    fit = replace(
        solution.fit,
        values=fitted,
        residual=residual,
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(problem.y)),
    )
    values = np.zeros_like(solution.values)
    values[solution.kept] = fitted
    return replace(solution, fit=fit, values=values)


def _inertial(solution: Estimate) -> BoolArray:
    """Which parameters of the fit (q,) are base parameters; a payload's scale is none."""
    first = solution.model.friction_count + solution.model.gain_count
    last = first + len(solution.model.body.base.names)
    return np.asarray((solution.kept >= first) & (solution.kept < last))
