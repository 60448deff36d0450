"""Inertias of real bodies: the nearest ones to identified base parameters, and how far away they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares
from scipy.stats import chi2

from friction_estimator.core.types import FloatArray
from friction_estimator.identification.rigid_body.fixed_base_model import STANDARD_COUNT

_PULL = 1.0
"""Weight of a logarithm's distance from the URDF, in standard deviations of a base parameter: bodies of a third or
three times the mass are as likely as an error of one sigma. It decides what data do not."""
_GENERIC = np.array([1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01])
"""A body of 1 kg: where the search starts when the URDF's body is none."""
_SMALL_DRIVE = 0.01
_CONFIDENCE = 0.99
_CONVERGED = 1e-4
_EVALUATIONS = 300


@dataclass(frozen=True, slots=True)
class PhysicalInertia:
    """Bodies with positive mass, positive-definite pseudo-inertia and positive drive inertia.

    Attributes
    ----------
    standard : (s,) standard parameters of the links, then the drives
    base : (b,) the base parameters that they give
    distance : of these from the identified ones, in standard deviations (Mahalanobis)
    plausible : the distance is what noise explains (99 % of a chi-square distribution)
    """

    standard: FloatArray
    base: FloatArray
    distance: float
    plausible: bool


def nearest_physical(
    grouping: FloatArray, values: FloatArray, covariance: FloatArray, reference: FloatArray
) -> PhysicalInertia:
    """Bodies that exist and explain identified base parameters best.

    Every link is ten log-Cholesky parameters (Rucker & Wensing 2022), whose pseudo-inertia cannot but be positive
    definite; drive inertias are exponentials. The distance is weighted by the covariance: what data show
    well hardly moves.

    Parameters
    ----------
    grouping : (b, s) base = grouping @ standard
    values, covariance : (b,), (b, b) identified
    reference : (10 l,) standard parameters of the l links in the URDF; the s - 10 l others are drives
    """
    links = reference.size // STANDARD_COUNT
    start = np.concatenate(
        [
            *(_log_cholesky(reference[STANDARD_COUNT * k : STANDARD_COUNT * (k + 1)]) for k in range(links)),
            np.full(grouping.shape[1] - reference.size, np.log(_SMALL_DRIVE)),
        ]
    )
    whitening = _whitening(covariance)

    def residual(parameters: FloatArray) -> FloatArray:
        distance = whitening @ (grouping @ _standard(parameters, links)[0] - values)
        return np.concatenate((distance, _PULL * (parameters - start)))

    def jacobian(parameters: FloatArray) -> FloatArray:
        gradient = whitening @ grouping @ _standard(parameters, links)[1]
        return np.vstack((gradient, _PULL * np.eye(parameters.size)))

    found = least_squares(residual, start, jac=jacobian, ftol=_CONVERGED, max_nfev=_EVALUATIONS)
    standard = _standard(found.x, links)[0]
    base = grouping @ standard
    distance = float(np.linalg.norm(whitening @ (base - values)))
    return PhysicalInertia(standard, base, distance, bool(distance**2 < chi2.ppf(_CONFIDENCE, values.size)))


def _standard(parameters: FloatArray, links: int) -> tuple[FloatArray, FloatArray]:
    """Standard parameters (s,) and their derivative (s, s) by log-Cholesky parameters and logarithms of drives."""
    standard = np.exp(np.minimum(parameters, 50.0))
    derivative = np.diag(standard)
    for link in range(links):
        rows = slice(STANDARD_COUNT * link, STANDARD_COUNT * (link + 1))
        body = pin.LogCholeskyParameters(parameters[rows])
        standard[rows] = body.toDynamicParameters()
        derivative[rows, rows] = body.calculateJacobian()
    return standard, derivative


def _log_cholesky(dynamic: FloatArray) -> FloatArray:
    """Log-Cholesky parameters (10,) of a body, or of a generic one when it cannot exist."""
    for body in (dynamic, _GENERIC):
        pseudo = pin.PseudoInertia.FromDynamicParameters(body).toMatrix()
        if np.linalg.eigvalsh(pseudo)[0] > 1e-9 * max(np.trace(pseudo), 1e-9):
            break
    U = np.linalg.cholesky(pseudo[::-1, ::-1])[::-1, ::-1]  # J = U U^T, U upper triangular
    scale = U[3, 3]
    U = U / scale
    return np.array([np.log(scale), *np.log(np.diagonal(U)[:3]), U[0, 1], U[1, 2], U[0, 2], *U[:3, 3]])


def _whitening(covariance: FloatArray) -> FloatArray:
    """(b, b) matrix that turns errors into standard deviations; directions without error count like nearly none."""
    sigma = np.sqrt(np.diagonal(covariance))
    sigma = np.where(sigma > 0.0, sigma, 1.0)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(sigma, sigma))
    floor = 1e-9 * eigenvalues[-1] if eigenvalues.size else 0.0
    return np.asarray((vectors / np.sqrt(np.maximum(eigenvalues, floor))).T / sigma)
