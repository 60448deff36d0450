"""The compared models: the usual one, the new one as published, and the new one with shared factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.hamon.joint import JOINT, URDF
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.inverse_dynamics.estimation import DATA_TOLERANCE, Estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.method import estimate_inverse_dynamics
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.inverse_dynamics.options import InverseDynamicsOptions
from friction_estimator.identification.linear_problem import (
    ORDINARY,
    LinearFit,
    LinearProblem,
    fold_numbers,
    select_columns,
    select_rows,
    solve_values,
)
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.identification.recording.sampling import FLAT
from friction_estimator.identification.rigid_body import RigidBody, RigidBodyOptions, base_parameters
from friction_estimator.identification.uncertainty import solve
from friction_estimator.laws import Role
from friction_estimator.laws.published import LOAD_VELOCITY
from friction_estimator.types import BoolArray, FloatArray

_FACTORS = ("a_m", "b_m", "a_g", "b_g")
"""1 + alpha_m, gamma_m - alpha_m, 1 - alpha_g, gamma_g - alpha_g: what multiplies a base parameter (eq. 25)."""
_KNOWN = "known load"


def published_problem(
    observations: Sequence[Observation],
    body: RigidBody,
    friction: FrictionColumns,
    joint: int,
    usable: Sequence[BoolArray],
) -> LinearProblem:
    """``Y_new = W_new chi_new + rho`` of one joint (Hamon et al. 2010, eqs. 40-43), any number of base parameters.

    Every base parameter of the joint, and the known torque of payloads, has a column for each factor. The products are
    estimated separately, though J appears in all four and a_m in all of its quadrant's. `TorqueModel` estimates factors
    and base parameters themselves. Columns that are zero (a base parameter that the joint does not feel) are left out.

    Parameters
    ----------
    friction : of the law ``load_velocity``
    joint : which one; of several joints each has its own problem and its own products
    usable : (K, n) rows of every motion
    """
    described, name = friction.described, friction.joint_names[joint]
    own = [column.site == name and column.in_law for column in described]
    of_load = [column.parameter.role is Role.LOAD for column in described]
    direct = [k for k, mine in enumerate(own) if mine and not of_load[k]]
    chosen = _FACTORS if sum(own) - len(direct) == len(_FACTORS) else _FACTORS[::2]
    names = [f"{factor} {name}" for name in (*body.names, _KNOWN) for factor in chosen]
    names += [described[k].name for k in direct]
    units = [unit for unit in (*body.units, "") for _ in chosen] + [described[k].parameter.unit for k in direct]
    n = len(friction.joint_names)
    columns, sides, masks = [], [], []
    for observation, mask in zip(observations, usable, strict=True):
        filtered = observation.filter.apply(_columns(observation, friction, joint, direct, len(chosen) > 2))
        columns.append(np.repeat(filtered[:, None], n, axis=1))  # `stack` takes rows of all joints; one of them is used
        sides.append(observation.torque)
        masks.append(mask & (np.arange(n) == joint))
    problem = stack(observations, columns, sides, masks, names, units, np.zeros(len(names), dtype=bool))
    return select_columns(problem, np.flatnonzero(np.abs(problem.W).max(axis=0) > 0.0))


def _columns(
    observation: Observation, friction: FrictionColumns, joint: int, direct: Sequence[int], fading: bool
) -> FloatArray:
    """Columns of eq. 42 at the working rate, (N, p)."""
    motion, load = observation.motion, observation.load
    stribeck_velocity, _ = friction.stribeck[joint] if friction.stribeck else (1.0, 0.0)
    velocity = motion.velocity[:, joint]
    driving = 0.5 * (1.0 + np.sign(load[:, joint] * velocity))  # P+ of eq. 27
    near = np.exp(-np.abs(velocity) / stribeck_velocity)  # E_xp of eq. 29
    factors = np.column_stack((driving, driving * near, 1.0 - driving, (driving - 1.0) * near))
    rigid = np.concatenate((observation.rigid[:, joint], observation.known[:, joint, None]), axis=1)
    products = rigid[:, :, None] * factors[:, None, :: 1 if fading else 2]
    forces = friction.columns(motion.position, motion.velocity, load, motion.inputs)[:, joint, direct]
    return np.concatenate((products.reshape(len(rigid), -1), forces), axis=1)


SLOWEST = 0.002
"""Dead zone [rad/s]; samples at rest are left out, as published."""
SIGNIFICANT = 0.3
SLOW, FAST = 0.12, 0.42
"""10 % and 35 % of the largest velocity, 1.2 rad/s."""
CUTOFF_HZ = 8.0
"""Of the motion, the same for all experiments; both sides of the equation are low-passed at half of it."""
STRIBECK_VELOCITY = 0.03
"""q_s, given as in the paper [rad/s]."""


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
    common = {
        "solver": ORDINARY, "dead_zone": SLOWEST, "parallel_hz": cutoff_hz, "urdf_sigma": np.inf, "offset": True,
        "delay": 0.0,
    }  # fmt: skip
    usual, _ = estimate_inverse_dynamics(
        motions,
        model,
        InverseDynamicsOptions(body=RigidBodyOptions(payload_scale=payloads), **common),
    )
    shared, _ = estimate_inverse_dynamics(
        motions,
        model,
        InverseDynamicsOptions(law=LOAD_VELOCITY.name, stribeck_velocity=STRIBECK_VELOCITY, **common),
    )
    rows = list(zip(shared.observations, shared.usable, strict=True))
    speed = np.concatenate([np.abs(one.motion.velocity[one.filter.kept])[mask] for one, mask in rows])
    torque = np.concatenate([one.torque[mask] for one, mask in rows])
    fits = (
        ("usual", _significant(usual), None),
        ("new, products apart", _products_apart(shared), None),
        ("new, shared", shared.fit, shared),
    )
    models = [Compared(name, fit, _held_out(fit, estimate)) for name, fit, estimate in fits]
    return models, {model.name: model.errors(speed, torque) for model in models}


def _significant(usual: Estimate) -> LinearFit:
    """The usual model without inertial parameters and offsets that are not significant; those of the law stay."""
    model = usual.model
    optional = np.ones(len(model.names), dtype=bool)
    optional[: model.friction_count] = [column.optional for column in model.columns]
    gone = insignificant(usual.fit.values, usual.fit.sampling_covariance, optional[usual.kept], SIGNIFICANT)
    return solve(select_columns(usual.fit.problem, np.setdiff1d(np.arange(usual.kept.size), gone)), ORDINARY)


def insignificant(
    values: FloatArray, covariance: FloatArray, candidates: BoolArray, relative_sigma: float
) -> tuple[int, ...]:
    """Parameters to leave out, worst first (Hamon et al. 2010, §IV.D; relative deviation of eq. 16).

    When one is left out, the others are conditioned on its being zero by their covariance with it, and
    their standard deviations shrink: a parameter that looked insignificant next to a similar one may become significant
    without it.

    Parameters
    ----------
    values : (p,)
    covariance : (p, p) of the sampling, by blocks of time: with the published one, almost everything is significant
    candidates : (p,) which may go
    relative_sigma : sigma over absolute value above which a parameter is not significant
    """
    values, covariance = values.copy(), covariance.copy()
    remaining = candidates.copy()
    eliminated: list[int] = []
    while remaining.any():
        variance = np.maximum(np.diagonal(covariance), np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            ratio = np.where(remaining, np.sqrt(variance) / np.abs(values), 0.0)
        worst = int(np.argmax(ratio))
        if ratio[worst] <= relative_sigma:
            break
        gain = covariance[:, worst] / variance[worst]
        values -= gain * values[worst]
        covariance -= np.outer(gain, covariance[worst])
        remaining[worst] = False
        eliminated.append(worst)
    return tuple(eliminated)


def _products_apart(shared: Estimate) -> LinearFit:
    """Products apart; insignificant ones are left out."""
    problem = published_problem(shared.observations, shared.model.body, shared.model.friction, 0, shared.usable)
    problem = select_columns(problem, base_parameters(problem.names, problem.W, DATA_TOLERANCE).kept)
    fit = solve(problem, ORDINARY)
    gone = insignificant(fit.values, fit.sampling_covariance, np.ones(fit.values.size, dtype=bool), SIGNIFICANT)
    kept = np.setdiff1d(np.arange(fit.values.size), gone)
    return solve(select_columns(problem, kept), ORDINARY)


def _held_out(fit: LinearFit, estimate: Estimate | None) -> FloatArray:
    problem = fit.problem
    prior = None if estimate is None else estimate.prior
    fold, error = fold_numbers(problem.segment), np.empty_like(problem.y)
    for number in np.unique(fold):
        unseen = fold == number
        values = solve_values(select_rows(problem, ~unseen), ORDINARY, prior).values
        error[unseen] = problem.y[unseen] - problem.W[unseen] @ values
    return error
