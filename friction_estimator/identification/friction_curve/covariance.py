"""Covariance of a fitted friction curve when its residuals are correlated in time."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.friction_curve.problem import CurveProblem
from friction_estimator.identification.regression.least_squares import column_condition
from friction_estimator.identification.regression.linear_problem import LinearProblem
from friction_estimator.identification.regression.residual_blocks import block_jackknife, residual_blocks
from friction_estimator.types import FloatArray


def curve_covariance(problem: CurveProblem, values: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Covariance (p, p) of the parameters, and the condition number of the Jacobian.

    The law is linear in its parameters nearby, so leaving out one block of time after another costs a linear solution
    each. Samples more often do not make it smaller, because blocks are as long as the residuals remember. The bounds
    count as a weak prior: what no sample shows has the width of its bounds as standard deviation.

    Parameters
    ----------
    values : (p,) at the solution
    weights : (N,) robust weights of the samples
    """
    z = problem.to_z(values)
    residual, W = -problem.residual(z), problem.jacobian(z)
    count, p = W.shape
    floor = (1e-9 * problem.samples.torque_rms) ** 2
    variance = max(float((weights * residual**2).sum() / max(count - p, 1)), floor)
    linear = LinearProblem(
        names=problem.law.parameter_names,
        units=problem.law.units,
        W=W,
        y=residual,
        joint=np.zeros(count, dtype=np.intp),
        segment=problem.samples.segment,
        nonnegative=np.zeros(p, dtype=bool),
    )
    width = problem.to_z(problem.upper) - problem.to_z(problem.lower)
    posterior = np.asarray(np.linalg.inv((W.T * weights) @ W / variance + np.diag(width**-2.0)), dtype=float)
    blocks = residual_blocks(linear, residual)
    covariance = block_jackknife(linear, weights / variance, blocks, width, posterior)
    slopes = problem.slopes(values)
    return covariance * np.outer(slopes, slopes), column_condition(W)
