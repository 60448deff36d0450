"""The models that are compared: the usual one, the new one as printed, and the new one with shared factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.hamon.published_problem import published_problem
from benchmarks.hamon.rx130l import JOINT, URDF
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimation import DATA_TOLERANCE, Estimate
from friction_estimator.identification.inverse_dynamics.method import estimate_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.inverse_dynamics.refinement import insignificant
from friction_estimator.identification.joint_log import Motion
from friction_estimator.identification.least_squares import ORDINARY, solve
from friction_estimator.identification.linear_problem import (
    LinearFit,
    fold_numbers,
    held_out_prediction,
    select_columns,
    select_rows,
)
from friction_estimator.identification.recording.spectrum import FLAT
from friction_estimator.identification.rigid_body import RigidBodyOptions, base_parameters
from friction_estimator.laws.nonlinear import LOAD_VELOCITY
from friction_estimator.types import BoolArray, FloatArray

SLOWEST = 0.002
"""Dead zone [rad/s]; samples at rest are left out, as printed."""
SIGNIFICANT = 0.3
SLOW, FAST = 0.12, 0.42
"""10 % and 35 % of the largest velocity, 1.2 rad/s."""
CUTOFF_HZ = 8.0
"""Of the motion, the same for all experiments; both sides of the equation are low-passed at half of it."""
STRIBECK_VELOCITY = 0.03
"""q_s, told as in the print [rad/s]."""


@dataclass(frozen=True)
class Compared:
    """One model: its fit on all samples, and what it predicts of segments that were left out of the fit."""

    name: str
    fit: LinearFit
    held_out: FloatArray

    def errors(self, speed: FloatArray, torque: FloatArray) -> list[float]:
        """Relative norm of errors of all samples, of slow ones, of fast ones, and of all samples held out."""
        rho = self.fit.residual
        subsets: list[BoolArray] = [speed >= 0.0, speed < SLOW, speed > FAST]
        norms = [float(np.linalg.norm(rho[rows]) / np.linalg.norm(torque[rows])) for rows in subsets]
        return [*norms, float(np.linalg.norm(self.held_out) / np.linalg.norm(torque))]


def compare(
    motions: Sequence[Motion], payloads: bool, cutoff_hz: float = CUTOFF_HZ / FLAT
) -> tuple[list[Compared], dict[str, list[float]]]:
    """Identify three models from the same rows; also their errors by name."""
    model = FixedBaseModel(URDF, (JOINT,))
    common = {"solver": ORDINARY, "dead_zone": SLOWEST, "cutoff_hz": cutoff_hz}
    usual, _ = estimate_inverse_dynamics(
        motions,
        model,
        InverseDynamicsOptions(body=RigidBodyOptions(payload_scale=payloads), significance=SIGNIFICANT, **common),
    )
    shared, _ = estimate_inverse_dynamics(
        motions,
        model,
        InverseDynamicsOptions(
            law=LOAD_VELOCITY.name, stribeck_velocity=STRIBECK_VELOCITY, significance=None, **common
        ),
    )
    rows = list(zip(shared.observations, shared.usable, strict=True))
    speed = np.concatenate([np.abs(one.motion.velocity[one.filter.kept])[mask] for one, mask in rows])
    torque = np.concatenate([one.torque[mask] for one, mask in rows])
    fits = (
        ("usual", usual.fit, None),
        ("new, products apart", _printed(shared), None),
        ("new, shared", shared.fit, shared),
    )
    models = [Compared(name, fit, _held_out(fit, estimate)) for name, fit, estimate in fits]
    return models, {model.name: model.errors(speed, torque) for model in models}


def _printed(shared: Estimate) -> LinearFit:
    """Products apart; insignificant ones are left out."""
    problem = published_problem(shared.observations, shared.model.body, shared.model.friction, 0, shared.usable)
    problem = select_columns(problem, base_parameters(problem.names, problem.W, DATA_TOLERANCE).kept)
    fit = solve(problem, ORDINARY)
    gone = insignificant(fit.values, fit.sampling_covariance, np.ones(fit.values.size, dtype=bool), SIGNIFICANT)
    kept = np.setdiff1d(np.arange(fit.values.size), gone)
    return solve(select_columns(problem, kept), ORDINARY)


def _held_out(fit: LinearFit, estimate: Estimate | None) -> FloatArray:
    problem = fit.problem
    prior = None if estimate is None else estimate.prior_std
    prediction = held_out_prediction(
        problem,
        fold_numbers(problem.segment),
        lambda rows: solve(select_rows(problem, rows), ORDINARY, prior).values,
    )
    return problem.y - prediction
