"""What the live node and figures need of an estimate: one law a joint, and friction samples with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.core.friction import LinearFrictionLaw, make_linear_law
from friction_estimator.core.friction.identified import IdentifiedParameters
from friction_estimator.core.identification import FrictionSamples
from friction_estimator.core.types import BoolArray, FloatArray
from friction_estimator.identification.inverse_dynamics.estimation import Estimate
from friction_estimator.identification.inverse_dynamics.friction_columns import OFFSET

_RANK = 1e-9
_FIGURE_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class JointFriction:
    """Friction of one joint at the kept samples of all motions, and how it depends on the parameters.

    Attributes
    ----------
    velocity, load : (K,) [rad/s], [N m]
    friction : (K,) by the model: all of it but what no law can hold (offset, temperature, position) [N m]
    jacobian : (K, p) of the friction by the model's parameters
    measured : (K,) measured torque minus the rest of the model [N m]
    used : (K,) rows of the fit
    """

    velocity: FloatArray
    load: FloatArray
    friction: FloatArray
    jacobian: FloatArray
    measured: FloatArray
    used: BoolArray


def joint_friction(estimate: Estimate, joint: int, with_offset: bool) -> JointFriction:
    """Friction of one joint as the estimate has it; ``with_offset`` when the law that will hold it has an offset."""
    model = estimate.model
    in_law = np.zeros(len(model.names), dtype=bool)
    in_law[: model.friction_count + model.gain_count] = True
    in_law[: model.friction_count] = model.friction.in_law
    for column, name in enumerate(model.names[: model.friction_count]):
        if name.endswith(f"/{OFFSET}"):
            in_law[column] = with_offset
    parts = []
    for observation, load, usable in zip(estimate.observations, estimate.loads, estimate.usable, strict=True):
        kept = observation.filter.kept
        linearised = model.linearise(observation, load, estimate.values)
        torque = (linearised.known + linearised.columns @ estimate.values)[:, joint]
        friction = linearised.columns[:, joint, in_law] @ estimate.values[in_law]
        jacobian = np.where(in_law, linearised.columns[:, joint], 0.0)
        rest = model.friction_count + model.gain_count
        jacobian[:, rest:] = linearised.columns[:, joint, rest:] - observation.rigid[:, joint]
        behind = observation.filter.apply(torque[:, None])[:, 0]
        residual = observation.torque[:, joint] - behind
        parts.append(
            (
                observation.motion.velocity[kept, joint],
                torque[kept],
                friction[kept],
                jacobian[kept],
                friction[kept] + residual,
                usable[:, joint],
            )
        )
    return JointFriction(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def live_parameters(estimate: Estimate, law_names: Sequence[str]) -> IdentifiedParameters:
    """The estimate as one registered law a joint.

    A joint whose friction was estimated with that law gives its own parameters. Other friction (that of a motor that
    moves several joints, or of a richer model) is projected onto the law, at the samples of the fit.

    Parameters
    ----------
    law_names : (n) linear laws of the registry
    """
    laws = [make_linear_law(name) for name in law_names]
    joint_names = estimate.observations[0].motion.joint_names
    n, width = len(laws), max(len(law.parameter_names) for law in laws)
    values, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    residual_variance, noise_variance, samples = (np.zeros(n) for _ in range(3))
    for joint, law in enumerate(laws):
        seen = joint_friction(estimate, joint, OFFSET in law.parameter_names)
        use = seen.used
        phi = law.regressor(seen.velocity[use], seen.load[use])
        inverse = np.linalg.pinv(phi, rcond=_RANK)
        p = len(law.parameter_names)
        if use.any():
            values[joint, :p] = _projected(phi, seen.friction[use], law)
        gradient = inverse @ seen.jacobian[use]
        unseen = (np.eye(p) - inverse @ phi) * law.prior_std
        covariance[joint, :p, :p] = gradient @ estimate.covariance @ gradient.T + unseen @ unseen.T
        rows = estimate.fit.problem.joint == joint
        rho = estimate.fit.residual[rows]
        noise_variance[joint] = 0.5 * np.mean(np.diff(rho) ** 2) if rho.size > 1 else 0.0
        misfit = seen.measured[use] - phi @ values[joint, :p]
        residual_variance[joint] = max(float(np.mean(misfit**2)) - noise_variance[joint], 0.0) if use.any() else 0.0
        samples[joint] = use.sum()
    return IdentifiedParameters(
        joint_names, tuple(law_names), values, covariance, residual_variance, noise_variance, samples
    )


def _projected(phi: FloatArray, friction: FloatArray, law: LinearFrictionLaw) -> FloatArray:
    """Parameters of the law next to a friction torque, none below zero that must not be."""
    nonnegative = np.array(law.nonnegative)
    values = np.linalg.pinv(phi, rcond=_RANK) @ friction
    floor = _RANK * np.abs(values).max(initial=0.0)
    if (nonnegative & (values < -floor)).any():
        values = lsq_linear(phi, friction, (np.where(nonnegative, 0.0, -np.inf), np.inf), method="bvls").x
    return np.where(nonnegative & (values < floor), 0.0, values)


def friction_samples(estimate: Estimate) -> tuple[FrictionSamples, ...]:
    """Friction of every joint over velocity and load, thinned out for figures."""
    chosen = []
    for joint, name in enumerate(estimate.observations[0].motion.joint_names):
        seen = joint_friction(estimate, joint, True)
        keep = slice(None, None, max(1, seen.velocity.size // _FIGURE_SAMPLES))
        J = seen.jacobian[keep]
        sigma = np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", J, estimate.covariance, J), 0.0))
        chosen.append(
            FrictionSamples(
                name,
                seen.velocity[keep],
                seen.measured[keep],
                seen.load[keep],
                seen.friction[keep],
                sigma,
                seen.used[keep],
            )
        )
    return tuple(chosen)
