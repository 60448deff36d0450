"""Joints and base at one instant, from the readings around it alone: parabolas and lines by least squares."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.arrays import arrays
from friction_estimator.compiled import kernel
from friction_estimator.config import SensorNoise
from friction_estimator.linear_algebra import solve_positive
from friction_estimator.types import FloatArray, Vector

SIGNIFICANT_RATIO = 4.0
"""Variances that are this many times those of the noise are no noise."""
_FINEST = 1e-9


@arrays
class LocalMotion(NamedTuple):
    """Joints and base at one instant.

    Attributes
    ----------
    position, velocity : (n,) of the joints
    velocity_std : (n,) [rad/s]
    angular_velocity : (3,) of the base, base axes [rad/s]
    angular_velocity_std : (3,)
    """

    position: Vector
    velocity: Vector
    velocity_std: Vector
    angular_velocity: Vector
    angular_velocity_std: Vector


@kernel
def _unresolved_std(rows: FloatArray, column: int, std: float) -> float:
    """Deviation of one column of readings from a straight line where it is clearly more than noise, else zero.

    What bends or shakes within a fit is missing from it, and by about as much.
    """
    N = len(rows)
    middle, square, mean, slope, rest = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
        mean += rows[k, column] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
        slope += (rows[k, 0] - middle) * (rows[k, column] - mean)
    for k in range(N):
        rest += (rows[k, column] - mean - (rows[k, 0] - middle) * slope / square) ** 2
    variance = rest / max(N - 2, 1)
    return math.sqrt(variance) if variance > SIGNIFICANT_RATIO * std * std else 0.0


@kernel
def _fit_parabola(
    rows: FloatArray, position_std: float, velocity_std: float, weights: FloatArray, std: FloatArray
) -> None:
    """Weights of N readings in position, velocity and acceleration at the time of the middle one, by least squares.

    Parameters
    ----------
    rows : (N, 1 or more) times first
    weights : (3, 2 N) output: of the positions, then of the velocities
    std : (3,) output: standard deviations of position, velocity and acceleration
    """
    N = rows.shape[0]
    middle = rows[N // 2, 0]
    scale = max(abs(rows[0, 0] - middle), abs(rows[N - 1, 0] - middle), _FINEST)
    inverse_std = np.array([1.0 / position_std, 1.0 / velocity_std])
    A, gram = np.zeros((2 * N, 3)), np.zeros((3, 3))
    for k in range(N):
        t = (rows[k, 0] - middle) / scale
        A[k, 0], A[k, 1], A[k, 2] = 1.0, t, 0.5 * t * t
        A[N + k, 1], A[N + k, 2] = 1.0 / scale, t / scale
    for k in range(2 * N):
        for i in range(3):
            A[k, i] *= inverse_std[k // N]
        for i in range(3):
            for j in range(3):
                gram[i, j] += A[k, i] * A[k, j]
    inverse = solve_positive(gram, np.eye(3))[0]
    unscale = 1.0
    for i in range(3):
        std[i] = math.sqrt(inverse[i, i]) * unscale
        for k in range(2 * N):
            value = 0.0
            for j in range(3):
                value += inverse[i, j] * A[k, j]
            weights[i, k] = value * inverse_std[k // N] * unscale
        unscale /= scale


@kernel("M f8 f8 f8 M M")
def fit_middle(
    rows: FloatArray, position_std: float, velocity_std: float, gyro_std: float, joints: FloatArray, base: FloatArray
) -> None:
    """Motion at the middle of N readings: fields of :class:`LocalMotion`.

    Parameters
    ----------
    rows : (N, 4 + 2 n or more) readings, see :class:`LocalMotionFit`
    position_std, velocity_std, gyro_std : of the readings [rad], [rad/s]
    joints : (3, n) output: position, velocity, its standard deviation
    base : (2, 3) output: angular velocity, its standard deviation
    """
    N, n = len(rows), joints.shape[1]
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, position_std, velocity_std, weights, std)
    for joint in range(n):
        q, dq = 0.0, 0.0
        for k in range(N):
            position, velocity = rows[k, 1 + joint], rows[k, 1 + n + joint]
            q += weights[0, k] * position + weights[0, N + k] * velocity
            dq += weights[1, k] * position + weights[1, N + k] * velocity
        joints[0, joint], joints[1, joint] = q, dq
        joints[2, joint] = max(std[1], _unresolved_std(rows, 1 + n + joint, velocity_std))
    for axis in range(3):
        column, mean = 1 + 2 * n + axis, 0.0
        for k in range(N):
            mean += rows[k, column] / N
        base[0, axis] = mean
        base[1, axis] = max(gyro_std / math.sqrt(N), _unresolved_std(rows, column, gyro_std))


@kernel("M f8 f8 f8 M")
def fit_acceleration(
    rows: FloatArray, position_std: float, velocity_std: float, gyro_std: float, out: FloatArray
) -> None:
    """Mean acceleration of base and joints over N readings and its standard deviation: rows of ``out`` (2, 3 + n)."""
    N, n = len(rows), out.shape[1] - 3
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, position_std, velocity_std, weights, std)
    middle, square = 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
    for axis in range(3):
        slope = 0.0
        for k in range(N):
            slope += (rows[k, 0] - middle) * rows[k, 1 + 2 * n + axis] / square
        out[0, axis], out[1, axis] = slope, gyro_std / math.sqrt(square)
    for joint in range(n):
        value = 0.0
        for k in range(N):
            value += weights[2, k] * rows[k, 1 + joint] + weights[2, N + k] * rows[k, 1 + n + joint]
        out[0, 3 + joint], out[1, 3 + joint] = value, std[2]


class LocalMotionFit:
    """A parabola through the positions of some readings, its slope through their velocities; a line through the rates.

    Readings are the rows of an array: time [s], positions (n,), velocities (n,), gyroscope (3,), further columns that
    are not used.

    Parameters
    ----------
    noise : standard deviations that weigh positions against velocities
    """

    def __init__(self, noise: SensorNoise) -> None:
        self.retune(noise)

    def retune(self, noise: SensorNoise) -> None:
        """Use the weights of this noise from now on."""
        velocity_std = max(noise.independent_velocity_std, _FINEST)
        self._stds = max(noise.position_std, _FINEST), velocity_std, noise.angular_velocity_std

    def at_middle(self, rows: FloatArray, joints: int) -> LocalMotion:
        """Motion of n joints and the base at the time of the middle one of an odd number of readings."""
        fitted, base = np.empty((3, joints)), np.empty((2, 3))
        fit_middle(rows, *self._stds, fitted, base)
        return LocalMotion(*fitted, *base)

    def acceleration(self, rows: FloatArray, joints: int) -> tuple[FloatArray, FloatArray]:
        """Mean acceleration over these readings and its standard deviation.

        Returns
        -------
        (3 + n,) of the base (rotation) and the joints [rad/s^2]; (3 + n,)
        """
        out = np.empty((2, 3 + joints))
        fit_acceleration(rows, *self._stds, out)
        return out[0], out[1]
