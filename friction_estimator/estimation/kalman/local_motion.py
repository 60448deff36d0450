"""Joints and base at one instant, from the readings around it alone: parabolas and lines by least squares."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.config import SensorNoise
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT, solve_positive
from friction_estimator.types import FloatArray, Matrix, Vector

SIGNIFICANT_RATIO = 4.0
"""Variances that are this many times those of the noise are no noise."""
_MIN_STD = 1e-9
"""Lower bound on standard deviations and lengths of time that are divided by, in their unit."""


@record
class LocalMotion(NamedTuple):
    """Joints and base at one instant."""

    # (n,) of the joints
    position: Vector
    velocity: Vector
    velocity_std: Vector  # (n,) [rad/s]
    angular_velocity: Vector  # (3,) of the base, base axes [rad/s]
    angular_velocity_std: Vector  # (3,)


@kernel
def _unresolved_std(rows: FloatArray, column: int, std: float) -> float:
    """Deviation of one column of readings from a straight line where it is clearly more than noise, else zero.

    Motion that is no straight line is missing from the fit, by about as much as it deviates.
    """
    N = len(rows)
    middle, square, mean, slope, residual_sum = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
        mean += rows[k, column] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
        slope += (rows[k, 0] - middle) * (rows[k, column] - mean)
    for k in range(N):
        residual_sum += (rows[k, column] - mean - (rows[k, 0] - middle) * slope / square) ** 2
    variance = residual_sum / max(N - 2, 1)
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
    scale = max(abs(rows[0, 0] - middle), abs(rows[N - 1, 0] - middle), _MIN_STD)
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


@kernel
def fit_middle(rows: FloatArray, stds: FloatArray, out: LocalMotion) -> None:
    """Fit the motion of n joints and the base at the middle one of an odd number N of readings.

    A parabola through their positions, its slope through their velocities; the mean of the rates.

    Parameters
    ----------
    rows : (N, 4 + 2 n or more) time [s], positions (n,), velocities (n,), gyroscope (3,), further columns not used
    stds : (3,) of :func:`reading_stds`
    """
    position_std, velocity_std, gyro_std = stds[0], stds[1], stds[2]
    N, n = len(rows), out.position.size
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, position_std, velocity_std, weights, std)
    for joint in range(n):
        q, dq = 0.0, 0.0
        for k in range(N):
            position, velocity = rows[k, 1 + joint], rows[k, 1 + n + joint]
            q += weights[0, k] * position + weights[0, N + k] * velocity
            dq += weights[1, k] * position + weights[1, N + k] * velocity
        out.position[joint], out.velocity[joint] = q, dq
        out.velocity_std[joint] = max(std[1], _unresolved_std(rows, 1 + n + joint, velocity_std))
    for axis in range(3):
        column, mean = 1 + 2 * n + axis, 0.0
        for k in range(N):
            mean += rows[k, column] / N
        out.angular_velocity[axis] = mean
        out.angular_velocity_std[axis] = max(gyro_std / math.sqrt(N), _unresolved_std(rows, column, gyro_std))


@entry_point
def fit_acceleration(rows: Matrix, stds: Vector, mean: Vector, mean_std: Vector) -> None:
    """Write the mean acceleration over N readings: angular one of the base (3,), then that of the joints (n,).

    Fewer than three readings have none: it is zero, with infinite standard deviations.

    Parameters
    ----------
    rows, stds : as in :func:`fit_middle`
    mean, mean_std : (3 + n,) output [rad/s^2], and its standard deviation
    """
    N, n = len(rows), mean.size - 3
    if N < 3:
        mean[:], mean_std[:] = 0.0, math.inf
        return
    weights, std = np.empty((3, 2 * N)), np.empty(3)
    _fit_parabola(rows, stds[0], stds[1], weights, std)
    middle, square = 0.0, 0.0
    for k in range(N):
        middle += rows[k, 0] / N
    for k in range(N):
        square += (rows[k, 0] - middle) ** 2
    for axis in range(3):
        slope = 0.0
        for k in range(N):
            slope += (rows[k, 0] - middle) * rows[k, 1 + 2 * n + axis] / square
        mean[axis], mean_std[axis] = slope, stds[2] / math.sqrt(square)
    for joint in range(n):
        value = 0.0
        for k in range(N):
            value += weights[2, k] * rows[k, 1 + joint] + weights[2, N + k] * rows[k, 1 + n + joint]
        mean[3 + joint], mean_std[3 + joint] = value, std[2]


def reading_stds(noise: SensorNoise) -> FloatArray:
    """Standard deviations (3,) of readings of positions [rad], velocities [rad/s] and the gyroscope [rad/s]."""
    return np.array([
        max(noise.position_std, _MIN_STD), max(noise.independent_velocity_std, _MIN_STD), noise.angular_velocity_std
    ])  # fmt: skip


@entry_point
def acceleration_correction(
    readings: Vector, std: Vector, first: Vector, last: Vector, power: Vector, gain: float
) -> FloatArray:
    """Correction (c,) of the filters' mean acceleration of both ends of a window [rad/s^2].

    The acceleration by the filters is smooth, and late; that by the window's readings is in time, and noisy. Where the
    two differ by clearly more than noise explains, the readings count,

        a = a_filter + k (a_readings - a_filter)        k = max(0, 1 - 4 var(noise) / E (a_readings - a_filter)^2)

    and elsewhere not at all: their noise is that of the momentum too, and would pull the calibration after it.

    Parameters
    ----------
    readings, std : (c,) by the readings, and standard deviation
    first, last : (c,) of the filters at both ends
    power, gain : (c,) mean square difference, in place, and the part of it that is replaced
    """
    correction = np.empty(power.size)
    for i in range(power.size):
        difference = readings[i] - 0.5 * (first[i] + last[i])
        power[i] += gain * (difference * difference - power[i])
        if not power[i] <= DIVERGENCE_LIMIT:
            power[i] = 0.0
        noise = SIGNIFICANT_RATIO * std[i] ** 2
        correction[i] = (1.0 - noise / power[i]) * difference if power[i] > noise else 0.0
    return correction
