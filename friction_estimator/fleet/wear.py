"""Drift of a fleet: for every joint how its friction has changed, since when, and in words what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from friction_estimator.errors import ConfigError
from friction_estimator.fleet.changes import Change, ChangeModel, Difference, find_changes
from friction_estimator.fleet.series import DAY, WEEK, DaySeries, JointSeries, day_series, joint_series
from friction_estimator.tables import UNKNOWN as NO_NUMBER
from friction_estimator.types import FloatArray

WORN, LOWER, STEADY, TOO_FEW_DAYS = "worn", "lower", "steady", "too few days"
"""States of a joint."""
LEAST_PROBABILITY = 0.8
"""Probability that the friction has grown by more than the threshold, from which on a joint is worn."""
FEWEST_DAYS = 10
"""Days with bags that a verdict needs."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_KNOWN = (np.nan, np.nan)
_SMALLEST_SIGMA = 1e-6  # standard deviation of a parameter [N m, N m s/rad]
_SAME_LEVEL_SHARE = 0.1  # part of a change by which days before it may differ
_MAIN_STEP_SHARE = 0.5  # part of the whole change that makes a step the reason for it


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
    temperature_effect : part by which the friction differs since then because of the temperature
    coulomb, viscous : change of F_c and F_v since then with its standard deviation; NaN where steady or unknown
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
    temperature_effect: float = np.nan
    coulomb: tuple[float, float] = _NOT_KNOWN
    viscous: tuple[float, float] = _NOT_KNOWN

    @property
    def name(self) -> str:
        """``JOINT of SERIAL``, with the serial number of the robot."""
        return f"{self.days.series.joint} of {self.days.series.serial}"

    @property
    def change(self) -> tuple[float, float]:
        """Growth, or the drop where the state is ``lower``, and its standard deviation."""
        return (self.drop, self.drop_sigma) if self.state == LOWER else (self.growth, self.growth_sigma)

    @property
    def verdict(self) -> str:
        """One sentence: how much, since when, what part, what temperature explains, what to do."""
        if self.since is None:
            return f"{self.days.day.size} days with bags, at least {FEWEST_DAYS} are needed"
        if self.state == STEADY:
            return f"friction steady, {change_text(*self.change)} since its lowest level"
        parts = [
            f"{name} {change_text(*value)}"
            for name, value in (("Coulomb", self.coulomb), ("viscous", self.viscous))
            if np.isfinite(value[0])
        ]
        step = _main_step(self)
        text = f"friction {change_text(*self.change)} {_how_long(self, self.since, step)}"
        text += f" ({', '.join(parts)})" if parts else ""
        if np.isfinite(self.days.reference):
            text += f", temperature explains {round(100.0 * self.temperature_effect):+d} %"
        return f"{text}: {_advice(self.state, step is not None)}"

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
    rank = (WORN, LOWER, STEADY, TOO_FEW_DAYS)

    def place(joint: JointDrift) -> tuple[int, float, str]:
        badness = abs(float(np.nan_to_num(joint.change[0])))
        return rank.index(joint.state), -badness, joint.name

    return FleetDrift(tuple(sorted(joints, key=place)), threshold)


def date_of(day: float) -> datetime:
    """Date and time, in UTC, of a day that is counted from 1970-01-01 [d], such as those of `DaySeries.day`."""
    return _EPOCH + timedelta(days=float(day))


def _joint_drift(days: DaySeries, threshold: float) -> JointDrift:
    if days.day.size < FEWEST_DAYS:
        return JointDrift(days, None, TOO_FEW_DAYS)
    model = find_changes(days)
    grown, fallen = model.growth.above(np.log1p(threshold)), model.drop.above(np.log1p(threshold))
    state = WORN if grown >= LEAST_PROBABILITY else LOWER if fallen >= LEAST_PROBABILITY else STEADY
    change = model.drop if state == LOWER else model.growth
    then, now = (days.warmth[np.abs(days.day - day) <= 0.5 * WEEK].mean() for day in days.day[[change.since, -1]])
    growth, growth_sigma = _relative(model.growth)
    drop, drop_sigma = _relative(model.drop)
    parts = [_NOT_KNOWN, _NOT_KNOWN]
    if state != STEADY:
        parts = [_change_of(one, days, model.level, change) for one in (days.series.coulomb, days.series.viscous)]
    return JointDrift(
        days,
        model,
        state,
        growth,
        growth_sigma,
        probability=fallen if state == LOWER else grown,
        since=date_of(days.day[change.since]),
        drop=drop,
        drop_sigma=drop_sigma,
        temperature_effect=float(np.expm1(days.factor * (now - then))),
        coulomb=parts[0],
        viscous=parts[1],
    )


def _relative(change: Difference) -> tuple[float, float]:
    """Relative change and its standard deviation, of those of the logarithm."""
    return float(np.expm1(change.mean)), float(np.exp(change.mean) * change.sigma)


def _change_of(parameter: FloatArray, days: DaySeries, level: FloatArray, change: Difference) -> tuple[float, float]:
    """Relative change of one parameter, (m, 2) with its sigma in every bag, and its standard deviation.

    The parameter is a line over the level of the model, which ends at the newest day. Days between them count, too. The
    fit takes the level as known, so the relative standard deviation is at least that of the whole change. It is NaN
    where the parameter is not certainly positive at the beginning.
    """
    day, warmth = np.searchsorted(days.day, np.floor(days.series.time)), days.series.temperature - days.reference
    value, sigma = (parameter * np.exp(-days.factor * np.nan_to_num(warmth))[:, None]).T
    weight = 1.0 / np.maximum(sigma, _SMALLEST_SIGMA) ** 2
    total = np.bincount(day, weights=weight)
    value = np.bincount(day, weights=weight * value) / total
    height = np.expm1(level - level[change.since])
    shape = height / height[-1]
    elsewhere = np.flatnonzero(np.abs(shape[: change.since]) > _SAME_LEVEL_SHARE)
    used = np.arange(elsewhere[-1] + 1 if elsewhere.size else 0, total.size)
    value, line = value[used], np.column_stack((shape[used], np.ones(used.size)))
    errors = np.diag(1.0 / total) + np.median(value) ** 2 * days.error_covariance()
    weighted = np.linalg.solve(errors[np.ix_(used, used)], np.column_stack((line, value)))
    covariance = np.linalg.inv(line.T @ weighted[:, :2])
    size, before = fit = covariance @ line.T @ weighted[:, 2]
    scatter = float((value - line @ fit) @ (weighted[:, 2] - weighted[:, :2] @ fit)) / max(used.size - 2, 1)
    covariance *= max(scatter, 1.0)
    if not before > 2.0 * np.sqrt(covariance[1, 1]):
        return _NOT_KNOWN
    ratio = size / before
    slope = np.array([1.0, -ratio]) / before
    least = abs(ratio) * change.sigma / abs(1.0 - np.exp(-change.mean))
    return float(ratio), max(float(np.sqrt(slope @ covariance @ slope)), float(least))


def _main_step(joint: JointDrift) -> Change | None:
    """A step that makes up most of the change and whose day is known; None when there is none."""
    total = np.log1p(joint.change[0])
    for change in joint.changes:
        dated = change.kind == "step" and change.latest - change.earliest <= WEEK
        if dated and change.size / total > _MAIN_STEP_SHARE:
            return change
    return None


def change_text(value: float, sigma: float, decimals: int = 0) -> str:
    """Text of a relative change (0.1 is 10 %) and two of its standard deviations ``sigma``, in percent."""
    shown = round(100.0 * value, decimals) + 0.0  # no negative zero
    return f"{shown:+.{decimals}f} ± {200.0 * sigma:.{decimals}f} %" if np.isfinite(value) else NO_NUMBER


def _how_long(joint: JointDrift, since: datetime, step: Change | None) -> str:
    if step is not None:
        earliest, latest = date_of(step.earliest), date_of(step.latest)
        when = f"on {earliest:%Y-%m-%d}" if earliest == latest else f"from {earliest:%Y-%m-%d} to {latest:%Y-%m-%d}"
        return f"by a step {when} (probability {step.probability:.2f})"
    days = float(joint.days.day[-1]) - (since - _EPOCH).total_seconds() / DAY
    return f"in {days / WEEK:.0f} weeks" if days >= 2.0 * WEEK else f"in {days:.0f} days"


def _advice(state: str, stepped: bool) -> str:
    if state == LOWER:
        return "maintenance or new lubricant, else check preload of belt, gear and bearing"
    if stepped:
        return "check what happened to the joint then: mounting, brake, seal, bearing"
    return "check lubrication and bearing"
