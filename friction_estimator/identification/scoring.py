"""Errors of predictions, and the one rule for everything that is not estimated.

Every candidate is scored by the error with which it predicts blocks of the data that its fit has not seen, on the same
rows, in the same band and unit. The simplest candidate within one standard error of the best one is taken (Breiman et
al. 1984), and what changes among all within one standard error is part of the uncertainty of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from friction_estimator.identification.linear_problem import (
    REJECTED,
    LinearProblem,
    NormalEquations,
    Prior,
    SolverOptions,
    folds_of,
    rms,
    robust_std,
    select_rows,
    solve_values,
)
from friction_estimator.identification.result import Candidate, FrictionSamples, JointScore
from friction_estimator.laws.identified import IdentifiedParameters, JointLaw
from friction_estimator.types import BoolArray, FloatArray, IntArray

RARE = 0.05
"""Share of a joint's rows, the largest errors first, that may be left out of its scores as pushes. Where errors of more
rows are beyond the limit, fewer are left out, and none at twice this share: then the prediction is wrong."""


def pushes(error: FloatArray, limit: FloatArray | float) -> BoolArray:
    """True (r,) for errors of one joint that count as pushes: beyond the limit, and few enough to be left out."""
    size = np.abs(error)
    if not size.size:
        return np.zeros(0, dtype=bool)
    beyond = size > limit
    allowed = int(np.clip(2.0 * RARE - beyond.mean(), 0.0, RARE) * size.size)
    return np.asarray(beyond & (size > np.sort(size)[-1 - allowed]))


@dataclass(frozen=True, slots=True)
class Rows:
    """Signals of all motions, each (K, n): torque as measured, and its predicted parts.

    Attributes
    ----------
    names : (n) of joints or motors
    velocity, load, torque, friction : [rad/s], [N m]
    rigid : torque of everything that is not friction; NaN where there is no such model
    usable : False where a row does not count: near standstill, or missing
    limits : (n,) errors beyond which a row is a push [N m]
    """

    names: tuple[str, ...]
    velocity: FloatArray
    load: FloatArray
    torque: FloatArray
    rigid: FloatArray
    friction: FloatArray
    usable: BoolArray
    limits: FloatArray

    @classmethod
    def stacked(cls, rows: Sequence[Rows]) -> Rows:
        """Rows of several motions, one after another."""
        signals = ("velocity", "load", "torque", "rigid", "friction", "usable")
        joined: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in rows]) for name in signals}
        return replace(rows[0], **joined)

    @property
    def error(self) -> FloatArray:
        """Measured minus predicted torque (K, n) [N m]."""
        rigid = np.where(np.isnan(self.rigid), 0.0, self.rigid)
        return np.asarray(self.torque - rigid - self.friction)

    @property
    def scored(self) -> BoolArray:
        """Rows (K, n) that count in errors: usable ones without pushes."""
        scored = self.usable.copy()
        for used, error, limit in zip(scored.T, self.error.T, self.limits, strict=True):
            used[used] = ~pushes(error[used], limit)
        return scored

    def scores(self) -> tuple[JointScore, ...]:
        """Errors of every joint (n); ``fit_error`` and ``held_out_error`` are the same."""
        scored, error = self.scored, self.error
        found = []
        for joint, name in enumerate(self.names):
            rows = scored[:, joint]
            torque, rigid = self.torque[rows, joint], self.rigid[rows, joint]
            own = rms(error[rows, joint])
            found.append(JointScore(name, rms(torque), rms(torque - rigid), own, own, int(rows.sum())))
        return tuple(found)


def samples_of(friction: IdentifiedParameters, rows: Rows, joint: int) -> FrictionSamples:
    """Friction of the joint with this index over velocity, measured and predicted, thinned out for figures."""
    name, velocity, load = rows.names[joint], rows.velocity[:, joint], rows.load[:, joint]
    sigma, measured = np.zeros_like(velocity), rows.torque[:, joint] - np.nan_to_num(rows.rigid[:, joint])
    seen = FrictionSamples(name, velocity, measured, load, rows.friction[:, joint], sigma, rows.usable[:, joint])
    few = seen.shown
    if name in friction.joint_names:
        sigma = JointLaw.from_identified(friction, name).predict(velocity[few], np.nan_to_num(load[few]))[1]
    return seen.thinned(sigma[: velocity[few].size])


_TIME_BLOCKS = 20
"""Blocks of time that the standard error of a difference between candidates comes from."""
_ROUNDING = 1e-9
"""Relative errors, and differences of them, below this are rounding."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Squared held-out errors of one candidate."""

    squares: FloatArray  # (n, b) sums over the rows of every joint and block of time
    power: FloatArray  # (n, b) sums of the squared measurements; the same for all candidates
    seen: BoolArray  # (b,) blocks of time that have rows

    def log_error(self, blocks: BoolArray) -> float:
        """Mean over the joints of the logarithm of the relative error, in the blocks of time ``blocks`` (b,)."""
        squares, power = self.squares[:, blocks].sum(axis=1), self.power[:, blocks].sum(axis=1)
        seen = power > 0.0
        share = np.maximum(squares[seen] / power[seen], _ROUNDING**2)
        return float(0.5 * np.mean(np.log(share))) if seen.any() else 0.0

    @property
    def jackknife(self) -> FloatArray:
        """Logarithms of the relative error (s,) without each of the blocks that have rows."""
        numbers = np.arange(self.seen.size)
        return np.array([self.log_error(numbers != block) for block in np.flatnonzero(self.seen)])

    @property
    def standard_error(self) -> float:
        """Standard error of the logarithm of the relative error."""
        return _jackknife_error(self.jackknife)


def _jackknife_error(without: FloatArray) -> Any:
    """Standard error (...) of what is (..., s) without each of the blocks."""
    return np.sqrt(without.shape[-1] - 1) * np.std(without, axis=-1)


Choice = tuple[int, tuple[int, ...], tuple[Candidate, ...]]
"""Number of the chosen candidate, numbers of all that predict as well as the best one, and all with their errors."""


def choose(decision: str, settings: Sequence[str], scores: Sequence[Scores], slack: float = 0.0) -> Choice:
    """The simplest candidate that predicts as well as the best one; candidates are in the order of simplicity.

    Parameters
    ----------
    decision, settings : what is decided, and every candidate, in words for the table
    slack : a candidate whose logarithm of the error is larger by less than this predicts as well as the best one
    """
    whole = np.array([one.log_error(one.seen) for one in scores])
    without, best = np.array([one.jackknife for one in scores]), int(np.argmin(whole))
    excess, spread = whole - whole[best], _jackknife_error(without - without[best])
    rivals = np.flatnonzero(excess <= np.maximum(spread, slack) + _ROUNDING)
    chosen = int(rivals[0])
    table = tuple(
        Candidate(decision, words, float(np.exp(error)), float(np.expm1(more)), float(sigma), k == chosen)
        for k, (words, error, more, sigma) in enumerate(zip(settings, whole, excess, spread, strict=True))
    )
    return chosen, tuple(map(int, rivals)), table


def scores_of(error: FloatArray, problem: LinearProblem) -> Scores:
    """Scores of held-out errors (r,) of the rows of a problem; the error of a push counts as the largest usual one."""
    instant = problem.instants
    block = (instant - instant.min()) * _TIME_BLOCKS // (int(np.ptp(instant)) + 1)
    joints = int(problem.joint.max()) + 1
    place = problem.joint * _TIME_BLOCKS + block
    size = np.abs(error)
    for joint in np.unique(problem.joint):
        rows = problem.joint == joint
        size[rows] = np.minimum(size[rows], REJECTED * robust_std(size[rows]))

    def summed(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, values, joints * _TIME_BLOCKS).reshape(joints, _TIME_BLOCKS), dtype=float)

    return Scores(summed(size**2), summed(problem.y**2), np.bincount(block, minlength=_TIME_BLOCKS) > 0)


class FoldedProblem:
    """Normal equations of a problem without each fold, and of all rows: many candidates cost a small solution each.

    Parameters
    ----------
    problem : with the columns of all candidates
    fold : (r,) of `linear_problem.folds_of`
    weights : (k + 1, r) of fits of all folds but one, zero in that fold, and of the fit of all rows: the latter would
        have seen the fold that they predict
    """

    def __init__(self, problem: LinearProblem, fold: IntArray, weights: FloatArray) -> None:
        self.problem, self.fold, self._weights = problem, fold, weights

    @classmethod
    def from_problem(
        cls,
        problem: LinearProblem,
        solver: SolverOptions,
        prior: Prior,
        fold: IntArray,
        whole: FloatArray | None = None,
    ) -> FoldedProblem:
        """Compute the weights of the fits without each fold, and of the fit of all rows.

        Parameters
        ----------
        problem : with the columns of all candidates
        solver, prior : how weights are found, and the prior of all columns (p)
        fold : (r,) of `linear_problem.folds_of`
        whole : (r,) weights of the fit of all rows where they are known; None: they are computed
        """
        weights = np.zeros((int(fold.max()) + 2, fold.size))
        for number, own in enumerate(weights[:-1]):
            seen = fold != number
            own[seen] = solve_values(select_rows(problem, seen), solver, prior).weights
        weights[-1] = solve_values(problem, solver, prior).weights if whole is None else whole
        return cls(problem, fold, weights)

    def like(self, problem: LinearProblem, rows: IntArray | slice = slice(None)) -> FoldedProblem:
        """Folded problem of other columns or values, with the folds and weights of these rows of this one."""
        return FoldedProblem(problem, self.fold[rows], self._weights[:, rows])

    @cached_property
    def _normal(self) -> list[NormalEquations]:
        return NormalEquations.by_joints(self.problem, self._weights)

    def values(self, columns: IntArray, prior: Prior, without: int = -1) -> FloatArray:
        """Parameters (q,) of a choice of the columns, from all rows (-1), or from all folds but ``without``.

        Parameters
        ----------
        prior : of all columns (p)
        """
        own = self._normal[without].select(columns)
        return own.values(self.problem.nonnegative[columns], prior.select(columns))

    def held_out_error(
        self, columns: IntArray, prior: Prior, rows: LinearProblem | None = None, fold: IntArray | None = None
    ) -> FloatArray:
        """Measurement minus prediction (r,) of every row, predicted by the fit of the other folds.

        Parameters
        ----------
        rows, fold : of another problem with the same columns, (r,); None: the rows of the fit
        """
        problem, folds = self.problem if rows is None else rows, self.fold if fold is None else fold
        error = np.empty_like(problem.y)
        for number in range(len(self._weights) - 1):
            these = folds == number
            error[these] = problem.y[these] - problem.W[np.ix_(these, columns)] @ self.values(columns, prior, number)
        return error

    def choose(
        self,
        decision: str,
        settings: Sequence[str],
        tried: Sequence[tuple[IntArray, Prior]],
        rows: BoolArray | None = None,
        shrinkage: bool = False,
    ) -> Choice:
        """Choose among sets of columns, each with a prior of all columns, by held-out errors at ``rows`` (None: all).

        Parameters
        ----------
        decision, settings : what is decided, and every candidate, in words for the table
        tried : indices of columns (q,), and prior of all columns (p), of every candidate
        shrinkage : candidates are strengths of a prior: they predict as well within the standard error of the smallest
            error itself (Breiman et al. 1984; Hastie et al. 2009, section 7.10). That of a difference, which is far
            smaller among such neighbours, would let the luck of one of many decide
        """
        own = slice(None) if rows is None else rows
        same = self.problem if rows is None else select_rows(self.problem, rows)
        scores = [scores_of(self.held_out_error(*one)[own], same) for one in tried]
        best = min(scores, key=lambda one: one.log_error(one.seen))
        return choose(decision, settings, scores, best.standard_error if shrinkage else 0.0)

    def choose_columns(
        self, columns: IntArray, prior: Prior, optional: Mapping[int, str]
    ) -> tuple[list[int], tuple[Candidate, ...]]:
        """Optional columns that do not improve the prediction of the rows on which they act, and all candidates.

        Parameters
        ----------
        prior : of all columns (p)
        optional : names of the columns that may be left out, one by one
        """
        left_out, table = list[int](), list[Candidate]()
        for place, name in optional.items():
            tried = [(columns[columns != place], prior), (columns, prior)]
            chosen, _, found = self.choose(name, ("none", "identified"), tried, self.problem.W[:, place] != 0.0)
            table += found
            left_out += [place] if chosen == 0 else []
        return left_out, tuple(table)


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Linear problem of recordings under one candidate treatment, with the sample number of each row."""

    problem: LinearProblem  # its rows in the order of `number`
    prior: Prior  # what is known of its parameters
    number: IntArray  # (r,) rising: sample, recording by recording, times the joints, plus joint
    joints: int = 1  # n
    scored: BoolArray | None = None  # (r,) rows that errors are about; None: all

    def nearest(self, other: NumberedRows) -> IntArray:
        """Rows (r,) of this problem that are nearest in time to those of another one, of the same joint."""
        found = np.zeros(other.number.size, dtype=np.intp)
        for joint in range(self.joints):
            own, rows = (np.flatnonzero(one.number % self.joints == joint) for one in (self, other))
            if own.size > 1:
                after = np.clip(np.searchsorted(self.number[own], other.number[rows]), 1, own.size - 1)
                left = other.number[rows] - self.number[own[after - 1]]
                found[rows] = own[after - (left < self.number[own[after]] - other.number[rows])]
            elif own.size:
                found[rows] = own[0]
        return found


def compared(
    reference: NumberedRows, candidates: Iterable[tuple[NumberedRows, NumberedRows]], solver: SolverOptions, folds: int
) -> tuple[list[Scores], list[FloatArray]]:
    """Scores and parameters (p,) of candidate treatments, which make different rows of the same recordings.

    Parameters
    ----------
    reference : whose weights and folds count for all
    candidates : rows that each is fitted to, and those of its errors; scored at those that all have
    solver, folds : how weights and folds are found
    """
    base = FoldedProblem.from_problem(reference.problem, solver, reference.prior, folds_of(reference.problem, folds))
    errors, judged, values = list[FloatArray](), list[NumberedRows](), list[FloatArray]()
    for made, rows in candidates:
        folded, columns = base.like(made.problem, reference.nearest(made)), np.arange(made.problem.W.shape[1])
        errors.append(folded.held_out_error(columns, made.prior, rows.problem, base.fold[reference.nearest(rows)]))
        values.append(folded.values(columns, made.prior))
        judged.append(replace(rows, problem=replace(rows.problem, W=rows.problem.W[:, :0])))
    scored = [one.number if one.scored is None else one.number[one.scored] for one in judged]
    shared = reduce(np.intersect1d, scored)
    places = [np.searchsorted(one.number, shared) for one in judged]
    same = select_rows(judged[0].problem, places[0])
    return [scores_of(error[place], same) for error, place in zip(errors, places, strict=True)], values


def choice_covariance(values: Sequence[FloatArray], chosen: int, rivals: Sequence[int]) -> FloatArray:
    """Covariance (p, p) of the parameters from their differences among candidates that predict equally well."""
    apart = np.array([values[k] - values[chosen] for k in rivals if k != chosen]).reshape(-1, values[chosen].size)
    return np.asarray(apart.T @ apart / max(len(apart), 1))
