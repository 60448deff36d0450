"""Kalman filter of one limb: momentum, friction law, its model error, and the errors of model and sensors.

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
from collections import deque
from dataclasses import replace

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import KalmanConfig
from friction_estimator.estimation.kalman.limb_state import LimbState, LimbWindow
from friction_estimator.linear_algebra import bounded, positive_semidefinite, solve_positive
from friction_estimator.types import BoolArray, FloatArray, IntArray

_MOMENTUM_NOISE = 1e-5
"""Lower bound on the standard deviation of the momentum [kg m^2/s]."""
_IMPACT = 10.0
"""Variance given to an impact, over its square: the momentum is taken anew from the measurement."""
_LEAST_BIAS_VARIANCE = 1e-12
"""Lower bound on the variance of an unloaded foot's mean reading, in the square of the unit."""
MODEL_ERROR_TIME = 0.2
"""Correlation time of the model error of the law [s]: shorter than a step, longer than a window."""
_REST_TIME = 0.05
"""Time in which the friction that holds a motor at rest may become another [s]: it goes from one direction to the other
within a tenth of a second, or stays."""
_MODEL_ERROR_FLOOR = 0.1
"""Lower bound on the adapted model-error standard deviation, over ``kalman.model_error_std``: no law is exact."""
_MODEL_ERROR_PART = 0.02
"""Another lower bound, over the root mean square of the law's torque, up to ``kalman.model_error_std``."""
_PRESLIDING_PART, _CLEARLY = 0.08, 2.0
"""And one over what is clearly a torque of presliding, by this many sigma: two presliding distances represent others to
this part."""
_LEAST_SHOWN = 0.2
"""Windows whose estimate should show less than this part of the model-error variance do not adapt that variance."""
_LARGEST_DECREASE = 0.5
"""Largest part by which the model-error variance decreases in one window."""
FREE_AT_REST = 1.0 / 3.0
"""Variance of a friction that is free at rest, over the square of its largest size: that of a uniform distribution."""
_AGAINST, _FOR, _OF_ONE = 3.0, 6.0, 2.0
"""Bounds on the log-likelihood ratio of friction that is free at rest: below and above, and of one window."""
_CHANGE_TIME = 0.025
"""Impacts of the same direction for this long mean that friction has changed [s]: landings are shorter."""
_CHANGE_RATIO = 0.5
"""Standard deviation added to each parameter of a law that has changed, over its value: the next windows decide."""
_MAX_IMPACT_DURATION = 0.25
"""Impacts of any direction for this long mean that the law is wrong [s]: no impact lasts that long."""
LAW_INFLATION = 0.2
"""Standard deviation added to a law that has been wrong for long, as a fraction of the prior standard deviation."""
_COPY_PERIOD = 1.0
"""Time between two copies of what was learned, to go back to [s]: a copy costs less than a hundredth of a window."""
_COPIES = 7
"""Number of copies: the oldest one is from before an error of a sensor that is found within some seconds."""
_FEWEST_COHERENT = 2
_COHERENT = 0.6
"""Squared sum of unexplained impulses over the sum of their squares and their number: one when all are the same."""


@kernel("V M V V V V f8")
def decay_model_error(
    x: FloatArray,
    P: FloatArray,
    before: FloatArray,
    sliding: FloatArray,
    at_rest: FloatArray,
    factor: FloatArray,
    duration: float,
) -> None:
    """Age the model error, states m to 2 m, whose stationary variance (m,) was ``before``; in place.

    ``x = f x``, ``P = f P f + variance - f^2 before`` with ``variance = sliding + at_rest``. The model error of a motor
    that leaves its rest shrinks with its standard deviation, ``f = d min(1, sqrt(variance / before))``; that of one
    that comes to rest gets its larger variance at once. What is known of a motor at rest is forgotten sooner.

    Parameters
    ----------
    sliding, at_rest : (m,) variance of the model error of motors that move, and what motors that rest have more
    factor : (m,) output: f
    duration : of the window [s]
    """
    m = sliding.size
    variance, decay = sliding + at_rest, math.exp(-duration / MODEL_ERROR_TIME)
    forgotten = -math.expm1(-2.0 * duration / _REST_TIME)
    for a in range(m):
        i = m + a
        f = decay * math.sqrt(min(variance[a] / before[a], 1.0)) if before[a] > 0.0 else decay
        factor[a] = f
        x[i] *= f
        for j in range(x.size):
            P[i, j] *= f
        for j in range(x.size):
            P[j, i] *= f
        P[i, i] += variance[a] - f * f * before[a]
        if at_rest[a] > sliding[a]:
            P[i, i] += forgotten * max(variance[a] - P[i, i], 0.0)


@kernel
def _judge_rest(
    x: FloatArray,
    P: FloatArray,
    G: FloatArray,
    sliding: FloatArray,
    rest: FloatArray,
    known: BoolArray,
    evidence: FloatArray,
    T: float,
    innovation: FloatArray,
    S: FloatArray,
    missed: FloatArray,
) -> None:
    """Add to the log-likelihood ratio (m,) of friction that is free at rest, against friction of the law, in place.

    The torque of a window that the law does not explain is ``delta - innovation / T``, motor by motor. Its variance is
    that of noise and model error, and at rest that of the friction in addition. The ratio of a motor stays as it is
    until its dry friction is ``known``. ``missed`` (2, m) is an output: this torque and its variance while the law
    holds.
    """
    m = innovation.size
    for c in range(m):
        along, square, noise = 0.0, 0.0, 0.0
        for a in range(m):
            g = T * G[a, m + c]
            along -= g * innovation[a]
            square += g * g
            for b in range(m):
                noise += g * S[a, b] * T * G[b, m + c]
        if square == 0.0:
            continue
        missed[0, c], missed[1, c] = x[m + c] + along / square, noise / square**2
        if rest[c] <= 0.0 or not known[c]:
            continue
        law = max(missed[1, c] - P[m + c, m + c], 0.0) + sliding[c]
        free = law + FREE_AT_REST * rest[c]
        more = 0.5 * (missed[0, c] ** 2 * (1.0 / law - 1.0 / free) - math.log(free / law))
        evidence[c] = min(max(evidence[c] + min(max(more, -_OF_ONE), _OF_ONE), -_AGAINST), _FOR)


@kernel("V M V V V B V B V V M M V M f8 V M i8 b1 V M V M")
def predict_limb(
    x: FloatArray,
    P: FloatArray,
    sliding: FloatArray,
    at_rest: FloatArray,
    rest: FloatArray,
    known: BoolArray,
    evidence: FloatArray,
    free: BoolArray,
    factor: FloatArray,
    force: FloatArray,
    G: FloatArray,
    force_variance: FloatArray,
    momentum: FloatArray,
    momentum_covariance: FloatArray,
    T: float,
    law_noise: FloatArray,
    calibration_noise: FloatArray,
    calibration: int,
    frozen: bool,
    innovation: FloatArray,
    S: FloatArray,
    consistency: FloatArray,
    missed: FloatArray,
) -> float:
    """Advance state and covariance by one window, in place; return the squared distance of the measured momentum.

    Only the rows of the momentum mix: ``p += T (force - G x)``. A window that is not finite changes nothing, and its
    distance is NaN.

    Parameters
    ----------
    law_noise : (size,) variance of the random walk of the law's parameters a second, zero elsewhere
    calibration_noise : (c, c) the same of the calibration, whose first state is ``calibration``
    sliding, at_rest : (m,) variance of the model error of motors that move, and what motors that rest have more, the
        latter in place [(N m)^2]
    rest, known, evidence : (m,) square of the largest friction that may hold motors that rest [(N m)^2], whether it is
        known, and log-likelihood ratio of free friction at rest, in place
    free : (m,) output: whether friction is free at rest
    factor : (m,) output, of :func:`decay_model_error`
    innovation, S : (m,), (m, m) output: innovation of the momentum and its covariance
    consistency : (m,) output: squared innovation of each joint over its variance
    missed : (2, m) output: torque of each motor that its law does not explain [N m], and its variance [(N m)^2]
    """
    m, size = force.size, x.size
    window_is_finite = bounded(force) and bounded(G) and bounded(force_variance) and bounded(momentum_covariance)
    if not (window_is_finite and bounded(momentum) and bounded(rest)):
        return math.nan
    before = sliding + at_rest
    for a in range(m):
        free[a] = evidence[a] > 0.0 or not known[a]
        at_rest[a] = FREE_AT_REST * rest[a] if free[a] else 0.0
    drive = G @ x
    cross = G @ P
    for a in range(m):
        for j in range(size):
            cross[a, j] = P[a, j] - T * cross[a, j]
    block = cross @ G.T
    for a in range(m):
        x[a] += T * (force[a] - drive[a])
        for b in range(m):
            block[a, b] = cross[a, b] - T * block[a, b]
    for a in range(m):
        for j in range(m, size):
            P[a, j] = P[j, a] = cross[a, j]
        for b in range(m):
            P[a, b] = 0.5 * (block[a, b] + block[b, a]) + T * T * force_variance[a, b]
        P[a, a] += _MOMENTUM_NOISE**2
    decay_model_error(x, P, before, sliding, at_rest, factor, T)
    if not frozen:
        for i in range(2 * m, calibration):
            P[i, i] += T * law_noise[i]
        for i in range(size - calibration):
            row, noise = P[calibration + i, calibration:], calibration_noise[i]
            for j in range(noise.size):
                row[j] += T * noise[j]
    for a in range(m):
        innovation[a] = momentum[a] - x[a]
        for b in range(m):
            S[a, b] = P[a, b] + momentum_covariance[a, b]
    _judge_rest(x, P, G, sliding, rest, known, evidence, T, innovation, S, missed)
    for a in range(m):
        consistency[a] = innovation[a] ** 2 / S[a, a]
    normalised = solve_positive(S, innovation.reshape((m, 1)))[0]
    distance = 0.0
    for a in range(m):
        distance += innovation[a] * normalised[a, 0]
    return distance


@kernel("V M i8 V M i8 M")
def correct_limb(
    x: FloatArray, P: FloatArray, start: int, innovation: FloatArray, S: FloatArray, considered: int, K: FloatArray
) -> None:
    """Use a reading of the states from ``start`` on, in place; write the transposed gain K^T (m, size).

    States from ``considered`` on do not learn from it (Schmidt's consider filter): their gain is zero.
    """
    m, size = innovation.size, x.size
    measured = P[start : start + m].copy()
    K[:] = solve_positive(S, measured)[0]
    for a in range(m):
        for j in range(considered, size):
            K[a, j] = 0.0
        for j in range(considered):
            x[j] += K[a, j] * innovation[a]
    if considered == size:
        for i in range(size):
            row, threes = P[i, i:], m - m % 3
            for a in range(0, threes, 3):  # three at a time: the row is read and written less often
                k1, k2, k3 = K[a, i], K[a + 1, i], K[a + 2, i]
                first, second, third = measured[a, i:], measured[a + 1, i:], measured[a + 2, i:]
                for j in range(row.size):
                    row[j] -= k1 * first[j] + k2 * second[j] + k3 * third[j]
            for a in range(threes, m):
                k, column = K[a, i], measured[a, i:]
                for j in range(row.size):
                    row[j] -= k * column[j]
        for i in range(size):
            for j in range(i):
                P[i, j] = P[j, i]
        return
    SK = S @ K
    for i in range(considered):
        for j in range(i, size):
            change = 0.0
            for a in range(m):
                change += K[a, i] * (SK[a, j] - measured[a, j]) - measured[a, i] * K[a, j]
            P[i, j] += change
            P[j, i] = P[i, j]


@kernel("V M i8 V V V M M")
def correct_foot_bias(
    x: FloatArray,
    P: FloatArray,
    first: int,
    reading: FloatArray,
    variance: FloatArray,
    innovation: FloatArray,
    S: FloatArray,
    K: FloatArray,
) -> None:
    """Use the reading of an unloaded foot (6,), which is its bias, the states from ``first`` on; in place.

    Parameters
    ----------
    variance : (6,) of the reading
    innovation, S, K : (6,), (6, 6), (6, size) output, as in :func:`correct_limb`
    """
    for i in range(6):
        innovation[i] = reading[i] - x[first + i]
        for j in range(6):
            S[i, j] = P[first + i, first + j]
        S[i, i] += max(variance[i], _LEAST_BIAS_VARIANCE)
    correct_limb(x, P, first, innovation, S, x.size, K)


@kernel("V M T i8")
def hold_bounds(x: FloatArray, P: FloatArray, bounds: FloatArray, law: int) -> None:
    """Keep the law within a standard deviation of its bounds, in place.

    What is further out extrapolates badly. The state moves on the shortest path in the metric of its covariance
    (Simon 2010), which stays as it is.

    Parameters
    ----------
    bounds : (m, b, p) rows whose product with the law's parameters of a joint cannot be negative; zero rows: no bound
    law : first state of the law
    """
    m, count, p = bounds.shape
    limits, violated, any_violated = np.zeros((m, count)), np.zeros((m, count), dtype=np.bool_), False
    for joint in range(m):
        start = law + joint * p
        for row in range(count):
            spread, value = 0.0, 0.0
            for i in range(p):
                b = bounds[joint, row, i]
                if b != 0.0:
                    value += b * x[start + i]
                    for j in range(p):
                        spread += b * P[start + i, start + j] * bounds[joint, row, j]
            limits[joint, row] = -math.sqrt(max(spread, 0.0))
            violated[joint, row] = value < limits[joint, row]
            any_violated = any_violated or violated[joint, row]
    if not any_violated:
        return
    for joint in range(m):
        start = law + joint * p
        for row in range(count):
            if violated[joint, row]:
                shift, value, variance = np.zeros(x.size), 0.0, 0.0
                for i in range(p):
                    b = bounds[joint, row, i]
                    value += b * x[start + i]
                    for j in range(x.size):
                        shift[j] += b * P[start + i, j]
                for i in range(p):
                    variance += bounds[joint, row, i] * shift[start + i]
                if variance > 0.0:
                    step = (limits[joint, row] - value) / variance
                    for j in range(x.size):
                        x[j] += step * shift[j]


@kernel("V M M M M V f8 f8 V V V")
def adapt_model_error(
    x: FloatArray,
    P: FloatArray,
    G: FloatArray,
    presliding: FloatArray,
    coulomb: FloatArray,
    dry_friction: FloatArray,
    part: float,
    initial: float,
    variance: FloatArray,
    law_power: FloatArray,
    at_rest: FloatArray,
) -> None:
    """Match the variance of the model error to the mean square of its estimate, in place.

    With the right variance the estimate has the mean square ``variance - P``. The relative difference of its square
    from that changes the variance. With the absolute difference a variance that is too large would stay so for minutes
    where windows show little of the model error.

    Parameters
    ----------
    G : (m, size) torque per unit of every state
    presliding : (m, p) one for the parameters that are torques of presliding, else zero
    coulomb : (m, p) weights of the parameters in the Coulomb friction
    dry_friction : (m,) largest friction that may hold a motor at rest, under the present load [N m]
    part : window length over the memory
    initial : variance before any data [(N m)^2]
    variance, law_power : (m,) variance of the model error and mean square of the law's torque, adapted [(N m)^2]
    at_rest : (m,) further variance of motors that rest; a window in which it is the larger one changes nothing
    """
    m, p = presliding.shape
    for i in range(m):
        torque, own, first, built_up, spread = 0.0, G[i, m + i], 2 * m + i * p, 0.0, 0.0
        plateau = 0.0
        for j in range(p):
            torque += G[i, first + j] * x[first + j]
            plateau += coulomb[i, j] * x[first + j]
            if presliding[i, j] > 0.0:
                built_up += x[first + j]
                for k in range(p):
                    spread += P[first + j, first + k] * presliding[i, k]
        if own != 0.0:
            law_power[i] += part * ((torque / own) ** 2 - law_power[i])
        shown = variance[i] - P[m + i, m + i]
        if shown > _LEAST_SHOWN * variance[i] and at_rest[i] < variance[i]:
            variance[i] *= 1.0 + max(part * (x[m + i] ** 2 / shown - 1.0), -_LARGEST_DECREASE)
        least = max(_MODEL_ERROR_FLOOR**2 * initial, min(_MODEL_ERROR_PART**2 * law_power[i], initial))
        built_up = max(built_up - _CLEARLY * math.sqrt(max(spread, 0.0)), 0.0)
        if built_up > 0.0:
            loaded = max(dry_friction[i] / max(plateau, built_up), 1.0)
            least = max(least, (_PRESLIDING_PART * loaded * built_up) ** 2)
        variance[i] = max(variance[i], least)


Learned = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, int]
"""Copy of state, covariance, model-error variance, mean square of the law's torque, evidence of free friction at rest,
and number of windows."""


class ImpactDetector:
    """Windows in a row that do not fit: impacts of changing direction, or a force that stays: changed friction.

    Parameters
    ----------
    joints : m
    """

    def __init__(self, joints: int) -> None:
        self._nothing = np.zeros(joints)
        self.clear()

    def clear(self) -> None:
        """Start a new row."""
        self._count = 0
        self._impulse = self._nothing
        self._distance = self._coherent = self._duration = 0.0

    def add(self, innovation: FloatArray, S: FloatArray, distance: float, duration: float) -> None:
        """One more window: its innovation (m,) with covariance (m, m), normalised square, and length [s]."""
        self._count += 1
        self._impulse = self._impulse + innovation
        self._distance += distance
        self._duration += duration
        self._coherent = float(self._impulse @ np.linalg.solve(S, self._impulse)) / self._count

    @property
    def is_change(self) -> bool:
        """True when the row is long, and its windows agree or it is very long."""
        agree = self._count >= _FEWEST_COHERENT and self._coherent > _COHERENT * self._distance
        return (agree and self._duration >= _CHANGE_TIME) or self._duration > _MAX_IMPACT_DURATION

    @property
    def force(self) -> FloatArray:
        """Mean unexplained torque of the row, (m,), of the sign of friction [N m]."""
        return -self._impulse / self._duration


class LimbFilter:
    """Kalman filter of one limb.

    Parameters
    ----------
    layout : of the state
    config : model error, process noise, impacts
    bounds : (m, b, p) rows whose product with the law's parameters of each joint (or motor) cannot be negative
    presliding : (m, p) one for parameters that are torques of presliding, else zero

    Attributes
    ----------
    layout, presliding : as given, or of the law alone after :meth:`use_law`
    coulomb_weights : (m, p) F_c of each motor is the product of its row with the law's parameters
    state, covariance : (size,), (size, size)
    model_error_variance : (m,) stationary variance of delta of motors that move, adapted [(N m)^2]
    variance_at_rest : (m,) what motors that rest in the newest window have more [(N m)^2]
    rest_evidence : (m,) log-likelihood ratio of friction that is free at rest
    free_at_rest : (m,) True where that is positive, and for motors whose dry friction is not known yet
    consistency : (m,) squared innovation of the newest window over its variance without errors that last longer than
        the window, joint by joint; NaN before it
    missed : (2, m) torque of the motors in the newest window that their laws do not explain [N m], and its variance
    windows : number of windows used for identification
    running : False until :meth:`begin`
    """

    def __init__(self, layout: LimbState, config: KalmanConfig, bounds: FloatArray, presliding: FloatArray) -> None:
        self._config = config
        self._model_error_variance = config.model_error_std**2
        self._joints = m = layout.momentum.stop
        self._momentum, self._head = slice(0, m), slice(0, layout.law.start)
        self._innovation, self._S = np.empty(m), np.empty((m, m))
        self.missed: FloatArray = np.full((2, m), np.nan)
        self._lay_out(layout, bounds, presliding)
        self.forget()

    def _lay_out(self, layout: LimbState, bounds: FloatArray, presliding: FloatArray) -> None:
        self.layout, self.presliding, self._bounds = layout, presliding, bounds
        self.coulomb_weights = np.ascontiguousarray(bounds[:, -1])
        part, config = layout.calibration, self._config
        self._law_noise = np.zeros(layout.size)
        self._law_noise[layout.law] = (config.law_process_noise * layout.prior_std[layout.law]) ** 2
        self._calibration_noise = config.calibration_process_noise**2 * layout.prior_covariance()[part, part]

    def forget(self) -> None:
        """Back to the prior."""
        self.state = np.zeros(self.layout.size)
        self.covariance = self.layout.prior_covariance()
        self.model_error_variance: FloatArray = np.full(self._joints, self._model_error_variance)
        self._law_power = np.zeros(self._joints)
        self.rest_evidence: FloatArray = np.full(self._joints, -_AGAINST)
        self.free_at_rest: BoolArray = np.ones(self._joints, dtype=bool)
        self.windows = 0
        self._copies: deque[Learned] = deque(maxlen=_COPIES)
        self._copied_at = math.nan
        self.restart()

    def keep_copy(self, time: float) -> None:
        """Keep a copy of all that was learned, at a time [s] at which it is sound; once in ``_COPY_PERIOD``."""
        if not 0.0 <= time - self._copied_at < _COPY_PERIOD:
            self._copied_at = time
            learned = self.state, self.covariance, self.model_error_variance, self._law_power, self.rest_evidence
            state, covariance, variance, power, evidence = (one.copy() for one in learned)
            self._copies.append((state, covariance, variance, power, evidence, self.windows))

    def drop_copies(self) -> None:
        """Drop all copies: their parameters have another meaning."""
        self._copies.clear()

    def copy_before(self, age: float) -> Learned | None:
        """The newest copy of :meth:`keep_copy` that is at least this old [s], else the oldest one."""
        if not self._copies:
            return None
        newest = len(self._copies) - 1  # up to one period old
        return self._copies[int(max(newest - age / _COPY_PERIOD, 0.0))]

    def take_over(self, other: LimbFilter) -> None:
        """Use law and calibration of another filter with the same layout, and what it has found of the model error."""
        rows = slice(self.layout.law.start, self.layout.size)
        self._clear(rows)
        self.state[rows], self.covariance[rows, rows] = other.state[rows], other.covariance[rows, rows]
        self.model_error_variance, self._law_power = other.model_error_variance.copy(), other._law_power.copy()
        self.rest_evidence, self.windows = other.rest_evidence.copy(), other.windows

    def recover(self) -> str:
        """Go back to the newest copy, once, else to the prior; what was done, in words."""
        if self.go_back_to(self._copies[-1] if self._copies else None):
            return f"goes back to what it had learned up to {_COPY_PERIOD:g} s before"
        return "starts anew from its prior"

    def go_back_to(self, copy: Learned | None) -> bool:
        """Take over a copy, or the prior where there is no sound one; True for the copy."""
        self.forget()
        if copy is None or not positive_semidefinite(copy[1]):
            return False
        self.state, self.covariance, self.model_error_variance, self._law_power = copy[:4]
        self.rest_evidence, self.windows = copy[4:]
        self.restart()
        return True

    def restart(self) -> None:
        """Momentum and model error are unknown again; law and calibration stay."""
        self.running = False
        self._impacts = ImpactDetector(self._joints)
        self.consistency: FloatArray = np.full(self._joints, np.nan)
        self._clear(self._head)
        self.variance_at_rest = np.zeros(self._joints)
        self._diagonal(self.layout.model_error)[:] = self.model_error_variance

    def begin(self, momentum: FloatArray, momentum_covariance: FloatArray) -> None:
        """Start, or continue after a window that was not used, at a measured momentum (m,), (m, m)."""
        rows = self._momentum
        self._clear(rows)
        self.state[rows] = momentum
        self.covariance[rows, rows] = momentum_covariance
        self.running = True

    def skip(self, duration: float) -> None:
        """Time passes without a measurement."""
        factor, parts = np.empty(self._joints), (self.model_error_variance, self.variance_at_rest)
        decay_model_error(self.state, self.covariance, parts[0] + parts[1], *parts, factor, duration)
        self.running = False

    def step(self, window: LimbWindow, frozen: bool, touching: bool) -> bool:
        """Use one window; False where it is not finite, and changes nothing.

        Parameters
        ----------
        frozen : True keeps law and calibration as they are
        touching : True while a foot lands or lifts off: what does not fit then is an impact, never changed friction
        """
        layout = self.layout
        innovation, S, consistency = self._innovation, self._S, np.empty(self._joints)
        factor = np.empty(self._joints)
        distance = predict_limb(
            self.state,
            self.covariance,
            self.model_error_variance,
            self.variance_at_rest,
            window.rest_variance,
            window.dry_is_known,
            self.rest_evidence,
            self.free_at_rest,
            factor,
            window.force,
            window.force_columns,
            window.force_variance,
            window.momentum,
            window.momentum_covariance,
            window.duration,
            self._law_noise,
            self._calibration_noise,
            layout.links.start,
            frozen,
            innovation,
            S,
            consistency,
            self.missed,
        )
        if math.isnan(distance):
            return False
        noise = window.duration**2 * np.diagonal(window.force_variance) + np.diagonal(window.momentum_covariance)
        lasting = (1.0 - 1.0 / window.repeats) * noise
        variance = np.diagonal(S)
        self.consistency = consistency * (variance / (variance - lasting))
        impact = distance > self._config.innovation_gate * self._joints
        if impact:
            self._impacts.add(innovation, S, distance, window.duration)
            if not touching and self._impacts.is_change:
                self._inflate_covariance(window, self._impacts.force, frozen)
                self._impacts.clear()
            else:
                self._reset_momentum(innovation, distance)
            S = self.covariance[self._momentum, self._momentum] + window.momentum_covariance
        else:
            self._impacts.clear()
        self._correct(innovation, S, frozen)
        if not frozen:
            hold_bounds(self.state, self.covariance, self._bounds, layout.law.start)
            self.windows += 1
        if not impact:
            part = window.duration / self._config.model_error_memory
            adapt_model_error(
                self.state,
                self.covariance,
                window.force_columns,
                self.presliding,
                self.coulomb_weights,
                window.dry_friction,
                part,
                self._model_error_variance,
                self.model_error_variance,
                self._law_power,
                self.variance_at_rest,
            )
        return True

    def update_foot_bias(self, foot: int, reading: FloatArray, variance: FloatArray) -> None:
        """An unloaded sensor reads its bias: (6,) mean reading, (6,) its variance."""
        rows = self.layout.foot(self.layout.foot_bias, foot)
        if self.layout.prior_std[rows].any():
            used = np.empty(6), np.empty((6, 6))
            gain = np.empty((6, self.layout.size))
            correct_foot_bias(self.state, self.covariance, rows.start, reading, variance, *used, gain)

    def know_no_presliding(self) -> None:
        """Use that the torques of presliding are zero, from now on: a measurement without noise."""
        layout, (m, p) = self.layout, self.presliding.shape
        prior = layout.prior_std.copy()
        for motor in range(m):
            columns = np.flatnonzero(self.presliding[motor])
            rows = slice(start := layout.law.start + motor * p + int(columns[0]), start + columns.size)
            prior[rows] = self._law_noise[rows] = 0.0
            if self.covariance[rows, rows].any():
                innovation, S = -self.state[rows], np.ascontiguousarray(self.covariance[rows, rows])
                gain = np.empty((columns.size, layout.size))
                correct_limb(self.state, self.covariance, rows.start, innovation, S, layout.size, gain)
                self._clear(rows)
        self.layout = replace(layout, prior_std=prior)

    def use_law(self, layout: LimbState, bounds: FloatArray, presliding: FloatArray) -> None:
        """Leave out the parameters that :meth:`know_no_presliding` has set to zero.

        Parameters
        ----------
        layout, bounds, presliding : of the filter without them
        """
        law = self.layout.law
        kept = np.ones(self.layout.size, dtype=bool)
        kept[law] = self.presliding.ravel() == 0.0
        self.state, self.covariance = self.state[kept], np.ascontiguousarray(self.covariance[kept][:, kept])
        self._copies.clear()
        self._copied_at = math.nan
        self._lay_out(layout, bounds, presliding)

    def inflate_law_covariance(self) -> None:
        """Inflate the covariance of the law: a torque that was taken for a push has lasted too long."""
        law = self.layout.law
        self._diagonal(law)[:] += (LAW_INFLATION * self.layout.prior_std[law]) ** 2

    def replace(self, columns: IntArray, values: FloatArray, covariance: FloatArray) -> None:
        """Set some states (c,) to values known from elsewhere, with their covariance (c, c)."""
        self._clear(columns)
        self.state[columns] = values
        self.covariance[np.ix_(columns, columns)] = covariance

    def _reset_momentum(self, innovation: FloatArray, distance: float) -> None:
        """Inflate the covariance of the momentum after an impact, at landing for instance; the rest stays as it is."""
        rows = self._momentum
        unexplained = 1.0 - self._config.innovation_gate * self._joints / distance
        self.covariance[rows, rows] += np.outer(innovation, innovation) * (_IMPACT * unexplained)

    def _inflate_covariance(self, window: LimbWindow, force: FloatArray, frozen: bool) -> None:
        """Inflate the covariance of law and model error: friction has changed by about ``force`` (m,) [N m]."""
        layout, P = self.layout, self.covariance
        more = np.zeros(layout.size)
        known = layout.prior_std[layout.law] > 0.0
        more[layout.law] = 0.0 if frozen else known * (_CHANGE_RATIO * np.abs(self.state[layout.law])) ** 2
        rows, T, G = self._momentum, window.duration, window.force_columns
        more[layout.model_error] = np.linalg.solve(G[:, layout.model_error], force) ** 2
        into_momentum = -T * G * more
        P[rows] += into_momentum
        P[:, rows] += into_momentum.T
        P[rows, rows] += T * T * (G * more) @ G.T
        self._diagonal(slice(0, layout.size))[:] += more

    def _correct(self, innovation: FloatArray, S: FloatArray, frozen: bool) -> None:
        considered = self.layout.law.start if frozen else self.layout.size
        gain = np.empty((innovation.size, self.layout.size))
        correct_limb(self.state, self.covariance, 0, innovation, S, considered, gain)

    def _clear(self, rows: slice | IntArray) -> None:
        self.state[rows] = 0.0
        self.covariance[rows] = 0.0
        self.covariance[:, rows] = 0.0

    def _diagonal(self, rows: slice) -> FloatArray:
        """Writable view of a part of the covariance's diagonal."""
        return self.covariance.ravel()[:: self.layout.size + 1][rows]
