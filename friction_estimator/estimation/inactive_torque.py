"""Random test of a feed-forward torque: how much of it is in the effort, and does not act?

Where a drive reports the commanded torque and does not apply all of it, the balance has the rest as friction:

    measured friction = law at the motion + c * own torque         c: part that is in the effort, and does not act

Compensation that follows this friction grows by ``1 / (1 - c * gain)``, or without end. But the own torque is, apart
from its size, the law at the motion: only what changes it independently of the motion tells both apart. So while the
test runs, the torque is whole or a quarter for a short time each, at random. Then a regression on both columns gives c
whatever the friction does meanwhile, and because the signs are independent, the scores of these times give its variance
whatever the noise (Hinkley 1977; MacKinnon & White 1985). Delays of the drive that are short against these times hardly
matter.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from friction_estimator.linear_algebra import DIVERGENCE_LIMIT
from friction_estimator.types import BoolArray, FloatArray

_INTERVAL_NS = 100_000_000
"""Time for which a torque under test is whole or a quarter [ns]: four time constants of the measured friction."""
_REDUCED = 0.25
"""Part of a torque under test that acts at its low times: zero shakes a walking robot more."""
_RAMP = 0.02
"""Time in which it would go on or off [s]: fast against the interval, and slow enough to shake no joint."""
_BANDWIDTH = 40.0
"""Of the low-pass of the measured friction, that of the momentum observer, which the columns pass, too [rad/s]."""
_INTERVALS = 200
"""Number of intervals that a test remembers: twenty seconds."""
_FALSE_ALARM = 1e-6
"""Probability that a torque which acts is found not to, in one decision: some ten decisions make a test."""
_DOUBT = 1e-3
"""Probability that a larger part than ``_HARMLESS`` passes the test."""
_HARMLESS = 0.3
"""Part up to which a test is passed: with it the friction that is learned grows by less than a half."""
_NAMED = 0.05
"""Parts below this are not named: gains of the effort are not known better."""
_GROWTH = 0.1
"""Part by which the friction of the law may grow since the test before another test is due."""
_MEMORY = 1.0
"""Time constant of the means that show such a growth [s]."""
_COLUMNS = 4
"""Of the regression: own torque, friction of the tested and of the present law, and calibration."""
_LARGE = 0.5
"""Torques are large in an interval from this part of the largest ones on: only those may saturate."""
_MIN_LARGE, _PEAK_KEEP = 4, 0.997
"""Number of large intervals without which no test is passed; the largest torque is forgotten by this per interval."""
_RIDGE = 1e-9
"""Added to the normal equations, over their trace: columns may be zero."""
_LEAST_WEIGHT = 0.01
"""Intervals of less weight, over the largest one, do not count: the joint rests, or its torque does not change."""
_LARGEST_SEED = 2**63 - 1
"""Signs are random by the number of the interval: the same stamps give the same torque in a replay."""


class InactiveTorqueTest:
    """Finds the joints whose feed-forward torque is in the effort and does not act, or acts and is not in it.

    Parameters
    ----------
    joints, parameters : n, and number p of the parameters of their laws

    Attributes
    ----------
    law : (n, p) parameters beyond whose friction no torque may go; zero before the first test
    running : (n,) True where a test is due, or going on
    failed : (n,) True where c is neither zero nor harmless: there no torque may be sent
    part, sigma : (n,) c by the newest test, and its standard deviation; NaN while nothing is known
    has_failed : True where the newest step has found that a joint fails
    """

    def __init__(self, joints: int, parameters: int) -> None:
        self.law = np.zeros((joints, parameters))
        self.running: BoolArray = np.ones(joints, dtype=bool)
        self.failed: BoolArray = np.zeros(joints, dtype=bool)
        self.part, self.sigma = np.full((2, joints), np.nan)
        self.has_failed = False
        self._begun: BoolArray = np.zeros(joints, dtype=bool)
        self._on, self._level = np.ones(joints, dtype=bool), np.ones(joints)
        self._interval, self._row, self._products = -1, 0, np.zeros((joints, _INTERVALS, _COLUMNS + 1, _COLUMNS + 1))
        self._filtered, self._sizes = np.zeros((_COLUMNS, joints)), np.zeros((2, joints))
        self._peak = np.zeros(joints)

    def limited(self, friction: FloatArray, tested: FloatArray) -> FloatArray:
        """Friction (n,) as far as that of the tested law (n,) allows: no more than it in a test, else some growth."""
        most = np.abs(tested) * np.where(self.running, 1.0, 1.0 + _GROWTH)
        return np.clip(friction, -most, most)

    def levels(self, stamp_ns: int, dt: float, law: FloatArray, known: BoolArray) -> FloatArray:
        """Part (n,) of the torque to send from a stamp on, after a step of time [s]: one without a test.

        Parameters
        ----------
        law, known : (n, p) parameters of the present law; (n,) True where it is known well enough for a test
        """
        self.has_failed = False
        if (interval := stamp_ns // _INTERVAL_NS) != self._interval:
            self._decide(law)
            self._interval, self._row = interval, (self._row + 1) % _INTERVALS
            self._products[:, self._row] = 0.0
            self._on = np.random.default_rng(interval & _LARGEST_SEED).random(self._on.size) < 0.5
        if (first := known & ~self._begun).any():
            self._begun, self.law[first] = self._begun | first, law[first]
        goal = np.where(self.failed, 0.0, np.where(self.running & ~self._on, _REDUCED, 1.0))
        self._level = np.clip(goal, self._level - dt / _RAMP, self._level + dt / _RAMP)
        return self._level

    def add(
        self, dt: float, sent: FloatArray, law: FloatArray, tested: FloatArray, model: FloatArray,
        calibration: FloatArray, balance: FloatArray,
    ) -> None:  # fmt: skip
        """Add a step of time [s].

        Parameters
        ----------
        sent : (n,) torque that acts during the step, as far as it does [N m]
        law, tested : (n,) friction of the present and of the tested law; zero where no torque is to be sent [N m]
        model, calibration : (n,) what the present law, and known errors of model and sensors, explain of the balance
            [N m]
        balance : (n,) what both leave of it, behind its low-pass [N m]
        """
        self._sizes = math.exp(-dt / _MEMORY) * self._sizes + dt * np.stack((law * law, tested * tested))
        grown = ~(self.running | self.failed) & (self._sizes[0] > (1.0 + _GROWTH) ** 2 * self._sizes[1])
        if grown.any():
            self.running, self._products[grown] = self.running | grown, 0.0
        if not self.running.any():
            return
        keep = math.exp(-_BANDWIDTH * dt)
        inputs = np.nan_to_num(np.stack((sent, tested, model, calibration)))
        self._filtered = keep * self._filtered + (1.0 - keep) * inputs
        balance = balance + self._filtered[2] + self._filtered[3]
        counts = self.running & (np.abs(balance) <= DIVERGENCE_LIMIT) & (tested != 0.0)
        columns = np.where(counts, np.vstack((self._filtered, balance)), 0.0).T
        self._products[:, self._row] += dt * columns[:, :, None] * columns[:, None]

    def _decide(self, law: FloatArray) -> None:
        """End the tests that are decided; the present law (n, p) has passed with them."""
        if not self._products[:, self._row].any():
            return
        self._peak = np.maximum(_PEAK_KEEP * self._peak, self._products[:, self._row, 1, 1])
        used = self._products[:, self._products.any(axis=(0, 2, 3))]
        large = used[:, :, 1, 1] >= _LARGE**2 * self._peak[:, None]
        parts, sigma, freedom = inactive_part(used, large)
        false_alarm = _DOUBT if self.failed.any() else _FALSE_ALARM  # drives of a robot are alike
        alarm, doubt = (stdtrit(np.maximum(freedom, 1.0), 1.0 - level) for level in (false_alarm, _DOUBT))
        size, decided = np.abs(parts), self.running & (freedom > 1.0)
        wrong, harmless = size > alarm * sigma + _NAMED, size + doubt * sigma < _HARMLESS
        enough = large.sum(axis=1) >= _MIN_LARGE
        failed, passed = decided & wrong.any(axis=0), decided & enough & harmless.all(axis=0)
        own, deviation = (np.where(wrong[0], *values) for values in (parts, sigma))
        self.part, self.sigma = np.where(self.running, (own, deviation), (self.part, self.sigma))
        self.has_failed = bool(failed.any())
        self.failed, self.running = self.failed | failed, self.running & ~failed & ~passed
        self.law[passed], self._sizes[:, passed] = law[passed], 0.0


def inactive_part(products: FloatArray, large: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Regression of the balance on the own torque, whose signs are random in each interval, and on other columns.

    Its variance comes from the scores of the intervals. It is the larger one of two: the first one lets noise be larger
    in some intervals, and is too small where few of them count; the other one takes noise as even in all of them.

    Parameters
    ----------
    products : (n, m, 1 + c, 1 + c) sums of the products of the c columns, the own torque first, and of the balance in
        each of m intervals
    large : (n, m) intervals whose coefficient is computed, too

    Returns
    -------
    part, sigma : (2, n) coefficient of the own torque in all intervals, and in the large ones, and its standard
        deviation
    freedom : (n,) degrees of freedom; zero without enough intervals
    """
    n, m, c = *products.shape[:2], products.shape[2] - 1
    rows, use = products.reshape(n, m, -1), np.stack((np.ones_like(large), large)).astype(float)
    total = (use.transpose(1, 0, 2) @ rows).transpose(1, 0, 2).reshape(2, n, c + 1, c + 1)
    scale = np.trace(total, axis1=2, axis2=3)[..., None, None]
    inverse = np.linalg.inv(total[..., :-1, :-1] + np.eye(c) * np.where(scale > 0.0, _RIDGE * scale, 1.0))
    own = np.zeros((2, n, c + 1))
    residual, own[..., :-1] = np.ones((2, n, c + 1)), inverse[..., 0]
    residual[..., :-1] = -(inverse @ total[..., :-1, -1:])[..., 0]
    forms = own[..., None] * np.stack((residual, own))[..., None, :]
    scores, weights = use * (rows @ forms.reshape(4, n, -1).transpose(1, 2, 0)).transpose(2, 0, 1).reshape(2, 2, n, m)
    counts = weights[0] > _LEAST_WEIGHT * weights[0].max(axis=1, keepdims=True)
    freedom = np.maximum(counts.sum(axis=1) - c, 0.0)
    even = (np.where(counts, scores[0] ** 2, 0.0) / np.where(counts, weights[0], 1.0)).sum(axis=1)
    even = even / np.where(freedom > 0.0, freedom, np.nan)
    sigma = np.sqrt(np.maximum((scores**2).sum(axis=2), even * weights.sum(axis=2)))
    return -residual[..., 0], sigma, freedom
