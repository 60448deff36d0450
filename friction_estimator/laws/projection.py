"""A fitted friction curve said in another, linear law: how a live filter starts from a nonlinear fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.laws.gradient import torque_gradient
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.law import FrictionLaw, make_law
from friction_estimator.laws.linear import LinearFrictionLaw, make_linear_law
from friction_estimator.types import FloatArray

_SPEEDS = np.geomspace(1e-3, 10.0, 40)
_VELOCITY = np.concatenate((-_SPEEDS[::-1], _SPEEDS))
_LOADS = (0.0, -30.0, -10.0, 10.0, 30.0)
"""Loads at which a law that depends on them is compared [N m]."""
_FLOOR = 1e-3
"""No curve is believed to better than this part of its size."""
_ROUNDS = 3
_WORTH_TELLING = 0.05


@dataclass(frozen=True, slots=True)
class Projection:
    """The linear law that is nearest to a curve, where the curve is known.

    Attributes
    ----------
    values : (p,) of the linear law
    covariance : (p, p) with what was not known of the curve, and what this law cannot say
    offset : part of the curve that does not change with the velocity and that this law lacks [N m]
    misfit : RMS of what else the law cannot say, weighted by how well the curve is known [N m]
    """

    values: FloatArray
    covariance: FloatArray
    offset: float
    misfit: float


def project_onto(
    target: LinearFrictionLaw, law: FrictionLaw, values: FloatArray, covariance: FloatArray, residual_variance: float
) -> Projection:
    """Generalised least squares of the linear law to the curve, on a grid of velocities from 1 mrad/s to 10 rad/s.

    The curve's error at each velocity and the correlation between them follow from its covariance: where it was never
    seen it weighs nothing, and there the target keeps its prior. The grid counts as many independent measurements as
    the target has parameters.

    Parameters
    ----------
    target : law that is wanted
    law, values, covariance : the curve, parameters (q,) and their covariance (q, q)
    residual_variance : of what the curve itself does not explain [(N m)^2]
    """
    velocity, load = _grid(law)
    curve = law.torque(values[None, :], velocity, load)
    slopes = torque_gradient(law, values, velocity, load)
    unsure = slopes @ covariance @ slopes.T
    columns = target.regressor(velocity, load)
    own_offset = "offset" in target.parameter_names
    columns = columns if own_offset else np.column_stack((columns, np.ones(velocity.size)))
    p, count = len(target.parameter_names), columns.shape[1]
    prior_std = np.append(target.prior_std, [np.abs(curve).max() + 1.0] * (count - p))
    lower = np.where(np.append(target.nonnegative, [False] * (count - p)), 0.0, -np.inf)
    trust = 1.0 / (np.diagonal(unsure) + residual_variance + _FLOOR**2 * np.mean(curve**2))
    misfit = 0.0
    for _ in range(_ROUNDS):
        noise = residual_variance + misfit**2 + _FLOOR**2 * np.average(curve**2, weights=trust)
        root = np.linalg.cholesky(unsure + noise * velocity.size / p * np.eye(velocity.size))
        rows = np.vstack((np.linalg.solve(root, columns), np.diag(1.0 / prior_std)))
        right = np.concatenate((np.linalg.solve(root, curve), np.zeros(count)))
        found = lsq_linear(rows, right, (lower, np.inf)).x
        misfit = float(np.sqrt(np.average((columns @ found - curve) ** 2, weights=trust)))
    spread = np.linalg.inv(rows.T @ rows)
    return Projection(found[:p], spread[:p, :p], 0.0 if own_offset else float(found[p]), misfit)


def with_linear_laws(
    identified: IdentifiedParameters, joint_names: Sequence[str], law_names: Sequence[str]
) -> tuple[IdentifiedParameters, tuple[str, ...]]:
    """Parameters of nonlinear laws, said in the linear laws that a robot's filters have.

    Parameters
    ----------
    identified : any; joints with a linear law, or that this robot lacks, stay as they are
    joint_names, law_names : (n) of the robot here

    Returns
    -------
    identified : ready for filters
    notes : what was said in another law, and what that one cannot say; one sentence a joint
    """
    wanted = dict(zip(joint_names, law_names, strict=True))
    rows = [
        row
        for row, (joint, law) in enumerate(zip(identified.joint_names, identified.law_names, strict=True))
        if joint in wanted and law != wanted[joint] and not isinstance(make_law(law), LinearFrictionLaw)
    ]
    if not rows:
        return identified, ()
    width = max(identified.values.shape[1], *(len(make_law(name).parameter_names) for name in law_names))
    laws, values, covariance = list(identified.law_names), *_widened(identified, width)
    residual_variance, notes = identified.residual_variance.copy(), []
    for row in rows:
        joint, saved = identified.joint_names[row], make_law(identified.law_names[row])
        target, q = make_linear_law(wanted[joint]), len(saved.parameter_names)
        found = project_onto(
            target, saved, values[row, :q].copy(), covariance[row, :q, :q].copy(), float(residual_variance[row])
        )
        p = found.values.size
        laws[row], values[row], covariance[row] = target.name, 0.0, 0.0
        values[row, :p], covariance[row, :p, :p] = found.values, found.covariance
        residual_variance[row] += found.misfit**2
        notes.append(_note(joint, saved.name, target.name, found))
    changed = replace(
        identified, law_names=tuple(laws), values=values, covariance=covariance, residual_variance=residual_variance
    )
    return changed, tuple(notes)


def _note(joint: str, saved: str, target: str, found: Projection) -> str:
    size = np.sqrt(found.misfit**2 + found.offset**2)
    text = f"{joint}: the curve of {saved} is said by {target}, to {found.misfit:.2g} N m RMS"
    if abs(found.offset) > _WORTH_TELLING * max(size, _FLOOR):
        text += f", without its offset of {found.offset:.2g} N m"
    return text


def _grid(law: FrictionLaw) -> tuple[FloatArray, FloatArray]:
    """Velocities and loads (K,) at which two laws are compared; one load unless the curve depends on it."""
    loads = _LOADS if law.needs_load else _LOADS[:1]
    velocity, load = np.meshgrid(_VELOCITY, loads)
    return velocity.ravel(), load.ravel()


def _widened(identified: IdentifiedParameters, width: int) -> tuple[FloatArray, FloatArray]:
    """Copies of values (n, width) and covariance (n, width, width)."""
    n, p = identified.values.shape
    values, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    values[:, :p], covariance[:, :p, :p] = identified.values, identified.covariance
    return values, covariance
