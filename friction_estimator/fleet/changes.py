"""Steps and ramps in a series of days: a Bayesian linear model whose terms are added while the data ask for them.

The series is a constant, plus steps and ramps, plus errors with a known covariance: independent errors of the days, a
random walk, and the uncertain temperature factor. Every step and ramp has a Gaussian prior of its size, and each day
the same small prior probability that one begins. Then the probability that the data contain one more of them, summed
over all days, is a closed form, because sizes and constant are integrated out (Bayes factors, Kass & Raftery 1995). The
most probable one is added while that probability is above :data:`ACCEPTED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logsumexp, softmax

from friction_estimator.fleet.series import DaySeries
from friction_estimator.types import FloatArray

ACCEPTED = 0.9
"""Probability that a change is one, from which on it is part of the model."""
_RATE = 1e-3  # prior probability that a step, or a ramp, begins on a day: one in three years
_STEP, _RAMP = 0.2, 0.01  # prior standard deviations of the size of a step, and of the slope of a ramp [1/d]
_LENGTHS = 7.0, 14.0, 28.0  # of ramps that end [d]
_LASTING = 3  # days on each side of a step; a ramp has one more
_MOST = 5  # changes of one series
_OUTLIER = 3.0  # residuals beyond so many sigma count less and less
_CONSTANT = 10.0  # prior standard deviation of the constant
_INTERVAL = 0.9
_ALTERNATIVES = 20  # other days and forms of a change whose levels count for the uncertainty


@dataclass(frozen=True, slots=True)
class Change:
    """A step or the begin of a ramp.

    Attributes
    ----------
    kind : ``step`` or ``ramp``
    day : first day of the change, since 1970 [d]
    earliest, latest : the change began between these days with a probability of 0.9
    probability : that there is a change here
    size : of the logarithm, up to the newest day
    size_sigma : its standard deviation
    """

    kind: str
    day: float
    earliest: float
    latest: float
    probability: float
    size: float
    size_sigma: float


@dataclass(frozen=True, slots=True)
class ChangeModel:
    """The model of one series of ``n`` days.

    Attributes
    ----------
    changes : in the order of time
    level : (n,) of the model [logarithm]
    covariance : (n, n) of the level, other days and forms of the changes included
    """

    changes: tuple[Change, ...]
    level: FloatArray
    covariance: FloatArray

    @property
    def level_sigma(self) -> FloatArray:
        """Standard deviation of the level, (n,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Level of the second day minus that of the first, and its standard deviation."""
        cov = self.covariance
        variance = cov[first, first] + cov[second, second] - 2.0 * cov[first, second]
        return float(self.level[second] - self.level[first]), float(np.sqrt(max(variance, 0.0)))


def find_changes(days: DaySeries) -> ChangeModel:
    """Model of the friction of one joint.

    Days that are far off count less: first those off the median of the days about them, then those off the model.
    """
    near = sliding_window_view(np.pad(days.value, _LASTING, constant_values=np.nan), 2 * _LASTING + 1)
    rough = _Problem(days, _without_outliers(days, np.nanmedian(near, axis=1)))
    problem = _Problem(days, _without_outliers(days, rough.levels(_select(rough)[0])[0]))
    chosen, dates = _select(problem)
    level, covariance = problem.levels(chosen)
    for place in chosen:
        covariance = covariance + _other_days(problem, chosen, place, level)
    sizes, spread = problem.sizes(chosen)
    reached = problem.columns[-1, chosen]
    changes = [
        Change(
            "step" if place >= problem.first_step else "ramp",
            float(days.day[problem.begins[place]]),
            *dates[k],
            float(sizes[k] * reached[k]),
            float(np.sqrt(spread[k, k]) * reached[k]),
        )
        for k, place in enumerate(chosen)
    ]
    return ChangeModel(tuple(sorted(changes, key=lambda change: change.day)), level, covariance)


def _without_outliers(days: DaySeries, level: FloatArray) -> FloatArray:
    """Variances (n,), increased where the friction is far from a level."""
    rest = np.abs(days.value - level) / np.sqrt(days.variance)
    return days.variance * np.maximum(1.0, rest / _OUTLIER) ** 4


class _Problem:
    """One series with its candidate columns: ramps and steps from every day on that leaves enough days."""

    def __init__(self, days: DaySeries, variance: FloatArray) -> None:
        n, day = days.day.size, days.day
        self.day, self.value = day, days.value
        self.covariance = _errors(days, variance) + _CONSTANT**2
        ramps, steps = np.arange(max(n - _LASTING - 1, 1)), np.arange(_LASTING, n - _LASTING + 1)
        elapsed = np.maximum(day[:, None] - day[ramps], 0.0)
        ending = [np.minimum(elapsed / length, 1.0) for length in _LENGTHS]
        self.columns = np.hstack((elapsed, *ending, day[:, None] >= day[steps]))
        self.begins = np.concatenate((*(1 + len(_LENGTHS)) * [ramps], steps))
        self.scale = np.where(np.arange(self.begins.size) < ramps.size, _RAMP, _STEP)
        self.first_step = self.begins.size - steps.size

    def log_odds(self, chosen: Sequence[int]) -> FloatArray:
        """Logarithm of the odds (c,) that each column is in the data, beside the chosen ones."""
        factor = cho_factor(self._with(chosen), lower=True)
        solved = cho_solve(factor, self.columns)
        growth = 1.0 + self.scale**2 * np.einsum("nc,nc->c", self.columns, solved)
        explained = 0.5 * (self.scale * (solved.T @ self.value)) ** 2 / growth
        return np.asarray(np.log(_RATE) - 0.5 * np.log(growth) + explained)

    def sizes(self, chosen: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Mean (p) and covariance (p, p) of the sizes of the chosen columns."""
        design = self.columns[:, chosen] * self.scale[chosen] ** 2
        solved = cho_solve(cho_factor(self._with(chosen), lower=True), np.column_stack((self.value, design)))
        prior = np.diag(self.scale[chosen] ** 2)
        return design.T @ solved[:, 0], prior - design.T @ solved[:, 1:]

    def levels(self, chosen: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Mean (n) and covariance (n, n) of the level with the chosen columns."""
        columns = np.column_stack((np.ones(self.day.size), self.columns[:, chosen]))
        prior = columns * np.concatenate(([_CONSTANT], self.scale[chosen])) ** 2
        solved = cho_solve(cho_factor(self._with(chosen), lower=True), np.column_stack((self.value, columns @ prior.T)))
        return columns @ (prior.T @ solved[:, 0]), columns @ (prior.T - prior.T @ solved[:, 1:])

    def _with(self, chosen: Sequence[int]) -> FloatArray:
        scaled = self.columns[:, chosen] * self.scale[chosen]
        return np.asarray(self.covariance + scaled @ scaled.T)


def _select(problem: _Problem) -> tuple[list[int], list[tuple[float, float, float]]]:
    """Columns that the data ask for; of each the earliest and latest day and the probability that there is one."""
    chosen: list[int] = []
    dates: list[tuple[float, float, float]] = []
    while len(chosen) < _MOST:
        log_odds = problem.log_odds(chosen)
        probability = float(expit(logsumexp(log_odds)))
        if probability < ACCEPTED:
            break
        order = np.argsort(problem.begins, kind="stable")
        tails = np.searchsorted(np.cumsum(softmax(log_odds)[order]), (0.5 - 0.5 * _INTERVAL, 0.5 + 0.5 * _INTERVAL))
        earliest, latest = problem.day[problem.begins[order[tails]]].tolist()
        chosen.append(int(log_odds.argmax()))
        dates.append((earliest, latest, probability))
    return chosen, dates


def _other_days(problem: _Problem, chosen: Sequence[int], place: int, level: FloatArray) -> FloatArray:
    """Covariance (n, n) of the level because a change may have another day or form than the most probable one."""
    others = [one for one in chosen if one != place]
    share = softmax(problem.log_odds(others))
    likely = [int(one) for one in np.argsort(-share)[:_ALTERNATIVES]]
    away = np.array([problem.levels([*others, one])[0] - level for one in likely])
    return np.asarray(away.T @ (share[likely, None] * away))


def trend(days: DaySeries) -> tuple[float, float]:
    """Slope of the logarithm over all days, and its standard deviation [1/d]."""
    problem = _Problem(days, days.variance)
    slope, spread = problem.sizes([0])
    return float(slope[0]), float(np.sqrt(spread[0, 0]))


def _errors(days: DaySeries, variance: FloatArray) -> FloatArray:
    """Covariance (n, n) of the values."""
    elapsed = days.day - days.day[0]
    walk = days.wander * np.minimum(elapsed[:, None], elapsed)
    return np.diag(variance) + walk + days.factor_sigma**2 * np.outer(days.warmth, days.warmth)
