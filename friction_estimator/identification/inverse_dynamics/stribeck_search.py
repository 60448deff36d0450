"""The Stribeck velocity q_s with the smallest residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from friction_estimator.core.types import BoolArray
from friction_estimator.identification.inverse_dynamics.dead_zone import reference_speeds
from friction_estimator.identification.inverse_dynamics.estimation import estimate
from friction_estimator.identification.inverse_dynamics.load_velocity_friction import LoadVelocityFriction
from friction_estimator.identification.inverse_dynamics.observation import Observation
from friction_estimator.identification.inverse_dynamics.torque_model import TorqueModel
from friction_estimator.identification.regression.least_squares import SolverOptions
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody

_ROUNDS = 4
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

    def loss(logarithm: float) -> float:
        fit = estimate(
            TorqueModel(body, with_share(np.exp(logarithm))), observations, usable, plain, rounds=_ROUNDS
        ).fit
        joints = np.unique(fit.problem.joint)
        return float(sum(np.log(np.mean(fit.residual[fit.problem.joint == joint] ** 2)) for joint in joints))

    grid = np.log(np.geomspace(*_RANGE, 7))
    best = int(np.argmin([loss(point) for point in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    share = np.exp(minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 0.05}).x)
    chosen = with_share(float(share))
    speeds = ", ".join(f"{name} {v:.3g}" for name, v in zip(chosen.joint_names, chosen.stribeck_velocity, strict=True))
    return chosen, f"q_s has the smallest residual at {100 * share:.2g} % of each joint's speed, in rad/s: {speeds}"
