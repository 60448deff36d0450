"""Steps and ramps in a series of days: the average over all likely models, each weighted with its probability.

A model is a constant plus some changes plus errors with a known covariance. A change is a step or a ramp of one of four
lengths, and keeps its size from then on. Sizes have a Gaussian prior, and each form begins on each day with the same
small probability. Sizes and constant are integrated out, so the probability of a model is a closed form (Bayes factors,
Kass & Raftery 1995). The search adds one change at a time to the most probable models. What is asked of a series, such
as its growth, is averaged over all of them (Hoeting et al. 1999): its uncertainty includes that of the form and day of
the changes, and no threshold decides which change counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, ndtr

from friction_estimator.fleet.series import DaySeries, running_median
from friction_estimator.types import FloatArray, IntArray

_RATE = 1e-3  # prior probability that a change of one form begins on a day
_SIZE = 0.2  # prior standard deviation of the size of a change
_LENGTHS = 7.0, 14.0, 28.0, 56.0  # of ramps [d]
_LASTING = 3  # days on each side of a step; a ramp has one more
_MOST = 5  # changes of one series
_KEPT = 24  # most probable models of each number of changes
_NEGLIGIBLE = 1e-3  # the search ends where models with one change more have this probability
_OUTLIER = 3.0  # residuals larger than this many sigma get less weight: variance times (residual / limit)^4
_CONSTANT = 10.0  # prior standard deviation of the constant
_INTERVAL = 0.9
_SAME = 1e-9
_SAME_LEVEL = 0.1  # part of a change by which days before it may differ


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
    """

    kind: str
    day: float
    earliest: float
    latest: float
    probability: float
    size: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Level of the newest day minus the lowest (highest) one so far, in each of ``m`` models.

    Attributes
    ----------
    weight : (m,) probability of the model
    size, spread : (m,) the difference, and its standard deviation if the model is right
    since : number of the last day of the lowest (highest) level
    """

    weight: FloatArray
    size: FloatArray
    spread: FloatArray
    since: int

    @property
    def mean(self) -> float:
        """Of all models."""
        return float(self.weight @ self.size)

    @property
    def sigma(self) -> float:
        """Standard deviation, the uncertain model included."""
        return float(np.sqrt(self.weight @ (self.spread**2 + (self.size - self.mean) ** 2)))

    def above(self, limit: float) -> float:
        """Probability that the size of the difference is above a positive limit."""
        size, spread = np.abs(self.size), np.maximum(self.spread, 1e-12)
        return float(self.weight @ ndtr((size - limit) / spread))


@dataclass(frozen=True, slots=True)
class ChangeModel:
    """What is known about one series of ``n`` days.

    Attributes
    ----------
    changes : of the most probable model with the most probable number of changes, in the order of time
    level, level_sigma : (n,) mean over the models [logarithm], and its standard deviation
    growth, drop : since the lowest and since the highest level
    """

    changes: tuple[Change, ...]
    level: FloatArray
    level_sigma: FloatArray
    growth: Difference
    drop: Difference


class _Models:
    """All changes that one series can have, and the probability of models with some of them.

    A model is a row of numbers of columns. Column 0 is the constant, which is in every model. Columns are scaled with
    the prior standard deviation of their size.
    """

    def __init__(self, days: DaySeries) -> None:
        n, day = days.day.size, days.day
        steps, ramps = np.arange(_LASTING, n - _LASTING + 1), np.arange(max(n - _LASTING - 1, 1))
        elapsed = day[:, None] - day[ramps]
        rising = [np.clip(elapsed / length, 0.0, 1.0) for length in _LENGTHS]
        constant = np.full((n, 1), _CONSTANT / _SIZE)
        self.columns = _SIZE * np.hstack((constant, day[:, None] >= day[steps], *rising))
        self.begin = np.concatenate(([0], steps, *len(_LENGTHS) * [ramps]))
        self.steps = steps.size
        factor = cholesky(days.error_covariance(_without_outliers(days)), lower=True)
        white = solve_triangular(factor, np.column_stack((days.value, self.columns)), lower=True)
        self._white, self._explained = white[:, 1:], white[:, 1:].T @ white[:, 0]
        self._squares = (self._white**2).sum(axis=0)

    def log_odds(self, models: IntArray) -> FloatArray:
        """Logarithm of the odds (k, c) that each column is in the data in addition to those of each model (k, p)."""
        used, place = np.unique(models, return_inverse=True)
        products = (self._white[:, used].T @ self._white)[place.reshape(models.shape)]
        solved = np.linalg.solve(self._precision(models), products)
        rest = 1.0 + self._squares - np.einsum("kpc,kpc->kc", products, solved)
        score = self._explained - np.einsum("kp,kpc->kc", self._explained[models], solved)
        odds = np.log(_RATE) - 0.5 * np.log(rest) + 0.5 * score**2 / rest
        np.put_along_axis(odds, models, -np.inf, axis=1)
        return np.asarray(odds)

    def sizes(self, models: IntArray) -> tuple[FloatArray, FloatArray]:
        """Sizes (k, p) of the columns of each model over their prior standard deviation, and covariances (k, p, p)."""
        covariance = np.linalg.inv(self._precision(models))
        return np.asarray(np.einsum("kpq,kq->kp", covariance, self._explained[models])), np.asarray(covariance)

    def _precision(self, models: IntArray) -> FloatArray:
        white = np.moveaxis(self._white[:, models], 0, 2)
        return np.asarray(np.eye(models.shape[1]) + white @ white.swapaxes(1, 2))

    def likely(self) -> list[tuple[IntArray, FloatArray]]:
        """The most probable models (k, p) with no, one, two ... changes, and the logarithms (k,) of their weights."""
        found = [(np.zeros((1, 1), dtype=int), np.zeros(1))]
        total = 0.0
        while len(found) <= _MOST:
            models, weight = found[-1]
            weights = (weight[:, None] + self.log_odds(models)).ravel()
            best = np.argsort(-weights)[: _MOST * _KEPT]  # a model is found once from each of its changes
            best = best[np.isfinite(weights[best])]
            parent, added = np.divmod(best, self.begin.size)
            larger = np.sort(np.column_stack((models[parent], added)), axis=1)
            place = np.sort(np.unique(larger, axis=0, return_index=True)[1])[:_KEPT]
            more = np.logaddexp.reduce(weights[best[place]])
            total = np.logaddexp(total, more)
            if more < total + np.log(_NEGLIGIBLE):
                break
            found.append((larger[place], weights[best[place]]))
        return found


def find_changes(days: DaySeries) -> ChangeModel:
    """What is known about the friction of one joint."""
    models = _Models(days)
    found = models.likely()
    weight = _shares(np.concatenate([weights for _, weights in found]))
    parts = [_levels(models, chosen) for chosen, _ in found]
    level, variance = (np.vstack(part) for part in zip(*(one[:2] for one in parts), strict=True))
    mean = weight @ level
    spread = np.sqrt(weight @ (variance + (level - mean) ** 2))
    growth, drop = (_difference(weight, [one[2][k] for one in parts]) for k in range(2))
    return ChangeModel(_changes(models, found, days.day), mean, spread, growth, drop)


_Ends = tuple[FloatArray, FloatArray, IntArray]


def _levels(models: _Models, chosen: IntArray) -> tuple[FloatArray, FloatArray, tuple[_Ends, _Ends]]:
    """Levels (k, n) of some models, their variances, and the differences to the lowest and to the highest level."""
    sizes, covariance = models.sizes(chosen)
    columns = np.moveaxis(models.columns[:, chosen], 0, 1)
    level = np.einsum("knp,kp->kn", columns, sizes)
    variance = ((columns @ covariance) * columns).sum(axis=2)

    def to_newest(height: FloatArray) -> _Ends:
        lowest = height <= height.min(axis=1)[:, None] + _SAME
        since = height.shape[1] - 1 - np.argmax(lowest[:, ::-1], axis=1)
        change = columns[:, -1] - columns[np.arange(len(since)), since]
        spread = np.sqrt(np.einsum("kp,kpq,kq->k", change, covariance, change))
        return np.einsum("kp,kp->k", change, sizes), spread, since

    return level, variance, (to_newest(level), to_newest(-level))


def _difference(weight: FloatArray, parts: Sequence[_Ends]) -> Difference:
    size, spread, since = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(since)
    share = np.cumsum((weight * np.abs(size))[order])
    return Difference(weight, size, spread, int(since[order][np.searchsorted(share, 0.5 * share[-1])]))


def _changes(models: _Models, found: Sequence[tuple[IntArray, FloatArray]], day: FloatArray) -> tuple[Change, ...]:
    """Changes of the most probable model with the most probable number of changes."""
    chosen, weights = max(found, key=lambda pair: float(np.logaddexp.reduce(pair[1])))
    best = chosen[int(weights.argmax())]
    sizes, _ = models.sizes(best[None])
    order = np.argsort(models.begin, kind="stable")
    changes = []
    for k, place in enumerate(best[1:].tolist(), start=1):
        odds = models.log_odds(np.delete(best, k)[None])[0]
        tails = np.searchsorted(np.cumsum(_shares(odds)[order]), (0.5 - 0.5 * _INTERVAL, 0.5 + 0.5 * _INTERVAL))
        earliest, latest = day[models.begin[order[tails]]].tolist()
        changes.append(
            Change(
                "step" if place <= models.steps else "ramp",
                float(day[models.begin[place]]),
                earliest,
                latest,
                float(expit(np.logaddexp.reduce(odds))),
                float(sizes[0, k] * models.columns[-1, place]),
            )
        )
    return tuple(sorted(changes, key=lambda change: change.day))


def _shares(logarithms: FloatArray) -> FloatArray:
    """Probabilities, of the logarithms of weights."""
    return np.asarray(np.exp(logarithms - np.logaddexp.reduce(logarithms)))


def trend(days: DaySeries) -> tuple[float, float]:
    """Slope of the logarithm over all days, and its standard deviation [1/d]."""
    covariance = days.error_covariance(_without_outliers(days))
    (_, slope), spread = _fit_line(days.day - days.day[0], days.value, covariance)
    return slope, float(np.sqrt(spread[1, 1]))


def share_of_change(days: DaySeries, model: ChangeModel, since: int, values: FloatArray) -> tuple[float, float]:
    """Relative change of one parameter from a day of the lowest or highest level to the newest day.

    A parameter that follows the level of the model is a line over this level, and its two ends are what is compared.
    So days between them count, too, and a change within days is not averaged out. The fit takes the level as known, so
    the relative standard deviation is at least that of the whole change.

    Parameters
    ----------
    days : the friction of the joint
    model : of the same days
    since : number of that day
    values : (n, 2) parameter on each day, and its standard deviation

    Returns
    -------
    tuple
        Change and its standard deviation; NaN where the parameter is not known to be positive on that day.
    """
    height = np.exp(model.level - model.level[since])
    shape = (height - 1.0) / (height[-1] - 1.0)
    elsewhere = np.flatnonzero(np.abs(shape[:since]) > _SAME_LEVEL)
    used = np.arange(elsewhere[-1] + 1 if elsewhere.size else 0, days.day.size)
    value, sigma = values[used].T
    alike = days.error_covariance(_without_outliers(days))[np.ix_(used, used)]
    covariance = float(np.median(value)) ** 2 * alike + np.diag(sigma**2)
    (before, change), spread = _fit_line(shape[used], value, covariance)
    if not before > 2.0 * np.sqrt(spread[0, 0]):
        return np.nan, np.nan
    ratio = change / before
    slope = np.array([-ratio, 1.0]) / before
    whole = model.growth if height[-1] > 1.0 else model.drop
    least = abs(ratio) * float(np.exp(whole.mean) * whole.sigma / abs(np.expm1(whole.mean)))
    return ratio, max(float(np.sqrt(slope @ spread @ slope)), least)


def _fit_line(x: FloatArray, y: FloatArray, covariance: FloatArray) -> tuple[tuple[float, float], FloatArray]:
    """Offset and slope, and their covariance (2, 2), larger where the points scatter more than their covariance."""
    design = np.column_stack((np.ones(x.size), x))
    weighted = np.linalg.solve(covariance, design)
    spread = np.linalg.inv(design.T @ weighted)
    offset, slope = (spread @ weighted.T @ y).tolist()
    rest = y - offset - slope * x
    excess = float(rest @ np.linalg.solve(covariance, rest)) / max(x.size - 2, 1)
    return (offset, slope), spread * max(1.0, excess)


def _without_outliers(days: DaySeries) -> FloatArray:
    """Variances (n,), increased where the friction is far from that of the days about it."""
    rest = np.abs(days.value - running_median(days.value)) / np.sqrt(days.variance)
    return np.asarray(days.variance * np.maximum(1.0, rest / _OUTLIER) ** 4)
