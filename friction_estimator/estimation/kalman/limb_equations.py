"""Equations of the Kalman filter of one limb: prediction, correction, bounds, and the size of the law error.

Seen from the IMU, the joint rows of the momentum balance over a window of length T read (Lim et al. 2024, eqs. 4-10)

    p(t + T) = p(t) + T (tau + C^T v - g + J^T F - friction) + noise
    friction = A (Phi(dq) theta + delta)            # A maps motors to joints; the identity without a transmission
    delta(t + T) = exp(-T / tau_delta) delta(t) + noise

with errors of model and sensors acting as more torques, each linear in its size. Everything is linear, so one Kalman
filter on ``[p, delta, theta, calibration]`` weighs it all; p is measured through joint velocities and gyroscope. The
noise enters where it arises, white: that of the wrenches with the force, that of the velocities with the measurement. A
low-pass on residual and regressors, as a momentum observer has it, is then not needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.kalman.law_bounds import limit_bound_violation
from friction_estimator.estimation.kalman.limb_state import UNIFORM_VARIANCE, BlockStarts
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.linear_algebra import cholesky, is_bounded, solve_lower, solve_positive
from friction_estimator.types import Flags, FloatArray, Matrix, Tensor, Vector

MIN_MOMENTUM_STD = 1e-5
"""Lower bound on the standard deviation of the momentum [kg m^2/s]."""
_MIN_BIAS_VARIANCE = 1e-12
"""Lower bound on the variance of an unloaded foot's mean reading, in the square of the unit."""
LAW_ERROR_TIME = 0.2
"""Correlation time of the error of the law [s]: shorter than a step, longer than a window."""
_MIN_STD_OVER_PRIOR = 0.1
"""Lower bound on the adapted law-error standard deviation, over ``KalmanConfig.law_error_std``: no law is exact."""
_MIN_STD_OVER_LAW = 0.02
"""Lower bound on that standard deviation over the RMS of the law's torque, at most ``KalmanConfig.law_error_std``."""
_MIN_STD_OVER_PRESLIDING, _MIN_PRESLIDING_SIGMAS = 0.08, 2.0
"""Lower bound on that standard deviation over the torque of presliding less this many sigma: the given presliding
distances represent others with an error of this part."""
_MIN_OBSERVED_SHARE = 0.2
"""Windows whose estimate should show less than this part of the law-error variance do not adapt that variance."""
_MAX_DECREASE = 0.5
"""Largest part by which the law-error variance decreases in one window."""
MIN_LOG_RATIO, _MAX_LOG_RATIO, _MAX_LOG_RATIO_STEP = -3.0, 6.0, 2.0
"""Bounds on the log-likelihood ratio of friction that is free at rest, and on what one window adds to it."""


@record
class LimbBalance(NamedTuple):
    """Momentum balance of a limb of ``m`` joints over one window: the input of its filter."""

    duration: float  # T [s]
    force: Vector  # (m,) mean of `tau + C^T v - g + J^T F` [N m]
    force_columns: Matrix  # (m, size) torque per unit of every state, the law error and the law's regressor included
    force_variance: Matrix  # (m, m) of the white noise in `force`, over the window [(N m)^2]
    momentum: Vector  # (m,) at the end of the window
    momentum_covariance: Matrix  # (m, m)
    dry_friction: Vector  # (m,) largest friction that may hold a motor at rest [N m]
    stick_friction_squared: Vector  # (m,) its square, for a motor that rests; next to zero for one that moves [(N m)^2]
    dry_friction_known: Flags  # (m,) True for motors whose law shows it
    # (m,) factor on the variances of force and momentum for errors that last longer than the window
    correlation_factor: Vector


@record
class LimbMemory(NamedTuple):
    """What a limb has learned: views of one buffer, so that a copy of the buffer is a checkpoint."""

    # (size,), (size, size)
    state: Vector
    covariance: Matrix
    law_error_variance: Vector  # (m,) stationary variance of delta of motors that move, adapted [(N m)^2]
    law_mean_square: Vector  # (m,) mean square of the law's torque [(N m)^2]
    stick_log_ratio: Vector  # (m,) log-likelihood ratio of friction that is free at rest


@record
class WindowFit(NamedTuple):
    """What the newest window of a limb shows."""

    stick_variance: Vector  # (m,) added variance of the law error of a motor at rest [(N m)^2]
    # (m,) one where the friction at rest is free: the evidence is positive, or the dry friction of the motor is
    # not known yet; else zero
    free_at_rest: Vector
    # (m,), (m, m) of the momentum
    innovation: Vector
    innovation_covariance: Matrix
    nis: Vector  # (m,) normalised innovation squared: over its variance; NaN before a window
    # (2, m) torque of the motors that their laws do not explain [N m], and its variance while the laws hold
    unexplained: Matrix


@record
class FilterTable(NamedTuple):
    """Constants of a limb's filter."""

    first_state: BlockStarts  # first state of each block
    # (m, b, p) rows whose product with the law's parameters of a joint cannot be negative; zero rows: no bound
    bounds: Tensor
    coulomb: Matrix  # (m, p) F_c of each motor is the product of its row with the law's parameters
    presliding: Matrix  # (m, p) one for parameters that are torques of presliding, else zero
    random_walk: Vector  # (size,) variance of the random walk of each state in a second
    # subtracted from the covariance of every two torque gains in a second, so that their sum does not walk
    gain_noise: float


@entry_point
def decay_law_error(
    memory: LimbMemory, fit: WindowFit, table: FilterTable, previous_variance: Vector, duration: float
) -> None:
    """Predict the law error over a window [s]: a first-order Gauss-Markov process.

    ``x = f x``, ``P = f P f + v - f^2 v_0`` with its stationary variance v, and that of before, v_0: the variance of a
    sliding motor, plus ``stick_variance`` of one at standstill. The law error of a motor that begins to slide shrinks
    with its standard deviation, ``f = d min(1, sqrt(v / v_0))``; that of one that stops gets its larger variance at
    once.

    Parameters
    ----------
    previous_variance : (m,) v_0 [(N m)^2]
    duration : of the window [s]
    """
    x, P, sliding, at_rest = memory.state, memory.covariance, memory.law_error_variance, fit.stick_variance
    decay, delta = math.exp(-duration / LAW_ERROR_TIME), table.first_state.law_error
    for a in range(sliding.size):
        i, variance = delta + a, sliding[a] + at_rest[a]
        f = decay * math.sqrt(min(variance / previous_variance[a], 1.0)) if previous_variance[a] > 0.0 else decay
        x[i] *= f
        for j in range(x.size):
            P[i, j] *= f
        for j in range(x.size):
            P[j, i] *= f
        P[i, i] += variance - f * f * previous_variance[a]


@kernel
def _update_stick_log_ratio(memory: LimbMemory, fit: WindowFit, table: FilterTable, balance: LimbBalance) -> None:
    """Add to the log-likelihood ratio of friction that is free at rest, against friction of the law, in place.

    The torque of a window that the law does not explain is ``delta - innovation / T``, motor by motor. Its variance is
    that of noise and law error, and at rest that of the friction in addition. The ratio of a motor stays as it is
    until its dry friction is known.
    """
    x, P, S, T, G = memory.state, memory.covariance, fit.innovation_covariance, balance.duration, balance.force_columns
    m, rest = fit.innovation.size, balance.stick_friction_squared
    for c in range(m):
        own = table.first_state.law_error + c
        along, square, noise = 0.0, 0.0, 0.0
        for a in range(m):
            g = T * G[a, own]
            along -= g * fit.innovation[a]
            square += g * g
            for b in range(m):
                noise += g * S[a, b] * T * G[b, own]
        if square == 0.0:
            continue
        unexplained, variance = x[own] + along / square, noise / square**2
        fit.unexplained[0, c], fit.unexplained[1, c] = unexplained, variance
        if rest[c] <= 0.0 or not balance.dry_friction_known[c]:
            continue
        law_variance = max(variance - P[own, own], 0.0) + memory.law_error_variance[c]
        free_variance = law_variance + UNIFORM_VARIANCE * rest[c]
        log_ratio = 0.5 * (
            unexplained**2 * (1.0 / law_variance - 1.0 / free_variance) - math.log(free_variance / law_variance)
        )
        log_ratio = min(max(log_ratio, -_MAX_LOG_RATIO_STEP), _MAX_LOG_RATIO_STEP)
        memory.stick_log_ratio[c] = min(max(memory.stick_log_ratio[c] + log_ratio, MIN_LOG_RATIO), _MAX_LOG_RATIO)


@kernel
def _predict_momentum(x: FloatArray, P: FloatArray, balance: LimbBalance) -> None:
    """``p += T (force - G x)`` with its covariance, in place: only the rows of the momentum mix."""
    T, G = balance.duration, balance.force_columns
    m, size = G.shape
    drive = G @ x
    cross = G @ P
    for a in range(m):
        for j in range(size):
            cross[a, j] = P[a, j] - T * cross[a, j]
    block = cross @ G.T
    for a in range(m):
        x[a] += T * (balance.force[a] - drive[a])
        for b in range(m):
            block[a, b] = cross[a, b] - T * block[a, b]
    for a in range(m):
        for j in range(m, size):
            P[a, j] = P[j, a] = cross[a, j]
        for b in range(m):
            P[a, b] = 0.5 * (block[a, b] + block[b, a]) + T * T * balance.force_variance[a, b]
        P[a, a] += MIN_MOMENTUM_STD**2


@kernel
def _is_usable(balance: LimbBalance) -> bool:
    """Whether all of a balance is finite."""
    forces = is_bounded(balance.force) and is_bounded(balance.force_columns) and is_bounded(balance.force_variance)
    momentum = is_bounded(balance.momentum) and is_bounded(balance.momentum_covariance)
    return forces and momentum and is_bounded(balance.stick_friction_squared)


@kernel
def _update_stick_variance(memory: LimbMemory, fit: WindowFit, balance: LimbBalance) -> None:
    """Write the variance that the law error of motors at rest has in addition: anywhere within the dry friction."""
    for a in range(balance.force.size):
        fit.free_at_rest[a] = memory.stick_log_ratio[a] > 0.0 or not balance.dry_friction_known[a]
        fit.stick_variance[a] = UNIFORM_VARIANCE * balance.stick_friction_squared[a] * fit.free_at_rest[a]


@kernel
def _add_random_walk(P: FloatArray, table: FilterTable, duration: float) -> None:
    """Add the random walk of law and calibration over a window [s] to the covariance, in place."""
    gains, m = table.first_state.effort_gain, table.coulomb.shape[0]
    for i in range(len(P)):
        P[i, i] += duration * table.random_walk[i]
    for i in range(gains, gains + m):
        for j in range(gains, gains + m):
            P[i, j] -= duration * table.gain_noise


@kernel
def _write_innovation(memory: LimbMemory, fit: WindowFit, balance: LimbBalance) -> None:
    """Write measured less predicted momentum, and its covariance."""
    m = balance.momentum.size
    for a in range(m):
        fit.innovation[a] = balance.momentum[a] - memory.state[a]
        for b in range(m):
            fit.innovation_covariance[a, b] = memory.covariance[a, b] + balance.momentum_covariance[a, b]


@kernel
def _normalised_innovation(fit: WindowFit, balance: LimbBalance) -> float:
    """Normalised innovation squared of all joints together, which is returned, and of each alone, in place.

    That of one joint is over the variance without what its noise has more because its errors last over windows.
    """
    m, T, S = balance.force.size, balance.duration, fit.innovation_covariance
    normalised = solve_positive(S, fit.innovation.reshape((m, 1)))[0]
    nis = 0.0
    for a in range(m):
        nis += fit.innovation[a] * normalised[a, 0]
        noise = T * T * balance.force_variance[a, a] + balance.momentum_covariance[a, a]
        correlated = (1.0 - 1.0 / balance.correlation_factor[a]) * noise  # does not average out over windows
        fit.nis[a] = fit.innovation[a] ** 2 / (S[a, a] - correlated)
    return nis


@entry_point
def predict_limb(memory: LimbMemory, fit: WindowFit, balance: LimbBalance, table: FilterTable, frozen: bool) -> float:
    """Predict state and covariance over a window, and compare them with the measured momentum, in place.

    Parameters
    ----------
    frozen : True keeps the covariance of law and calibration as it is

    Returns
    -------
    Normalised innovation squared of all joints; NaN, and nothing has changed, for a window that is not finite
    """
    if not _is_usable(balance):
        return math.nan
    previous_variance = memory.law_error_variance + fit.stick_variance
    _update_stick_variance(memory, fit, balance)
    _predict_momentum(memory.state, memory.covariance, balance)
    decay_law_error(memory, fit, table, previous_variance, balance.duration)
    if not frozen:
        _add_random_walk(memory.covariance, table, balance.duration)
    _write_innovation(memory, fit, balance)
    _update_stick_log_ratio(memory, fit, table, balance)
    return _normalised_innovation(fit, balance)


@kernel
def _subtract_products(row: FloatArray, W: FloatArray, i: int) -> None:
    """Subtract row i of ``W^T W`` from a row of the covariance, or its first columns, in place.

    Three rows of W (m, size) at a time: the row is read and written less often.
    """
    m, size = len(W), row.size
    unrolled = m - m % 3
    for a in range(0, unrolled, 3):
        w1, w2, w3 = W[a, i], W[a + 1, i], W[a + 2, i]
        first, second, third = W[a], W[a + 1], W[a + 2]
        for j in range(size):
            row[j] -= w1 * first[j] + w2 * second[j] + w3 * third[j]
    for a in range(unrolled, m):
        w, only = W[a, i], W[a]
        for j in range(size):
            row[j] -= w * only[j]


@entry_point
def correct_states(x: Vector, P: Matrix, start: int, innovation: Vector, S: Matrix, first_considered: int) -> None:
    """Correct by a reading of m states from ``start`` on; its innovation (m,) has the covariance S (m, m); in place.

    With ``S = L L^T`` and ``W = L^-1 C P``: ``x += W^T L^-1 innovation`` and ``P -= W^T W``. States from
    ``first_considered`` on do not learn from it (Schmidt's consider filter): neither they nor their own covariance
    change.

    Parameters
    ----------
    x, P : (size,) state and (size, size) its covariance
    """
    m, size = innovation.size, x.size
    L, augmented = cholesky(S)[0], np.empty((m, size + 1))
    augmented[:, :size], augmented[:, size] = P[start : start + m], innovation
    solve_lower(L, augmented)
    W = augmented[:, :size].copy()
    for a in range(m):
        for j in range(first_considered):
            x[j] += W[a, j] * augmented[a, size]
    for i in range(size):
        _subtract_products(P[i] if i < first_considered else P[i, :first_considered], W, i)


@entry_point
def correct_foot_bias(x: Vector, P: Matrix, first: int, reading: Vector, variance: Vector) -> None:
    """Correct a limb's state with the wrench that the sensor of an unloaded foot reads, which is its bias.

    Parameters
    ----------
    x, P : (size,) state of the limb's filter, and (size, size) its covariance; in place
    first : first of the six states of the bias of this foot
    reading : (6,) mean wrench of the unloaded foot, in and about the sole frame [N, N m]
    variance : (6,) of the reading [N^2, (N m)^2]
    """
    innovation, S = np.empty(6), np.empty((6, 6))
    for i in range(6):
        innovation[i] = reading[i] - x[first + i]
        for j in range(6):
            S[i, j] = P[first + i, first + j]
        S[i, i] += max(variance[i], _MIN_BIAS_VARIANCE)
    correct_states(x, P, first, innovation, S, x.size)


@kernel
def _presliding_torque(memory: LimbMemory, table: FilterTable, motor: int) -> float:
    """Sum of a motor's torques of presliding less ``_MIN_PRESLIDING_SIGMAS`` of its sigma, at least zero [N m]."""
    p, is_presliding = table.presliding.shape[1], table.presliding[motor]
    first, torque, variance = table.first_state.law + motor * p, 0.0, 0.0
    for j in range(p):
        if is_presliding[j] > 0.0:
            torque += memory.state[first + j]
            for k in range(p):
                variance += memory.covariance[first + j, first + k] * is_presliding[k]
    return max(torque - _MIN_PRESLIDING_SIGMAS * math.sqrt(max(variance, 0.0)), 0.0)


@kernel
def _min_law_error_variance(
    memory: LimbMemory, balance: LimbBalance, table: FilterTable, motor: int, initial_variance: float
) -> float:
    """Lower bound on the variance of a motor's law error: no law is exact, and no presliding distance [(N m)^2]."""
    least = max(
        _MIN_STD_OVER_PRIOR**2 * initial_variance,
        min(_MIN_STD_OVER_LAW**2 * memory.law_mean_square[motor], initial_variance),
    )
    presliding_torque = _presliding_torque(memory, table, motor)
    if presliding_torque > 0.0:
        p, plateau = table.coulomb.shape[1], 0.0
        for j in range(p):
            plateau += table.coulomb[motor, j] * memory.state[table.first_state.law + motor * p + j]
        load_factor = max(balance.dry_friction[motor] / max(plateau, presliding_torque), 1.0)
        least = max(least, (_MIN_STD_OVER_PRESLIDING * load_factor * presliding_torque) ** 2)
    return least


@kernel
def adapt_law_error_variance(
    memory: LimbMemory,
    fit: WindowFit,
    balance: LimbBalance,
    table: FilterTable,
    adaptation_gain: float,
    initial_variance: float,
) -> None:
    """Match the variance of the law error to the mean square of its estimate, in place.

    With the right variance the estimate has the mean square ``variance - P``. The relative difference of its square
    from that changes the variance. With the absolute difference a variance that is too large would stay so for minutes
    where windows show little of the law error. Windows in which a motor rests change nothing for it.

    Parameters
    ----------
    adaptation_gain : window length over the memory
    initial_variance : variance before any data [(N m)^2]
    """
    x, P, G, variance = memory.state, memory.covariance, balance.force_columns, memory.law_error_variance
    m, p = table.presliding.shape
    for motor in range(m):
        own, first, torque = table.first_state.law_error + motor, table.first_state.law + motor * p, 0.0
        for j in range(p):
            torque += G[motor, first + j] * x[first + j]
        if G[motor, own] != 0.0:
            square = (torque / G[motor, own]) ** 2
            memory.law_mean_square[motor] += adaptation_gain * (square - memory.law_mean_square[motor])
        observed = variance[motor] - P[own, own]
        if observed > _MIN_OBSERVED_SHARE * variance[motor] and fit.stick_variance[motor] < variance[motor]:
            variance[motor] *= 1.0 + max(adaptation_gain * (x[own] ** 2 / observed - 1.0), -_MAX_DECREASE)
        variance[motor] = max(variance[motor], _min_law_error_variance(memory, balance, table, motor, initial_variance))


@entry_point
def correct_momentum(memory: LimbMemory, innovation: Vector, S: Matrix, table: FilterTable, frozen: bool) -> None:
    """Correct the state of a limb's filter with the measured momentum of a window.

    Parameters
    ----------
    memory : what the limb has learned, in place
    innovation : (m,) measured minus predicted momentum of the joints [N m s]
    S : (m, m) its covariance
    table : constants of the filter
    frozen : True: friction law and calibration do not learn from it, momentum and law error do
    """
    x, P = memory.state, memory.covariance
    correct_states(x, P, 0, innovation, S, table.first_state.law if frozen else x.size)
    if not frozen:
        limit_bound_violation(x, P, table.bounds, table.first_state.law)


@entry_point
def correct_limb(
    memory: LimbMemory,
    fit: WindowFit,
    balance: LimbBalance,
    table: FilterTable,
    frozen: bool,
    adaptation_time: float,
    initial_variance: float,
) -> None:
    """Use the momentum of a window that fits, and adapt the variance of the law error, in place.

    Parameters
    ----------
    frozen : True keeps law and calibration as they are
    adaptation_time : over which the law-error variance is adapted [s]
    initial_variance : law-error variance before any data [(N m)^2]
    """
    correct_momentum(memory, fit.innovation, fit.innovation_covariance, table, frozen)
    adapt_law_error_variance(memory, fit, balance, table, balance.duration / adaptation_time, initial_variance)
