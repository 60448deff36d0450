"""Load- and velocity-dependent friction of one joint with a column for every product, as printed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from friction_estimator.identification.inverse_dynamics.friction_columns import LoadVelocityFriction
from friction_estimator.identification.inverse_dynamics.observation import Observation, stack
from friction_estimator.identification.regression.linear_problem import LinearProblem, select_columns
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody
from friction_estimator.types import BoolArray, FloatArray

_FACTORS = ("a_m", "b_m", "a_g", "b_g")
"""1 + alpha_m, gamma_m - alpha_m, 1 - alpha_g, gamma_g - alpha_g: what multiplies a base parameter (eq. 25)."""
_KNOWN = "known load"


def published_problem(
    observations: Sequence[Observation],
    body: RigidBody,
    friction: LoadVelocityFriction,
    joint: int,
    usable: Sequence[BoolArray],
) -> LinearProblem:
    """``Y_new = W_new chi_new + rho`` of one joint (Hamon et al. 2010, eqs. 40-43), any number of base parameters.

    Every base parameter of the joint, and the known torque of payloads, has a column for each factor. The products are
    estimated apart, though J appears in all four and a_m in all of its quadrant's. `TorqueModel` estimates factors and
    base parameters themselves. Columns that are zero (a base parameter that the joint does not feel) are left out.

    Parameters
    ----------
    joint : which one; of several joints each has its own problem and its own products
    usable : (K, n) rows of every motion
    """
    chosen = _FACTORS if friction.velocity_dependent else _FACTORS[::2]
    described = friction.described
    prefix = f"{friction.joint_names[joint]}/"
    direct = [k for k, name in enumerate(described.names) if name.startswith(prefix)]
    names = [f"{factor} {name}" for name in (*body.names, _KNOWN) for factor in chosen]
    names += [described.names[k] for k in direct]
    units = [unit for unit in (*body.units, "") for _ in chosen] + [described.units[k] for k in direct]
    n = len(friction.joint_names)
    columns, sides, masks = [], [], []
    for observation, mask in zip(observations, usable, strict=True):
        own = observation.filter.apply(_columns(observation, friction, joint, direct))
        columns.append(np.repeat(own[:, None], n, axis=1))  # `stack` takes rows of all joints; one of them is usable
        sides.append(observation.torque)
        masks.append(mask & (np.arange(n) == joint))
    problem = stack(observations, columns, sides, masks, names, units, np.zeros(len(names), dtype=bool))
    return select_columns(problem, np.flatnonzero(np.abs(problem.W).max(axis=0) > 0.0))


def _columns(observation: Observation, friction: LoadVelocityFriction, joint: int, direct: Sequence[int]) -> FloatArray:
    """Columns of eq. 42 at the working rate, (N, p)."""
    motion = observation.motion
    gains = friction.gains(motion.velocity, observation.load)[:, joint]
    count = gains.shape[1] // len(friction.joint_names)
    factors = gains[:, joint * count : (joint + 1) * count].copy()
    factors[:, count // 2] *= -1.0  # a_g = 1 - alpha_g counts as it is
    rigid = np.concatenate((observation.rigid[:, joint], observation.known[:, joint, None]), axis=1)
    products = rigid[:, :, None] * factors[:, None, :]
    forces = friction.columns(motion.position, motion.velocity, observation.load, motion.inputs)[:, joint, direct]
    return np.concatenate((products.reshape(len(rigid), -1), forces), axis=1)
