"""Drift of a fleet: for every joint how its friction has changed, since when, and in words what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from friction_estimator.errors import ConfigError
from friction_estimator.fleet.changes import Change, ChangeModel, find_changes, share_of_change, trend
from friction_estimator.fleet.series import WEEK, DaySeries, JointSeries, day_series, joint_series
from friction_estimator.types import FloatArray

WORN, LOWER, STEADY, UNKNOWN = "worn", "lower", "steady", "too few days"
"""States of a joint."""
CERTAIN = 0.8
"""Probability that the friction has grown by more than the threshold, from which on a joint is worn."""
FEWEST_DAYS = 10
"""Days with bags that a verdict needs."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_KNOWN = (np.nan, np.nan)
_SMALLEST = 1e-6  # standard deviation of a parameter [N m, N m s/rad]
_NOTABLE = 0.5  # part of the whole change that makes a step the reason for it


@dataclass(frozen=True, slots=True)
class JointDrift:
    """How the friction of one joint has changed. Ratios are relative, 0.3 is 30 %.

    Attributes
    ----------
    days : the friction of the joint, day by day, at one temperature
    model : constant, steps and ramps; None with fewer than :data:`FEWEST_DAYS` days
    state : ``worn``, ``lower``, ``steady`` or ``too few days``
    growth, growth_sigma : from the lowest level so far to the newest day
    probability : that the growth is above the threshold; that the drop is, where the state is ``lower``
    since : last day of the lowest level, where the state is ``lower`` of the highest one
    drop, drop_sigma : from the highest level so far to the newest day, negative
    trend, trend_sigma : slope over all days, relative in 30 days
    temperature_effect : part by which the friction differs since then because of the temperature
    coulomb, viscous : change of F_c and F_v since then with its standard deviation; NaN where steady or unknown
    verdict : all this in one sentence
    """

    days: DaySeries
    model: ChangeModel | None
    state: str
    growth: float = np.nan
    growth_sigma: float = np.nan
    probability: float = np.nan
    since: datetime | None = None
    drop: float = np.nan
    drop_sigma: float = np.nan
    trend: float = np.nan
    trend_sigma: float = np.nan
    temperature_effect: float = np.nan
    coulomb: tuple[float, float] = _NOT_KNOWN
    viscous: tuple[float, float] = _NOT_KNOWN
    verdict: str = ""

    @property
    def name(self) -> str:
        """Joint and serial number."""
        return f"{self.days.series.joint} of {self.days.series.serial}"

    @property
    def changes(self) -> tuple[Change, ...]:
        """Steps and ramps that were found."""
        return () if self.model is None else self.model.changes


@dataclass(frozen=True, slots=True)
class FleetDrift:
    """Drift of all joints of a fleet.

    Attributes
    ----------
    joints : the worst first
    threshold : growth from which on a joint is worn
    """

    joints: tuple[JointDrift, ...]
    threshold: float

    @property
    def worn(self) -> tuple[JointDrift, ...]:
        """Joints whose friction has grown by more than the threshold."""
        return tuple(joint for joint in self.joints if joint.state == WORN)


def find_drift(table: pa.Table, threshold: float) -> FleetDrift:
    """Drift of all joints of a friction table.

    Raises
    ------
    ConfigError
        When the threshold is not positive, or no row of the table is usable.
    """
    if not 0.0 < threshold < np.inf:
        raise ConfigError(f"the threshold must be a positive ratio such as 0.1 for 10 %, got {threshold}")
    fleet = joint_series(table)
    if not fleet:
        raise ConfigError("no row of the table is usable: its column 'diagnosis' has the reasons")
    return drift_of_series(fleet, threshold)


def drift_of_series(fleet: Sequence[JointSeries], threshold: float) -> FleetDrift:
    """Drift of all joints whose friction over time is given."""
    joints = [_joint_drift(days, threshold) for days in day_series(fleet)]
    rank = (WORN, LOWER, STEADY, UNKNOWN)
    return FleetDrift(
        tuple(sorted(joints, key=lambda joint: (rank.index(joint.state), -_badness(joint), joint.name))), threshold
    )


def _badness(joint: JointDrift) -> float:
    return -joint.drop if joint.state == LOWER else joint.growth if np.isfinite(joint.growth) else 0.0


def date_of(day: float) -> datetime:
    """Time of a day since 1970."""
    return _EPOCH + timedelta(days=float(day))


def _joint_drift(days: DaySeries, threshold: float) -> JointDrift:
    if days.day.size < FEWEST_DAYS:
        text = f"{days.day.size} days with bags, at least {FEWEST_DAYS} are needed"
        return JointDrift(days, None, UNKNOWN, verdict=text)
    model, last = find_changes(days), days.day.size - 1
    slope, slope_sigma = trend(days)
    grown, fallen = model.growth.above(np.log1p(threshold)), model.drop.above(np.log1p(threshold))
    state = WORN if grown >= CERTAIN else LOWER if fallen >= CERTAIN else STEADY
    since = (model.drop if state == LOWER else model.growth).since
    effect = days.factor * (
        _near(days.day, days.warmth, days.day[last]) - _near(days.day, days.warmth, days.day[since])
    )
    changed = state in (WORN, LOWER)
    joint = JointDrift(
        days,
        model,
        state,
        *_relative(model.growth.mean, model.growth.sigma),
        probability=fallen if state == LOWER else grown,
        since=date_of(days.day[since]),
        drop=_relative(model.drop.mean, model.drop.sigma)[0],
        drop_sigma=_relative(model.drop.mean, model.drop.sigma)[1],
        trend=_relative(30.0 * slope, 30.0 * slope_sigma)[0],
        trend_sigma=_relative(30.0 * slope, 30.0 * slope_sigma)[1],
        temperature_effect=float(np.expm1(effect)),
        coulomb=share_of_change(days, model, since, _by_day(days, days.series.coulomb)) if changed else _NOT_KNOWN,
        viscous=share_of_change(days, model, since, _by_day(days, days.series.viscous)) if changed else _NOT_KNOWN,
    )
    return replace(joint, verdict=_verdict(joint))


def _relative(change: float, sigma: float) -> tuple[float, float]:
    """Relative change and its standard deviation, of those of the logarithm."""
    return float(np.expm1(change)), float(np.exp(change) * sigma)


def _near(time: FloatArray, values: FloatArray, day: float) -> float:
    return float(np.mean(values[np.abs(time - day) <= 0.5 * WEEK]))


def _by_day(days: DaySeries, values: FloatArray) -> FloatArray:
    """Mean (n, 2) of one parameter on each day at one temperature, and its standard deviation."""
    warmth = np.nan_to_num(days.series.temperature - days.reference)
    value, sigma = (values * np.exp(-days.factor * warmth)[:, None]).T
    place = np.searchsorted(days.day, np.floor(days.series.time))
    weight = 1.0 / np.maximum(sigma, _SMALLEST) ** 2
    total = np.bincount(place, weights=weight)
    return np.column_stack((np.bincount(place, weights=weight * value) / total, np.sqrt(1.0 / total)))


def _verdict(joint: JointDrift) -> str:
    """One sentence: how much, since when, what part, what temperature explains, what to do."""
    assert joint.since is not None
    if joint.state == STEADY:
        return f"friction steady, trend {_spread(joint.trend, joint.trend_sigma)} in 30 days"
    size = _spread(joint.growth, joint.growth_sigma) if joint.state == WORN else _spread(joint.drop, joint.drop_sigma)
    parts = [
        f"{name} {_spread(*value)}"
        for name, value in (("Coulomb", joint.coulomb), ("viscous", joint.viscous))
        if np.isfinite(value[0])
    ]
    step = _main_step(joint)
    text = f"friction {size} {_how_long(joint, step)}"
    text += f" ({', '.join(parts)})" if parts else ""
    if np.isfinite(joint.days.reference):
        text += f", temperature explains {round(100.0 * joint.temperature_effect):+d} %"
    return f"{text}: {_advice(joint.state, step is not None)}"


def _main_step(joint: JointDrift) -> Change | None:
    """A step that makes up most of the change and whose day is known; None when there is none."""
    total = np.log1p(joint.growth if joint.state == WORN else joint.drop)
    for change in joint.changes:
        dated = change.kind == "step" and change.latest - change.earliest <= WEEK
        if dated and change.size / total > _NOTABLE:
            return change
    return None


def _spread(value: float, sigma: float) -> str:
    return f"{round(100.0 * value):+d} ± {200.0 * sigma:.0f} %"


def _how_long(joint: JointDrift, step: Change | None) -> str:
    if step is not None:
        earliest, latest = date_of(step.earliest), date_of(step.latest)
        when = f"on {earliest:%Y-%m-%d}" if earliest == latest else f"from {earliest:%Y-%m-%d} to {latest:%Y-%m-%d}"
        return f"by a step {when} (probability {step.probability:.2f})"
    assert joint.since is not None
    days = float(joint.days.day[-1]) - (joint.since - _EPOCH).total_seconds() / 86_400.0
    return f"in {days / WEEK:.0f} weeks" if days >= 2.0 * WEEK else f"in {days:.0f} days"


def _advice(state: str, stepped: bool) -> str:
    if state == LOWER:
        return "maintenance or new lubricant, else check preload of belt, gear and bearing"
    if stepped:
        return "check what happened to the joint then: mounting, brake, seal, bearing"
    return "check lubrication and bearing"
