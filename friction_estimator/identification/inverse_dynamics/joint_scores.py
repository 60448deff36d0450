"""Held-out errors of an estimate, joint by joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.estimation import Estimate, estimate
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearProblem, select_columns, select_rows
from friction_estimator.identification.regression.validation import fold_numbers, held_out_prediction, rms_by_joint
from friction_estimator.identification.result import JointScore
from friction_estimator.types import FloatArray, IntArray

RARE = 0.05
"""Up to this share of a joint's rows may be left out of its scores."""


def joint_scores(solution: Estimate, solver: SolverOptions, folds: int) -> tuple[JointScore, ...]:
    """k-fold validation by segment, beside "predict zero" and the best rigid body without friction.

    A row is predicted from the motion and from parameters that its own fold had no part in: friction that depends on
    the load takes that of the same prediction. Rows that the robust fit does not believe, pushes and collisions, count
    in none of the errors as long as they are rare; a model that finds many of them is judged by them too. What the data
    decided as a whole (filters, dead zone, parameters left out, q_s) is not decided again in every fold.
    """
    model = solution.model
    problem = solution.fit.problem
    names = solution.observations[0].motion.joint_names
    fold = fold_numbers(problem.segment, folds)
    plain = model.problem(solution.observations, solution.loads, solution.usable)
    rigid = select_columns(plain, solution.kept[solution.kept >= model.friction_count + model.gain_count])
    torque = _rows(solution, [one.torque for one in solution.observations])
    n = len(names)
    errors = (torque, _rigid_error(rigid, fold, solver), _model_error(solution, fold, solver), solution.fit.residual)
    scored = (solution.fit.weights > 0.0) | (outlier_shares(solution) > RARE)[problem.joint]
    joint = problem.joint[scored]
    torque_rms, rigid_rms, model_rms, fit_rms = (rms_by_joint(error[scored], joint, n) for error in errors)
    samples = np.bincount(joint, minlength=n)
    return tuple(
        JointScore(
            name,
            float(torque_rms[k]),
            float(rigid_rms[k]),
            float(model_rms[k]),
            float(fit_rms[k]),
            int(samples[k]),
        )
        for k, name in enumerate(names)
    )


def _model_error(solution: Estimate, fold: IntArray, solver: SolverOptions) -> FloatArray:
    """Measured minus predicted torque (r,) of rows that the parameters do not know."""
    problem = solution.fit.problem
    if not solution.model.load_dependent:
        prior = solution.prior_std
        return problem.y - held_out_prediction(
            problem, fold, lambda rows: solve(select_rows(problem, rows), solver, prior).values
        )
    allowed = np.isin(np.arange(solution.values.size), solution.kept)
    error = np.empty_like(problem.y)
    for number in np.unique(fold):
        held_out = fold == number
        left_out = np.unique(problem.segment[held_out])
        train = [
            mask & ~np.isin(one.segment, left_out)[:, None]
            for one, mask in zip(solution.observations, solution.usable, strict=True)
        ]
        values = estimate(solution.model, solution.observations, train, solver, allowed).values
        sides = [one.torque - one.filter.apply(solution.model.torque(one, values)) for one in solution.observations]
        error[held_out] = _rows(solution, sides)[held_out]
    return error


def _rows(solution: Estimate, sides: Sequence[FloatArray]) -> FloatArray:
    """The usable rows (r,) of signals (K, n) of every motion, in the order of the problem."""
    return np.concatenate([side[mask] for side, mask in zip(sides, solution.usable, strict=True)])


def _rigid_error(problem: LinearProblem, fold: IntArray, solver: SolverOptions) -> FloatArray:
    if not problem.names:
        return problem.y
    return problem.y - held_out_prediction(problem, fold, lambda rows: solve(select_rows(problem, rows), solver).values)


def outlier_shares(solution: Estimate) -> FloatArray:
    """Share (n,) of every joint's rows that the robust fit does not believe."""
    n = len(solution.observations[0].motion.joint_names)
    joint = solution.fit.problem.joint
    count = np.bincount(joint, minlength=n)
    return np.asarray(np.bincount(joint, solution.fit.weights == 0.0, n) / np.maximum(count, 1))
