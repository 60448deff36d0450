"""Inertias of real bodies: the nearest ones to identified base parameters, and how far away they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.optimize import minimize
from scipy.stats import chi2, norm

from friction_estimator.identification.fixed_base_model import STANDARD_COUNT
from friction_estimator.types import BoolArray, FloatArray

_PULL_WEIGHT = 0.01
"""Weight of a body's divergence from that of the URDF: a hundred times its mass is as likely as an error of three
sigma. It decides what data do not, and keeps bodies from having no width at all."""
_BLUR_SHARE = 0.01
"""Share of its width that a body of the URDF gets in every direction: those without width are no reference."""
_LEAST_INERTIA = np.diag([1e-8, 1e-8, 1e-8, 0.0])
"""Pseudo-inertia [kg m^2] that every body of the URDF gets besides: some are points."""
_GENERIC_BODY = np.diag([0.005, 0.005, 0.005, 1.0])
"""Pseudo-inertia of 1 kg, in place of bodies without mass."""
_SMALL_DRIVE = 0.01
"""Size of a drive of which nothing is known [kg m^2]."""
_CONFIDENCE = 0.99
"""Of the chi-square test whether an estimate can be one of real bodies."""
_PULL_FALLS = 0.1
_CONVERGED_GRADIENT = 1e-3
"""Newton's method ends where the scaled gradient is this share of the pull."""
_FIRST_STEP, _LONGEST_STEP, _ITERATIONS = 1e3, 1e12, 500
"""Of the trust region, in scaled parameters."""

_BASIS = np.stack([pin.PseudoInertia.FromDynamicParameters(one).toMatrix() for one in np.eye(STANDARD_COUNT)])
"""(10, 4, 4) pseudo-inertia by standard parameters."""


@dataclass(frozen=True, slots=True)
class PhysicalInertia:
    """Bodies with positive mass, positive-definite pseudo-inertia and positive drive inertia."""

    standard: FloatArray  # (s,) standard parameters of the links, then the drives
    base: FloatArray  # (b,) the base parameters that they give
    distance: float  # of these from the identified ones, in standard deviations (Mahalanobis)
    plausible: bool  # the distance is what noise explains (99 % of a chi-square distribution)
    # (b,) base parameters that are farther from those of real bodies than noise explains (99 %, of the largest of
    # b)
    impossible: BoolArray


def nearest_physical(
    grouping: FloatArray, values: FloatArray, covariance: FloatArray, reference: FloatArray
) -> PhysicalInertia:
    """Bodies that exist and explain identified base parameters best (Lee, Wensing & Park 2020).

    Pseudo-inertias that are positive definite are a convex set, the weighted distance is a convex function of them, and
    so is the log-det divergence from the bodies of the URDF: there is one minimum, which Newton's method finds from
    anywhere. The distance is weighted by the covariance: what data show well hardly moves.

    Parameters
    ----------
    grouping : (b, s) base = grouping @ standard
    values, covariance : (b,), (b, b) identified
    reference : (10 l,) standard parameters of the l links in the URDF; the s - 10 l others are drives
    """
    whitening = _whitening(covariance)
    bodies = _reference_bodies(reference.reshape(-1, STANDARD_COUNT))
    inverse = np.asarray(np.linalg.inv(bodies))
    held = np.where(grouping[:, reference.size :] != 0.0, np.abs(values)[:, None], 0.0)
    drives = held.max(axis=0, initial=_SMALL_DRIVE)  # as large as the largest base parameter that holds it
    divergence, to_standard = _Divergence(inverse, drives), np.linalg.pinv(_BASIS.reshape(STANDARD_COUNT, 16))
    standard = np.concatenate(((bodies.reshape(-1, 16) @ to_standard).ravel(), drives))
    standard = _minimum(whitening @ grouping, whitening @ values, divergence, standard)
    base = grouping @ standard
    distance = float(np.linalg.norm(whitening @ (base - values)))
    plausible = bool(distance**2 < chi2.ppf(_CONFIDENCE, values.size))
    largest = norm.ppf(1.0 - (1.0 - _CONFIDENCE) / (2.0 * max(values.size, 1)))
    far = np.abs(base - values) > largest * np.sqrt(np.diagonal(covariance))
    return PhysicalInertia(standard, base, distance, plausible, far)


@dataclass(frozen=True, slots=True)
class _Divergence:
    """Log-det divergence ``tr(R^-1 P) - ln det P`` of bodies and drives (s,) from references; convex."""

    inverse: FloatArray  # (l, 4, 4) inverse pseudo-inertias R^-1 of the reference bodies
    drives: FloatArray  # (m,) drive inertias of reference

    def value(self, standard: FloatArray) -> float:
        """Infinite where a body or a drive cannot exist."""
        P, drives = self._split(standard)
        if (drives <= 0.0).any() or (np.linalg.eigvalsh(P) <= 0.0).any():
            return np.inf
        bodies = np.einsum("kij,kji->", self.inverse, P) - np.linalg.slogdet(P)[1].sum()
        return float(bodies + (drives / self.drives - np.log(drives)).sum())

    def gradient(self, standard: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First (s,) and second (s, s) derivative."""
        P, drives = self._split(standard)
        change = np.einsum("kij,ajl->kail", np.linalg.inv(P), _BASIS)  # P^-1 dP
        first = np.einsum("kij,aji->ka", self.inverse, _BASIS) - np.einsum("kaii->ka", change)
        blocks = np.einsum("kaij,kbji->kab", change, change)
        second = np.diag(np.concatenate((np.zeros(first.size), drives**-2.0)))
        for link, block in enumerate(blocks):
            rows = slice(STANDARD_COUNT * link, STANDARD_COUNT * (link + 1))
            second[rows, rows] = block
        return np.concatenate((first.ravel(), 1.0 / self.drives - 1.0 / drives)), second

    def _split(self, standard: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Pseudo-inertias (l, 4, 4) and drive inertias (m,)."""
        last = STANDARD_COUNT * len(self.inverse)
        return np.einsum("ka,aij->kij", standard[:last].reshape(-1, STANDARD_COUNT), _BASIS), standard[last:]


def _minimum(A: FloatArray, b: FloatArray, divergence: _Divergence, standard: FloatArray) -> FloatArray:
    """Minimum of ``|A s - b|^2 / 2 + pull * divergence(s)`` from bodies that exist (s,).

    The weight of the prior is lowered step by step: Newton steps would else get stuck at the edge of the real bodies.
    With each pull, Newton's method within a trust region finds the minimum.
    """
    error = A @ standard - b
    pull = max(_PULL_WEIGHT, float(error @ error) / standard.size)
    while True:
        # units of masses and inertias differ by millions
        scale = 1.0 / np.sqrt(np.diagonal(A.T @ A + pull * divergence.gradient(standard)[1]))

        def cost(z: FloatArray, scale: FloatArray = scale, pull: float = pull) -> float:
            error = A @ (scale * z) - b
            return float(0.5 * error @ error + pull * divergence.value(scale * z))

        def gradient(z: FloatArray, scale: FloatArray = scale, pull: float = pull) -> FloatArray:
            return scale * (A.T @ (A @ (scale * z) - b) + pull * divergence.gradient(scale * z)[0])

        def hessian(z: FloatArray, scale: FloatArray = scale, pull: float = pull) -> FloatArray:
            return np.outer(scale, scale) * (A.T @ A + pull * divergence.gradient(scale * z)[1])

        options = {
            "gtol": _CONVERGED_GRADIENT * pull, "maxiter": _ITERATIONS,
            "initial_trust_radius": _FIRST_STEP, "max_trust_radius": _LONGEST_STEP,
        }  # fmt: skip
        start = standard / scale
        standard = scale * minimize(cost, start, method="trust-exact", jac=gradient, hess=hessian, options=options).x
        if pull <= _PULL_WEIGHT:
            return np.asarray(standard)
        pull = max(_PULL_WEIGHT, pull * _PULL_FALLS)


def _reference_bodies(dynamic: FloatArray) -> FloatArray:
    """Positive-definite pseudo-inertias (l, 4, 4) of the URDF's bodies (l, 10), also where these cannot exist."""
    P = np.einsum("ka,aij->kij", dynamic, _BASIS)
    P = np.where((P[:, 3, 3] > 0.0)[:, None, None], P, _GENERIC_BODY)
    eigenvalues, vectors = np.linalg.eigh(P)
    P = np.einsum("kia,ka,kja->kij", vectors, np.maximum(eigenvalues, 0.0), vectors)
    width = np.einsum("kii->k", P[:, :3, :3])
    return np.asarray(P + _BLUR_SHARE * width[:, None, None] * np.diag([1.0, 1.0, 1.0, 0.0]) + _LEAST_INERTIA)


def _whitening(covariance: FloatArray) -> FloatArray:
    """(b, b) matrix that turns errors into standard deviations; directions without error count like nearly none."""
    sigma = np.sqrt(np.diagonal(covariance))
    sigma = np.where(sigma > 0.0, sigma, 1.0)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(sigma, sigma))
    floor = 1e-9 * eigenvalues[-1] if eigenvalues.size else 0.0
    return np.asarray((vectors / np.sqrt(np.maximum(eigenvalues, floor))).T / sigma)
