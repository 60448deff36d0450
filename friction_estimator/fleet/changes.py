"""Steps and ramps in the friction of one joint: a regression with change points, averaged over all likely ones.

    value = constant + sum_j size_j form_j(day) + error,      error ~ N(0, covariance of the days)

A form is a step or a ramp of one of four lengths, and keeps its size from then on. Sizes have a Gaussian prior, and
each form begins on each day with the same small probability. Sizes and constant are integrated out, so the probability
of a model is a closed form (Bayes factors, Kass & Raftery 1995). The search adds one change at a time to the most
probable models. The growth of a series, and all else that is reported, is the average over these models (Hoeting et al.
1999): its uncertainty includes that of the form and day of the changes, and no threshold decides which change counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, ndtr

from friction_estimator.fleet.series import DaySeries
from friction_estimator.types import FloatArray, IntArray

_CHANGE_PROBABILITY = 1e-3  # prior probability that a change of one form begins on a day
_SIZE_PRIOR = 0.2  # prior standard deviation of the size of a change
_RAMP_LENGTHS = 7.0, 14.0, 28.0, 56.0  # of ramps [d]
_LEAST_DAYS = 3  # days on each side of a step; a ramp has one more
_MAX_CHANGES = 5  # changes of one series
_KEPT_MODELS = 24  # most probable models of each number of changes
_NEGLIGIBLE_PROBABILITY = 1e-3  # the search ends where models with one change more have this probability
_CONSTANT_PRIOR = 10.0  # prior standard deviation of the constant
_INTERVAL_PROBABILITY = 0.9  # of the interval of days in which a change began
_LEVEL_TOLERANCE = 1e-9  # levels that differ by less are the same one


@dataclass(frozen=True, slots=True)
class Change:
    """A step in the friction of a joint, or the begin of a ramp."""

    kind: str  # `step` or `ramp`
    day: float  # first day of the change, since 1970 [d]
    earliest: float  # it began on this day or later, with a probability of 0.95
    latest: float  # it began on this day or before, with a probability of 0.95
    probability: float  # that there is a change here
    size: float  # of the logarithm, up to the newest day


@dataclass(frozen=True, slots=True)
class Difference:
    """Level of the newest day minus the lowest (highest) one so far, in each of ``m`` models."""

    weight: FloatArray  # (m,) probability of the model
    size: FloatArray  # (m,) the difference
    spread: FloatArray  # (m,) its standard deviation if the model is right
    since: int  # number of the last day of the lowest (highest) level

    @property
    def mean(self) -> float:
        """Mean difference over all models, weighted by their probability."""
        return float(self.weight @ self.size)

    @property
    def sigma(self) -> float:
        """Standard deviation of the difference, with the uncertainty of which model is right."""
        return float(np.sqrt(self.weight @ (self.spread**2 + (self.size - self.mean) ** 2)))

    def above(self, limit: float) -> float:
        """Probability that the size of the difference is above a positive limit."""
        size, spread = np.abs(self.size), np.maximum(self.spread, 1e-12)
        return float(self.weight @ ndtr((size - limit) / spread))


@dataclass(frozen=True, slots=True)
class ChangeModel:
    """Friction of one joint on ``n`` days: its steps and ramps, its level, growth and drop."""

    # of the most probable model with the most probable number of changes, in the order of time
    changes: tuple[Change, ...]
    level: FloatArray  # (n,) mean over the models [logarithm]
    level_sigma: FloatArray  # (n,) its standard deviation
    growth: Difference  # since the lowest level
    drop: Difference  # since the highest level


class _Forms:
    """All changes that one series can have, and the probability of models with some of them.

    A model is a row of ``_MAX_CHANGES + 1`` numbers of columns: 0 is the constant, and the last column, which is zero,
    fills the places without a change. Columns are scaled with the prior standard deviation of their size.
    """

    def __init__(self, days: DaySeries) -> None:
        n, day = days.day.size, days.day
        steps, ramps = np.arange(_LEAST_DAYS, n - _LEAST_DAYS + 1), np.arange(max(n - _LEAST_DAYS - 1, 1))
        rising = [np.clip((day[:, None] - day[ramps]) / length, 0.0, 1.0) for length in _RAMP_LENGTHS]
        constant = np.full((n, 1), _CONSTANT_PRIOR / _SIZE_PRIOR)
        self.columns = _SIZE_PRIOR * np.hstack((constant, day[:, None] >= day[steps], *rising, np.zeros((n, 1))))
        self.begin = np.concatenate(([0], steps, *len(_RAMP_LENGTHS) * [ramps], [0]))
        self.steps, self.nothing = steps.size, self.begin.size - 1
        factor = cholesky(days.error_covariance(), lower=True)
        white = solve_triangular(factor, np.column_stack((days.value, self.columns)), lower=True)
        self._white, self._explained = white[:, 1:], white[:, 1:].T @ white[:, 0]

    def log_odds(self, models: IntArray) -> FloatArray:
        """Logarithm of the odds (k, c) that each column is in the data in addition to those of each model (k, p)."""
        used, place = np.unique(models, return_inverse=True)
        products = (self._white[:, used].T @ self._white)[place.reshape(models.shape)]
        solved = np.linalg.solve(self._precision(models), products)
        rest = 1.0 + (self._white**2).sum(axis=0) - np.einsum("kpc,kpc->kc", products, solved)
        score = self._explained - np.einsum("kp,kpc->kc", self._explained[models], solved)
        odds = np.log(_CHANGE_PROBABILITY) - 0.5 * np.log(rest) + 0.5 * score**2 / rest
        np.put_along_axis(odds, models, -np.inf, axis=1)
        odds[:, self.nothing] = -np.inf
        return np.asarray(odds)

    def sizes(self, models: IntArray) -> tuple[FloatArray, FloatArray]:
        """Sizes (k, p) of the columns of each model over their prior standard deviation, and covariances (k, p, p)."""
        covariance = np.linalg.inv(self._precision(models))
        return np.asarray(np.einsum("kpq,kq->kp", covariance, self._explained[models])), np.asarray(covariance)

    def _precision(self, models: IntArray) -> FloatArray:
        white = np.moveaxis(self._white[:, models], 0, 2)
        return np.asarray(np.eye(models.shape[1]) + white @ white.swapaxes(1, 2))

    def likely(self) -> tuple[IntArray, FloatArray]:
        """The most probable models (k, p) with no, one, two ... changes, and their probabilities (k,)."""
        models, weight = np.full((1, _MAX_CHANGES + 1), self.nothing), np.zeros(1)
        models[0, 0] = 0
        found, weights, total = [models], [weight], 0.0
        for place in range(1, _MAX_CHANGES + 1):
            odds = (weight[:, None] + self.log_odds(models)).ravel()
            best = np.argsort(-odds)[: _MAX_CHANGES * _KEPT_MODELS]  # a model is found once from each of its changes
            parent, added = np.divmod(best[np.isfinite(odds[best])], self.begin.size)
            larger = models[parent]
            larger[:, place] = added
            first = np.unique(np.sort(larger, axis=1), axis=0, return_index=True)[1]
            kept = np.sort(first)[:_KEPT_MODELS]
            models, weight = larger[kept], odds[best[kept]]
            total = np.logaddexp(total, np.logaddexp.reduce(weight))
            if np.logaddexp.reduce(weight) < total + np.log(_NEGLIGIBLE_PROBABILITY):
                break
            found.append(models)
            weights.append(weight)
        return np.vstack(found), _shares(np.concatenate(weights))


def find_changes(days: DaySeries) -> ChangeModel:
    """Find the steps and ramps in the friction of one joint, and its growth and drop."""
    forms = _Forms(days)
    models, weight = forms.likely()
    sizes, covariance = forms.sizes(models)
    columns = np.moveaxis(forms.columns[:, models], 0, 1)
    level = np.einsum("knp,kp->kn", columns, sizes)
    variance = ((columns @ covariance) * columns).sum(axis=2)
    mean = weight @ level

    def since_lowest(sign: float) -> Difference:
        height = sign * level
        lowest = height <= height.min(axis=1)[:, None] + _LEVEL_TOLERANCE
        since = height.shape[1] - 1 - np.argmax(lowest[:, ::-1], axis=1)
        change = columns[:, -1] - columns[np.arange(since.size), since]
        size = np.einsum("kp,kp->k", change, sizes)
        order = np.argsort(since)
        share = np.cumsum((weight * np.abs(size))[order])
        middle = int(since[order][np.searchsorted(share, 0.5 * share[-1])])
        return Difference(weight, size, np.sqrt(np.einsum("kp,kpq,kq->k", change, covariance, change)), middle)

    spread = np.sqrt(weight @ (variance + (level - mean) ** 2))
    count = (models != forms.nothing).sum(axis=1)
    usual = np.argmax(np.bincount(count, weights=weight))
    best = int(np.argmax(np.where(count == usual, weight, 0.0)))
    changes = [_change(forms, models[best], k, sizes[best, k], days.day) for k in range(1, usual)]
    changes.sort(key=lambda change: change.day)
    return ChangeModel(tuple(changes), mean, spread, since_lowest(1.0), since_lowest(-1.0))


def _change(forms: _Forms, model: IntArray, k: int, size: float, day: FloatArray) -> Change:
    """The k-th change of a model; its interval and probability are those in addition to the others."""
    place, order = model[k], np.argsort(forms.begin, kind="stable")
    others = model.copy()
    others[k] = forms.nothing
    odds = forms.log_odds(others[None])[0]
    tails = np.searchsorted(
        np.cumsum(_shares(odds)[order]), (0.5 - 0.5 * _INTERVAL_PROBABILITY, 0.5 + 0.5 * _INTERVAL_PROBABILITY)
    )
    earliest, latest = day[forms.begin[order[tails]]].tolist()
    return Change(
        "step" if place <= forms.steps else "ramp",
        float(day[forms.begin[place]]),
        earliest,
        latest,
        float(expit(np.logaddexp.reduce(odds))),
        float(size * forms.columns[-1, place]),
    )


def _shares(logarithms: FloatArray) -> FloatArray:
    """Probabilities, of the logarithms of weights."""
    return np.asarray(np.exp(logarithms - np.logaddexp.reduce(logarithms)))
