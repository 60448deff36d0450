"""Standard deviations that allow for correlated residuals, by blocks of time, and for a wrong model, by ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.linear_problem import (
    DEFAULT_SOLVER,
    LinearFit,
    LinearProblem,
    Prior,
    Solution,
    SolverOptions,
    solve_values,
    triangle_of,
)
from friction_estimator.types import BoolArray, FloatArray, IntArray

_BLOCK_TIMES = 5.0
"""Length of a block in correlation times: neighbouring blocks are then nearly independent."""
_AT_ONCE = 64
"""Blocks that are left out in one call: bounds the memory."""
_MIN_BLOCKS = 20
"""Fewer blocks would make the variance itself uncertain by a third and more."""


def _residual_blocks(problem: LinearProblem, residual: FloatArray) -> IntArray:
    """Number of the block of time that every row (r,) belongs to.

    Blocks never cross the border of a segment, hold all joints of an instant, and are five times as long as residuals
    remember, but so short that at least twenty remain.
    """
    instant = problem.instants
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
    """Correlation time of residuals (r,) [samples], longest joint: sum of the autocorrelation up to its first zero."""
    instant = problem.instants
    longest = 1.0
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        order = np.argsort(instant[rows], kind="stable")
        rho = np.zeros(np.ptp(instant[rows]) + 1 if rows.any() else 1)
        rho[instant[rows][order] - instant[rows].min()] = residual[rows][order]  # gaps stay zero
        spectrum = np.fft.rfft(rho - rho.mean(), 2 * rho.size)
        autocorrelation = np.fft.irfft(np.abs(spectrum) ** 2)[: rho.size]
        if autocorrelation[0] > 0.0:
            autocorrelation /= autocorrelation[0]
            negative = np.flatnonzero(autocorrelation <= 0.0)
            last = negative[0] if negative.size else rho.size
            longest = max(longest, float(1.0 + 2.0 * autocorrelation[1:last].sum()))
    return longest


def block_jackknife(
    problem: LinearProblem,
    weights: FloatArray,
    blocks: IntArray,
    prior: Prior | None,
    fallback: FloatArray,
    damped: bool = False,
) -> FloatArray:
    """Covariance (p, p) from leaving out one block after another (the cluster-robust CV3 of MacKinnon et al. 2023).

    It allows for residuals that are correlated within a block, among joints too, and whose size varies.

    Parameters
    ----------
    weights : (r,) of the fit, kept
    blocks : (r,) of :func:`_residual_blocks`, or ranges of something else
    prior : as in the fit
    fallback : (p, p) taken where leaving out a block makes parameters vanish, and never undercut on the diagonal by
        more than the data can show (a block design cannot make white residuals better than white)
    damped : a block may hold most of what is known of a parameter, which could be anything without it. Standard
        deviations are then the geometric mean of these and of those from the blocks' scores (CV1), which are too small
    """
    scale = np.sqrt(np.maximum(np.diagonal(fallback), np.finfo(float).tiny))
    p, count = scale.size, int(blocks.max()) + 1
    grams, moments, root = np.empty((count, p, p)), np.empty((count, p)), np.sqrt(weights)
    W, y = problem.W * (root[:, None] * scale), problem.y * root
    order = np.argsort(blocks, kind="stable")
    borders = np.searchsorted(blocks[order], np.arange(count + 1))
    for block in range(count):
        rows = order[borders[block] : borders[block + 1]]
        grams[block], moments[block] = W[rows].T @ W[rows], W[rows].T @ y[rows]
    moment = moments.sum(axis=0)
    total = grams.sum(axis=0)
    if prior is not None:
        total += prior.precision * np.outer(scale, scale)
        moment = moment + prior.precision @ prior.mean * scale
    inverse = np.linalg.pinv(total, hermitian=True)
    everything = inverse @ moment
    without = np.empty((count, p))
    for some in (slice(k, k + _AT_ONCE) for k in range(0, count, _AT_ONCE)):
        inverses = np.linalg.pinv(total - grams[some], rcond=1e-13, hermitian=True)
        without[some] = (inverses @ (moment - moments[some])[..., None])[..., 0]
    deviation = without - everything
    if damped:
        scores = (moments - grams @ everything) @ inverse
        sizes = (np.sqrt(np.square(part).sum(axis=0)) for part in (scores, deviation))
        small, large = (np.maximum(size, np.finfo(float).tiny) for size in sizes)
        deviation = deviation * np.sqrt(np.minimum(small / large, 1.0))
    covariance = deviation.T @ deviation * ((count - 1) / count) * np.outer(scale, scale)
    less = np.diagonal(fallback) - np.diagonal(covariance)  # by how much chance made variances smaller than white ones
    return np.asarray(covariance + np.diag(np.maximum(less, 0.0)))


def considered_covariance(fit: LinearFit, prior: Prior, columns: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariance (q, q) of the fit's parameters from errors of other parameters, which the fit took as known.

    Parameters
    ----------
    columns : (r, k) derivatives of the torque by the other parameters
    covariance : (k, k) of the other parameters
    """
    moved = _moved(fit, prior, columns)
    return np.asarray(moved @ covariance @ moved.T)


def left_out_covariance(fit: LinearFit, prior: Prior, columns: FloatArray, std: FloatArray) -> FloatArray:
    """Covariance (q, q) of the fit's parameters from parameters that were left out, as far as the rows leave them open.

    Left out means that the data do not show the parameter, not that it is zero. Where its column resembles those of the
    fit, it may be anything that its prior allows, and the fit has its effect.

    Parameters
    ----------
    columns, std : (r, k) derivatives of the torque by these parameters, and their standard deviations (k,) before any
        data, about zero
    """
    moved = _moved(fit, prior, columns)
    rest = (columns - fit.problem.W @ moved) * np.sqrt(fit.weights)[:, None]
    shown = rest.T @ rest / correlation_time(fit.problem, fit.residual)  # rows that residuals remember count once
    scale = np.outer(std, std)
    covariance = np.linalg.inv(shown * scale + np.eye(std.size)) * scale
    return np.asarray(moved @ covariance @ moved.T)


def _moved(fit: LinearFit, prior: Prior, columns: FloatArray) -> FloatArray:
    """Change of the fit's parameters (q, k) by one unit of others with these columns (r, k), which are not in it."""
    root = np.sqrt(fit.weights)[:, None]
    W = fit.problem.W * root
    scale = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    known = prior.rows[0] / scale
    right = np.vstack((columns * root, np.zeros((len(known), columns.shape[1]))))
    return np.asarray(np.linalg.lstsq(np.vstack((W / scale, known)), right, rcond=None)[0] / scale[:, None])


_HALVES_STRETCHES = 20
"""Many enough that both halves have seen the same motions, few enough that a push lies in one of them."""


def _equal_ranges(values: FloatArray, number: int) -> IntArray:
    """Range (N,) that every value (N,) lies in, 0 for the smallest ones; ranges hold as many values each."""
    return np.asarray(np.argsort(np.argsort(values, kind="stable")) * number // values.size)


def _alternating_halves(instant: IntArray) -> IntArray:
    """Half of the data, 0 or 1, of every sample (N,): twenty stretches of time belong to one and the other by turns.

    What recurs is in both halves, what happened once is in one.

    Parameters
    ----------
    instant : (N,) number of the instant of every sample
    """
    return np.asarray((instant - instant.min()) * _HALVES_STRETCHES // (int(np.ptp(instant)) + 1) % 2)


_VELOCITY_BINS = 24
_SAMPLES_OF_A_BIN = 15
"""Less data have fewer bins."""
_FEWEST_OF_A_BIN = 4
"""Samples that a bin needs in either half of the data to count."""


def without_velocity(velocity: FloatArray, residual: FloatArray) -> FloatArray:
    """The residual (N,) less its mean in bins of the velocity: what is left is no function of it.

    Parameters
    ----------
    velocity, residual : (N,); bins hold as many samples each
    """
    bins = _equal_ranges(velocity, max(min(_VELOCITY_BINS, velocity.size // _SAMPLES_OF_A_BIN), 1))
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
    number = min(_VELOCITY_BINS, velocity.size // _SAMPLES_OF_A_BIN)
    if number < 2:
        return 0.0
    bins = _equal_ranges(velocity, number)
    half = _alternating_halves(np.arange(velocity.size))
    count, total = (
        np.stack([np.bincount(bins[half == k], what[half == k], minlength=number) for k in (0, 1)])
        for what in (np.ones_like(residual), residual)
    )
    seen = count.min(axis=0) >= _FEWEST_OF_A_BIN
    if not seen.any():
        return 0.0
    means = total[:, seen] / count[:, seen]
    return float(np.sqrt(max(np.average(means[0] * means[1], weights=count[:, seen].sum(axis=0)), 0.0)))


_LEFT_OUT_RANGES = 6
"""Ranges of a condition that are left out, one at a time."""
_OUTLIER_RANGES = 10
"""Ranges in which outliers are looked for."""
_FEW_RANGES = 0.5
"""Share of the ranges in which a wrong model rejects rows; what happens in more of them depends on something else."""
_RECURRING_SHARE = 0.1
"""Share of the rows of a range that chance, or a push, does not call outliers in both halves of the data."""


def allowing_for_wrong_model(fit: LinearFit, conditions: Sequence[FloatArray], prior: Prior | None = None) -> LinearFit:
    """The fit with standard deviations raised to the changes that leaving out one range of a condition makes.

    Where a model lacks something that depends on the speed, the position, the load, its residuals are a function of
    that: all blocks of time have the same ones, and agree. Ranges of the condition itself do not. Rows that the robust
    fit rejects in the same range again and again are no outliers but an error of the model: here they count.

    Parameters
    ----------
    fit : of least squares, its covariance as if the model were right
    conditions : (r,) each, of which what the model lacks may be a function; the largest change counts
    prior : as in the fit
    """
    problem, covariance = fit.problem, fit.covariance
    usual, rejected = np.zeros_like(fit.weights), fit.weights == 0.0
    for joint in np.unique(problem.joint):
        usual[problem.joint == joint] = fit.weights[problem.joint == joint].max()
    for condition in conditions:
        weights = fit.weights
        if rejected.any():  # the weight of a usual row, wherever rows of the range are rejected again and again
            ranges, again = _recurring(fit, condition)
            weights = np.where(again[ranges] & rejected, usual, weights)
        blocks = _range_blocks(problem, condition, _LEFT_OUT_RANGES)
        spread = block_jackknife(problem, weights, blocks, prior, fit.white_covariance, damped=True)
        here, there = np.diagonal(covariance), np.diagonal(spread)  # correlations are kept
        factor = np.sqrt(np.maximum(there / np.maximum(here, np.finfo(float).tiny), 1.0))
        covariance = covariance * np.outer(factor, factor)
    return replace(fit, covariance=covariance)


def _range_blocks(problem: LinearProblem, condition: FloatArray, ranges: int) -> IntArray:
    """Number of the block (r,) of every row: a range of the condition, at its joint; ranges hold as many rows each."""
    blocks = np.empty(condition.size, dtype=np.intp)
    first = 0
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        blocks[rows] = first + _equal_ranges(condition[rows], min(ranges, int(rows.sum())))
        first = int(blocks[rows].max()) + 1
    return blocks


def outliers(fit: LinearFit, condition: FloatArray) -> BoolArray:
    """True (r,) for rows that the robust fit rejects at random, such as pushes.

    Rows in the few ranges of the condition (r,), for instance a speed, whose rows both halves of the data reject, are
    False: there the model is wrong.
    """
    rejected, (blocks, again) = fit.weights == 0.0, _recurring(fit, condition)
    for joint in np.unique(fit.problem.joint):
        rows = fit.problem.joint == joint
        if again[np.unique(blocks[rows])].mean() < _FEW_RANGES:
            rejected[rows] &= ~again[blocks[rows]]
    return np.asarray(rejected)


def _recurring(fit: LinearFit, condition: FloatArray) -> tuple[IntArray, BoolArray]:
    """Ranges (r,) of a condition, and whether rows of each one (b,) are rejected in both halves of the data."""
    rejected, blocks = fit.weights == 0.0, _range_blocks(fit.problem, condition, _OUTLIER_RANGES)
    half, shares = _alternating_halves(fit.problem.instants), []
    for side in (0, 1):
        count = np.bincount(blocks[half == side], minlength=int(blocks.max()) + 1)
        bad = np.bincount(blocks[half == side], rejected[half == side], count.size)
        shares.append(bad / np.maximum(count, 1))
    return blocks, np.asarray(np.minimum(*shares) > _RECURRING_SHARE)


def solve(problem: LinearProblem, options: SolverOptions = DEFAULT_SOLVER, prior: Prior | None = None) -> LinearFit:
    """Solve a linear problem by :func:`solve_values`, with the uncertainty of its parameters."""
    return with_uncertainty(problem, solve_values(problem, options, prior))


def with_uncertainty(problem: LinearProblem, solution: Solution) -> LinearFit:
    """Fit of a problem that has been solved.

    Raises
    ------
    InputError
        When there are fewer rows than parameters, and the prior does not make up for it.
    """
    values, weights, prior = solution.values, solution.weights, solution.prior
    residual = problem.y - problem.W @ values
    r, p = problem.W.shape
    if r <= (p if prior is None else int(np.count_nonzero(~prior.informed))):
        raise InputError(
            f"{r} usable samples are too few for {p} parameters: record more motion, or take a simpler law"
        )
    variance = float((weights * residual**2).sum() / max(np.count_nonzero(weights) - p, 1))  # eq. 14
    R, z, scale = triangle_of(problem, weights, prior)
    inverse = np.linalg.pinv(R) / scale[:, None]
    white = inverse @ inverse.T * variance  # eq. 15
    sampling = block_jackknife(problem, weights, _residual_blocks(problem, residual), prior, white)
    if (problem.nonnegative & (values == 0.0)).any():  # what a bound changes, the model or the torque has wrong
        sampling = sampling + np.outer(moved := values - inverse @ z, moved)
    norm = float(np.linalg.norm(problem.y))
    return LinearFit(
        problem=problem,
        values=values,
        covariance=sampling,
        sampling_covariance=sampling,
        white_covariance=white,
        weights=weights,
        residual=residual,
        condition=_condition(problem, weights, prior),
        relative_error=float(np.linalg.norm(residual)) / norm if norm > 0.0 else float("inf"),
    )


def _condition(problem: LinearProblem, weights: FloatArray, prior: Prior | None) -> float:
    """Condition number of W with columns of unit norm, and with the prior as rows of the usual weight."""
    known = [] if prior is None else [prior.rows[0] / np.sqrt(float(np.mean(weights)))]
    W = np.vstack((problem.W, *known))
    norms = np.linalg.norm(W, axis=0)
    if not norms.size or not norms.all():
        return float("inf") if norms.size else 1.0
    return float(np.linalg.cond(np.linalg.qr(W / norms, mode="r")))
