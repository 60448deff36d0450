"""Is the torque late against the positions? A late torque looks like viscous friction, above all in a single sine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from friction_estimator.identification.inverse_dynamics.conditions import conditions
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.regression.least_squares import SolverOptions, solve
from friction_estimator.identification.regression.wrong_model import allowing_for_wrong_model
from friction_estimator.types import FloatArray

_USUAL = 5e-3
"""Standard deviation of the delay that any recording may have: a bus cycle, a filter of 30 Hz in the drive [s]."""
_SURE = 4.0
"""Standard deviations from zero above which a torque is moved."""
_STEP = 0.05
"""Of the working period: where a step of friction lies between two samples is not known better."""


@dataclass(frozen=True, slots=True)
class TorqueDelay:
    """By how much the torque is late against the positions, all joints alike.

    Attributes
    ----------
    seconds : negative when the positions are late
    sigma : [s]
    """

    seconds: float
    sigma: float

    @property
    def sure(self) -> bool:
        """Whether there is a delay beyond doubt."""
        return abs(self.seconds) > _SURE * self.sigma


def torque_delay(solution: Estimate, solver: SolverOptions) -> TorqueDelay:
    """Estimate the delay beside all parameters, about the solution: ``tau(t - d) = tau(t) - d dtau/dt``.

    A late torque adds what is proportional to the change of gravity and inertia: ``d k dq`` where gravity has the
    stiffness k. In a single sine all of that is viscous friction; only the steps of dry friction, and motion at several
    frequencies, tell them apart.

    Parameters
    ----------
    solution : with all parameters: the delay would take the place of those that were left out
    """
    problem, prior = solution.fit.problem, np.append(solution.prior_std, _USUAL)
    late = replace(
        problem,
        names=(*problem.names, "delay"),
        units=(*problem.units, "s"),
        W=np.column_stack((problem.W, _delay_column(solution))),
        nonnegative=np.append(problem.nonnegative, False),
    )
    fit = allowing_for_wrong_model(solve(late, solver, prior), conditions(solution), prior)
    step = _STEP * max(one.motion.period for one in solution.observations)
    return TorqueDelay(float(fit.values[-1]), float(np.hypot(np.sqrt(fit.covariance[-1, -1]), step)))


def delay_error(solution: Estimate) -> FloatArray:
    """Standard deviation (q,), signed, of the parameters of the fit that its unknown delay gives them, all at once."""
    root = np.sqrt(solution.fit.weights)
    W = solution.fit.problem.W * root[:, None]
    scale = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    rows = np.vstack((W / scale, np.diag(1.0 / (solution.prior_std * scale))))
    right = np.append(_delay_column(solution) * root, np.zeros(scale.size))
    return np.asarray(np.linalg.lstsq(rows, right, rcond=None)[0] / scale * solution.delay_sigma)


def allowing_for_delay(solution: Estimate) -> Estimate:
    """The estimate with a covariance that allows for its unknown delay."""
    error = delay_error(solution)
    return replace(solution, fit=replace(solution.fit, covariance=solution.fit.covariance + np.outer(error, error)))


def advanced(observations: Sequence[Observation], seconds: float) -> tuple[Observation, ...]:
    """The observations with a torque that was late by so much in its place."""
    shifted = []
    for one in observations:
        load = one.load.copy()
        for start, stop in one.filter.stretches:
            time = np.arange(stop - start) * one.motion.period
            if time.size > 1:
                load[start:stop] = CubicSpline(time, one.load[start:stop])(np.clip(time + seconds, 0.0, time[-1]))
        shifted.append(replace(one, load=load, torque=load[one.filter.kept]))
    return tuple(shifted)


def _delay_column(solution: Estimate) -> FloatArray:
    """Minus the derivative of the predicted torque, behind the same filter, at every row (r,) [N m/s]."""
    parts = []
    for one, usable in zip(solution.observations, solution.usable, strict=True):
        torque = solution.model.torque(one, solution.values)
        slope = np.zeros_like(torque)
        for start, stop in one.filter.stretches:
            if stop - start > 1:
                slope[start:stop] = np.gradient(torque[start:stop], one.motion.period, axis=0)
        parts.append(-one.filter.apply(slope)[usable])
    return np.concatenate(parts)
