"""Least squares for a linear problem: ordinary, weighted by joint, robust, bounded, with standard deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.errors import InputError
from friction_estimator.identification.linear_problem import LinearFit, LinearProblem
from friction_estimator.identification.uncertainty import block_jackknife, residual_blocks
from friction_estimator.types import BoolArray, FloatArray, IntArray

HUBER = 1.345
"""Residuals beyond this many standard deviations count less; 95 % efficient when nothing is wrong (Huber 1964)."""
MAD = 1.4826
"""Median absolute deviation to standard deviation of a Gaussian."""
_AT_BOUND = 1e-12
_NOTHING = 1e-40
"""Residual of torques that are zero [N m]: its inverse square is a finite weight."""
_REJECTED = 6.0
"""Residuals beyond this many standard deviations are no noise: a push, a collision, a lost sample."""
_ROUNDS = 30
_CONVERGED = 1e-4
"""Reweighting ends when no weight changes by more than this."""


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How a linear problem is solved; all off is ordinary least squares as published (Hamon et al. 2010, eq. 12).

    Attributes
    ----------
    weighted : rows of a joint count by the inverse variance of its residuals
    robust : Huber weights, found by iterated reweighting, and no weight for rows beyond six standard deviations of
        their joint: outliers cannot pull, not even those of large leverage
    bounded : nonnegative parameters are kept nonnegative
    """

    weighted: bool = True
    robust: bool = True
    bounded: bool = True


ORDINARY = SolverOptions(weighted=False, robust=False, bounded=False)


@dataclass(frozen=True, slots=True)
class _Triangle:
    """``R chi = z`` has the least squares solution of the whole problem; columns are scaled to unit norm."""

    R: FloatArray
    z: FloatArray
    scale: FloatArray


@dataclass(frozen=True, slots=True)
class Solution:
    """Values (p,) of a problem, weights (r,) of its rows, and the prior (p,) in the unit of the weighted rows."""

    values: FloatArray
    weights: FloatArray
    prior_std: FloatArray | None


def solve(
    problem: LinearProblem, options: SolverOptions = SolverOptions(), prior_std: FloatArray | None = None
) -> LinearFit:
    """Values with their uncertainty; parameters and errors are those of :func:`solve_values`."""
    return with_uncertainty(problem, solve_values(problem, options, prior_std))


def solve_values(
    problem: LinearProblem, options: SolverOptions = SolverOptions(), prior_std: FloatArray | None = None
) -> Solution:
    """Solve ``y = W chi + rho`` by QR (Hamon et al. 2010, eqs. 11-16), without the uncertainty, which takes longer.

    Parameters
    ----------
    problem : more rows than parameters, full rank unless the prior makes up for it
    options : weights and bounds
    prior_std : (p) standard deviation about zero of what is known before the data, infinite where nothing is

    Raises
    ------
    InputError
        When there are fewer rows than parameters.
    """
    r, p = problem.W.shape
    if r <= p:
        raise InputError(
            f"{r} usable samples are too few for {p} parameters: record more motion, or take a simpler law"
        )
    weights = np.ones(r)
    bounds = problem.nonnegative & options.bounded
    values = _solution(_triangle(problem, weights, None), bounds)
    if prior_std is not None and not options.weighted:  # compared with rows in N m, not in standard deviations
        prior_std = prior_std / max(float(np.std(problem.y - problem.W @ values)), np.finfo(float).tiny)
        values = _solution(_triangle(problem, weights, prior_std), bounds)
    if options.weighted or options.robust:
        values, weights = _reweight(problem, options, values, prior_std)
    return Solution(values, weights, prior_std)


def column_condition(W: FloatArray) -> float:
    """Condition number of a matrix whose columns are scaled to unit norm."""
    norms = np.linalg.norm(W, axis=0)
    if not norms.size or not norms.all():
        return float("inf") if norms.size else 1.0
    return float(np.linalg.cond(np.linalg.qr(W / norms, mode="r")))


def _reweight(
    problem: LinearProblem, options: SolverOptions, values: FloatArray, prior_std: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    weights = np.ones(problem.y.size)
    joints = [np.flatnonzero(problem.joint == joint) for joint in np.unique(problem.joint)]
    for reject in (False, True) if options.robust else (False,):  # a start that is too far off would reject good rows
        for _ in range(_ROUNDS):
            new_weights = _weights(problem, options, problem.y - problem.W @ values, joints, reject)
            change = np.abs(new_weights - weights) / np.maximum(new_weights, weights).max()
            weights = new_weights
            values = _solution(_triangle(problem, weights, prior_std), problem.nonnegative & options.bounded)
            if change.max() < _CONVERGED:
                break
    return values, weights


def _weights(
    problem: LinearProblem, options: SolverOptions, residual: FloatArray, joints: list[IntArray], reject: bool
) -> FloatArray:
    """Joint weight times robust weight of every row; ``joints`` are the rows of each joint."""
    weights = np.ones(residual.size)
    floor = max(1e-12 * np.abs(problem.y).max(initial=0.0), _NOTHING)  # data without any error
    freedom = 1.0 - problem.W.shape[1] / residual.size
    for rows in joints:
        rho = np.abs(residual[rows])
        scale = max(MAD * float(np.median(rho)), floor)
        robust = np.ones_like(rho)
        if options.robust:
            robust = np.minimum(1.0, HUBER * scale / np.maximum(rho, floor))
            if reject:
                robust[rho > _REJECTED * scale] = 0.0
        variance = float(robust @ rho**2 / robust.sum()) / freedom if options.weighted else 1.0
        weights[rows] = robust / max(variance, floor**2)
    return weights


def _triangle(problem: LinearProblem, weights: FloatArray, prior_std: FloatArray | None) -> _Triangle:
    root = np.sqrt(weights)
    stacked = np.column_stack((problem.W, problem.y)) * root[:, None]
    if prior_std is not None:
        known = np.zeros((problem.W.shape[1], stacked.shape[1]))
        np.fill_diagonal(known, 1.0 / prior_std)
        stacked = np.vstack((stacked, known))
    upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    R, z = upper[:, :-1], upper[:, -1]
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    return _Triangle(R / scale, z, scale)


def _solution(triangle: _Triangle, nonnegative: BoolArray) -> FloatArray:
    values = np.linalg.lstsq(triangle.R, triangle.z, rcond=None)[0]
    if (nonnegative & (values < 0.0)).any():
        lower = np.where(nonnegative, 0.0, -np.inf)
        values = lsq_linear(triangle.R, triangle.z, (lower, np.inf), method="bvls").x
        values[nonnegative & (values < _AT_BOUND * np.abs(values).max())] = 0.0  # not 1e-17
    return np.asarray(values / triangle.scale)


def with_uncertainty(problem: LinearProblem, solution: Solution) -> LinearFit:
    """Fit of a problem that has been solved."""
    values, weights, prior_std = solution.values, solution.weights, solution.prior_std
    residual = problem.y - problem.W @ values
    p = problem.W.shape[1]
    variance = float((weights * residual**2).sum() / max(np.count_nonzero(weights) - p, 1))  # eq. 14
    triangle = _triangle(problem, weights, prior_std)
    inverse = np.linalg.pinv(triangle.R) / triangle.scale[:, None]
    white = inverse @ inverse.T * variance  # eq. 15
    sampling = block_jackknife(problem, weights, residual_blocks(problem, residual), prior_std, white)
    norm = float(np.linalg.norm(problem.y))
    return LinearFit(
        problem=problem,
        values=values,
        covariance=sampling,
        sampling_covariance=sampling,
        white_covariance=white,
        weights=weights,
        residual=residual,
        condition=column_condition(_with_prior(problem, weights, prior_std)),
        relative_error=float(np.linalg.norm(residual)) / norm if norm > 0.0 else float("inf"),
    )


def _with_prior(problem: LinearProblem, weights: FloatArray, prior_std: FloatArray | None) -> FloatArray:
    """Observation matrix with the rows of what is known before, which count as measurements of the usual weight."""
    if prior_std is None:
        return problem.W
    usual = float(np.mean(weights))
    return np.vstack((problem.W, np.diag(1.0 / (prior_std * np.sqrt(usual)))))
