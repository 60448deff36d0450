"""Late torques: the delay as a parameter, what is not known of it, and torques at the times at which they act.

Noise of the recorded motion biases the delay and the other parameters, most where it is in the torque as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import CubicSpline

from friction_estimator.identification.inverse_dynamics.estimation import Estimate, conditions
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.linear_problem import (
    LinearProblem,
    NormalEquations,
    Prior,
    SolverOptions,
    select_columns,
    with_columns,
)
from friction_estimator.identification.uncertainty import allowing_for_wrong_model, considered_covariance, solve
from friction_estimator.types import BoolArray, FloatArray

_USUAL_DELAY = 5e-3
"""Standard deviation of the delay that any recording may have: a bus cycle, a filter of 30 Hz in the drive [s]."""
_STEP_ERROR = 0.05
"""Of the working period: where a step of friction lies between two samples is not known better."""


def delay_prior(moved: float = 0.0) -> Prior:
    """Prior of the delay of torques [s] that have already been shifted by ``moved`` [s]."""
    return Prior(np.array([-moved]), np.array([[_USUAL_DELAY**-2]]))


def with_delay(problem: LinearProblem, slope: FloatArray) -> LinearProblem:
    """The problem with the delay of all torques as last parameter; slope (r,): torque by delay [N m/s]."""
    return with_columns(problem, slope[:, None], ["delay"], "s")


def delay_variance(solution: Estimate, solver: SolverOptions, moved: bool) -> float:
    """Variance of the delay [s^2].

    Estimated together with all parameters, about the solution: ``tau(t - d) = tau(t) - d dtau/dt``. A late torque adds
    what is proportional to the change of gravity and inertia: ``d k dq`` where gravity has the stiffness k. In a single
    sine all of that is viscous friction; only the steps of dry friction, and motion at several frequencies, separate
    them.

    Parameters
    ----------
    moved : True where torques were shifted by their delay; False: the estimated delay counts as an error, too
    """
    prior = solution.prior.joined(delay_prior())
    late = with_delay(solution.fit.problem, delay_column(solution))
    fit = allowing_for_wrong_model(solve(late, solver, prior), conditions(solution), prior)
    step = _STEP_ERROR * max(one.motion.period for one in solution.observations)
    shown = 0.0 if moved else fit.values[-1]
    return float(fit.covariance[-1, -1] + shown**2 + step**2)


def delay_error(solution: Estimate) -> FloatArray:
    """Covariance (q, q) that the uncertain delay adds to the parameters of the fit."""
    column, variance = delay_column(solution)[:, None], np.array([[solution.delay_variance]])
    return considered_covariance(solution.fit, solution.prior, column, variance)


def shift_torque(observations: Sequence[Observation], seconds: float, command: bool = False) -> tuple[Observation, ...]:
    """The observations with torques at the times at which they act.

    Parameters
    ----------
    seconds : by which measured torques were recorded late, or those of drives act late [s]
    command : see :meth:`Observation.late_part`
    """
    if not seconds:
        return tuple(observations)
    shifted = []
    for one in observations:
        late, sign = one.late_part(command)
        moved = late.copy()
        for start, stop in one.filter.stretches:
            time = np.arange(stop - start) * one.motion.period
            if time.size > 1:
                moved[start:stop] = CubicSpline(time, late[start:stop])(np.clip(time - sign * seconds, 0.0, time[-1]))
        load = moved if late is one.load else one.load + moved - late
        commanded = moved if late is one.commanded else one.commanded
        shifted.append(replace(one, load=load, torque=load[one.filter.kept], commanded=commanded))
    return tuple(shifted)


def measured_slope(observations: Sequence[Observation], usable: Sequence[BoolArray]) -> FloatArray:
    """Derivative of the recorded torque by its delay, at every usable row (r,) [N m/s]."""
    parts = zip(observations, usable, strict=True)
    return np.concatenate([_slope(one, *one.late_part(False))[one.filter.kept][mask] for one, mask in parts])


def delay_column(solution: Estimate) -> FloatArray:
    """Derivative of the torque by its delay, behind the filter, at every row (r,) [N m/s], by the model.

    The commanded part of a torque has no noise either.
    """
    parts = []
    for one, usable in zip(solution.observations, solution.usable, strict=True):
        late, sign = one.late_part(solution.late_command)
        if late is one.commanded:
            slope = _slope(one, late, sign)[one.filter.kept]
        else:
            slope = one.filter.apply(_slope(one, solution.model.torque(one, solution.values), sign))
        parts.append(slope[usable])
    return np.concatenate(parts)


def _slope(one: Observation, torque: FloatArray, sign: float) -> FloatArray:
    """Derivative (N, n) of a torque by time, stretch by stretch, times a sign."""
    slope = np.zeros_like(torque)
    for start, stop in one.filter.stretches:
        if stop - start > 1:
            slope[start:stop] = sign * np.gradient(torque[start:stop], one.motion.period, axis=0)
    return slope


def noise_bias(solution: Estimate, noisy: Sequence[Observation]) -> tuple[FloatArray, float]:
    """Bias of the parameters (q,) of the fit, and of the delay [s], by noise of the recorded motion.

    As much noise again changes columns by dW and torques by dy. The part of ``dy - dW chi`` that is correlated with dW
    is the bias; the part correlated with the columns is a random error, which the residuals show. In the torque of a
    drive that gets positions, the feedback has the noise of the velocity, and the columns have its second derivative,
    which biases the delay.

    Parameters
    ----------
    noisy : the same observations with as much noise again, torques not moved yet
    """
    moved = shift_torque(shift_torque(noisy, solution.hold, command=True), solution.delay, solution.late_command)
    own, more = _late_problem(solution), _late_problem(replace(solution, observations=moved))
    dW, weights = more.W - own.W, solution.fit.weights
    left = more.y - own.y - dW @ np.append(solution.fit.values, 0.0)
    equations = replace(NormalEquations.from_problem(own, weights), moment=dW.T @ (weights * left))
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
