"""Signs of a wrong model, and standard deviations that allow for it: ranges of a condition and halves of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.regression.linear_problem import LinearFit, LinearProblem
from friction_estimator.identification.regression.residual_blocks import block_jackknife
from friction_estimator.types import BoolArray, FloatArray, IntArray

_STRETCHES = 20
"""Many enough that both halves have seen the same motions, few enough that a push lies in one of them."""


def equal_ranges(values: FloatArray, number: int) -> IntArray:
    """Range (N,) that every value (N,) lies in, 0 for the smallest ones; ranges hold as many values each."""
    return np.asarray(np.argsort(np.argsort(values, kind="stable")) * number // values.size)


def alternating_halves(instant: IntArray) -> IntArray:
    """Half of the data, 0 or 1, of every sample (N,): twenty stretches of time belong to one and the other by turns.

    What recurs is in both halves, what happened once is in one.

    Parameters
    ----------
    instant : (N,) number of the instant of every sample
    """
    return np.asarray((instant - instant.min()) * _STRETCHES // (int(np.ptp(instant)) + 1) % 2)


_BINS = 24
_SAMPLES_OF_A_BIN = 15
"""Less data have fewer bins."""
_FEW = 4
"""Samples that a bin needs in either half of the data to count."""


def without_velocity(velocity: FloatArray, residual: FloatArray) -> FloatArray:
    """The residual (N,) less its mean in bins of the velocity: what is left is no function of it.

    Parameters
    ----------
    velocity, residual : (N,); bins hold as many samples each
    """
    bins = equal_ranges(velocity, max(min(_BINS, velocity.size // _SAMPLES_OF_A_BIN), 1))
    return np.asarray(residual - (np.bincount(bins, residual) / np.bincount(bins))[bins])


def velocity_dependent_rms(velocity: FloatArray, residual: FloatArray) -> float:
    """RMS of the part of a residual that is a function of the velocity, zero where noise explains it [N m].

    Two halves of the data, made of alternating stretches of time, have their own mean residual in every bin of the
    velocity. What depends on the velocity is the same in both, and noise is not: the mean of their products is the
    variance that they share, without the noise of the means.

    Parameters
    ----------
    velocity, residual : (N,) in the order of time; bins hold as many samples each
    """
    number = min(_BINS, velocity.size // _SAMPLES_OF_A_BIN)
    if number < 2:
        return 0.0
    bins = equal_ranges(velocity, number)
    half = alternating_halves(np.arange(velocity.size))
    count, total = (
        np.stack([np.bincount(bins[half == k], what[half == k], minlength=number) for k in (0, 1)])
        for what in (np.ones_like(residual), residual)
    )
    seen = count.min(axis=0) >= _FEW
    if not seen.any():
        return 0.0
    means = total[:, seen] / count[:, seen]
    return float(np.sqrt(max(np.average(means[0] * means[1], weights=count[:, seen].sum(axis=0)), 0.0)))


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
