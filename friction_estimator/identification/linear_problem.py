"""A problem linear in its parameters, its rows and columns, and k-fold validation by segment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LinearProblem:
    """``y = W chi + rho`` (Hamon et al. 2010, eq. 11).

    Attributes
    ----------
    names : (p) of the parameters
    units : (p)
    W : (r, p) observation matrix
    y : (r,) measurements [N m]
    joint : (r,) which joint the row is about
    segment : (r,) which stretch of time it comes from, unique over all experiments
    nonnegative : (p) True for a parameter that no real joint has below zero
    instant : (r,) number of the instant that the row comes from, the same for all joints of one instant and rising
        through all experiments; None: the rows of one joint in one segment are one after another in time
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    W: FloatArray
    y: FloatArray
    joint: IntArray
    segment: IntArray
    nonnegative: BoolArray
    instant: IntArray | None = None


@dataclass(frozen=True, slots=True)
class LinearFit:
    """A solution with its uncertainty.

    Attributes
    ----------
    problem : what was solved
    values : (p,)
    covariance : (p, p) allowing for residuals that are correlated within a segment and, after
        `allowing_for_wrong_model`, for those that the model leaves because it is wrong
    sampling_covariance : (p, p) as if the model were right
    white_covariance : (p, p) as published: residuals white (Hamon et al. 2010, eqs. 13-15), too small for filtered data
    weights : (r,) of the rows, product of joint weight and robust weight
    residual : (r,) y - W chi [N m]
    condition : condition number of W with columns scaled to unit norm
    relative_error : ||rho|| / ||y||, unweighted
    """

    problem: LinearProblem
    values: FloatArray
    covariance: FloatArray
    sampling_covariance: FloatArray
    white_covariance: FloatArray
    weights: FloatArray
    residual: FloatArray
    condition: float
    relative_error: float


def select_rows(problem: LinearProblem, rows: BoolArray) -> LinearProblem:
    """The same problem with the rows (r,) that are True."""
    instant = None if problem.instant is None else problem.instant[rows]
    return replace(
        problem,
        W=problem.W[rows],
        y=problem.y[rows],
        joint=problem.joint[rows],
        segment=problem.segment[rows],
        instant=instant,
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


FOLDS = 5


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


def held_out_prediction(
    problem: LinearProblem, fold: IntArray, estimate: Callable[[BoolArray], FloatArray]
) -> FloatArray:
    """Prediction (r,) of every row by the parameters of the other folds [N m].

    Parameters
    ----------
    problem : all rows
    fold : (r,) of :func:`fold_numbers`
    estimate : parameters (p,) from the rows (r,) that are True
    """
    prediction = np.empty_like(problem.y)
    for number in np.unique(fold):
        held_out = fold == number
        prediction[held_out] = problem.W[held_out] @ estimate(~held_out)
    return prediction


def rms_by_joint(error: FloatArray, joint: IntArray, joints: int) -> FloatArray:
    """RMS (n,) of the rows (r,) of every joint, NaN where it has none."""
    count = np.bincount(joint, minlength=joints)
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.bincount(joint, error**2, joints) / count)


def rms(error: FloatArray) -> float:
    """RMS of errors (r,), NaN where there are none."""
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")
