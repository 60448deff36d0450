"""A problem linear in its parameters, with what least squares must know of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    covariance : (p, p) allowing for residuals that are correlated within a segment and, behind `wrong_model`, for those
        that the model leaves because it is wrong
    sampling_covariance : (p, p) as if the model were right
    white_covariance : (p, p) as printed: residuals white (Hamon et al. 2010, eqs. 13-15), too small for filtered data
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
