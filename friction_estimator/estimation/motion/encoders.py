"""Coarse encoders: the resolution found from the readings, and a motion filter for rounded positions.

A rounded position is no position with white noise. While a joint creeps from one step of its encoder to the next, the
reading stands still and its error is a ramp; but the moment of the change shows the position to a fraction of a step.
So the reading bounds the position: it lies within half a step. A filter with a normal density uses this bound by the
mean and variance of the density truncated to the bound (density truncation: Simon & Simon 2010), which is exact for
readings without further noise. The filters of one joint interact as those of :mod:`joint_motion` do; each has a
covariance, because the bound matters now and then only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import is_bounded
from friction_estimator.types import FloatArray, Matrix, Tensor, Vector

COARSE_STEP = 8e-5
"""Encoder steps above this [rad], those of 16 bits or less, bound the position; finer ones are crossed so often that
their rounding is white noise. On the simulated walk, bounds halve the errors of slow velocities with 14 bits, and
change nothing with 17."""
_MIN_STEP = 2e-6
"""Steps below this [rad] do not matter: 21 bits."""
_ROUNDING = 2e-7
"""Positions on a grid deviate from it by less [rad]: drivers may send 32-bit numbers."""
_FALSE_GRID_PROBABILITY = 1e-6
"""Probability below which positions without a grid are not taken to lie on one."""
_MIN_READINGS = 3
"""Different readings from which a grid can be seen, where most readings are repeated ones."""
_FIRST_SPEED, _FIRST_ACCELERATION = 1.0, 10.0
"""Standard deviations of velocity and acceleration before the first change of a reading [rad/s, rad/s^2]."""
_MIN_PROBABILITY = 1e-9
"""Probability of the bound below which the truncated density is not computed: the prediction has failed."""
_IRRELEVANT_BOUND = 5.5
"""Standard deviations from both bounds beyond which they do not matter."""
_MIN_VARIANCE = 1e-6
"""Smallest part of its variance that a truncated density keeps."""
_SQRT_HALF, _NORMAL_PEAK = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
"""Factor of the error function's argument, and peak of the standard normal density."""


@entry_point
def encoder_step(block: Matrix, column: int) -> float:
    """Distance of the grid on which the readings of one column lie [rad]; 0: on none; NaN: too few differ to see it.

    The distance is the greatest common divisor of the differences, by Euclid's algorithm with a tolerance.
    """
    values = np.sort(block[:, column])
    gaps, count, last = np.empty(values.size), 0, values[0]
    smallest = math.inf
    for value in values:
        if value - last > _ROUNDING:
            gaps[count], last = value - last, value
            smallest = min(smallest, gaps[count])
            count += 1
    if count + 1 < _MIN_READINGS:
        return math.nan
    step = smallest
    while step >= _MIN_STEP:
        remainder = math.inf
        for i in range(count):
            off = abs(gaps[i] - step * round(gaps[i] / step))
            if off > _ROUNDING:
                remainder = min(remainder, off)
        if remainder == math.inf:
            break
        step = remainder
    if step < _MIN_STEP:
        return 0.0
    step = (last - values[0]) / round((last - values[0]) / step)
    is_grid = (count - 1) * math.log(2.0 * _ROUNDING / step) < math.log(_FALSE_GRID_PROBABILITY)
    return step if is_grid or 2 * (count + 1) <= values.size else math.nan


@entry_point
def add_roughness(block: Matrix, joints: int, joint: int, sums: Vector) -> None:
    """Add the readings of one joint to the comparison of what is rough in velocity and in differences of position.

    Where velocities are differentiated positions, both jump together whenever a coarse encoder takes a step.

    Parameters
    ----------
    sums : (3,) in place: product of the second difference of velocity and the third one of position, and their squares
    """
    for i in range(3, len(block)):
        v = block[i, joints + joint] - 2.0 * block[i - 1, joints + joint] + block[i - 2, joints + joint]
        q = block[i, joint] - 3.0 * block[i - 1, joint] + 3.0 * block[i - 2, joint] - block[i - 3, joint]
        sums[0] += v * q
        sums[1] += v * v
        sums[2] += q * q


@kernel
def _mix_models(
    state: FloatArray, P: FloatArray, probability: FloatArray, jerk: int, switch_probability: float, joint: int
) -> None:
    """Begin a period with the interacting models of one joint: states, covariances, probabilities in place."""
    m = len(state)
    mean, spread = np.zeros(3), np.zeros(6)
    for model in range(m):
        for row in range(3):
            mean[row] += probability[model, joint] * state[model, row, joint]
    for model in range(m):
        at = 0
        for row in range(3):
            for column in range(row, 3):
                product = (state[model, row, joint] - mean[row]) * (state[model, column, joint] - mean[column])
                spread[at] += probability[model, joint] * (P[model, at, joint] + product)
                at += 1
    for model in range(m):
        same = (1.0 - switch_probability) * probability[model, joint]
        probability[model, joint] = same + switch_probability / m
        keep = same / probability[model, joint]
        size, at = 3 if model < jerk else 2, 0
        for row in range(3):
            for column in range(row, 3):
                if column < size:
                    product = (state[model, row, joint] - mean[row]) * (state[model, column, joint] - mean[column])
                    own = P[model, at, joint] + (1.0 - keep) * product
                    P[model, at, joint] = keep * own + (1.0 - keep) * spread[at]
                at += 1
        for row in range(size):
            state[model, row, joint] = mean[row] + keep * (state[model, row, joint] - mean[row])


@kernel
def _truncate(low: float, high: float) -> tuple[float, float, float]:
    """Mean, variance and logarithm of the probability of a standard normal density between two bounds."""
    if low < -_IRRELEVANT_BOUND and high > _IRRELEVANT_BOUND:
        return 0.0, 1.0, 0.0
    if low >= 0.0:
        probability = 0.5 * (math.erfc(low * _SQRT_HALF) - math.erfc(high * _SQRT_HALF))
    else:
        probability = 0.5 * (math.erfc(-high * _SQRT_HALF) - math.erfc(-low * _SQRT_HALF))
    if probability < _MIN_PROBABILITY:
        return math.nan, math.nan, math.nan
    at_low, at_high = _NORMAL_PEAK * math.exp(-0.5 * low * low), _NORMAL_PEAK * math.exp(-0.5 * high * high)
    mean = (at_low - at_high) / probability
    variance = 1.0 + (low * at_low - high * at_high) / probability - mean * mean
    return mean, max(variance, _MIN_VARIANCE), math.log(probability)


@record
class RoundedState(NamedTuple):
    """State of the interacting models of n joints with coarse encoders."""

    state: Tensor  # (m, 3, n) position, velocity, acceleration by each model
    covariance: Tensor  # (m, 6, n) its upper triangle
    probability: Matrix  # (m, n) of the models
    step: Vector  # (n,) resolution of each encoder; 0: none, its noise is white [rad]
    densities: Vector  # (m,) of white jerk in the first `jerk` models, of white acceleration in the others
    jerk: int  # number of models with white jerk


@kernel
def _read_position(error: float, p00: float, step: float, position_std: float) -> tuple[float, float, float]:
    """Mean and variance of a position over its standard deviation and variance, by a reading, and log-likelihood.

    Parameters
    ----------
    error, p00 : reading minus prediction [rad], and variance of the prediction [rad^2]
    step, position_std : resolution of the encoder, 0: none, and white noise [rad]
    """
    std = math.sqrt(p00)
    if step > 0.0:
        half = 0.5 * step
        mean, variance, logarithm = _truncate((error - half) / std, (error + half) / std)
        if not math.isnan(mean):
            return mean, variance, logarithm
    noise = max(position_std, step / math.sqrt(12.0)) ** 2  # white noise, or far from the bound
    logarithm = -0.5 * error * error / (p00 + noise) + math.log(_NORMAL_PEAK / math.sqrt(p00 + noise))
    if step > 0.0:
        logarithm += math.log(step)
    return error * std / (p00 + noise), noise / (p00 + noise), logarithm


@entry_point
def step_rounded_motion(
    models: RoundedState,
    position: Vector,
    velocity: Vector,
    position_std: float,
    velocity_std: float,
    dt: float,
    switch_probability: float,
    out: Matrix,
) -> bool:
    """Advance the interacting models by one period with readings (n,) of coarse encoders, in place.

    Parameters
    ----------
    position_std, velocity_std : of white noise [rad, rad/s]; infinite: the velocity is not used
    dt, switch_probability : period [s]; probability that the motion of a joint has changed its model
    out : (4, n) output: position, velocity, acceleration, standard deviation of the velocity

    Returns
    -------
    False where the motion is not finite
    """
    state, covariance, probability, step, densities, jerk = models
    m, n = probability.shape
    likelihood, d2, d3, d4, d5 = np.empty(m), dt * dt, dt**3, dt**4, dt**5
    out[:] = 0.0
    for joint in range(n):
        _mix_models(state, covariance, probability, jerk, switch_probability, joint)
        largest = -math.inf
        for model in range(m):
            x, P, density = state[model, :, joint], covariance[model, :, joint], densities[model]
            q, v, a = x[0] + dt * x[1] + 0.5 * d2 * x[2], x[1] + dt * x[2], x[2]
            r01, r02 = P[1] + dt * P[3] + 0.5 * d2 * P[4], P[2] + dt * P[4] + 0.5 * d2 * P[5]  # first row of A P
            p00 = P[0] + dt * P[1] + 0.5 * d2 * P[2] + dt * r01 + 0.5 * d2 * r02
            p01, p02 = r01 + dt * r02, r02
            p11, p12, p22 = P[3] + 2.0 * dt * P[4] + d2 * P[5], P[4] + dt * P[5], P[5]
            if model < jerk:
                p00, p01, p02 = p00 + density * d5 / 20.0, p01 + density * d4 / 8.0, p02 + density * d3 / 6.0
                p11, p12, p22 = p11 + density * d3 / 3.0, p12 + density * d2 / 2.0, p22 + density * dt
            else:
                p00, p01, p11 = p00 + density * d3 / 3.0, p01 + density * d2 / 2.0, p11 + density * dt
            std = math.sqrt(p00)
            mean, variance, logarithm = _read_position(position[joint] - q, p00, step[joint], position_std)
            g0, g1, g2, reduction = std, p01 / std, p02 / std, 1.0 - variance
            q, v, a = q + g0 * mean, v + g1 * mean, a + g2 * mean
            p00, p01, p02 = p00 - g0 * g0 * reduction, p01 - g0 * g1 * reduction, p02 - g0 * g2 * reduction
            p11, p12, p22 = p11 - g1 * g1 * reduction, p12 - g1 * g2 * reduction, p22 - g2 * g2 * reduction
            if velocity_std < math.inf:
                total, error = p11 + velocity_std * velocity_std, velocity[joint] - v
                k0, k1, k2 = p01 / total, p11 / total, p12 / total
                q, v, a = q + k0 * error, v + k1 * error, a + k2 * error
                p00, p02, p22 = p00 - k0 * p01, p02 - k0 * p12, p22 - k2 * p12
                p01, p12, p11 = p01 - k0 * p11, p12 - k1 * p12, p11 - k1 * p11
                logarithm -= 0.5 * (error * error / total + math.log(total))
            x[0], x[1], x[2] = q, v, a
            P[0], P[1], P[2], P[3], P[4], P[5] = p00, p01, p02, p11, p12, p22
            likelihood[model] = logarithm
            largest = max(largest, logarithm)
        total = 0.0
        for model in range(m):
            probability[model, joint] *= math.exp(likelihood[model] - largest)
            total += probability[model, joint]
        for model in range(m):
            probability[model, joint] /= total
            for row in range(3):
                out[row, joint] += probability[model, joint] * state[model, row, joint]
        variance = 0.0
        for model in range(m):
            spread = state[model, 1, joint] - out[1, joint]
            variance += probability[model, joint] * (covariance[model, 3, joint] + spread * spread)
        out[3, joint] = math.sqrt(max(variance, 0.0))
    return is_bounded(out)


def initial_rounded_state(
    densities: FloatArray, jerk: int, step: FloatArray, position: FloatArray, position_std: float
) -> RoundedState:
    """State of m interacting models of n joints at their first readings, at rest.

    Parameters
    ----------
    densities : (m,) of white jerk [rad^2/s^5] in the first models, of white acceleration [rad^2/s^3] in the others
    jerk : number of models with white jerk
    step : (n,) resolution of each encoder [rad]; 0: its noise is white
    position : (n,) first readings [rad]
    position_std : white noise of the readings [rad]
    """
    m, n = densities.size, position.size
    state, covariance = np.zeros((m, 3, n)), np.zeros((m, 6, n))
    state[:, 0] = position
    covariance[:, 0] = np.maximum(position_std, step / math.sqrt(12.0)) ** 2
    covariance[:, 3] = _FIRST_SPEED**2
    covariance[:jerk, 5] = _FIRST_ACCELERATION**2
    return RoundedState(state, covariance, np.full((m, n), 1.0 / m), step, densities, jerk)
