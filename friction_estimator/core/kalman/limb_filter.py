"""Kalman filter of one limb: momentum, friction law, what the law misses, and the errors of model and sensors.

Seen from the IMU, the joint rows of the momentum balance over a window of length T read (Lim et al. 2024, eqs. 4-10)

    p(t + T) = p(t) + T (tau + C^T v - g + J^T F - friction) + noise
    friction = S (Phi(dq) theta + delta)            # S = 1 where every joint has a motor of its own
    delta(t + T) = exp(-T / tau_delta) delta(t) + noise

with errors of model and sensors acting as more torques, each linear in its size. Everything is linear, so one Kalman
filter on ``[p, delta, theta, calibration]`` weighs it all; p is measured through joint velocities and gyroscope. The
noise enters where it arises, white: that of the wrenches with the force, that of the velocities with the measurement. A
low-pass on residual and regressors, as a momentum observer has it, is then not needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import KalmanConfig
from friction_estimator.core.kalman.limb_state import LimbState
from friction_estimator.core.linear_algebra import kalman_gain
from friction_estimator.core.types import FloatArray, IntArray

_MOMENTUM_NOISE = 1e-5
"""Standard deviation below which no momentum is known [kg m^2/s]."""
_BLOW = 10.0
"""Variance given to a blow, over its square: the momentum is taken anew from the measurement."""
_FEWEST_COHERENT = 2
_COHERENT = 0.6
"""Squared sum of unexplained impulses over the sum of their squares and their number: one when all are the same."""


@dataclass(frozen=True, slots=True)
class LimbWindow:
    """What a window says of one limb of ``m`` joints.

    Attributes
    ----------
    duration : T [s]
    force : (m,) mean of ``tau + C^T v - g + J^T F`` [N m]
    force_columns : (m, size) torque per unit of every state, the mismatch and the law's regressor included
    force_variance : (m, m) of the white noise in ``force``, over the window [(N m)^2]
    momentum : (m,) at the end of the window
    momentum_covariance : (m, m)
    """

    duration: float
    force: FloatArray
    force_columns: FloatArray
    force_variance: FloatArray
    momentum: FloatArray
    momentum_covariance: FloatArray


class Blows:
    """Windows in a row that do not fit: blows of changing direction, or a force that stays, which is changed friction.

    Parameters
    ----------
    joints : m
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self.clear()

    def clear(self) -> None:
        """Start a new row."""
        self._count = 0
        self._impulse = np.zeros(self._joints)
        self._distance = self._coherent = self._duration = 0.0

    def add(self, innovation: FloatArray, S: FloatArray, distance: float, duration: float) -> None:
        """One more window: its innovation (m,) with covariance (m, m), normalised square, and length [s]."""
        self._count += 1
        self._impulse = self._impulse + innovation
        self._distance += distance
        self._duration += duration
        self._coherent = float(self._impulse @ np.linalg.solve(S, self._impulse)) / self._count

    def is_change(self, config: KalmanConfig) -> bool:
        """True when the row is long, and its windows agree or it is very long."""
        agree = self._count >= _FEWEST_COHERENT and self._coherent > _COHERENT * self._distance
        return (agree and self._duration >= config.change_time) or self._duration > config.longest_blow

    @property
    def force(self) -> FloatArray:
        """Mean unexplained torque of the row, (m,), of the sign of friction [N m]."""
        return -self._impulse / self._duration


class LimbFilter:
    """The filter.

    Parameters
    ----------
    layout : of the state
    config : mismatch, gates, random walk
    bounds : (b, m p) rows whose product with the law's parameters cannot be negative

    Attributes
    ----------
    state, covariance : (size,), (size, size)
    mismatch_variance : (m,) stationary variance of delta, motor by motor, adapted [(N m)^2]
    consistency : (m,) squared innovation of the newest window over its variance, joint by joint; NaN before it
    windows : how many windows were learned from
    """

    def __init__(self, layout: LimbState, config: KalmanConfig, bounds: FloatArray) -> None:
        self.layout = layout
        self._config = config
        self._bounds = bounds
        self._joints = layout.momentum.stop
        self._calibration_prior = layout.prior_covariance()[layout.calibration, layout.calibration]
        self.forget()

    def forget(self) -> None:
        """Back to the prior."""
        self.state = np.zeros(self.layout.size)
        self.covariance = self.layout.prior_covariance()
        self.mismatch_variance: FloatArray = np.full(self._joints, self._config.mismatch_std**2)
        self.windows = 0
        self.restart()

    def restart(self) -> None:
        """The momentum is unknown, and how far the law is off now; what was learned stays."""
        self._running = False
        self._blows = Blows(self._joints)
        self.consistency: FloatArray = np.full(self._joints, np.nan)
        head = slice(0, self.layout.law.start)
        self.state[head] = 0.0
        self.covariance[head] = 0.0
        self.covariance[:, head] = 0.0
        self._diagonal(self.layout.mismatch)[:] = self.mismatch_variance

    def begin(self, momentum: FloatArray, momentum_covariance: FloatArray) -> None:
        """Start, or pick up after a window that teaches nothing, at a measured momentum (m,), (m, m)."""
        rows = self.layout.momentum
        self.state[rows] = momentum
        self.covariance[rows] = 0.0
        self.covariance[:, rows] = 0.0
        self.covariance[rows, rows] = momentum_covariance
        self._running = True

    @property
    def running(self) -> bool:
        """False until :meth:`begin`."""
        return self._running

    def skip(self, duration: float) -> None:
        """Time passes without a measurement."""
        self._age_mismatch(duration)
        self._running = False

    def step(self, window: LimbWindow, frozen: bool, touching: bool) -> None:
        """Use one window.

        Parameters
        ----------
        frozen : True keeps law and calibration as they are
        touching : True while a foot lands or lifts off: what does not fit then is a blow, never changed friction
        """
        self._predict(window, frozen)
        rows = self.layout.momentum
        innovation = window.momentum - self.state[rows]
        S = self.covariance[rows, rows] + window.momentum_covariance
        distance = float(innovation @ np.linalg.solve(S, innovation))
        self.consistency = innovation**2 / np.diagonal(S)
        blow = distance > self._config.innovation_gate * self._joints
        if blow:
            self._blows.add(innovation, S, distance, window.duration)
            if not touching and self._blows.is_change(self._config):
                self._open_up(window, self._blows.force, frozen)
                self._blows.clear()
            else:
                self._take_blow(innovation, distance)
            S = self.covariance[rows, rows] + window.momentum_covariance
        else:
            self._blows.clear()
        self._correct(innovation, S, frozen)
        if not frozen:
            self._hold_bounds()
            self.windows += 1
            if not blow:
                self._adapt_mismatch(window.duration)

    def close(self, time: float) -> None:
        """The window that ends at ``time`` [s] has been used or skipped."""

    def weigh_empty_foot(self, foot: int, reading: FloatArray, variance: FloatArray) -> None:
        """An unloaded sensor reads its bias: (6,) mean reading, (6,) its variance."""
        rows = self.layout.foot(self.layout.foot_bias, foot)
        if not self.layout.prior_std[rows].any():
            return
        P = self.covariance[rows]
        S = P[:, rows] + np.diag(np.maximum(variance, 1e-12))
        gain = kalman_gain(S, P)
        self.state += gain @ (reading - self.state[rows])
        self.covariance -= gain @ P

    def relearn(self) -> None:
        """Forget a part of the law: what was taken for something else has lasted too long."""
        law = self.layout.law
        self._diagonal(law)[:] += (self._config.relearn_ratio * self.layout.prior_std[law]) ** 2

    def replace(self, columns: IntArray, values: FloatArray, covariance: FloatArray) -> None:
        """Set some states (c,) to values known from elsewhere, with their covariance (c, c)."""
        self.state[columns] = values
        self.covariance[columns] = 0.0
        self.covariance[:, columns] = 0.0
        self.covariance[np.ix_(columns, columns)] = covariance

    def _predict(self, window: LimbWindow, frozen: bool) -> None:
        """One window ahead; only the rows of the momentum mix."""
        T, G, P = window.duration, window.force_columns, self.covariance
        rows = self.layout.momentum
        self.state[rows] += T * (window.force - G @ self.state)
        cross = P[rows] - T * (G @ P)
        block = cross[:, rows] - T * (cross @ G.T)
        P[rows] = cross
        P[:, rows] = cross.T
        P[rows, rows] = 0.5 * (block + block.T) + T * T * window.force_variance
        self._diagonal(rows)[:] += _MOMENTUM_NOISE**2
        self._age_mismatch(T)
        if frozen:
            return
        known = self.layout.prior_std[self.layout.law]
        self._diagonal(self.layout.law)[:] += T * (self._config.law_walk * known) ** 2
        part = self.layout.calibration
        P[part, part] += T * self._config.calibration_walk**2 * self._calibration_prior

    def _age_mismatch(self, duration: float) -> None:
        rows, P = self.layout.mismatch, self.covariance
        decay = math.exp(-duration / self._config.mismatch_time)
        self.state[rows] *= decay
        P[rows] *= decay
        P[:, rows] *= decay
        self._diagonal(rows)[:] += (1.0 - decay * decay) * self.mismatch_variance

    def _take_blow(self, innovation: FloatArray, distance: float) -> None:
        """The momentum alone jumps by a blow, an impact at landing for instance; nothing else is learned from it."""
        rows = self.layout.momentum
        unexplained = 1.0 - self._config.innovation_gate * self._joints / distance
        self.covariance[rows, rows] += np.outer(innovation, innovation) * (_BLOW * unexplained)

    def _open_up(self, window: LimbWindow, force: FloatArray, frozen: bool) -> None:
        """Friction has changed, by about ``force`` (m,) [N m]: from this window on believe law and mismatch less."""
        layout, P = self.layout, self.covariance
        more = np.zeros(layout.size)
        known = layout.prior_std[layout.law] > 0.0
        more[layout.law] = 0.0 if frozen else known * (self._config.change_ratio * np.abs(self.state[layout.law])) ** 2
        rows, T, G = layout.momentum, window.duration, window.force_columns
        more[layout.mismatch] = np.linalg.solve(G[:, layout.mismatch], force) ** 2
        into_momentum = -T * G * more
        P[rows] += into_momentum
        P[:, rows] += into_momentum.T
        P[rows, rows] += T * T * (G * more) @ G.T
        self._diagonal(slice(0, layout.size))[:] += more

    def _correct(self, innovation: FloatArray, S: FloatArray, frozen: bool) -> None:
        measured = self.covariance[self.layout.momentum]
        gain = kalman_gain(S, measured)
        if frozen:
            gain[self.layout.learned] = 0.0
            change = gain @ measured
            self.covariance += gain @ S @ gain.T - change - change.T
        else:
            self.covariance -= gain @ measured
        self.state += gain @ innovation
        self.covariance = 0.5 * (self.covariance + self.covariance.T)

    def _hold_bounds(self) -> None:
        """Keep the law within a standard deviation of its bounds: what is further out extrapolates badly.

        The state moves on the shortest way in the metric of its covariance (Simon 2010), which stays as it is.
        """
        law = self.layout.law
        spread = ((self._bounds @ self.covariance[law, law]) * self._bounds).sum(axis=1)
        limit = -np.sqrt(np.maximum(spread, 0.0))
        for row in np.flatnonzero(self._bounds @ self.state[law] < limit):
            bound = self._bounds[row]
            direction = self.covariance[:, law] @ bound
            variance = float(bound @ direction[law])
            if variance > 0.0:
                self.state += direction * ((limit[row] - float(bound @ self.state[law])) / variance)

    def _adapt_mismatch(self, duration: float) -> None:
        """Stationary variance of delta by covariance matching: the mean of its square, its uncertainty included."""
        config, rows = self._config, self.layout.mismatch
        square = self.state[rows] ** 2 + self._diagonal(rows)
        variance = self.mismatch_variance + duration / config.mismatch_memory * (square - self.mismatch_variance)
        self.mismatch_variance = np.maximum(variance, config.mismatch_floor**2)

    def _diagonal(self, rows: slice) -> FloatArray:
        """Writable view of a part of the covariance's diagonal."""
        return self.covariance.ravel()[:: self.layout.size + 1][rows]
