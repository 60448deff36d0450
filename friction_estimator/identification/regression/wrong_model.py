"""Standard deviations that allow for a wrong model: what the estimate becomes without one range of a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.regression.linear_problem import LinearFit, LinearProblem
from friction_estimator.identification.regression.parts import alternating_halves, equal_ranges
from friction_estimator.identification.regression.residual_blocks import block_jackknife
from friction_estimator.types import BoolArray, FloatArray, IntArray

_RANGES = 6
"""Ranges of a condition that are left out, one at a time."""
_FINE = 10
"""Ranges in which outliers are looked for."""
_RECURRING = 0.1
"""Share of the rows of a range that chance, or a push, does not call outliers in both halves of the data."""


def allowing_for_wrong_model(
    fit: LinearFit, conditions: Sequence[FloatArray], prior_std: FloatArray | None = None
) -> LinearFit:
    """The fit with standard deviations raised to what leaving out one range of a condition changes.

    Where a model lacks something that depends on the speed, the position, the load, its residuals are a function of
    that: all blocks of time have the same ones, and agree. Ranges of the condition itself do not. Rows that the robust
    fit rejects in the same range again and again are no outliers, but what the model cannot say: here they count.

    Parameters
    ----------
    fit : of least squares, its covariance as if the model were right
    conditions : (r,) each, of which what the model lacks may be a function; the largest change counts
    prior_std : (p) as in the fit
    """
    problem, covariance = fit.problem, fit.covariance
    for condition in conditions:
        weights = _believed(fit, condition)
        blocks = range_blocks(problem, condition, _RANGES)
        spread = block_jackknife(problem, weights, blocks, prior_std, fit.white_covariance, damped=True)
        covariance = _widened(covariance, spread)
    return replace(fit, covariance=covariance)


def range_blocks(problem: LinearProblem, condition: FloatArray, ranges: int) -> IntArray:
    """Number of the block (r,) of every row: a range of the condition, at its joint; ranges hold as many rows each."""
    blocks = np.empty(condition.size, dtype=np.intp)
    first = 0
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        blocks[rows] = first + equal_ranges(condition[rows], min(ranges, int(rows.sum())))
        first = int(blocks[rows].max()) + 1
    return blocks


def _believed(fit: LinearFit, condition: FloatArray) -> FloatArray:
    """Weights (r,) of the fit, with those of a usual row wherever rows of the range are rejected again and again."""
    rejected = fit.weights == 0.0
    if not rejected.any():
        return fit.weights
    blocks = range_blocks(fit.problem, condition, _FINE)
    again = _recurring(fit.problem, rejected, blocks)
    usual = np.zeros_like(fit.weights)
    for joint in np.unique(fit.problem.joint):
        rows = fit.problem.joint == joint
        usual[rows] = fit.weights[rows].max()
    return np.where(again[blocks] & rejected, usual, fit.weights)


def _recurring(problem: LinearProblem, rejected: BoolArray, blocks: IntArray) -> BoolArray:
    """Whether rows of a block (b,) are rejected in both halves of the data."""
    half = alternating_halves(np.arange(blocks.size) if problem.instant is None else problem.instant)
    shares = []
    for side in (0, 1):
        count = np.bincount(blocks[half == side], minlength=int(blocks.max()) + 1)
        bad = np.bincount(blocks[half == side], rejected[half == side], count.size)
        shares.append(bad / np.maximum(count, 1))
    return np.asarray(np.minimum(*shares) > _RECURRING)


def _widened(covariance: FloatArray, other: FloatArray) -> FloatArray:
    """A covariance (p, p) whose standard deviations are raised to those of another one, correlations kept."""
    here, there = np.diagonal(covariance), np.diagonal(other)
    factor = np.sqrt(np.maximum(there / np.maximum(here, np.finfo(float).tiny), 1.0))
    return np.asarray(covariance * np.outer(factor, factor))
