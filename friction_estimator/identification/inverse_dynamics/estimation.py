"""From observations to parameters: linear where the model is, else by Gauss-Newton on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import InputError
from friction_estimator.identification.inverse_dynamics.dead_zone import reference_speeds
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.torque_model import TorqueModel
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.linear_problem import LinearFit, LinearProblem, select_columns
from friction_estimator.identification.rigid_body.base_parameters import base_parameters
from friction_estimator.types import BoolArray, FloatArray, IntArray

DATA_TOLERANCE = 1e-6
"""Columns nearer than this, relative to their norm, to the span of others cannot be told apart by any real data."""
_EMPTY = 1e-12
ROUNDS = 15
_CONVERGED = 1e-5
"""Relative change of the predicted torque at which Gauss-Newton and the iteration of the load end."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Parameters of a torque model.

    Attributes
    ----------
    model : whose parameters
    observations : what they were estimated from
    usable : (K, n) rows of every motion that were used
    loads : (N, n) torque of every motion that friction depends on: tau_out of the model itself [N m]
    fit : of the columns that were kept, about the solution
    kept : (q) which of the model's p parameters the fit has; the others are zero
    prior_std : (q,) that was used, infinite where nothing was known
    names : (q) with what else each holds, because the data cannot tell it apart
    values : (p,)
    delay : by which the torque was late, and was moved back [s]
    delay_sigma : standard deviation of what is left of it, or of a delay that nobody saw; the covariance allows for it
        [s]
    """

    model: TorqueModel
    observations: tuple[Observation, ...]
    usable: tuple[BoolArray, ...]
    loads: tuple[FloatArray, ...]
    fit: LinearFit
    kept: IntArray
    prior_std: FloatArray
    names: tuple[str, ...]
    values: FloatArray
    delay: float = 0.0
    delay_sigma: float = 0.0

    @property
    def covariance(self) -> FloatArray:
        """(p, p) honest covariance, zero for parameters that are not in the fit."""
        full = np.zeros((self.values.size, self.values.size))
        full[np.ix_(self.kept, self.kept)] = self.fit.covariance
        return full


def estimate(
    model: TorqueModel,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
    allowed: BoolArray | None = None,
    rounds: int = ROUNDS,
) -> Estimate:
    """Estimate all parameters of a model.

    Friction that depends on the load takes the torque behind friction that the model itself predicts: with the motor
    torque on both sides, measured or predicted, it would explain itself. Gauss-Newton, from a model without load.

    Parameters
    ----------
    usable : (K, n) rows of every motion
    solver : how each linear problem is solved
    allowed : (p,) False for parameters that are zero; None: all are estimated
    rounds : at most, where friction depends on the load

    Raises
    ------
    InputError
        When no usable rows are left.
    """
    if not any(mask.any() for mask in usable):
        raise InputError("no joint moves fast enough for its friction to show: there is no usable sample")
    permitted = np.ones(len(model.names), dtype=bool) if allowed is None else allowed
    of_load = np.isfinite(model.prior_std)
    prior = _prior(model, observations)
    loads = [np.zeros_like(observation.load) for observation in observations]
    values = np.zeros(len(model.names))
    for turn in range(rounds if model.load_dependent else 1):
        problem = model.problem(observations, loads, usable, values)
        columns = permitted & ~of_load if turn == 0 else permitted
        kept, names = _told_apart(problem, columns, prior)
        fit = solve(select_columns(problem, kept), solver, prior[kept])
        values = np.zeros(len(model.names))
        values[kept] = fit.values
        if model.load_dependent:
            predicted = [model.output_torque(observation, values) for observation in observations]
            change = sum(np.square(new - old).sum() for new, old in zip(predicted, loads, strict=True))
            loads = predicted
            if turn and change < _CONVERGED**2 * sum(np.square(load).sum() for load in loads):
                break
    return Estimate(model, tuple(observations), tuple(usable), tuple(loads), fit, kept, prior[kept], names, values)


def _told_apart(problem: LinearProblem, allowed: BoolArray, prior_std: FloatArray) -> tuple[IntArray, tuple[str, ...]]:
    """Columns that the data can tell apart, friction first; those with a prior always stay."""
    free = np.flatnonzero(allowed & np.isinf(prior_std))
    base = base_parameters([problem.names[k] for k in free], problem.W[:, free], DATA_TOLERANCE, _EMPTY)
    moving = np.linalg.norm(problem.W, axis=0) > 0.0
    certain = np.flatnonzero(allowed & np.isfinite(prior_std) & moving)
    kept = np.concatenate((free[base.kept], certain))
    names = base.names + tuple(problem.names[k] for k in certain)
    order = np.argsort(kept)
    return kept[order], tuple(names[k] for k in order)


def _prior(model: TorqueModel, observations: Sequence[Observation]) -> FloatArray:
    """Standard deviations (p,) of what is known before the fit, most of them infinite."""
    prior = model.prior_std.copy()
    torque = np.sqrt(np.mean(np.concatenate([one.torque for one in observations]) ** 2, axis=0))
    prior[: model.friction_count] = model.friction.prior_std(torque, reference_speeds(observations, model.friction))
    return prior
