"""Small dense linear algebra for kernels: below ten rows hand-written loops are faster than a call of LAPACK."""

from __future__ import annotations

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.types import FloatArray

_VANISHES = 1e-14
"""A pivot below this part of its diagonal element is rounding: the row depends on those before it."""


@kernel
def cholesky(A: FloatArray) -> tuple[FloatArray, bool]:
    """Factor ``A = L L^T`` of a symmetric positive semi-definite matrix.

    Rows that depend on those before them get a zero column, which makes :func:`solve_cholesky` a generalised inverse.

    Parameters
    ----------
    A : (m, m) of which the lower triangle is read

    Returns
    -------
    L : (m, m) lower triangular
    definite : False where a column is zero
    """
    m = A.shape[0]
    L = np.zeros((m, m))
    definite = True
    for j in range(m):
        pivot = A[j, j]
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        if not pivot > _VANISHES * A[j, j]:
            definite = False
            continue
        L[j, j] = np.sqrt(pivot)
        for i in range(j + 1, m):
            value = A[i, j]
            for k in range(j):
                value -= L[i, k] * L[j, k]
            L[i, j] = value / L[j, j]
    return L, definite


@kernel
def solve_cholesky(L: FloatArray, B: FloatArray) -> FloatArray:
    """Solve ``L L^T X = B`` for (m, r) right-hand sides; rows with a zero pivot stay zero."""
    m, r = B.shape
    X = B.copy()
    for i in range(m):
        for k in range(i):
            factor = L[i, k]
            if factor != 0.0:
                for j in range(r):
                    X[i, j] -= factor * X[k, j]
        inverse = 1.0 / L[i, i] if L[i, i] > 0.0 else 0.0
        for j in range(r):
            X[i, j] *= inverse
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            factor = L[k, i]
            if factor != 0.0:
                for j in range(r):
                    X[i, j] -= factor * X[k, j]
        inverse = 1.0 / L[i, i] if L[i, i] > 0.0 else 0.0
        for j in range(r):
            X[i, j] *= inverse
    return X


@kernel("M M")
def solve_positive(A: FloatArray, B: FloatArray) -> tuple[FloatArray, bool]:
    """Solve ``A X = B`` for a symmetric positive semi-definite A (m, m) and B (m, r).

    Returns
    -------
    X : (m, r)
    definite : False where A is singular; X is then one of many solutions, or of none
    """
    L, definite = cholesky(A)
    return solve_cholesky(L, B), definite


@kernel("M M")
def kalman_gain(innovation_covariance: FloatArray, measured_covariance: FloatArray) -> FloatArray:
    """Kalman gain ``K = (C P)^T (C P C^T + R)^{-1}``.

    Parameters
    ----------
    innovation_covariance : (m, m) ``C P C^T + R``, semi-definite where measurements have no noise at all
    measured_covariance : (m, s) ``C P``

    Returns
    -------
    (s, m)
    """
    return np.ascontiguousarray(solve_positive(innovation_covariance, measured_covariance)[0].T)


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
