"""Held-out errors of an estimate, joint by joint."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.identification import JointScore
from friction_estimator.core.types import BoolArray, FloatArray, IntArray
from friction_estimator.identification.estimation import Estimate
from friction_estimator.identification.least_squares import SolverOptions, solve
from friction_estimator.identification.linear_problem import LinearProblem, select_columns, select_rows
from friction_estimator.identification.validation import fold_numbers, held_out_prediction, rms_by_joint


def joint_scores(solution: Estimate, solver: SolverOptions, folds: int) -> tuple[JointScore, ...]:
    """k-fold validation by segment, beside "predict zero" and the best rigid body without friction.

    What the data decided as a whole (filters, dead zone, parameters left out, q_s and, where friction multiplies the
    load, the point of linearisation) is not decided again in every fold.
    """
    model = solution.model
    problem = solution.fit.problem
    names = solution.observations[0].motion.joint_names
    fold = fold_numbers(problem.segment, folds)
    prior = model.prior_std[solution.kept]
    prior_std = prior if np.isfinite(prior).any() else None

    def whole(rows: BoolArray) -> FloatArray:
        return solve(select_rows(problem, rows), solver, prior_std).values

    plain = model.problem(solution.observations, solution.loads, solution.usable)
    rigid = select_columns(plain, solution.kept[solution.kept >= model.friction_count + model.gain_count])
    torque = np.concatenate(
        [one.torque[mask] for one, mask in zip(solution.observations, solution.usable, strict=True)]
    )
    n = len(names)
    torque_rms = rms_by_joint(torque, problem.joint, n)
    rigid_error = rms_by_joint(_rigid_error(rigid, fold, solver), problem.joint, n)
    model_error = rms_by_joint(problem.y - held_out_prediction(problem, fold, whole), problem.joint, n)
    fit_error = rms_by_joint(solution.fit.residual, problem.joint, n)
    samples = np.bincount(problem.joint, minlength=n)
    return tuple(
        JointScore(
            name,
            float(torque_rms[k]),
            float(rigid_error[k]),
            float(model_error[k]),
            float(fit_error[k]),
            int(samples[k]),
        )
        for k, name in enumerate(names)
    )


def _rigid_error(problem: LinearProblem, fold: IntArray, solver: SolverOptions) -> FloatArray:
    if not problem.names:
        return problem.y
    return problem.y - held_out_prediction(problem, fold, lambda rows: solve(select_rows(problem, rows), solver).values)
