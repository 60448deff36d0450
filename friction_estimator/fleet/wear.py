"""Which joints wear: one robust line (Theil-Sen) through the friction of every joint over the days.

The friction of a bag is that of the line ``F_c + F_v v`` at the usual speed v of the joint. Each day counts with its
median, at one temperature: the factor of the temperature is the slope of a robust line through the changes from bag to
bag, so that neither wear nor a season counts. Errors of the line follow from the scatter of the days and their memory,
not from the sigma of the bags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from scipy.stats import theilslopes

from friction_estimator.errors import ConfigError
from friction_estimator.fleet.bags import ROWS, SCHEMA
from friction_estimator.tables import UNKNOWN
from friction_estimator.types import FloatArray

WORN, LOWER, STEADY, TOO_FEW_DAYS = "worn", "lower", "steady", "too few days"
"""States of a joint."""
FEWEST_DAYS = 10
"""Days with bags that a trend needs."""
_DAY = 86_400.0  # [s]
_TOO_UNCERTAIN = 0.5  # bags whose sigma exceeds this part of their friction are left out
_NORMAL_95 = 1.96  # half of an interval of 95 % in standard deviations
_WEEK = 7.0  # longest time between two bags whose difference shows the effect of temperature [d]
_MOST_CHANGES = 1000  # from bag to bag, the newest ones: the line goes through all pairs of them
_FACTOR_PRIOR = 0.015  # friction of lubricated joints falls by up to this part a kelvin
_SURE = 3.0  # standard deviations by which a joint that is worn has changed, so that few of a large fleet are by chance
_LONGEST_MEMORY = 0.95  # correlation of neighbouring days


@dataclass(frozen=True, slots=True)
class Trend:
    """One value of a joint on ``n`` days at one temperature, and the robust line through it."""

    values: FloatArray  # (n,) median of each day
    first: float  # the line on the first day
    change: float  # of the line from the first to the last day; NaN with too few days
    sigma: float  # standard deviation of the change

    @property
    def growth(self) -> tuple[float, float]:
        """Change over the value on the first day, and its standard deviation; NaN where that is not positive."""
        return (self.change / self.first, self.sigma / self.first) if self.first > 0.0 else (np.nan, np.nan)


@dataclass(frozen=True, slots=True)
class JointTrend:
    """How the friction of one joint has changed over ``n`` days."""

    serial: str  # number of the robot
    joint: str  # its name
    state: str  # `worn`, `lower`, `steady` or `too few days`
    days: FloatArray  # (n,) with bags, since 1970 [d]
    friction: Trend  # at the usual speed of the joint [N m]
    coulomb: Trend  # F_c [N m]
    viscous: Trend  # F_v [N m s/rad]
    temperature_factor: tuple[float, float]  # change of the friction a kelvin, and its standard deviation [1/K]

    @property
    def name(self) -> str:
        """``JOINT of SERIAL``."""
        return f"{self.joint} of {self.serial}"

    @property
    def verdict(self) -> str:
        """One sentence: how much, in what time, what to do."""
        if self.state == TOO_FEW_DAYS:
            return f"{self.days.size} days with bags, a trend needs {FEWEST_DAYS}"
        parts = [
            f"{name} {change_text(*trend.growth)}"
            for name, trend in (("Coulomb", self.coulomb), ("viscous", self.viscous))
        ]
        advice = {
            WORN: "check lubrication and bearing",
            LOWER: "maintenance or new lubricant, else check preload of belt, gear and bearing",
            STEADY: "nothing to do",
        }[self.state]
        return (
            f"friction {change_text(*self.friction.growth)} in {self.days[-1] - self.days[0]:.0f} days "
            f"({', '.join(parts)}): {advice}"
        )


def change_text(ratio: float, sigma: float, decimals: int = 0) -> str:
    """A relative change and two of its standard deviations, in percent."""
    if not np.isfinite(ratio):
        return UNKNOWN
    return f"{round(100.0 * ratio, decimals) + 0.0:+.{decimals}f} ± {200.0 * sigma:.{decimals}f} %"


def read_rows(output: Path, since: datetime | None) -> pa.Table:
    """Usable rows of the table of a fleet, by serial number, joint and start.

    Raises
    ------
    ConfigError
        When a file is not such a table.
    """
    place, wanted = output / ROWS, ds.field("usable")
    if since is not None:
        utc = since if since.tzinfo is None else since.astimezone(UTC).replace(tzinfo=None)
        wanted &= ds.field("start") >= pa.scalar(utc, SCHEMA.field("start").type)
    files = sorted(map(str, place.glob("[!.]*.parquet")))
    try:
        rows = ds.dataset(files, SCHEMA, format="parquet").to_table(filter=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise ConfigError(f"{place} has a file that is no friction table: {error}; move it elsewhere") from None
    return rows.sort_by([("serial", "ascending"), ("joint", "ascending"), ("start", "ascending")])


def joint_trends(rows: pa.Table, threshold: float) -> tuple[JointTrend, ...]:
    """Trend of every joint of a table by :func:`read_rows`: worn joints first, then those that change most.

    Parameters
    ----------
    threshold : relative growth from which on a joint is worn

    Raises
    ------
    ConfigError
        When the threshold is not positive.
    """
    if not 0.0 < threshold < np.inf:
        raise ConfigError(f"the threshold must be a positive ratio such as 0.1 for 10 %, got {threshold}")
    names = ("coulomb", "coulomb_sigma", "viscous", "viscous_sigma", "coulomb_viscous_covariance", "slow", "fast")
    columns = {name: np.asarray(rows[name].to_numpy(), dtype=float) for name in (*names, "temperature")}
    columns["day"] = rows["start"].to_numpy().astype("datetime64[us]").astype(np.int64) / (1e6 * _DAY)
    serials, joints = rows["serial"].to_pylist(), rows["joint"].to_pylist()
    places: dict[tuple[str, str], list[int]] = {}
    for place, key in enumerate(zip(serials, joints, strict=True)):
        places.setdefault(key, []).append(place)
    found = [
        _joint_trend(*key, {name: column[where] for name, column in columns.items()}) for key, where in places.items()
    ]
    trends = [one for one in found if one is not None]
    # of the whole fleet: the days of a joint that has changed by a step look alike, too
    alike = [_memory(one) for one in trends if one.days.size >= FEWEST_DAYS]
    memory = min(max(float(np.median(alike)), 0.0), _LONGEST_MEMORY) if alike else 0.0
    trends = [_with_state(one, np.sqrt((1.0 + memory) / (1.0 - memory)), threshold) for one in trends]
    rank = (WORN, LOWER, STEADY, TOO_FEW_DAYS)
    return tuple(sorted(trends, key=lambda one: (rank.index(one.state), -abs(one.friction.growth[0]), one.name)))


def _with_state(joint: JointTrend, widening: float, threshold: float) -> JointTrend:
    """The trend with sigmas that are larger by a factor, and its state."""
    parts = {name: getattr(joint, name) for name in ("friction", "coulomb", "viscous")}
    wide = {name: replace(trend, sigma=widening * trend.sigma) for name, trend in parts.items()}
    ratio, sigma = wide["friction"].growth
    state = TOO_FEW_DAYS if joint.days.size < FEWEST_DAYS else STEADY
    if abs(ratio) > _SURE * sigma:
        state = WORN if ratio > threshold else LOWER if ratio < -threshold / (1.0 + threshold) else STEADY
    return replace(joint, state=state, **wide)


def _memory(joint: JointTrend) -> float:
    """Correlation of what the line leaves of one day and of the next."""
    trend, share = joint.friction, (joint.days - joint.days[0]) / (joint.days[-1] - joint.days[0])
    rest = trend.values - trend.first - trend.change * share
    spread = float((rest[1:] ** 2).sum() * (rest[:-1] ** 2).sum())
    return float(rest[1:] @ rest[:-1]) / np.sqrt(spread) if spread > 0.0 else 0.0


def _joint_trend(serial: str, joint: str, bags: dict[str, FloatArray]) -> JointTrend | None:
    """Trend of one joint, as if no day were like its neighbours; None where no bag is certain enough."""
    middle = 0.5 * (bags["slow"] + bags["fast"])
    speed = float(np.median(middle[np.isfinite(middle)])) if np.isfinite(middle).any() else 0.0
    friction = bags["coulomb"] + speed * bags["viscous"]
    covariance = np.nan_to_num(bags["coulomb_viscous_covariance"])
    variance = bags["coulomb_sigma"] ** 2 + 2.0 * covariance * speed + bags["viscous_sigma"] ** 2 * speed**2
    kept = (friction > 0.0) & (variance < (_TOO_UNCERTAIN * friction) ** 2)  # False where one is not known
    if not kept.any():
        return None
    day, temperature, friction = bags["day"][kept], bags["temperature"][kept], friction[kept]
    warmth = np.zeros(day.size)
    if np.isfinite(temperature).any():
        warmth = np.nan_to_num(temperature - np.nanmedian(temperature))
    factor, factor_sigma = _temperature_factor(day, np.log(friction), temperature)
    days, number = np.unique(np.floor(day), return_inverse=True)

    def of_days(values: FloatArray) -> FloatArray:
        return np.array([np.median(values[number == k]) for k in range(days.size)])

    warmer = _line(days, of_days(warmth))[1] * factor_sigma

    def trend(values: FloatArray) -> Trend:
        medians = of_days(values * np.exp(-factor * warmth))
        first, change, sigma = _line(days, medians)
        return Trend(medians, first, change, float(np.hypot(sigma, first * warmer)))

    coulomb, viscous = (trend(bags[name][kept]) for name in ("coulomb", "viscous"))
    return JointTrend(serial, joint, STEADY, days, trend(friction), coulomb, viscous, (factor, factor_sigma))


def _line(days: FloatArray, values: FloatArray) -> tuple[float, float, float]:
    """Line through values (n,): its value on the first day, its change to the last one, and the sigma of that."""
    if days.size < FEWEST_DAYS:
        return float(np.median(values)), np.nan, np.nan
    slope, intercept, low, high = theilslopes(values, days)
    sigma = 0.5 * (high - low) / _NORMAL_95
    span = days[-1] - days[0]
    return float(intercept + slope * days[0]), float(slope * span), float(sigma * span)


def _temperature_factor(day: FloatArray, value: FloatArray, temperature: FloatArray) -> tuple[float, float]:
    """Change of the logarithm of the friction a kelvin, drawn to that of no change, and its standard deviation."""
    known = np.isfinite(temperature)
    warmer, larger, elapsed = (np.diff(one[known])[-_MOST_CHANGES:] for one in (temperature, value, day))
    near = elapsed < _WEEK
    if near.sum() < FEWEST_DAYS or not np.ptp(warmer[near]) > 0.0:
        return 0.0, 0.0
    factor, _, low, high = theilslopes(larger[near], warmer[near])
    variance = (0.5 * (high - low) / _NORMAL_95) ** 2
    share = _FACTOR_PRIOR**2 / (_FACTOR_PRIOR**2 + variance)
    return float(factor * share), float(np.sqrt(variance * share))
