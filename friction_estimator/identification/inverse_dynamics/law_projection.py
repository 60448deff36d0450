"""A friction torque said in a registered law, and a law of the load behind friction said in the motor torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from friction_estimator.laws import LinearFrictionLaw
from friction_estimator.laws.gradient import load_slope
from friction_estimator.types import FloatArray

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
