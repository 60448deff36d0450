"""Stationary Kalman filters of one joint's motion: acceleration that wanders, or velocity that wanders.

A joint on its way has an acceleration that lasts: white jerk. One that dry friction holds back, near rest, keeps its
velocity: white acceleration, and no acceleration to estimate, so that the same readings say its velocity better
(constant-acceleration and constant-velocity models: Bar-Shalom, Li & Kirubarajan 2001, sections 6.2.2 and 6.2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_are

from friction_estimator.core.types import FloatArray

TRANSITION = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
WHITE_JERK = np.array([[1 / 20, 1 / 8, 1 / 6], [1 / 8, 1 / 3, 1 / 2], [1 / 6, 1 / 2, 1.0]])
WHITE_ACCELERATION = np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
_IGNORED = 1e6
"""Standard deviation of a reading that carries nothing, in units of that of the position."""


@dataclass(frozen=True, slots=True)
class MotionModels:
    """What the joints may do.

    Attributes
    ----------
    jerk_densities : (b,) of the models with white jerk [rad^2/s^5]
    acceleration_densities : (c,) of the models with white acceleration [rad^2/s^3]
    """

    jerk_densities: FloatArray
    acceleration_densities: FloatArray


@dataclass(frozen=True, slots=True)
class StationaryFilters:
    """Stationary Kalman filters of ``m`` models at one period, for the state ``[q, dq dt, ddq dt^2]``.

    Attributes
    ----------
    transition : (m, 3, 3)
    gain : (m, 3, 2)
    information : (m, 2, 2) inverse of the innovation covariance
    log_determinant : (m,) of the innovation covariance
    velocity_variance : (m,) of ``dq dt``, after the correction
    """

    transition: FloatArray
    gain: FloatArray
    information: FloatArray
    log_determinant: FloatArray
    velocity_variance: FloatArray


def reading_noise(position_std: float, velocity_std: float, dt: float) -> FloatArray:
    """Covariance (2, 2) of a reading ``[q, dq dt]``, in units of the variance of the position."""
    return np.diag([1.0, min((velocity_std * dt / position_std) ** 2, _IGNORED**2)])


def stationary_filters(models: MotionModels, position_std: float, velocity_std: float, dt: float) -> StationaryFilters:
    """Solve the Riccati equation of every model, those with white jerk first.

    Parameters
    ----------
    position_std, velocity_std : of the readings [rad, rad/s]; an infinite velocity_std ignores the velocity
    dt : period [s]
    """
    R = reading_noise(position_std, velocity_std, dt)
    jerk = [(TRANSITION, d * dt**5 * WHITE_JERK) for d in models.jerk_densities]
    acceleration = [(TRANSITION[:2, :2], d * dt**3 * WHITE_ACCELERATION) for d in models.acceleration_densities]
    transitions, gains, innovations, variances = [], [], [], []
    for A, Q in jerk + acceleration:
        size = len(A)
        C = np.eye(2, size)
        P = solve_discrete_are(A.T, C.T, Q / position_std**2, R)
        S = C @ P @ C.T + R
        K = np.linalg.solve(S, C @ P).T
        missing = 3 - size  # no acceleration: it is and stays zero
        transitions.append(np.pad(A, (0, missing)))
        gains.append(np.pad(K, ((0, missing), (0, 0))))
        innovations.append(S * position_std**2)
        variances.append((P - K @ C @ P)[1, 1] * position_std**2)
    S = np.array(innovations)
    return StationaryFilters(
        np.array(transitions), np.array(gains), np.linalg.inv(S), np.linalg.slogdet(S)[1], np.array(variances)
    )
