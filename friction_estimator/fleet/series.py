"""Friction of every joint over time, on a scale on which wear and temperature add up, and the noise of it.

The value of a bag is the logarithm of the friction at the usual speed of the joint. Its errors are those of the bag
(sigma of the table, larger where bags of one day scatter more) and the effect of the day. Day effects are estimated
from the whole fleet; neighbouring days may be alike, so they are a sum of independent errors and of Ornstein-Uhlenbeck
processes. Temperature enters linearly. Its factor is found from differences within a week only, so that neither wear
nor a season counts, and is drawn towards that of equal joints of other robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import nnls

from friction_estimator.types import BoolArray, FloatArray

DAY, WEEK = 86_400.0, 7.0  # [s], [d]
_TOO_UNCERTAIN = 0.5  # bags whose sigma exceeds this part of the joint's friction are left out
_CHI_SQUARE_MEDIAN = 0.4549  # of one degree of freedom: makes a variance of a median
_HUBER_LIMIT = 2.0  # residuals beyond this many sigma count less
_HUBER_ITERATIONS = 3  # of the reweighting
_FLEET_OBSERVATIONS = 15.0  # observations that the fleet's noise counts for against the joint's own
_SMALLEST_DAY_SIGMA = 0.005  # standard deviation of the logarithm of the friction of a day, at least
_FACTOR_PRIOR = 0.015  # friction of lubricated joints falls by up to this part a kelvin
_FACTOR_SPREAD = 0.002  # difference between equal joints [1/K]
_FEWEST_OBSERVATIONS = 5  # from which a variance or a temperature factor is estimated
_WORN_PART = 0.2  # of the joints, those that change most, are left out when the noise is estimated
_MEDIAN_DAYS = 3  # days
_OUTLIER_LIMIT = 3.0  # residuals larger than this many sigma get less weight: variance times (residual / limit)^4
_DAY_LAGS = 1, 2, 3, 5, 7, 10, 14, 20, 28, 40  # days with bags, over which changes show the day effects
_CORRELATION_TIMES = np.array([2.0, 6.0, 20.0, 60.0])
"""Time constants of the correlated parts of the day effects [d]."""


@dataclass(frozen=True, slots=True)
class JointSeries:
    """Friction of one joint in ``m`` bags."""

    serial: str  # number of the robot
    robot: str  # name of its configuration
    joint: str  # its name
    time: FloatArray  # (m,) start of each bag since 1970 [d]
    value: FloatArray  # (m,) logarithm of the friction at the usual speed
    sigma: FloatArray  # (m,) its standard deviation
    temperature: FloatArray  # (m,) degree Celsius, NaN where unknown
    coulomb: FloatArray  # (m, 2) F_c and its standard deviation [N m]
    viscous: FloatArray  # (m, 2) F_v and its standard deviation [N m s/rad]
    report: str = ""  # path of the newest report, empty when there is none

    def where(self, kept: BoolArray) -> JointSeries:
        """The series with those bags alone for which ``kept`` (m,) is True."""
        columns = ("time", "value", "sigma", "temperature", "coulomb", "viscous")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})


@dataclass(frozen=True, slots=True)
class DaySeries:
    """Friction of one joint on ``n`` days, at one temperature."""

    series: JointSeries  # the bags
    day: FloatArray  # (n,) since 1970 [d]
    value: FloatArray  # (n,) logarithm of the friction, at the temperature `reference`
    variance: FloatArray  # (n,) of its independent errors
    warmth: FloatArray  # (n,) temperature that was corrected for, minus `reference` [K]
    factor: float = 0.0  # change of the logarithm a kelvin
    factor_sigma: float = 0.0  # its standard deviation
    reference: float = np.nan  # median temperature [degree Celsius], NaN when none is known
    # (4,) variances of the correlated parts of the day effects, with _CORRELATION_TIMES
    slow: FloatArray = field(default_factory=lambda: np.zeros(_CORRELATION_TIMES.size))

    def error_covariance(self) -> FloatArray:
        """Covariance (n, n) of the errors of the days, increased where a day is far from those about it."""
        rest = np.abs(self.value - _running_median(self.value)) / np.sqrt(self.variance)
        independent = np.diag(self.variance * np.maximum(1.0, rest / _OUTLIER_LIMIT) ** 4)
        elapsed = np.abs(self.day[:, None] - self.day)
        slow = np.exp(-elapsed[:, :, None] / _CORRELATION_TIMES) @ self.slow
        return np.asarray(independent + slow + self.factor_sigma**2 * np.outer(self.warmth, self.warmth))


def joint_series(table: pa.Table) -> list[JointSeries]:
    """Every joint of a friction table that has usable rows, sorted as the table."""
    rows = table.filter(pc.fill_null(table["usable"], False))
    names = ("coulomb", "coulomb_sigma", "viscous", "viscous_sigma", "coulomb_viscous_covariance", "slow", "fast")
    number = {
        name: np.asarray(pc.fill_null(rows[name], np.nan).to_numpy(), dtype=float) for name in (*names, "temperature")
    }
    texts = {name: np.array(rows[name].to_pylist(), dtype=object) for name in ("serial", "robot", "joint", "report")}
    number["time"] = rows["start"].to_numpy().astype("datetime64[us]").astype(np.int64) / (1e6 * DAY)
    known = np.isfinite(number["coulomb"]) & np.isfinite(number["viscous"]) & (number["coulomb_sigma"] > 0.0)
    keys = texts["serial"] + "\n" + texts["joint"]
    ends = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    runs = [run[known[run]] for run in np.split(np.arange(keys.size), ends)]
    made = (
        _one_joint({k: v[run] for k, v in number.items()}, {k: v[run] for k, v in texts.items()})
        for run in runs
        if run.size
    )
    return [one for one in made if one.time.size]


def _one_joint(number: dict[str, FloatArray], text: dict[str, np.ndarray]) -> JointSeries:
    """Bags of one joint whose friction is positive and certain enough."""
    speeds = 0.5 * (number["slow"] + number["fast"])
    speed = float(np.median(speeds[np.isfinite(speeds)])) if np.isfinite(speeds).any() else 0.0
    friction = number["coulomb"] + speed * number["viscous"]
    covariance = np.nan_to_num(number["coulomb_viscous_covariance"])
    spread = number["viscous_sigma"] ** 2 * speed**2 + 2.0 * covariance * speed + number["coulomb_sigma"] ** 2
    usual = max(float(np.median(friction)), 1e-12)
    sigma = np.sqrt(np.maximum(spread, 0.0)) / usual
    kept = (friction > 0.0) & (sigma > 0.0) & (sigma < _TOO_UNCERTAIN)
    reports = [path for path in text["report"] if path]
    return JointSeries(
        text["serial"][0],
        text["robot"][0],
        text["joint"][0],
        number["time"][kept],
        np.log(friction[kept]),
        sigma[kept],
        number["temperature"][kept],
        np.column_stack((number["coulomb"], number["coulomb_sigma"]))[kept],
        np.column_stack((number["viscous"], number["viscous_sigma"]))[kept],
        reports[-1] if reports else "",
    )


def day_series(fleet: Sequence[JointSeries]) -> list[DaySeries]:
    """Day means of all joints of a fleet, corrected for temperature, with the noise of their days."""
    factors = _shared_factors(fleet, np.array([_temperature_factor(one) for one in fleet]))
    return _with_noise([_day_means(one, *factor) for one, factor in zip(fleet, factors.tolist(), strict=True)])


def _temperature_factor(one: JointSeries) -> tuple[float, float]:
    """Change of the logarithm of the friction a kelvin, from differences within a week, and its variance."""
    known = np.isfinite(one.temperature)
    time, value, warmth = one.time[known], one.value[known], one.temperature[known]
    if time.size < _FEWEST_OBSERVATIONS or np.ptp(warmth) == 0.0:
        return 0.0, np.inf
    weight = 1.0 / (one.sigma[known] ** 2 + _SMALLEST_DAY_SIGMA**2)
    low, high = np.searchsorted(time, time - 0.5 * WEEK), np.searchsorted(time, time + 0.5 * WEEK)

    def local(x: FloatArray) -> FloatArray:
        sums, weights = (np.concatenate(([0.0], np.cumsum(part))) for part in (weight * x, weight))
        return x - (sums[high] - sums[low]) / (weights[high] - weights[low])

    x, y = local(warmth), local(value)
    robust = weight
    for _ in range(_HUBER_ITERATIONS):
        information = float((robust * x * x).sum())
        factor = float((robust * x * y).sum()) / information
        rest = y - factor * x
        scale = np.sqrt(np.median(rest**2) / _CHI_SQUARE_MEDIAN) or 1.0
        robust = weight * np.minimum(1.0, _HUBER_LIMIT * scale / np.maximum(np.abs(rest), 1e-12))
    # bags of one day share the day effect: the scatter of the sums over days is what counts
    score = np.bincount(np.unique(np.floor(time), return_inverse=True)[1], weights=robust * x * rest)
    used = max(int((score != 0.0).sum()), 2)
    return factor, max(float((score**2).sum()) * used / (used - 1) / information**2, 1.0 / information)


def _shared_factors(fleet: Sequence[JointSeries], own: FloatArray) -> FloatArray:
    """Temperature factor and its standard deviation (j, 2), of factor and variance (j, 2), drawn to that of equals."""
    kinds = np.unique([f"{one.robot}\n{one.joint}" for one in fleet], return_inverse=True)[1]
    weight = 1.0 / (own[:, 1] + _FACTOR_SPREAD**2)
    total = 1.0 / _FACTOR_PRIOR**2 + np.bincount(kinds, weights=weight)
    mean = (np.bincount(kinds, weights=weight * own[:, 0]) / total)[kinds]
    variance = (_FACTOR_SPREAD**2 + 1.0 / total)[kinds]
    share = variance / (variance + own[:, 1])
    return np.column_stack((mean + share * (own[:, 0] - mean), np.sqrt(variance * (1.0 - share))))


def _day_means(one: JointSeries, factor: float, factor_sigma: float) -> DaySeries:
    """Robust mean of the bags of each day, at the median temperature."""
    known = np.isfinite(one.temperature)
    reference = float(np.median(one.temperature[known])) if known.any() else np.nan
    warmth = np.where(known, one.temperature - reference, 0.0)
    value, variance = one.value - factor * warmth, one.sigma**2
    if known.any():
        variance = variance + np.where(known, 0.0, (factor * float(np.std(one.temperature[known]))) ** 2)
    days, day = np.unique(np.floor(one.time), return_inverse=True)
    weight = robust = 1.0 / variance
    for _ in range(_HUBER_ITERATIONS + 1):
        total = np.bincount(day, weights=robust)
        mean = np.bincount(day, weights=robust * value) / total
        warm = np.bincount(day, weights=robust * warmth) / total
        squares = weight * (value - mean[day]) ** 2
        robust = weight * np.minimum(1.0, _HUBER_LIMIT / np.sqrt(np.maximum(squares, 1e-12)))
    free, excess = 1.0 - days.size / day.size, 1.0  # part of the bags that their day means leave
    if free * day.size >= _FEWEST_OBSERVATIONS:
        excess = max(1.0, float(np.median(squares)) / (_CHI_SQUARE_MEDIAN * free))
    return DaySeries(one, days, mean, excess / total, warm, factor, factor_sigma, reference)


def _with_noise(days: Sequence[DaySeries]) -> list[DaySeries]:
    """The same with the variances of the day effects in ``variance`` and ``slow``."""
    spread = [np.median(np.abs(np.diff(one.value, append=one.value[-1]))) for one in days]
    ranges = [np.ptp(_running_median(one.value)) / max(size, 1e-9) for one, size in zip(days, spread, strict=True)]
    calm = [one for one, size in zip(days, ranges, strict=True) if size <= np.quantile(ranges, 1.0 - _WORN_PART)]
    shown = [_day_effects(calm, step) for step in _DAY_LAGS]
    lags, effects, whole, counts = np.array(
        [one for one in shown if one[-1] >= _FEWEST_OBSERVATIONS] or [(1.0, 0.0, 1.0, 1)]
    ).T
    weight = np.sqrt(counts) / whole
    design = np.column_stack((np.ones(lags.size), 1.0 - np.exp(-lags[:, None] / _CORRELATION_TIMES)))
    parts = 0.5 * nnls(weight[:, None] * design, weight * effects)[0]
    parts[0] = max(parts[0], _SMALLEST_DAY_SIGMA**2)
    usual = 2.0 * float(design[0] @ parts)  # variance of a change over the shortest lag
    made = []
    for one in days:
        _, effect, _, count = _day_effects([one], _DAY_LAGS[0])
        own = parts * (count * max(effect, 0.0) / usual + _FLEET_OBSERVATIONS) / (count + _FLEET_OBSERVATIONS)
        made.append(replace(one, variance=one.variance + own[0], slow=own[1:]))
    return made


def _running_median(value: FloatArray) -> FloatArray:
    """Median (n,) of each value, the three before it and the three after it."""
    padded = np.pad(value, _MEDIAN_DAYS, constant_values=np.nan)
    return np.asarray(np.nanmedian(sliding_window_view(padded, 2 * _MEDIAN_DAYS + 1), axis=1))


def _day_effects(days: Sequence[DaySeries], step: int) -> tuple[float, float, float, int]:
    """Changes from each day with bags to one of the next: time between them [d], their variance, and their number.

    The first variance is that of the day effects alone, the second one is the whole. Most joints do not wear, and the
    median ignores those that do.
    """
    lag = np.concatenate([one.day[step:] - one.day[:-step] for one in days])
    if lag.size < _FEWEST_OBSERVATIONS:
        return 0.0, 0.0, 1.0, 0
    known = np.concatenate([one.variance[step:] + one.variance[:-step] for one in days])
    change = np.concatenate([one.value[step:] - one.value[:-step] for one in days])
    whole = float(np.median(change**2) / _CHI_SQUARE_MEDIAN)
    return float(np.median(lag)), whole - float(np.median(known)), whole, lag.size
