"""One page of a fleet: verdicts, friction of the worst joints over time and temperature, and a table of all joints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from friction_estimator.fleet.wear import (
    LEAST_PROBABILITY,
    LOWER,
    STEADY,
    TOO_FEW_DAYS,
    WORN,
    FleetDrift,
    JointDrift,
    change_text,
    date_of,
)
from friction_estimator.reports.page import (
    ESTIMATE,
    FAINT,
    MODELLED,
    Page,
    PanelGrid,
    Section,
    band,
    dots,
    figure_html,
    line,
    padded,
)
from friction_estimator.tables import Cell, Column, Style, Table, html_table, make_table, percent
from friction_estimator.types import AnyPath, FloatArray

_MAX_PANELS, _PANEL_COLUMNS = 24, 3
"""Joints in the figures, the worst ones."""
_MAX_ROWS = 500  # of the table of joints
_STYLE: dict[str, Style] = {WORN: "bad", LOWER: "fair"}


def drift_table(joints: Sequence[JointDrift]) -> Table:
    """One row per joint: growth and temperature."""
    columns = (
        "joint",
        "serial",
        "state",
        Column("friction ± 2 sigma", group="since the reference level"),
        Column("probability", group="since the reference level"),
        Column("temperature", "1/K"),
        Column("days"),
        "changes (probability)",
    )
    return make_table("Friction of the joints, the worst first", columns, map(_row, joints))


def _row(joint: JointDrift) -> tuple[str | Cell, ...]:
    series = joint.days.series
    return (
        series.joint,
        series.serial,
        Cell(joint.state, _STYLE.get(joint.state, "")),
        _change(joint),
        percent(joint.probability),
        change_text(joint.days.factor, joint.days.factor_sigma, 1),
        str(joint.days.day.size),
        "; ".join(f"{one.kind} {date_of(one.day):%m-%d} ({one.probability:.2f})" for one in joint.changes),
    )


def _change(joint: JointDrift) -> str:
    if joint.state == STEADY and not joint.changes:
        return "no change"
    return change_text(*joint.change)


def drift_page(drift: FleetDrift, path: AnyPath) -> Page:
    """Page of a fleet that will be written to ``path``, with links to the reports of the bags that have one."""
    joints = drift.joints
    first, last = min(one.days.day[0] for one in joints), max(one.days.day[-1] for one in joints)
    count = {state: sum(joint.state == state for joint in joints) for state in (WORN, LOWER, STEADY, TOO_FEW_DAYS)}
    shown = [joint for joint in joints if joint.model is not None][:_MAX_PANELS]
    return Page(
        "drift of a fleet",
        f"{len({joint.days.series.serial for joint in joints})} robots, {len(joints)} joints",
        (
            ("first day", f"{date_of(first):%Y-%m-%d}"),
            ("last day", f"{date_of(last):%Y-%m-%d}"),
            ("bags", str(_bag_count(joints))),
            ("threshold", percent(drift.threshold)),
        ),
        tuple((state, str(number), "joints") for state, number in count.items()),
        (
            Section("verdicts", "Verdicts", _verdict_text(drift), _verdict_list(joints, path)),
            Section(
                "time",
                "Friction over time",
                f"The {len(shown)} worst joints relative to their reference level, at one temperature: mean of each "
                "day (points), model of steps and ramps with two standard deviations, threshold of the states worn "
                "and lower (dashed).",
                figure_html(_over_time(shown, float(first), drift.threshold), "figure-time") if shown else "",
            ),
            Section(
                "temperature",
                "Friction over temperature",
                "The same joints, bag by bag, relative to the model of the day at the median temperature; the line is "
                "the temperature factor that the other figure corrects for.",
                figure_html(_over_temperature(shown), "figure-temperature") if shown else "",
            ),
            Section(
                "joints",
                "All joints",
                f"At most the {_MAX_ROWS} worst. The reference is the lowest level so far; for a joint that is lower, "
                "it is the highest one. The probability is that of a change above the threshold.",
                html_table(drift_table(joints[:_MAX_ROWS])),
            ),
        ),
    )


def _bag_count(joints: Sequence[JointDrift]) -> int:
    """Bags of all robots; those of one robot may start at the same time."""
    found: set[tuple[str, float, int]] = set()
    for joint in joints:
        time = joint.days.series.time
        same = np.arange(time.size) - np.searchsorted(time, time)
        found.update((joint.days.series.serial, *bag) for bag in zip(time.tolist(), same.tolist(), strict=True))
    return len(found)


def _verdict_text(drift: FleetDrift) -> str:
    return (
        f"{len(drift.worn)} of {len(drift.joints)} joints are worn: their friction has grown by more than "
        f"{escape(percent(drift.threshold))}, with a probability of at least {percent(LEAST_PROBABILITY)}. Figures "
        "behind ± are two standard deviations."
    )


def _verdict_list(joints: Sequence[JointDrift], path: AnyPath) -> str:
    items = []
    for joint in joints[:_MAX_ROWS]:
        if joint.state in (WORN, LOWER):
            link = _link(joint.days.series.report, path)
            items.append(f"<li><b>{escape(joint.name)}</b>: {escape(joint.verdict)}{link}</li>")
    return f"<ul>{''.join(items)}</ul>" if items else "<p>No joint has changed.</p>"


def _link(report: str, path: AnyPath) -> str:
    """Link to the report of the newest bag."""
    if not report:
        return ""
    if "://" not in report:
        if not Path(report).is_file():  # of a table that was copied without its reports
            return ""
        report = os.path.relpath(report, Path(path).expanduser().resolve().parent)
    return f' (<a href="{escape(report)}">newest bag</a>)'


def _over_time(joints: Sequence[JointDrift], first: float, threshold: float) -> object:
    grid = PanelGrid(
        [joint.name for joint in joints], _PANEL_COLUMNS, f"days since {date_of(first):%Y-%m-%d}", "friction [%]"
    )
    for panel, joint in enumerate(joints):
        model, days = joint.model, joint.days
        if model is None:
            continue
        reference = float(model.level.min() if joint.state != LOWER else model.level.max())
        x, level = days.day - first, _relative(model.level, reference)
        values = _relative(days.value, reference)
        spread = 2.0 * np.exp(model.level - reference) * model.level_sigma * 100.0
        grid.add(panel, band(x, level, spread))
        grid.add(panel, dots(x, values, "day", FAINT, 5.5))
        grid.add(panel, line(x, level, "model", ESTIMATE, width=1.8))
        ends = np.array([x[0], x[-1]])
        limit = 100.0 * (1.0 / (1.0 + threshold) if joint.state == LOWER else 1.0 + threshold)
        grid.add(panel, line(ends, np.full(2, limit), "threshold", MODELLED, "dash"))
        low, high = padded(np.concatenate((values, level + spread, level - spread)))
        both = (95.0, 105.0, limit - 1.0, limit + 1.0)
        grid.limit_y(panel, min(low, *both), max(high, *both))
    return grid.figure


def _over_temperature(joints: Sequence[JointDrift]) -> object:
    grid = PanelGrid(
        [joint.name for joint in joints], _PANEL_COLUMNS, "temperature [°C]", "friction [%]", shared_x=False
    )
    for panel, joint in enumerate(joints):
        model, days, series = joint.model, joint.days, joint.days.series
        if model is None:
            continue
        place = np.searchsorted(days.day, np.floor(series.time))
        grid.add(panel, dots(series.temperature, _relative(series.value, model.level[place]), "bag", FAINT, 4.5))
        known = series.temperature[np.isfinite(series.temperature)]
        if known.size:
            x = np.array([known.min(), known.max()])
            grid.add(panel, line(x, _relative(days.factor * (x - days.reference), 0.0), "temperature factor", ESTIMATE))
    return grid.figure


def _relative(value: FloatArray, reference: FloatArray | float) -> FloatArray:
    return 100.0 * np.exp(value - reference)
