"""Linear problems: rows, columns, prior knowledge, folds; and their least squares: weighted, robust, bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import lsq_linear

from friction_estimator.errors import InputError
from friction_estimator.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LinearProblem:
    """Least-squares problem ``y = W chi + rho``: parameters chi, residual rho (Hamon et al. 2010, eq. 11)."""

    names: tuple[str, ...]  # (p) of the parameters
    units: tuple[str, ...]  # (p)
    W: FloatArray  # (r, p) observation matrix
    y: FloatArray  # (r,) measurements [N m]
    joint: IntArray  # (r,) which joint the row is about
    segment: IntArray  # (r,) which stretch of time it comes from, unique over all experiments
    nonnegative: BoolArray  # (p) True for a parameter that no real joint has below zero
    # (r,) number of the instant that the row comes from, the same for all joints of one instant and rising
    # through all experiments; None: there is one joint, its rows are one after another in time
    instant: IntArray | None = None
    recording: IntArray | None = None  # (r,) number of the experiment; None: there is one

    @property
    def instants(self) -> IntArray:
        """(r,) number of the instant of each row, also where ``instant`` is None."""
        return np.arange(self.y.size) if self.instant is None else self.instant


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Solution of a linear problem with its covariance."""

    problem: LinearProblem  # what was solved
    values: FloatArray  # (p,)
    # (p, p) allowing for residuals that are correlated within a segment and, after `allowing_for_wrong_model`,
    # for those that the model leaves because it is wrong
    covariance: FloatArray
    sampling_covariance: FloatArray  # (p, p) as if the model were right
    # (p, p) as published: residuals white (Hamon et al. 2010, eqs. 13-15), too small for filtered data
    white_covariance: FloatArray
    weights: FloatArray  # (r,) of the rows, product of joint weight and robust weight
    residual: FloatArray  # (r,) y - W chi [N m]
    condition: float  # condition number of W with columns scaled to unit norm
    relative_error: float  # ||rho|| / ||y||, unweighted


def select_rows(problem: LinearProblem, rows: BoolArray | IntArray) -> LinearProblem:
    """The same problem with these rows."""
    instant, recording = (None if one is None else one[rows] for one in (problem.instant, problem.recording))
    return replace(
        problem,
        W=problem.W[rows],
        y=problem.y[rows],
        joint=problem.joint[rows],
        segment=problem.segment[rows],
        instant=instant,
        recording=recording,
    )


def select_columns(problem: LinearProblem, columns: IntArray) -> LinearProblem:
    """The same problem with these parameters, in this order."""
    return replace(
        problem,
        names=tuple(problem.names[k] for k in columns),
        units=tuple(problem.units[k] for k in columns),
        W=problem.W[:, columns],
        nonnegative=problem.nonnegative[columns],
    )


def with_columns(problem: LinearProblem, columns: FloatArray, names: Sequence[str], unit: str) -> LinearProblem:
    """The same problem with more parameters of either sign, columns (r, k)."""
    return replace(
        problem,
        names=(*problem.names, *names),
        units=(*problem.units, *[unit] * len(names)),
        W=np.column_stack((problem.W, columns)),
        nonnegative=np.append(problem.nonnegative, np.zeros(len(names), dtype=bool)),
    )


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of parameters before the data: Gaussian, or nothing where the precision is zero."""

    mean: FloatArray  # (p,)
    precision: FloatArray  # (p, p) inverse covariance; symmetric, not negative

    @classmethod
    def of_std(cls, std: FloatArray) -> Prior:
        """Independent parameters about zero with standard deviations (p,), infinite where nothing is known."""
        return cls(np.zeros(std.size), np.diag(1.0 / np.square(std)))

    @property
    def informed(self) -> BoolArray:
        """Which parameters (p,) are known at all."""
        return np.asarray(np.diagonal(self.precision) > 0.0)

    @property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The prior as measurements of standard deviation one: ``A chi = b``, (k, p) and (k,)."""
        scale = np.sqrt(np.where(self.informed, np.diagonal(self.precision), 1.0))
        values, vectors = np.linalg.eigh(self.precision / np.outer(scale, scale))
        A = (vectors * np.sqrt(np.maximum(values, 0.0))).T * scale
        return A, A @ self.mean

    def select(self, columns: IntArray) -> Prior:
        """Prior of these parameters (q,), whatever the others are."""
        kept = np.isin(np.arange(self.mean.size), columns)
        others = ~kept & (np.count_nonzero(self.precision, axis=0) > 1)  # the rest are independent of all
        cross = self.precision[np.ix_(kept, others)]
        inner = np.linalg.pinv(self.precision[np.ix_(others, others)], hermitian=True)
        marginal = self.precision[np.ix_(kept, kept)] - cross @ inner @ cross.T
        order = np.searchsorted(np.flatnonzero(kept), columns)
        return Prior(self.mean[columns], marginal[np.ix_(order, order)])

    def joined(self, other: Prior) -> Prior:
        """Prior of the parameters of both, independent of each other."""
        return Prior(np.append(self.mean, other.mean), block_diag(self.precision, other.precision))


FOLDS = 5


_FEWEST_RECORDINGS = 3
"""Recordings of which one is left out as a whole."""
_SHARED_POWER = 0.1
"""Share of a column's or a joint's largest recording that another one must have to stand in for it."""


def fold_numbers(segment: IntArray, folds: int = FOLDS) -> IntArray:
    """Fold (r,) of every row: neighbouring segments share one, all folds hold about as many rows.

    Neighbours in time are alike, so a fold of samples here and there, or of every fifth segment, would be predicted
    from its own surroundings.

    Raises
    ------
    InputError
        When there are fewer segments than two.
    """
    labels, index, counts = np.unique(segment, return_inverse=True, return_counts=True)
    folds = min(folds, labels.size)
    if folds < 2:
        raise InputError(
            "the cross-validation needs two segments of time, and the usable samples are of one: record more motion"
        )
    middle = np.cumsum(counts) - 0.5 * counts
    number = np.minimum((middle * folds / segment.size).astype(np.intp), folds - 1)
    return np.unique(number, return_inverse=True)[1].reshape(-1)[index.reshape(-1)]


def folds_of(problem: LinearProblem, folds: int = FOLDS) -> IntArray:
    """Fold (r,) of every row: recordings where the others determine all parameters, else blocks of time of each.

    Blocks of one recording are alike: errors on another recording are what a user meets. Of two recordings, one alone
    would separate less than both. Blocks are those of the time in which a joint moves: where joints move one after
    another, no block holds all data of one joint.
    """
    recording = np.zeros_like(problem.joint) if problem.recording is None else problem.recording
    rows = [recording == number for number in np.unique(recording)]
    shown = [
        np.array([np.square(problem.W[these]).sum(axis=0) for these in rows]),
        np.array([np.bincount(problem.joint[these], minlength=int(problem.joint.max()) + 1) for these in rows]),
    ]
    if len(rows) >= _FEWEST_RECORDINGS and all(
        ((part > _SHARED_POWER * part.max(axis=0)).sum(axis=0) != 1).all() for part in shown
    ):
        return fold_numbers(recording, folds)
    fold = np.zeros_like(problem.segment)
    for joint in np.unique(problem.joint):
        for these in (one & (problem.joint == joint) for one in rows):
            if np.unique(problem.segment[these]).size > 1:
                fold[these] = fold_numbers(problem.segment[these], folds)
    return fold if fold.any() else fold_numbers(problem.segment, folds)


def rms(error: FloatArray) -> float:
    """RMS of errors (r,), NaN where there are none."""
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")


def robust_std(error: FloatArray) -> float:
    """Standard deviation of errors (r,) with mean zero, of which less than half are outliers; NaN for no errors."""
    return _MAD * float(np.median(np.abs(error))) if error.size else float("nan")


_HUBER = 1.345
"""Residuals beyond this many standard deviations count less; 95 % efficient when nothing is wrong (Huber 1964)."""
_MAD = 1.4826
"""Median absolute deviation to standard deviation of a Gaussian."""
_AT_BOUND = 1e-12
_ROUNDING_SHARE = 1e-8
"""Share of the largest measurement: smaller residuals, of data without errors, are rounding of the normal equations."""
_ZERO_TORQUE = 1e-40
"""Residual of torques that are zero [N m]: its inverse square is a finite weight."""
REJECTED = 6.0
"""Residuals beyond this many standard deviations are no noise: a push, a collision, a lost sample."""
_REWEIGHTING_ROUNDS = 30
_CONVERGED_WEIGHTS = 1e-4
"""Reweighting ends when no weight changes by more than this."""


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How a linear problem is solved; all off is ordinary least squares as published (Hamon et al. 2010, eq. 12)."""

    weighted: bool = True  # rows of a joint count by the inverse variance of its residuals
    # Huber weights, found by iterated reweighting, and no weight for rows beyond six standard deviations of their
    # joint: outliers cannot pull, not even those of large leverage
    robust: bool = True
    bounded: bool = True  # nonnegative parameters are kept nonnegative


DEFAULT_SOLVER = SolverOptions()
ORDINARY = SolverOptions(weighted=False, robust=False, bounded=False)


@dataclass(frozen=True, slots=True)
class Solution:
    """Values (p,) of a problem, weights (r,) of its rows, and the prior in the unit of the weighted rows."""

    values: FloatArray
    weights: FloatArray
    prior: Prior | None


def solve_values(
    problem: LinearProblem, options: SolverOptions = DEFAULT_SOLVER, prior: Prior | None = None
) -> Solution:
    """Solve ``y = W chi + rho`` by QR (Hamon et al. 2010, eqs. 11-16), without the uncertainty, which takes longer.

    Parameters
    ----------
    problem : parameters that neither its rows nor the prior show are zero
    options : weights and bounds
    prior : what is known of the parameters before the data
    """
    weights, bounds = np.ones(problem.y.size), problem.nonnegative & options.bounded
    values = NormalEquations.from_problem(problem, weights).values(bounds)
    if prior is not None and not options.weighted:  # compared with rows in N m, not in standard deviations
        size = max(float(np.std(problem.y - problem.W @ values)), np.finfo(float).tiny)
        prior = Prior(prior.mean, prior.precision * size**2)
        values = NormalEquations.from_problem(problem, weights).values(bounds, prior)
    joints = [np.flatnonzero(problem.joint == joint) for joint in np.unique(problem.joint)]
    # a start that is too far off would reject good rows; nothing is reweighted in ordinary least squares
    for reject in ((False, True) if options.robust else (False,)) if options.weighted or options.robust else ():
        for _ in range(_REWEIGHTING_ROUNDS):
            new_weights = _weights(problem, options, problem.y - problem.W @ values, joints, reject)
            change = np.abs(new_weights - weights) / np.maximum(new_weights, weights).max()
            weights = new_weights
            values = NormalEquations.from_problem(problem, weights).values(bounds, prior)
            if change.max() < _CONVERGED_WEIGHTS:
                break
    R, z, scale = triangle_of(problem, weights, prior)
    values = np.asarray(np.linalg.lstsq(R, z, rcond=None)[0], dtype=float)
    if (bounds & (values < 0.0)).any():
        values = lsq_linear(R, z, (np.where(bounds, 0.0, -np.inf), np.inf), method="bvls").x
        values[bounds & (values < _AT_BOUND * np.abs(values).max())] = 0.0  # not 1e-17
    return Solution(values / scale, weights, prior)


def _weights(
    problem: LinearProblem, options: SolverOptions, residual: FloatArray, joints: list[IntArray], reject: bool
) -> FloatArray:
    """Joint weight times robust weight of every row; ``joints`` are the rows of each joint."""
    weights = np.ones(residual.size)
    floor = max(_ROUNDING_SHARE * np.abs(problem.y).max(initial=0.0), _ZERO_TORQUE)
    freedom = max(1.0 - problem.W.shape[1] / residual.size, 1.0 / residual.size)
    for rows in joints:
        rho = np.abs(residual[rows])
        scale = max(robust_std(rho), floor)
        robust = np.ones_like(rho)
        if options.robust:
            robust = np.minimum(1.0, _HUBER * scale / np.maximum(rho, floor))
            if reject:
                robust[rho > REJECTED * scale] = 0.0
        variance = float(robust @ rho**2 / robust.sum()) / freedom if options.weighted else 1.0
        weights[rows] = robust / max(variance, floor**2)
    return weights


def triangle_of(
    problem: LinearProblem, weights: FloatArray, prior: Prior | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Triangle R (k, p) of weighted rows and the prior, whose columns have unit norm, z (k,), and their scale (p,).

    ``R (scale chi) = z`` has the least squares solution of the whole problem (Hamon et al. 2010, eq. 12).
    """
    root = np.sqrt(weights)
    stacked = np.column_stack((problem.W, problem.y)) * root[:, None]
    if prior is not None:
        stacked = np.vstack((stacked, np.column_stack(prior.rows)))
    upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    R, z = upper[:, :-1], upper[:, -1]
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    return R / scale, z, scale


_RIDGE = 1e-12
"""Of a normal matrix with unit diagonal: what neither data nor prior show stays at zero."""
_BOUND_ROUNDS = 4
"""Rounds in which values below their bound are held there."""


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """``gram chi = moment``, the least squares solution of weighted rows: faster than QR, with half of its digits."""

    # (p, p), (p,)
    gram: FloatArray
    moment: FloatArray

    @classmethod
    def from_problem(cls, problem: LinearProblem, weights: FloatArray) -> NormalEquations:
        """Normal equations of rows with these weights (r,)."""
        root = np.sqrt(weights)
        W = problem.W * root[:, None]
        return cls(W.T @ W, W.T @ (problem.y * root))

    @classmethod
    def by_joints(cls, problem: LinearProblem, weights: FloatArray) -> list[NormalEquations]:
        """Normal equations for each of some weights (k, r): faster where most columns are of one joint alone."""
        p = problem.W.shape[1]
        found = [cls(np.zeros((p, p)), np.zeros(p)) for _ in weights]
        for joint in np.unique(problem.joint):
            rows = problem.joint == joint
            own = np.flatnonzero(problem.W[rows].any(axis=0))
            W, y = problem.W[np.ix_(rows, own)], problem.y[rows]
            for one, weight in zip(found, weights, strict=True):
                weighted = W * weight[rows, None]
                one.gram[np.ix_(own, own)] += weighted.T @ W
                one.moment[own] += weighted.T @ y
        return found

    def select(self, columns: IntArray) -> NormalEquations:
        """Normal equations of these parameters (q,), all others being zero."""
        return NormalEquations(self.gram[np.ix_(columns, columns)], self.moment[columns])

    def values(self, nonnegative: BoolArray, prior: Prior | None = None) -> FloatArray:
        """Least-squares parameters (p,); those that ``nonnegative`` (p,) marks are held at zero or above.

        Parameters
        ----------
        prior : Gaussian prior of the parameters that is added; None: none
        """
        gram, moment = self.gram, self.moment
        if prior is not None:
            gram, moment = gram + prior.precision, moment + prior.precision @ prior.mean
        scale = 1.0 / np.sqrt(np.where(np.diagonal(gram) > 0.0, np.diagonal(gram), 1.0))
        scaled = gram * np.outer(scale, scale) + _RIDGE * np.eye(scale.size)
        free, values = np.ones(moment.size, dtype=bool), np.zeros(moment.size)
        for _ in range(_BOUND_ROUNDS):
            values[:] = 0.0
            values[free] = scale[free] * np.linalg.solve(scaled[np.ix_(free, free)], (scale * moment)[free])
            below = nonnegative & (values < 0.0)
            if not below.any():
                break
            free &= ~below
        return np.where(nonnegative, np.maximum(values, 0.0), values)
