"""Errors on data that the fit has not seen: k-fold by segment, beside two models that know less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.types import BoolArray, FloatArray, IntArray

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
        raise InputError("a single segment cannot be held out; cut the data into shorter segments or record more")
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
