"""The estimate as one registered law a joint, whose load is the motor torque, and friction samples with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.identification.inverse_dynamics.estimation import Estimate, Friction
from friction_estimator.identification.inverse_dynamics.friction_columns import OFFSET, LoadVelocityFriction
from friction_estimator.identification.result import FrictionSamples
from friction_estimator.laws import FrictionLaw, LinearFrictionLaw, make_law, make_linear_law
from friction_estimator.laws.gradient import load_slope
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.linear import load_velocity_at
from friction_estimator.laws.nonlinear import LoadVelocity
from friction_estimator.types import BoolArray, FloatArray

_FLOOR = 1e-4
"""Part of a torque below which differences do not count: there, the prior of the law decides."""
_ZERO = 1e-9
_SAMPLES, _VELOCITIES = 400, 25
_LOADS = np.array([-1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0])
_REACH = 2.0
"""How far beyond the largest dry friction loads reach: the motor torque then has either sign."""
_INDEPENDENT = 20.0
"""Samples that what a law cannot say counts as: it stays as long as a stretch of the motion."""
_GRID_WEIGHT = 0.01
"""Of loads that were not seen, beside samples."""


@dataclass(frozen=True, slots=True)
class SaidInLaw:
    """Parameters of a law next to a friction torque.

    Attributes
    ----------
    values : (p,)
    gradient : (p, N) of the values by the torque of every sample
    spread : (p, p) covariance that is no error of the torque: what the samples do not show, and what the law cannot say
    """

    values: FloatArray
    gradient: FloatArray
    spread: FloatArray


def said_in_law(
    law: LinearFrictionLaw,
    velocity: FloatArray,
    load: FloatArray,
    friction: FloatArray,
    weight: FloatArray | float = 1.0,
) -> SaidInLaw:
    """Regularised least squares of a law to a friction torque; the prior of the law decides what samples leave open.

    What the law cannot say does not average out as noise does: for the spread, the samples count as twenty.

    Parameters
    ----------
    velocity, load, friction : (N,) [rad/s], [N m], [N m]
    weight : (N,) of every sample
    """
    prior, root = np.array(law.prior_std), np.sqrt(np.broadcast_to(weight, velocity.shape))
    phi, wanted = law.regressor(velocity, load) * root[:, None], friction * root
    p, floor = prior.size, _FLOOR * float(np.sqrt(np.mean(wanted**2))) or 1.0
    values, noise = np.zeros(p), float(floor)
    for _ in range(2):  # as if the law could say all of it, then knowing what it cannot
        values = _bounded(law, phi / noise * prior, wanted / noise) * prior
        noise = float(max(np.sqrt(np.mean((phi @ values - wanted) ** 2)), floor))
    gradient = _inverse(phi / noise * prior)[:, :-p] * prior[:, None] / noise * root
    spread = _inverse(phi / (noise * np.sqrt(max(velocity.size / _INDEPENDENT, 1.0))) * prior)[:, -p:] * np.outer(
        prior, prior
    )
    return SaidInLaw(values, gradient, 0.5 * (spread + spread.T))


def said_in_motor_torque(
    law: LinearFrictionLaw, values: FloatArray, covariance: FloatArray, velocity: FloatArray, load: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Parameters (p,) and covariance (p, p) of the law that takes the motor torque for the torque behind friction.

    alpha of Hamon et al. 2010, eq. 17, becomes ``alpha / (1 + alpha)`` where the joint drives, ``alpha / (1 - alpha)``
    where it is driven, and all else of these quadrants is divided by the same numbers; by least squares, so that it
    holds for any law, at the samples and, where these do not decide, at loads of both signs. The motor torque is that
    of the law itself: friction is a part of it, and where it is most of it, what another law leaves over would be
    explained by ``friction = motor torque``.

    Parameters
    ----------
    values, covariance : (p,), (p, p) of the law with the load behind friction
    velocity, load : (N,) at which friction was seen [rad/s], torque behind friction [N m]
    """
    if not law.needs_load:
        return values, covariance
    speeds, loads, weight = _points(law, values, velocity, load)
    phi = law.regressor(speeds, loads)
    friction = phi @ values
    motor = loads + friction
    found = said_in_law(law, speeds, motor, friction, weight)
    slope = load_slope(law, found.values, speeds, motor)
    J = found.gradient @ (phi * (1.0 - slope)[:, None])  # friction changes, and with it the load
    return found.values, J @ covariance @ J.T + found.spread


def _points(
    law: LinearFrictionLaw, values: FloatArray, velocity: FloatArray, load: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Velocities, loads, weights (K,): samples, and their velocities with loads of both signs beyond dry friction."""
    few = slice(None, None, max(1, velocity.size // _SAMPLES))
    speeds = velocity[:: max(1, velocity.size // _VELOCITIES)]
    dry = np.abs(law.regressor(speeds, np.zeros(speeds.size)) @ values).max()
    pairs = np.meshgrid(speeds, max(np.abs(load).max(), _REACH * dry) * _LOADS)
    weight = np.append(np.ones(velocity[few].size), np.full(pairs[0].size, _GRID_WEIGHT))
    return np.append(velocity[few], pairs[0]), np.append(load[few], pairs[1]), weight


def _bounded(law: LinearFrictionLaw, phi: FloatArray, friction: FloatArray) -> FloatArray:
    """Parameters (p,) in units of their prior, which is about zero; none below zero that must not be."""
    rows, right = np.vstack((phi, np.eye(phi.shape[1]))), np.append(friction, np.zeros(phi.shape[1]))
    nonnegative = np.array(law.nonnegative)
    values = np.linalg.lstsq(rows, right, rcond=None)[0]
    small = _ZERO * np.abs(values).max(initial=0.0)
    if (nonnegative & (values < -small)).any():
        values = lsq_linear(rows, right, (np.where(nonnegative, 0.0, -np.inf), np.inf), method="bvls").x
    return np.where(nonnegative & (values < small), 0.0, values)


def _inverse(phi: FloatArray) -> FloatArray:
    """Pseudoinverse (p, N + p) of rows and prior; its part of the prior is the covariance."""
    return np.asarray(np.linalg.pinv(np.vstack((phi, np.eye(phi.shape[1])))))


_FIGURE_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class JointFriction:
    """Friction of one joint at the kept samples of all motions, and how it depends on the parameters.

    Attributes
    ----------
    velocity : (K,) [rad/s]
    load : (K,) motor torque, by the model [N m]
    output : (K,) torque behind friction, tau_out, by the model [N m]
    output_jacobian : (K, p) of it by the model's parameters
    friction : (K,) by the model: all of it but what no law can hold (offset, temperature, position) [N m]
    jacobian : (K, p) of the friction by the model's parameters
    measured : (K,) measured torque minus the rest of the model [N m]
    used : (K,) rows of the fit
    """

    velocity: FloatArray
    load: FloatArray
    output: FloatArray
    output_jacobian: FloatArray
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
        rest = model.friction_count + model.gain_count
        jacobian = np.where(in_law | (np.arange(in_law.size) >= rest), linearised.columns[:, joint], 0.0)
        output_jacobian = np.zeros_like(jacobian)
        output_jacobian[:, rest:] = observation.rigid[:, joint]
        jacobian -= output_jacobian
        behind = observation.filter.apply(torque[:, None])[:, 0]
        residual = observation.torque[:, joint] - behind
        parts.append(
            (
                observation.motion.velocity[kept, joint],
                torque[kept],
                load[kept, joint],
                output_jacobian[kept],
                friction[kept],
                jacobian[kept],
                friction[kept] + residual,
                usable[:, joint],
            )
        )
    return JointFriction(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def live_parameters(estimate: Estimate, law_names: Sequence[str]) -> IdentifiedParameters:
    """The estimate as one registered law a joint, whose load is the motor torque.

    A joint whose friction was estimated with that law gives its own parameters. Other friction (that of a motor that
    moves several joints, or of another model) is projected onto the law, at the samples of the fit. Laws that depend on
    the load are then said in the motor torque.

    Parameters
    ----------
    law_names : (n) linear laws of the registry, or ``load_velocity``, which takes the Stribeck velocity of the estimate
    """
    joint_names = estimate.observations[0].motion.joint_names
    laws = [make_law(name) for name in law_names]
    n, width = len(laws), max(len(law.parameter_names) for law in laws)
    values, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    residual_variance, noise_variance, samples = (np.zeros(n) for _ in range(3))
    for joint, law in enumerate(laws):
        seen = joint_friction(estimate, joint, OFFSET in law.parameter_names)
        use = seen.used
        linear, shape, spread = _linear(law, estimate.model.friction, joint)
        p = len(linear.parameter_names)
        if use.any():
            values[joint, :p], covariance[joint, :p, :p] = _live(linear, seen, estimate.covariance)
        else:
            covariance[joint, :p, :p] = np.diag(np.square(linear.prior_std))
        values[joint, p : p + shape.size], covariance[joint, p : p + shape.size, p : p + shape.size] = shape, spread
        rows = estimate.fit.problem.joint == joint
        rho = estimate.fit.residual[rows]
        noise_variance[joint] = 0.5 * np.mean(np.diff(rho) ** 2) if rho.size > 1 else 0.0
        misfit = seen.measured[use] - linear.regressor(seen.velocity[use], seen.load[use]) @ values[joint, :p]
        residual_variance[joint] = max(float(np.mean(misfit**2)) - noise_variance[joint], 0.0) if use.any() else 0.0
        samples[joint] = use.sum()
    return IdentifiedParameters(
        joint_names, tuple(law_names), values, covariance, residual_variance, noise_variance, samples
    )


def _linear(law: FrictionLaw, friction: Friction, joint: int) -> tuple[LinearFrictionLaw, FloatArray, FloatArray]:
    """The law with the shape that the estimate has, and that shape (s,) with covariance, its last parameters."""
    if isinstance(law, LoadVelocity) and isinstance(friction, LoadVelocityFriction):
        speed = float(friction.stribeck_velocity[joint])
        sigma = 0.0 if friction.stribeck_sigma is None else float(friction.stribeck_sigma[joint])
        return load_velocity_at(speed), np.array([speed]), np.array([[sigma**2]])
    return make_linear_law(law.name), np.zeros(0), np.zeros((0, 0))


def _live(law: LinearFrictionLaw, seen: JointFriction, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters of one joint with their covariance, the load being the motor torque."""
    velocity, output = seen.velocity[seen.used], seen.output[seen.used]
    found = said_in_law(law, velocity, output, seen.friction[seen.used])
    jacobian = seen.jacobian[seen.used]
    if law.needs_load:  # a load that changes takes the columns of the law with it
        slope = load_slope(law, found.values, velocity, output)
        jacobian = jacobian - slope[:, None] * seen.output_jacobian[seen.used]
    gradient = found.gradient @ jacobian
    own = gradient @ covariance @ gradient.T + found.spread
    return said_in_motor_torque(law, found.values, own, velocity, output)


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
