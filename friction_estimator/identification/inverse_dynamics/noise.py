"""Noise of the recorded motion: it is in the columns, and biases parameters, most where it is in the torque as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from friction_estimator.identification.inverse_dynamics.delay import delay_column, delay_prior, shift_torque, with_delay
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.linear_problem import LinearProblem, NormalEquations, Prior, select_columns
from friction_estimator.types import FloatArray


def noise_bias(solution: Estimate, noisy: Sequence[Observation]) -> tuple[FloatArray, float]:
    """Bias of the parameters (q,) of the fit, and of the delay [s], by noise of the recorded motion.

    As much noise again changes columns by dW and torques by dy. What of ``dy - dW chi`` goes with dW is the bias; what
    goes with the columns themselves is a random error, which the residuals show. In the torque of a drive that gets
    positions, the feedback has the noise of the velocity, and the columns have its second derivative: a delay.

    Parameters
    ----------
    noisy : the same observations with as much noise again, torques not moved yet
    """
    moved = shift_torque(shift_torque(noisy, solution.hold, command=True), solution.delay, solution.late_command)
    own, more = _late_problem(solution), _late_problem(replace(solution, observations=moved))
    dW, weights = more.W - own.W, solution.fit.weights
    left = more.y - own.y - dW @ np.append(solution.fit.values, 0.0)
    equations = replace(NormalEquations.of(own, weights), moment=dW.T @ (weights * left))
    known = solution.prior.joined(delay_prior())
    known = Prior(np.zeros_like(known.mean), known.precision)
    every, free = np.arange(known.mean.size), np.zeros(known.mean.size, dtype=bool)
    given = equations.select(every[:-1]).values(free[:-1], known.select(every[:-1]))
    return given, float(equations.values(free, known)[-1])


def _late_problem(solution: Estimate) -> LinearProblem:
    """Rows of the parameters of the fit, then of the delay."""
    model, observations = solution.model, solution.observations
    loads = [model.output_torque(one, solution.values) for one in observations]
    problem = model.problem(observations, loads, solution.usable, solution.values)
    return with_delay(select_columns(problem, solution.kept), delay_column(solution))
