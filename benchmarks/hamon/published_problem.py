"""Load- and velocity-dependent friction of one joint with a column for every product, as published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.friction_columns import FrictionColumns
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.linear_problem import LinearProblem, select_columns
from friction_estimator.identification.rigid_body import RigidBody
from friction_estimator.laws import Role
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
    motion, load, site = observation.motion, observation.load, friction.sites[joint]
    velocity = motion.velocity[:, joint]
    driving = 0.5 * (1.0 + np.sign(load[:, joint] * velocity))  # P+ of eq. 27
    near = np.exp(-np.abs(velocity) / (site.stribeck or (1.0, 0.0))[0])  # E_xp of eq. 29
    factors = np.column_stack((driving, driving * near, 1.0 - driving, (driving - 1.0) * near))
    rigid = np.concatenate((observation.rigid[:, joint], observation.known[:, joint, None]), axis=1)
    products = rigid[:, :, None] * factors[:, None, :: 1 if fading else 2]
    forces = friction.columns(motion.position, motion.velocity, load, motion.inputs)[:, joint, direct]
    return np.concatenate((products.reshape(len(rigid), -1), forces), axis=1)
