"""Stationary Kalman filters of the motion of a joint, with white jerk or white acceleration.

A moving joint has an acceleration that lasts: white jerk. A joint that dry friction holds back, near rest, keeps its
velocity: white acceleration, and no acceleration to estimate, so that the same readings determine its velocity better
(constant-acceleration and constant-velocity models: Bar-Shalom, Li & Kirubarajan 2001, sections 6.2.2 and 6.2.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered, record
from friction_estimator.linear_algebra import matmul_3x3
from friction_estimator.types import FloatArray, Matrix, Tensor, Vector

TRANSITION = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
WHITE_JERK = np.array([[1 / 20, 1 / 8, 1 / 6], [1 / 8, 1 / 3, 1 / 2], [1 / 6, 1 / 2, 1.0]])
WHITE_ACCELERATION = np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
"""Transition of ``[q, dq dt, ddq dt^2]`` over a period dt, and process noise of a unit density."""
_NO_READING_STD = 1e6
"""Standard deviation of a reading that carries nothing, in units of that of the position."""
_MIN_VELOCITY_STD = 1e-8
"""Standard deviation of an exact velocity in the same units: the doubling algorithm divides by it."""
_MAX_DOUBLINGS = 60
"""Iterations of the doubling algorithm at most; 20 were needed for the smallest noise at 0.2 ms."""
_CONVERGENCE = 1e-17
"""Relative change of the variances below which the doubling algorithm ends."""


@dataclass(slots=True)
class MotionModels:
    """The models of the bank."""

    jerk_densities: FloatArray  # (b,) of the models with white jerk [rad^2/s^5]
    acceleration_densities: FloatArray  # (c,) of the models with white acceleration [rad^2/s^3]


@record
class StationaryFilters(NamedTuple):
    """Stationary Kalman filters of ``m`` models at one period, for the state ``[q, dq dt, ddq dt^2]``."""

    transition: Tensor  # (m, 3, 3)
    gain: Tensor  # (m, 3, 2)
    information: Tensor  # (m, 2, 2) inverse of the innovation covariance
    log_determinant: Vector  # (m,) of the innovation covariance
    velocity_variance: Vector  # (m,) of `dq dt`, after the correction


def reading_noise(position_std: float, velocity_std: float, dt: float) -> FloatArray:
    """Variances (2,) of a reading ``[q, dq dt]``, in units of that of the position."""
    return np.array([1.0, min(max(velocity_std * dt / position_std, _MIN_VELOCITY_STD), _NO_READING_STD) ** 2])


@kernel
def _solve_3x3(W: FloatArray, B: FloatArray) -> FloatArray:
    """Solve ``W X = B`` (3, r) by Gaussian elimination with row pivoting, in place of both."""
    for i in range(3):
        pivot = i
        for k in range(i + 1, 3):
            if abs(W[k, i]) > abs(W[pivot, i]):
                pivot = k
        for j in range(3):
            W[i, j], W[pivot, j] = W[pivot, j], W[i, j]
        for j in range(B.shape[1]):
            B[i, j], B[pivot, j] = B[pivot, j], B[i, j]
        for k in range(3):
            if k != i:
                factor = W[k, i] / W[i, i]
                for j in range(i, 3):
                    W[k, j] -= factor * W[i, j]
                for j in range(B.shape[1]):
                    B[k, j] -= factor * B[i, j]
    for i in range(3):
        for j in range(B.shape[1]):
            B[i, j] /= W[i, i]
    return B


@entry_point
def stationary_covariance(A: Matrix, Q: Matrix, R: Vector) -> FloatArray:
    """Predicted covariance P (3, 3) of the stationary filter that reads the first two states, with variances R (2,).

    The structured doubling algorithm solves ``P = A P A^T - A P C^T (C P C^T + R)^-1 C P A^T + Q``; its error squares
    in every iteration (Chu, Fan, Lin & Wang 2004, algorithm SDA for the dual equation).

    Parameters
    ----------
    A, Q : (3, 3) transition and process noise; a state without both stays zero
    """
    F, G, H, both = A.T.copy(), np.zeros((3, 3)), Q.copy(), np.empty((3, 6))
    G[0, 0], G[1, 1] = 1.0 / R[0], 1.0 / R[1]
    for _ in range(_MAX_DOUBLINGS):
        W = matmul_3x3(G, H)
        for i in range(3):
            W[i, i] += 1.0
            for j in range(3):
                both[i, j], both[i, 3 + j] = F[i, j], G[i, j]
        _solve_3x3(W, both)
        change, more = matmul_3x3(F.T, matmul_3x3(H, both[:, :3])), matmul_3x3(F, matmul_3x3(both[:, 3:], F.T))
        F = matmul_3x3(F, both[:, :3])
        converged = True
        for i in range(3):
            for j in range(3):
                H[i, j] += 0.5 * (change[i, j] + change[j, i])
                G[i, j] += 0.5 * (more[i, j] + more[j, i])
            converged = converged and abs(change[i, i]) <= _CONVERGENCE * H[i, i]
        if converged:
            break
    return H


@entry_point
def _solve_filters(process_noise: Tensor, R: Vector, out: StationaryFilters) -> None:
    """Write the stationary filters of m models with these transitions, for a unit variance of the position."""
    transition = out.transition
    for model in range(len(transition)):
        P = stationary_covariance(transition[model], process_noise[model], R)
        # determinants as sums of positive terms, so that nothing cancels where a velocity is exact
        without_velocity = max(P[0, 0] * P[1, 1] - P[0, 1] * P[0, 1], 0.0) + R[0] * P[1, 1]
        determinant = without_velocity + R[1] * (P[0, 0] + R[0])
        W, K = out.information[model], out.gain[model]
        W[0, 0], W[1, 1] = (P[1, 1] + R[1]) / determinant, (P[0, 0] + R[0]) / determinant
        W[0, 1] = W[1, 0] = -P[0, 1] / determinant
        out.log_determinant[model] = math.log(determinant)
        for i in range(3):
            for j in range(2):
                K[i, j] = P[i, 0] * W[0, j] + P[i, 1] * W[1, j]
        out.velocity_variance[model] = R[1] * without_velocity / determinant


def stationary_filters(models: MotionModels, position_std: float, velocity_std: float, dt: float) -> StationaryFilters:
    """Solve the Riccati equation of every model, those with white jerk first.

    Parameters
    ----------
    position_std, velocity_std : of the readings [rad, rad/s]; an infinite velocity_std ignores the velocity
    dt : period [s]
    """
    jerk, acceleration = models.jerk_densities.size, models.acceleration_densities.size
    m = jerk + acceleration
    transition, process_noise = np.zeros((m, 3, 3)), np.zeros((m, 3, 3))
    transition[:jerk], transition[jerk:, :2, :2] = TRANSITION, TRANSITION[:2, :2]
    process_noise[:jerk] = models.jerk_densities[:, None, None] * (dt**5 / position_std**2) * WHITE_JERK
    densities = models.acceleration_densities[:, None, None]
    process_noise[jerk:, :2, :2] = densities * (dt**3 / position_std**2) * WHITE_ACCELERATION
    buffer, unit = buffered(
        StationaryFilters(transition, np.empty((m, 3, 2)), np.empty((m, 2, 2)), np.empty(m), np.empty(m))
    )
    _solve_filters(process_noise, reading_noise(position_std, velocity_std, dt), buffer)
    return unit._replace(
        information=unit.information / position_std**2,
        log_determinant=unit.log_determinant + 4.0 * math.log(position_std),
        velocity_variance=unit.velocity_variance * position_std**2,
    )
