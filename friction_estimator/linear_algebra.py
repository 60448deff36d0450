"""Linear algebra of the kernels: small positive definite systems, 3-vectors, rotations, quaternions ``(w, x, y, z)``.

Below ten rows hand-written loops are faster than a call of LAPACK. scipy's ``Rotation`` is the reference of the
rotations in the tests; it costs ten times as much for a single rotation. The end is about the threads of BLAS.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path

import numpy as np

from friction_estimator.errors import choices
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.types import FloatArray, Matrix, Vector

Triple = tuple[float, float, float]
"""A 3-vector that one kernel makes for another: numba keeps a tuple in registers, and allocates memory for an array."""
Quaternion = tuple[float, float, float, float]
"""``(w, x, y, z)``, for the same reason."""

DIVERGENCE_LIMIT = 1e12
"""A filter with a state or result larger than this, in SI units, has diverged, even where it is still finite."""
_MIN_VARIANCE = 1e-12
"""Variances, in SI units, below which rounding decides on sign and correlation."""
_MAX_CORRELATION = 1.005
"""Largest correlation of a valid covariance: one, and rounding."""
_EIGENVALUE_TOLERANCE = 1e-6
"""Negative eigenvalues of a correlation matrix within this are rounding."""
_PIVOT_TOLERANCE = 1e-14
"""A pivot below this part of its diagonal element is rounding: the row depends on those before it."""


@kernel
def is_bounded(values: FloatArray) -> bool:
    """Whether all values of an array are finite and at most ``DIVERGENCE_LIMIT`` in size."""
    count = 0
    for value in values.flat:  # counting has no branches, and is four times faster
        count += int(abs(value) <= DIVERGENCE_LIMIT)
    return count == values.size


def unbounded_columns(names: Sequence[str], values: FloatArray) -> str:
    """Names, for an error message, of the columns of values (r, n) that are not all :func:`is_bounded`."""
    is_valid = np.all(np.abs(values) <= DIVERGENCE_LIMIT, axis=0)
    return choices(compress(names, np.logical_not(is_valid).tolist()))


@entry_point
def is_covariance(P: Matrix) -> bool:
    """Whether a matrix (m, m) can be a covariance: plausible variances, and no correlation beyond one."""
    m = P.shape[0]
    variance, count = np.empty(m), 0
    for i in range(m):
        if not -_MIN_VARIANCE <= P[i, i] <= DIVERGENCE_LIMIT:
            return False
        variance[i] = P[i, i] + 2.0 * _MIN_VARIANCE
    for i in range(m):
        row, limit = P[i], _MAX_CORRELATION**2 * variance[i]
        for j in range(i):
            count += row[j] * row[j] <= limit * variance[j]
    return count == m * (m - 1) // 2


@kernel
def cholesky(A: FloatArray) -> tuple[FloatArray, bool]:
    """Factor ``A = L L^T`` of a symmetric positive semi-definite matrix.

    Rows that depend on those before them get a zero column, which makes :func:`_solve_cholesky` a generalised inverse.

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
        if not pivot > _PIVOT_TOLERANCE * A[j, j]:
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
def solve_lower(L: FloatArray, X: FloatArray) -> None:
    """Solve ``L X = B`` with a lower triangular L (m, m), in place of B (m, r); rows with a zero pivot become zero."""
    m, r = X.shape
    for i in range(m):
        for k in range(i):
            factor = L[i, k]
            if factor != 0.0:
                for j in range(r):
                    X[i, j] -= factor * X[k, j]
        inverse = 1.0 / L[i, i] if L[i, i] > 0.0 else 0.0
        for j in range(r):
            X[i, j] *= inverse


@kernel
def _solve_cholesky(L: FloatArray, B: FloatArray) -> FloatArray:
    """Solve ``L L^T X = B`` for (m, r) right-hand sides; rows with a zero pivot stay zero."""
    m, r = B.shape
    X = B.copy()
    solve_lower(L, X)
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


@entry_point
def solve_positive(A: Matrix, B: Matrix) -> tuple[FloatArray, bool]:
    """Solve ``A X = B`` for a symmetric positive semi-definite A (m, m) and B (m, r).

    Returns
    -------
    X : (m, r)
    definite : False where A is singular; X is then one of many solutions, or of none
    """
    L, definite = cholesky(A)
    return _solve_cholesky(L, B), definite


def positive_semidefinite(P: FloatArray) -> bool:
    """Whether a symmetric matrix (m, m) of finite numbers has no negative eigenvalue but for rounding."""
    std = np.sqrt(np.maximum(np.diagonal(P), _MIN_VARIANCE))
    return bool(np.linalg.eigvalsh(P / (std * std[:, None]))[0] > -_EIGENVALUE_TOLERANCE)


@entry_point
def kalman_gain(innovation_covariance: Matrix, measured_covariance: Matrix) -> FloatArray:
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


@kernel
def dot(a: FloatArray, b: FloatArray) -> float:
    """``a^T b``: a call of BLAS costs more for a few numbers."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def bilinear(a: FloatArray, P: FloatArray, b: FloatArray) -> float:
    """``a^T P b``."""
    total = 0.0
    for i in range(a.size):
        if a[i] != 0.0:
            total += a[i] * dot(P[i], b)
    return total


@kernel
def cross(a: Triple | FloatArray, b: Triple | FloatArray) -> Triple:
    """Cross product of two 3-vectors."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@entry_point
def skew(a: Vector) -> FloatArray:
    """Matrix with ``skew(a) @ b = a x b``, (3, 3)."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


@kernel
def matmul_3x3(A: FloatArray, B: FloatArray) -> FloatArray:
    """Matrix product ``A B`` of two (3, 3): for so few numbers a call of BLAS costs more."""
    C = np.zeros((3, 3))
    for i in range(3):
        for k in range(3):
            for j in range(3):
                C[i, j] += A[i, k] * B[k, j]
    return C


@kernel
def matvec_3x3(A: FloatArray, x: Triple | FloatArray) -> Triple:
    """Product ``A x`` of a matrix (3, 3) and a vector (3,)."""
    return (
        A[0, 0] * x[0] + A[0, 1] * x[1] + A[0, 2] * x[2],
        A[1, 0] * x[0] + A[1, 1] * x[1] + A[1, 2] * x[2],
        A[2, 0] * x[0] + A[2, 1] * x[1] + A[2, 2] * x[2],
    )


@kernel
def quaternion_exp(rotation_vector: Triple | FloatArray) -> Quaternion:
    """Unit quaternion ``(w, x, y, z)`` of a rotation vector [rad]."""
    x, y, z = 0.5 * rotation_vector[0], 0.5 * rotation_vector[1], 0.5 * rotation_vector[2]
    angle = math.sqrt(x * x + y * y + z * z)
    scale = math.sin(angle) / angle if angle > 1e-9 else 1.0 - angle * angle / 6.0
    return math.cos(angle), scale * x, scale * y, scale * z


@kernel
def quaternion_product(p: Quaternion | FloatArray, q: Quaternion | FloatArray) -> Quaternion:
    """Product ``p * q`` of two quaternions: first the rotation q, then p."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@kernel
def rotation_between(start: Quaternion | FloatArray, end: Quaternion | FloatArray) -> Triple:
    """Rotation vector v, world axes, with ``end = exp(v) * start`` for unit quaternions [rad]."""
    w, x, y, z = quaternion_product(end, (start[0], -start[1], -start[2], -start[3]))
    sine = math.sqrt(x * x + y * y + z * z)
    if sine < 1e-12:
        scale = 2.0 if w > 0 else -2.0
    else:
        scale = 2.0 * math.atan2(sine if w > 0 else -sine, abs(w)) / sine
    return scale * x, scale * y, scale * z


@kernel
def matrix_from_quaternion(q: Quaternion | FloatArray) -> FloatArray:
    """Rotation matrix of a unit quaternion, (3, 3): body axes to world axes."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    R = np.empty((3, 3))
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    return R


@entry_point
def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Unit quaternion of ``Rz(yaw) Ry(pitch) Rx(roll)`` (REP-103)."""
    cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    cy, sy = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


@entry_point
def yaw_from_quaternion(q: Vector) -> float:
    """Yaw [rad] of a unit quaternion ``(w, x, y, z)`` of the rotation ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@entry_point
def quaternion_from_matrix(matrix: Matrix) -> FloatArray:
    """Unit quaternion ``(w, x, y, z)`` of a rotation matrix, w >= 0 (Shepperd's method), (4,)."""
    a, b, c = matrix[0]
    d, e, f = matrix[1]
    g, h, i = matrix[2]
    rows = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, d + b, c + g],
            [c - g, d + b, 1 - a + e - i, h + f],
            [d - b, c + g, h + f, 1 - a - e + i],
        ]
    )
    largest = np.argmax(np.diag(rows))
    q = rows[largest] / (2.0 * math.sqrt(rows[largest, largest]))
    return -q if q[0] < 0 else q


_PROCESS_MAPS = Path("/proc/self/maps")
"""Files that are loaded into this process."""
_SYMBOLS = [f"{name}_{{}}_num_threads{end}" for name in ("openblas", "scipy_openblas") for end in ("", "64_")]
"""Functions of OpenBLAS, and of that of SciPy's wheels, for get or set."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let every loaded OpenBLAS use one thread in a ``with`` block; other BLAS libraries keep their threads."""
    before = blas_threads()
    try:
        for library, symbol, _ in before:
            getattr(library, symbol.format("set"))(1)
        yield
    finally:
        for library, symbol, threads in before:
            getattr(library, symbol.format("set"))(threads)


def blas_threads() -> list[tuple[ctypes.CDLL, str, int]]:
    """Every loaded OpenBLAS: library, name of its thread functions without get or set, number of threads."""
    lines = _PROCESS_MAPS.read_text().splitlines() if _PROCESS_MAPS.exists() else []
    paths = sorted({line.split(maxsplit=5)[-1] for line in lines if "blas" in line and ".so" in line})
    libraries = [ctypes.CDLL(path) for path in paths if Path(path).exists()]
    return [
        (library, symbol, int(getattr(library, symbol.format("get"))()))
        for library in libraries
        for symbol in _SYMBOLS
        if hasattr(library, symbol.format("get"))
    ]
