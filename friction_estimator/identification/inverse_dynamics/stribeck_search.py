"""The Stribeck velocity q_s with the smallest residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from friction_estimator.identification.inverse_dynamics.dead_zone import reference_speeds
from friction_estimator.identification.inverse_dynamics.estimation import estimate
from friction_estimator.identification.inverse_dynamics.load_velocity_friction import LoadVelocityFriction
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.torque_model import TorqueModel
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.regression.linear_problem import LinearFit
from friction_estimator.identification.regression.residual_blocks import correlation_time
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody
from friction_estimator.types import BoolArray

_ROUNDS = 4
_SIDE = 0.3
"""Step of ln q_s over which the residual tells how sharp its minimum is."""
_RANGE = (0.003, 0.3)
"""Where q_s is searched, in reference speeds of a joint; Hamon et al. 2010 found 0.03 / 1.2."""


def search_stribeck_velocity(
    body: RigidBody,
    friction: LoadVelocityFriction,
    observations: Sequence[Observation],
    usable: Sequence[BoolArray],
    solver: SolverOptions,
) -> tuple[LoadVelocityFriction, str]:
    """q_s with the smallest residual (Hamon et al. 2010, §III.D), residuals in standard deviations of their joint."""
    reference = reference_speeds(observations, friction)
    plain = replace(solver, robust=False)  # weights that jump from one trial to the next would hide the minimum

    def with_share(share: float) -> LoadVelocityFriction:
        speed = np.maximum(share * reference, np.finfo(float).eps)
        return LoadVelocityFriction(friction.joint_names, speed, True)

    def fitted(logarithm: float) -> LinearFit:
        return estimate(
            TorqueModel(body, with_share(np.exp(logarithm))), observations, usable, plain, rounds=_ROUNDS
        ).fit

    def loss(logarithm: float) -> float:
        return _deviance(fitted(logarithm))

    grid = np.log(np.geomspace(*_RANGE, 7))
    best = int(np.argmin([loss(point) for point in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 0.05})
    share, sides = np.exp(found.x), [loss(found.x + side * _SIDE) for side in (-1.0, 1.0)]
    spread = _spread(fitted(found.x), (sides[0] - 2.0 * found.fun + sides[1]) / _SIDE**2)
    best_fit = with_share(float(share))
    chosen = replace(best_fit, stribeck_sigma=spread * best_fit.stribeck_velocity)
    speeds = ", ".join(f"{name} {v:.3g}" for name, v in zip(chosen.joint_names, chosen.stribeck_velocity, strict=True))
    return chosen, f"q_s has the smallest residual at {100 * share:.2g} % of each joint's speed, in rad/s: {speeds}"


def _deviance(fit: LinearFit) -> float:
    """Minus twice the logarithm of the likelihood (Gaussian, each joint with its own variance), for one row a joint."""
    joints = np.unique(fit.problem.joint)
    return float(sum(np.log(np.mean(fit.residual[fit.problem.joint == joint] ** 2)) for joint in joints))


def _spread(fit: LinearFit, curvature: float) -> float:
    """Standard deviation of ln q_s, from the curvature of the deviance; rows that residuals remember count once."""
    independent = fit.residual.size / np.unique(fit.problem.joint).size / correlation_time(fit.problem, fit.residual)
    widest = float(np.log(_RANGE[1] / _RANGE[0]) / np.sqrt(12.0))
    return min(float(np.sqrt(2.0 / (independent * curvature))), widest) if curvature > 0.0 else widest
