"""Dynamics of a robot whose feet are held by the ground, and the friction in them (Egle 2021, chapter 5, eq. 6.1).

    M a + h = S^T (tau - tau_friction) + J^T lambda,    J a = b        (eqs. 5.5, our sign of friction)

``M`` (nv, nv) mass matrix, ``h`` (nv,) Coriolis, centrifugal and gravity terms, ``J`` (r, nv) the constraints stacked:
standing feet and position-controlled joints (eq. 5.6), ``S`` the selection of the torque-controlled joints (eq. 5.3).
The thesis adds the friction torque to the motor torque; we subtract it, so that ours is minus the printed one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.linear_algebra import solve_positive
from friction_estimator.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ConstrainedDynamics:
    """How forces and the constraint accelerate the robot: ``a = mobility @ force + constraint_gain @ b``.

    Attributes
    ----------
    mobility : (nv, nv) ``M^{-1} (I - J^T (J M^{-1} J^T)^{-1} J M^{-1})``, the matrix of eq. 5.10 that removes what acts
        on the constraints; symmetric, rank ``nv - r``
    constraint_gain : (nv, r) ``M^{-1} J^T (J M^{-1} J^T)^{-1}``
    """

    mobility: FloatArray
    constraint_gain: FloatArray

    def acceleration(self, force: FloatArray, b: FloatArray) -> FloatArray:
        """Generalised acceleration (nv,) under the force ``S^T tau - h`` (nv,) and the constraint b (r,) (eq. 5.10)."""
        return np.asarray(self.mobility @ force + self.constraint_gain @ b)

    def constraint_force(self, residual: FloatArray) -> FloatArray:
        """Lagrange multipliers (r,) from ``M a + h - S^T tau`` (nv,): what the constraints must add (eq. 5.9)."""
        return np.asarray(self.constraint_gain.T @ residual)

    def response(self, joints: IntArray) -> FloatArray:
        """``M_mod^{-1} = S M^{-1} N S^T``, (m, m): joint accelerations per friction torque (eq. 5.12)."""
        return self.mobility[np.ix_(joints, joints)]


def constrain(M: FloatArray, J: FloatArray) -> ConstrainedDynamics:
    """Eliminate the constraint forces (eqs. 5.7-5.10).

    Constraints that repeat each other (two feet on a stretched leg) count once, by the pseudo-inverse.
    """
    inverse = _inverse(M)
    by_force = inverse @ J.T
    gain = by_force @ _inverse(J @ by_force)  # eqs. 5.8 and 5.9
    mobility = inverse - gain @ by_force.T
    return ConstrainedDynamics(0.5 * (mobility + mobility.T), gain)


def unique_inverse(response: FloatArray) -> FloatArray | None:
    """``M_mod`` of eq. 5.13, (m, m), where the friction is unique; None where ``response`` is singular."""
    inverse, definite = solve_positive(np.ascontiguousarray(response), np.eye(response.shape[0]))
    return inverse if definite else None


def regularised_inverse(response: FloatArray, weight: float) -> FloatArray:
    """What multiplies the acceleration difference in the solution of eq. 6.1, (m, m).

    With ``W = I`` and ``Lambda = weight * I`` the minimum is ``(K^2 + weight I)^{-1} K``, K being ``response``; by
    eigenvalues, so that it stays exact to rounding where K is singular (feet that stand together). ``weight`` towards
    zero is the pseudo-inverse, the least friction that explains the accelerations.
    """
    values, vectors = np.linalg.eigh(response)
    floor = 1e-12 * max(values[-1], 0.0)
    gains = np.where(values > floor, values / (values**2 + weight), 0.0)
    return np.asarray((vectors * gains) @ vectors.T)


def _inverse(A: FloatArray) -> FloatArray:
    """Inverse of a symmetric positive definite matrix, pseudo-inverse of a semi-definite one."""
    if not A.size:
        return A
    inverse = unique_inverse(A)
    return np.asarray(np.linalg.pinv(A, rcond=1e-10, hermitian=True)) if inverse is None else inverse
