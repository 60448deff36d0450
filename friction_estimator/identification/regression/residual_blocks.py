"""Honest covariance of correlated residuals: what the estimate becomes without one stretch of the data."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.types import FloatArray, IntArray

_BLOCK_TIMES = 5.0
"""Length of a block in correlation times: neighbouring blocks are then nearly independent."""
_AT_ONCE = 64
"""Blocks that are left out in one call: bounds the memory."""
_MIN_BLOCKS = 20
"""Fewer blocks would make the variance itself uncertain by a third and more."""


def residual_blocks(problem: LinearProblem, residual: FloatArray) -> IntArray:
    """Number of the block of time that every row (r,) belongs to.

    Blocks never cross the border of a segment, hold all joints of an instant, and are five times as long as residuals
    remember, but so short that at least twenty remain.
    """
    instant = _instants(problem)
    time = correlation_time(problem, residual)
    instants = np.unique(instant).size
    length = int(np.clip(np.ceil(_BLOCK_TIMES * time), 1, max(instants // _MIN_BLOCKS, 1)))
    first = np.zeros_like(instant)
    for segment in np.unique(problem.segment):
        rows = problem.segment == segment
        first[rows] = instant[rows].min()
    pairs = np.column_stack((problem.segment, (instant - first) // length))
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def correlation_time(problem: LinearProblem, residual: FloatArray) -> float:
    """How many samples residuals remember: the sum of their autocorrelation until it first vanishes, longest joint."""
    instant = _instants(problem)
    longest = 1.0
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        order = np.argsort(instant[rows], kind="stable")
        rho = np.zeros(np.ptp(instant[rows]) + 1 if rows.any() else 1)
        rho[instant[rows][order] - instant[rows].min()] = residual[rows][order]  # gaps stay zero
        longest = max(longest, _integral_time(rho))
    return longest


def block_jackknife(
    problem: LinearProblem,
    weights: FloatArray,
    blocks: IntArray,
    prior_std: FloatArray | None,
    fallback: FloatArray,
    damped: bool = False,
) -> FloatArray:
    """Covariance (p, p) from leaving out one block after another (the cluster-robust CV3 of MacKinnon et al. 2023).

    It allows for residuals that are correlated within a block, among joints too, and whose size varies.

    Parameters
    ----------
    weights : (r,) of the fit, kept
    blocks : (r,) of :func:`residual_blocks`, or ranges of something else
    prior_std : (p) as in the fit
    fallback : (p, p) taken where leaving out a block makes parameters vanish, and never undercut on the diagonal by
        more than the data can tell (a block design cannot make white residuals better than white)
    damped : a block may hold most of what is known of a parameter, which could be anything without it. Standard
        deviations are then the geometric mean of these and of those from the blocks' scores (CV1), which are too small
    """
    scale = np.sqrt(np.maximum(np.diagonal(fallback), np.finfo(float).tiny))
    grams, moments = _normal_equations(problem, weights, blocks, scale)
    count, moment = len(grams), moments.sum(axis=0)
    total = grams.sum(axis=0)
    if prior_std is not None:
        total += np.diag((scale / prior_std) ** 2)
    inverse = np.linalg.pinv(total, hermitian=True)
    everything = inverse @ moment
    without = np.concatenate(
        [
            _without(total - grams[k : k + _AT_ONCE], moment - moments[k : k + _AT_ONCE])
            for k in range(0, count, _AT_ONCE)
        ]
    )
    deviation = without - everything
    if damped:
        scores = (moments - grams @ everything) @ inverse
        sizes = (np.sqrt(np.square(part).sum(axis=0)) for part in (scores, deviation))
        small, large = (np.maximum(size, np.finfo(float).tiny) for size in sizes)
        deviation = deviation * np.sqrt(np.minimum(small / large, 1.0))
    covariance = deviation.T @ deviation * ((count - 1) / count) * np.outer(scale, scale)
    return _at_least(covariance, fallback)


def _normal_equations(
    problem: LinearProblem, weights: FloatArray, blocks: IntArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``W^T W`` (b, p, p) and ``W^T y`` (b, p) of every block, rows weighted, columns scaled."""
    W = problem.W * (np.sqrt(weights)[:, None] * scale)
    y = problem.y * np.sqrt(weights)
    count = int(blocks.max()) + 1
    order = np.argsort(blocks, kind="stable")
    borders = np.searchsorted(blocks[order], np.arange(count + 1))
    grams = np.empty((count, W.shape[1], W.shape[1]))
    moments = np.empty((count, W.shape[1]))
    for block in range(count):
        rows = order[borders[block] : borders[block + 1]]
        grams[block], moments[block] = W[rows].T @ W[rows], W[rows].T @ y[rows]
    return grams, moments


def _without(grams: FloatArray, moments: FloatArray) -> FloatArray:
    """Solutions (b, p) of several sets of normal equations (b, p, p), (b, p)."""
    return np.asarray((np.linalg.pinv(grams, rcond=1e-13, hermitian=True) @ moments[..., None])[..., 0])


def _at_least(covariance: FloatArray, white: FloatArray) -> FloatArray:
    """Where chance made a variance smaller than that of white residuals, raise it to that."""
    here, there = np.diagonal(covariance), np.diagonal(white)
    return covariance + np.diag(np.maximum(there - here, 0.0))


def _instants(problem: LinearProblem) -> IntArray:
    if problem.instant is not None:
        return problem.instant
    instant = np.zeros(problem.y.size, dtype=np.intp)
    start = 0
    for segment in np.unique(problem.segment):
        longest = 0
        for joint in np.unique(problem.joint):
            rows = np.flatnonzero((problem.segment == segment) & (problem.joint == joint))
            instant[rows] = start + np.arange(rows.size)
            longest = max(longest, rows.size)
        start += longest
    return instant


def _integral_time(rho: FloatArray) -> float:
    size = rho.size
    spectrum = np.fft.rfft(rho - rho.mean(), 2 * size)
    autocorrelation = np.fft.irfft(np.abs(spectrum) ** 2)[:size]
    if not autocorrelation[0] > 0.0:
        return 1.0
    autocorrelation /= autocorrelation[0]
    negative = np.flatnonzero(autocorrelation <= 0.0)
    return float(1.0 + 2.0 * autocorrelation[1 : negative[0] if negative.size else size].sum())
