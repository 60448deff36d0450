"""Bounds of the parameters of a friction law: filters are kept near them, published laws within them."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.linear_algebra import solve_positive
from friction_estimator.types import BoolArray, FloatArray, Matrix, Tensor

_MAX_STEPS_PER_BOUND, _BOUND_TOLERANCE = 4, 1e-9
"""Bounds that begin to bind, for each bound, before the search ends; a bound is met to this part of its standard
deviation."""


def law_bounds(laws: JointLaws) -> FloatArray:
    """Rows (n, b, p) whose product with a joint's parameters is never negative; zero rows bind nothing.

    They hold the nonnegative parameters, which come first, one row per parameter, and F_c.
    """
    p = laws.parameter_count
    single = np.eye(p) * laws.nonnegative[:, :, None]
    return np.concatenate((single, laws.coulomb_weights[:, None, :]), axis=1)


@kernel
def _most_violated(value: FloatArray, M: FloatArray, force: FloatArray) -> int:
    """Bound (b,) that is violated by most of its standard deviations under these forces (b,); -1 where none is."""
    worst, least = -1, -_BOUND_TOLERANCE
    for row in range(value.size):
        if M[row, row] > 0.0:
            left = value[row]
            for other in range(value.size):
                left += M[row, other] * force[other]
            left /= math.sqrt(M[row, row])
            if left < least:
                worst, least = row, left
    return worst


@kernel
def _solve_binding(value: FloatArray, M: FloatArray, binds: BoolArray, force: FloatArray) -> None:
    """Write the forces (b,) with which the bounds that bind are met, zero for the others.

    A bound whose force turns negative no longer binds, in place.
    """
    pushes = True
    while pushes:
        rows, pushes = np.flatnonzero(binds), False
        force[:] = 0.0
        if rows.size:
            A, missing = np.empty((rows.size, rows.size)), np.empty((rows.size, 1))
            for a in range(rows.size):
                missing[a, 0] = -value[rows[a]]
                for b in range(rows.size):
                    A[a, b] = M[rows[a], rows[b]]
            solution = solve_positive(A, missing)[0]
            lowest = int(solution.argmin())
            if solution[lowest, 0] < 0.0:
                binds[rows[lowest]], pushes = False, True
            else:
                force[rows] = solution[:, 0]


@kernel
def project_onto_bounds(x: FloatArray, P: FloatArray, bounds: FloatArray) -> None:
    """Move the parameters (p,) of one joint to the nearest point within their bounds (b, p), in place.

    The metric is that of the covariance (p, p): for a Gaussian it is the most likely point (Simon 2010). It is
    ``x + P A^T l`` with the bounds A that bind and forces ``l >= 0``. The bound that is violated by most of its
    standard deviations begins to bind, and one whose force turns negative no longer does, until all bounds are met.
    """
    b, p = bounds.shape
    value, violated = np.zeros(b), False
    for row in range(b):
        for i in range(p):
            value[row] += bounds[row, i] * x[i]
        violated = violated or value[row] < 0.0
    if not violated:
        return
    shift, M = np.zeros((b, p)), np.zeros((b, b))
    for row in range(b):
        for j in range(p):
            if bounds[row, j] != 0.0:
                for i in range(p):
                    shift[row, i] += bounds[row, j] * P[i, j]
    for row in range(b):
        for j in range(p):
            if bounds[row, j] != 0.0:
                for other in range(b):
                    M[row, other] += bounds[row, j] * shift[other, j]
    binds, force = np.zeros(b, dtype=np.bool_), np.zeros(b)
    for _ in range(_MAX_STEPS_PER_BOUND * b):
        worst = _most_violated(value, M, force)
        if worst < 0 or binds[worst]:
            break
        binds[worst] = True
        _solve_binding(value, M, binds, force)
    for row in range(b):
        for i in range(p):
            x[i] += shift[row, i] * force[row]
    for i in range(p):  # a torque that rounding has left is none: presliding of the load is a quotient of torques
        if bounds[i, i] > 0.0 and x[i] < _BOUND_TOLERANCE * math.sqrt(max(P[i, i], 0.0)):
            x[i] = 0.0


@kernel
def limit_bound_violation(x: FloatArray, P: FloatArray, bounds: FloatArray, first_law: int) -> None:
    """Move parameters that violate a bound by more than one standard deviation to one standard deviation, in place.

    A law that is farther out extrapolates badly. The state moves on the shortest path in the metric of its covariance
    (Simon 2010); the covariance does not change. Published laws are within all bounds: :func:`project_onto_bounds`.

    Parameters
    ----------
    x, P : (size,) state of a limb's filter and (size, size) its covariance
    bounds : (m, b, p) of :func:`law_bounds`, for the m motors of the limb
    first_law : first state of the laws
    """
    m, count, p = bounds.shape
    for joint in range(m):
        start = first_law + joint * p
        for row in range(count):
            b, bound_variance, value = bounds[joint, row], 0.0, 0.0
            for i in range(p):
                if b[i] != 0.0:
                    value += b[i] * x[start + i]
                    for j in range(p):
                        bound_variance += b[i] * P[start + i, start + j] * b[j]
            violation = -math.sqrt(max(bound_variance, 0.0)) - value
            if violation > 0.0 and bound_variance > 0.0:
                for j in range(x.size):
                    shift = 0.0
                    for i in range(p):
                        shift += b[i] * P[start + i, j]
                    x[j] += violation / bound_variance * shift


@entry_point
def project_laws(x: Matrix, P: Tensor, bounds: Tensor) -> None:
    """:func:`project_onto_bounds` for the parameters (m, p) of m motors, whose covariances (m, p, p) follow.

    A parameter that its bound holds at zero is known: the others have the covariance that they have given this one.
    """
    m, p = x.shape
    for motor in range(m):
        project_onto_bounds(x[motor], P[motor], bounds[motor])
        for held in range(p):
            variance = P[motor, held, held]
            if bounds[motor, held, held] > 0.0 and x[motor, held] == 0.0 and variance > 0.0:
                column = P[motor, :, held].copy()
                for i in range(p):
                    for j in range(p):
                        P[motor, i, j] -= column[i] * column[j] / variance
                P[motor, held], P[motor, :, held] = 0.0, 0.0
