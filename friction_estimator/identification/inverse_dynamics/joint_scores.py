"""Held-out errors of an estimate, joint by joint."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.identification import JointScore
from friction_estimator.core.types import BoolArray, FloatArray, IntArray
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearProblem, select_columns, select_rows
from friction_estimator.identification.regression.validation import fold_numbers, held_out_prediction, rms_by_joint


def joint_scores(solution: Estimate, solver: SolverOptions, folds: int) -> tuple[JointScore, ...]:
    """k-fold validation by segment, beside "predict zero" and the best rigid body without friction.

    What the data decided as a whole (filters, dead zone, parameters left out, q_s and, where friction multiplies the
    load, the point of linearisation) is not decided again in every fold. Rows that the robust fit does not believe
    (pushes, collisions) do not count; `outlier_shares` says how many they are.
    """
    model = solution.model
    problem = solution.fit.problem
    names = solution.observations[0].motion.joint_names
    fold = fold_numbers(problem.segment, folds)

    def whole(rows: BoolArray) -> FloatArray:
        return solve(select_rows(problem, rows), solver, solution.prior_std).values

    plain = model.problem(solution.observations, solution.loads, solution.usable)
    rigid = select_columns(plain, solution.kept[solution.kept >= model.friction_count + model.gain_count])
    torque = np.concatenate(
        [one.torque[mask] for one, mask in zip(solution.observations, solution.usable, strict=True)]
    )
    n = len(names)
    rigid_error = _rigid_error(rigid, fold, solver)
    model_error = problem.y - held_out_prediction(problem, fold, whole)
    errors = (torque, rigid_error, model_error, solution.fit.residual)
    believed = solution.fit.weights > 0.0
    torque_rms, rigid_rms, model_rms, fit_rms = (
        rms_by_joint(error[believed], problem.joint[believed], n) for error in errors
    )
    samples = np.bincount(problem.joint[believed], minlength=n)
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
