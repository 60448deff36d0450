"""Equations of the Kalman filter of one limb: prediction, correction, bounds, and the size of the model error.

Seen from the IMU, the joint rows of the momentum balance over a window of length T read (Lim et al. 2024, eqs. 4-10)

    p(t + T) = p(t) + T (tau + C^T v - g + J^T F - friction) + noise
    friction = S (Phi(dq) theta + delta)            # S is the identity without a transmission
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

from friction_estimator.compiled import kernel
from friction_estimator.estimation.kalman.limb_state import UNIFORM_VARIANCE, BlockOffsets, LimbWindow
from friction_estimator.linear_algebra import bounded, cholesky, solve_lower, solve_positive
from friction_estimator.records import record
from friction_estimator.types import Block, FloatArray, Matrix, Vector

_MIN_MOMENTUM_STD = 1e-5
"""Lower bound on the standard deviation of the momentum [kg m^2/s]."""
_MIN_BIAS_VARIANCE = 1e-12
"""Lower bound on the variance of an unloaded foot's mean reading, in the square of the unit."""
MODEL_ERROR_TIME = 0.2
"""Correlation time of the model error of the law [s]: shorter than a step, longer than a window."""
_MIN_STD_OVER_PRIOR = 0.1
"""Lower bound on the adapted model-error standard deviation, over ``KalmanConfig.model_error_std``: no law is exact."""
_MIN_STD_OVER_LAW = 0.02
"""Another lower bound, over the root mean square of the law's torque, up to ``KalmanConfig.model_error_std``."""
_MIN_STD_OVER_PRESLIDING, _MIN_PRESLIDING_SIGMAS = 0.08, 2.0
"""And one over what is clearly a torque of presliding, by this many sigma: two presliding distances represent others to
this part."""
_MIN_OBSERVED_SHARE = 0.2
"""Windows whose estimate should show less than this part of the model-error variance do not adapt that variance."""
_MAX_DECREASE = 0.5
"""Largest part by which the model-error variance decreases in one window."""
MIN_LOG_RATIO, _MAX_LOG_RATIO, _MAX_LOG_RATIO_STEP = -3.0, 6.0, 2.0
"""Bounds on the log-likelihood ratio of friction that is free at rest, and on what one window adds to it."""


@record
class LimbMemory(NamedTuple):
    """What a limb has learned: views of one buffer, so that a copy of the buffer is a checkpoint.

    Attributes
    ----------
    state, covariance : (size,), (size, size)
    model_error_variance : (m,) stationary variance of delta of motors that move, adapted [(N m)^2]
    law_power : (m,) mean square of the law's torque [(N m)^2]
    rest_evidence : (m,) log-likelihood ratio of friction that is free at rest
    """

    state: Vector
    covariance: Matrix
    model_error_variance: Vector
    law_power: Vector
    rest_evidence: Vector


@record
class LimbNow(NamedTuple):
    """What the newest window of a limb shows.

    Attributes
    ----------
    stick_variance : (m,) variance of the model error that motors that rest have more [(N m)^2]
    free_at_rest : (m,) one where the friction at rest is free: the evidence is positive, or the dry friction of the
        motor is not known yet; else zero
    innovation, innovation_covariance : (m,), (m, m) of the momentum
    nis : (m,) normalised innovation squared: over its variance; NaN before a window
    unexplained : (2, m) torque of the motors that their laws do not explain [N m], and its variance while the laws hold
    """

    stick_variance: Vector
    free_at_rest: Vector
    innovation: Vector
    innovation_covariance: Matrix
    nis: Vector
    unexplained: Matrix


@record
class FilterTable(NamedTuple):
    """Constants of a limb's filter.

    Attributes
    ----------
    first : first state of each block
    bounds : (m, b, p) rows whose product with the law's parameters of a joint cannot be negative; zero rows: no bound
    coulomb : (m, p) F_c of each motor is the product of its row with the law's parameters
    presliding : (m, p) one for parameters that are torques of presliding, else zero
    random_walk : (size,) variance of the random walk of each state in a second
    gain_noise : of each two torque gains less, in a second: their sum stays what it is
    """

    first: BlockOffsets
    bounds: Block
    coulomb: Matrix
    presliding: Matrix
    random_walk: Vector
    gain_noise: float


@kernel("[LimbMemory] [LimbNow] V f8")
def decay_model_error(memory: LimbMemory, now: LimbNow, before: FloatArray, duration: float) -> None:
    """Age the model error, states m to 2 m, whose stationary variance (m,) was ``before``, over a window [s].

    ``x = f x``, ``P = f P f + variance - f^2 before`` with the variance of motors that move and what motors that rest
    have more. The model error of a motor that leaves its rest shrinks with its standard deviation,
    ``f = d min(1, sqrt(variance / before))``; that of one that comes to rest gets its larger variance at once.
    """
    x, P, sliding, at_rest = memory.state, memory.covariance, memory.model_error_variance, now.stick_variance
    m = sliding.size
    decay = math.exp(-duration / MODEL_ERROR_TIME)
    for a in range(m):
        i, variance = m + a, sliding[a] + at_rest[a]
        f = decay * math.sqrt(min(variance / before[a], 1.0)) if before[a] > 0.0 else decay
        x[i] *= f
        for j in range(x.size):
            P[i, j] *= f
        for j in range(x.size):
            P[j, i] *= f
        P[i, i] += variance - f * f * before[a]


@kernel
def _update_rest_evidence(memory: LimbMemory, now: LimbNow, window: LimbWindow) -> None:
    """Add to the log-likelihood ratio of friction that is free at rest, against friction of the law, in place.

    The torque of a window that the law does not explain is ``delta - innovation / T``, motor by motor. Its variance is
    that of noise and model error, and at rest that of the friction in addition. The ratio of a motor stays as it is
    until its dry friction is known.
    """
    x, P, S, T, G = memory.state, memory.covariance, now.innovation_covariance, window.duration, window.force_columns
    m, rest = now.innovation.size, window.rest_variance
    for c in range(m):
        along, square, noise = 0.0, 0.0, 0.0
        for a in range(m):
            g = T * G[a, m + c]
            along -= g * now.innovation[a]
            square += g * g
            for b in range(m):
                noise += g * S[a, b] * T * G[b, m + c]
        if square == 0.0:
            continue
        unexplained, variance = x[m + c] + along / square, noise / square**2
        now.unexplained[0, c], now.unexplained[1, c] = unexplained, variance
        if rest[c] <= 0.0 or not window.dry_is_known[c]:
            continue
        law = max(variance - P[m + c, m + c], 0.0) + memory.model_error_variance[c]
        free = law + UNIFORM_VARIANCE * rest[c]
        more = 0.5 * (unexplained**2 * (1.0 / law - 1.0 / free) - math.log(free / law))
        more = min(max(more, -_MAX_LOG_RATIO_STEP), _MAX_LOG_RATIO_STEP)
        memory.rest_evidence[c] = min(max(memory.rest_evidence[c] + more, MIN_LOG_RATIO), _MAX_LOG_RATIO)


@kernel
def _predict_momentum(x: FloatArray, P: FloatArray, window: LimbWindow) -> None:
    """``p += T (force - G x)`` with its covariance, in place: only the rows of the momentum mix."""
    T, G = window.duration, window.force_columns
    m, size = G.shape
    drive = G @ x
    cross = G @ P
    for a in range(m):
        for j in range(size):
            cross[a, j] = P[a, j] - T * cross[a, j]
    block = cross @ G.T
    for a in range(m):
        x[a] += T * (window.force[a] - drive[a])
        for b in range(m):
            block[a, b] = cross[a, b] - T * block[a, b]
    for a in range(m):
        for j in range(m, size):
            P[a, j] = P[j, a] = cross[a, j]
        for b in range(m):
            P[a, b] = 0.5 * (block[a, b] + block[b, a]) + T * T * window.force_variance[a, b]
        P[a, a] += _MIN_MOMENTUM_STD**2


@kernel
def predict_limb(memory: LimbMemory, now: LimbNow, window: LimbWindow, table: FilterTable, frozen: bool) -> float:
    """Advance state and covariance by one window, in place; return the squared distance of the measured momentum.

    A window that is not finite changes nothing, and its distance is NaN.
    """
    x, P = memory.state, memory.covariance
    m, T, gains = window.force.size, window.duration, table.first.effort_gain
    forces = bounded(window.force) and bounded(window.force_columns) and bounded(window.force_variance)
    momentum = bounded(window.momentum) and bounded(window.momentum_covariance)
    if not (forces and momentum and bounded(window.rest_variance)):
        return math.nan
    before = memory.model_error_variance + now.stick_variance
    for a in range(m):
        now.free_at_rest[a] = memory.rest_evidence[a] > 0.0 or not window.dry_is_known[a]
        now.stick_variance[a] = UNIFORM_VARIANCE * window.rest_variance[a] * now.free_at_rest[a]
    _predict_momentum(x, P, window)
    decay_model_error(memory, now, before, T)
    if not frozen:
        for i in range(x.size):
            P[i, i] += T * table.random_walk[i]
        for i in range(gains, gains + m):
            for j in range(gains, gains + m):
                P[i, j] -= T * table.gain_noise
    for a in range(m):
        now.innovation[a] = window.momentum[a] - x[a]
        for b in range(m):
            now.innovation_covariance[a, b] = P[a, b] + window.momentum_covariance[a, b]
    _update_rest_evidence(memory, now, window)
    normalised = solve_positive(now.innovation_covariance, now.innovation.reshape((m, 1)))[0]
    distance = 0.0
    for a in range(m):
        distance += now.innovation[a] * normalised[a, 0]
        variance = now.innovation_covariance[a, a]
        noise = T * T * window.force_variance[a, a] + window.momentum_covariance[a, a]
        lasting = (1.0 - 1.0 / window.lasting_factor[a]) * noise  # errors that last do not average out over windows
        now.nis[a] = now.innovation[a] ** 2 / (variance - lasting)
    return distance


@kernel("V M i8 V M i8")
def correct_states(
    x: FloatArray, P: FloatArray, start: int, innovation: FloatArray, S: FloatArray, considered: int
) -> None:
    """Use a reading of the states from ``start`` on, whose innovation (m,) has the covariance S (m, m), in place.

    With ``S = L L^T`` and ``W = L^-1 C P``: ``x += W^T L^-1 innovation`` and ``P -= W^T W``. States from ``considered``
    on do not learn from it (Schmidt's consider filter): neither they nor their own covariance change.
    """
    m, size = innovation.size, x.size
    L, whole = cholesky(S)[0], np.empty((m, size + 1))
    whole[:, :size], whole[:, size] = P[start : start + m], innovation
    solve_lower(L, whole)
    W, threes = whole[:, :size].copy(), m - m % 3
    for a in range(m):
        for j in range(considered):
            x[j] += W[a, j] * whole[a, size]
    for i in range(size):
        row = P[i] if i < considered else P[i, :considered]
        for a in range(0, threes, 3):  # three at a time: the row is read and written less often
            w1, w2, w3 = W[a, i], W[a + 1, i], W[a + 2, i]
            first, second, third = W[a], W[a + 1], W[a + 2]
            for j in range(row.size):
                row[j] -= w1 * first[j] + w2 * second[j] + w3 * third[j]
        for a in range(threes, m):
            w, only = W[a, i], W[a]
            for j in range(row.size):
                row[j] -= w * only[j]


@kernel("V M i8 V V")
def correct_foot_bias(x: FloatArray, P: FloatArray, first: int, reading: FloatArray, variance: FloatArray) -> None:
    """Use the reading (6,) of an unloaded foot, which is its bias, the states from ``first`` on; its variance (6,)."""
    innovation, S = np.empty(6), np.empty((6, 6))
    for i in range(6):
        innovation[i] = reading[i] - x[first + i]
        for j in range(6):
            S[i, j] = P[first + i, first + j]
        S[i, i] += max(variance[i], _MIN_BIAS_VARIANCE)
    correct_states(x, P, first, innovation, S, x.size)


@kernel
def limit_bound_violation(x: FloatArray, P: FloatArray, table: FilterTable) -> None:
    """Keep the law within a standard deviation of its bounds, in place.

    What is further out extrapolates badly. The state moves on the shortest path in the metric of its covariance
    (Simon 2010), which stays as it is.
    """
    m, count, p = table.bounds.shape
    for joint in range(m):
        start = table.first.law + joint * p
        for row in range(count):
            b, spread, value = table.bounds[joint, row], 0.0, 0.0
            for i in range(p):
                if b[i] != 0.0:
                    value += b[i] * x[start + i]
                    for j in range(p):
                        spread += b[i] * P[start + i, start + j] * b[j]
            missing = -math.sqrt(max(spread, 0.0)) - value
            if missing > 0.0 and spread > 0.0:
                for j in range(x.size):
                    shift = 0.0
                    for i in range(p):
                        shift += b[i] * P[start + i, j]
                    x[j] += missing / spread * shift


@kernel
def adapt_model_error_variance(
    memory: LimbMemory, now: LimbNow, window: LimbWindow, table: FilterTable, part: float, initial: float
) -> None:
    """Match the variance of the model error to the mean square of its estimate, in place.

    With the right variance the estimate has the mean square ``variance - P``. The relative difference of its square
    from that changes the variance. With the absolute difference a variance that is too large would stay so for minutes
    where windows show little of the model error. Windows in which a motor rests change nothing for it.

    Parameters
    ----------
    part : window length over the memory
    initial : variance before any data [(N m)^2]
    """
    x, P, G, variance = memory.state, memory.covariance, window.force_columns, memory.model_error_variance
    m, p = table.presliding.shape
    for i in range(m):
        torque, own, first, built_up, spread = 0.0, G[i, m + i], table.first.law + i * p, 0.0, 0.0
        plateau = 0.0
        for j in range(p):
            torque += G[i, first + j] * x[first + j]
            plateau += table.coulomb[i, j] * x[first + j]
            if table.presliding[i, j] > 0.0:
                built_up += x[first + j]
                for k in range(p):
                    spread += P[first + j, first + k] * table.presliding[i, k]
        if own != 0.0:
            memory.law_power[i] += part * ((torque / own) ** 2 - memory.law_power[i])
        shown = variance[i] - P[m + i, m + i]
        if shown > _MIN_OBSERVED_SHARE * variance[i] and now.stick_variance[i] < variance[i]:
            variance[i] *= 1.0 + max(part * (x[m + i] ** 2 / shown - 1.0), -_MAX_DECREASE)
        least = max(_MIN_STD_OVER_PRIOR**2 * initial, min(_MIN_STD_OVER_LAW**2 * memory.law_power[i], initial))
        built_up = max(built_up - _MIN_PRESLIDING_SIGMAS * math.sqrt(max(spread, 0.0)), 0.0)
        if built_up > 0.0:
            loaded = max(window.dry_friction[i] / max(plateau, built_up), 1.0)
            least = max(least, (_MIN_STD_OVER_PRESLIDING * loaded * built_up) ** 2)
        variance[i] = max(variance[i], least)


@kernel("[LimbMemory] V M [FilterTable] b1")
def correct_momentum(
    memory: LimbMemory, innovation: FloatArray, S: FloatArray, table: FilterTable, frozen: bool
) -> None:
    """Use the measured momentum of a window; while ``frozen``, law and calibration do not learn from it."""
    x, P = memory.state, memory.covariance
    correct_states(x, P, 0, innovation, S, table.first.law if frozen else x.size)
    if not frozen:
        limit_bound_violation(x, P, table)


@kernel("[LimbMemory] [LimbNow] [LimbWindow] [FilterTable] b1 f8 f8 f8")
def step_limb(
    memory: LimbMemory,
    now: LimbNow,
    window: LimbWindow,
    table: FilterTable,
    frozen: bool,
    gate: float,
    memory_time: float,
    initial: float,
) -> float:
    """Use a window that fits, in place; return the squared distance of its momentum.

    Of a window beyond the gate, the momentum is not used yet. One that is not finite changes nothing.

    Parameters
    ----------
    frozen : True keeps law and calibration as they are
    gate : largest squared distance of a window that fits
    memory_time : over which the model-error variance is adapted [s]
    initial : model-error variance before any data [(N m)^2]
    """
    distance = predict_limb(memory, now, window, table, frozen)
    if distance <= gate:
        correct_momentum(memory, now.innovation, now.innovation_covariance, table, frozen)
        adapt_model_error_variance(memory, now, window, table, window.duration / memory_time, initial)
    return distance
