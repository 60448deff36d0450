"""Small dense solves for the hot path, without the checks of numpy.linalg that cost more than the solve."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from friction_estimator.core.types import FloatArray


def solve_positive(A: FloatArray, B: FloatArray) -> FloatArray | None:
    """Solve ``A X = B`` for a symmetric positive definite A, (m, m); None when A is not.

    Parameters
    ----------
    A : (m, m)
    B : (m,) or (m, r)
    """
    _, solution, info = lapack.dposv(A, B)
    return solution if info == 0 else None


def kalman_gain(innovation_covariance: FloatArray, measured_covariance: FloatArray) -> FloatArray:
    """Kalman gain ``K = (C P)^T (C P C^T + R)^{-1}``.

    Parameters
    ----------
    innovation_covariance : (m, m) ``C P C^T + R``
    measured_covariance : (m, s) ``C P``

    Returns
    -------
    (s, m)
    """
    solution = solve_positive(innovation_covariance, measured_covariance)
    if solution is not None:
        return np.asarray(solution.T)
    # semi-definite: no noise at all on some measurement
    return np.asarray(np.linalg.lstsq(innovation_covariance, measured_covariance, rcond=None)[0].T, dtype=float)


def quadratic_form(row: FloatArray, covariance: FloatArray) -> FloatArray:
    """Variance ``row covariance row^T`` of a linear combination, not below zero.

    Parameters
    ----------
    row : (..., p)
    covariance : (..., p, p)

    Returns
    -------
    (...)
    """
    return np.maximum((row[..., None, :] @ covariance @ row[..., :, None])[..., 0, 0], 0.0)
