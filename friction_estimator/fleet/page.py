"""One page of a fleet: which joints wear, Coulomb and viscous friction over time, and a table of all joints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np

from friction_estimator.fleet.wear import LOWER, STEADY, TOO_FEW_DAYS, WORN, JointTrend, Trend, change_text
from friction_estimator.reports.page import (
    ESTIMATE,
    FAINT,
    Page,
    PanelGrid,
    Section,
    band,
    dots,
    figure_html,
    line,
    padded,
)
from friction_estimator.tables import Cell, Column, Style, Table, html_table, make_table, percent, with_spread

_MAX_PANELS, _PANEL_COLUMNS, _PANEL_HEIGHT = 24, 3, 280
"""Joints in the figure, those that change most; panels side by side; their height [pixel]."""
_MAX_ROWS = 500  # of the table of joints
_STYLE: dict[str, Style] = {WORN: "bad", LOWER: "fair"}


def trend_table(joints: Sequence[JointTrend]) -> Table:
    """One row per joint: change of its friction, and what a kelvin does."""
    columns = (
        "joint",
        "serial",
        "state",
        Column("friction", "%"),
        Column("F_c", "N m"),
        Column("F_v", "N m s/rad"),
        Column("temperature", "%/K"),
        Column("days"),
    )
    return make_table("Change of the friction from the first to the last day, ± 2 sigma", columns, map(_row, joints))


def _row(joint: JointTrend) -> tuple[str | Cell, ...]:
    return (
        joint.joint,
        joint.serial,
        Cell(joint.state, _STYLE.get(joint.state, "")),
        change_text(*joint.friction.growth).removesuffix(" %"),
        *(with_spread(trend.change, 2.0 * trend.sigma) for trend in (joint.coulomb, joint.viscous)),
        change_text(*joint.temperature_factor, 1).removesuffix(" %") if any(joint.temperature_factor) else "",
        str(joint.days.size),
    )


def fleet_page(joints: Sequence[JointTrend], threshold: float) -> Page:
    """Page of the trends of a fleet."""
    first, last = min(one.days[0] for one in joints), max(one.days[-1] for one in joints)
    changed = [joint for joint in joints if joint.state in (WORN, LOWER)]
    items = "".join(f"<li><b>{escape(one.name)}</b>: {escape(one.verdict)}</li>" for one in changed[:_MAX_ROWS])
    shown = joints[:_MAX_PANELS]
    return Page(
        "wear of a fleet",
        f"{len({joint.serial for joint in joints})} robots, {len(joints)} joints",
        (("first day", _date(first)), ("last day", _date(last)), ("threshold", percent(threshold))),
        tuple(
            (state, str(sum(joint.state == state for joint in joints)), "joints")
            for state in (WORN, LOWER, STEADY, TOO_FEW_DAYS)
        ),
        (
            Section(
                "verdicts",
                "Joints that have changed",
                f"A joint is worn where the line through its friction has grown by more than {percent(threshold)} and "
                "by more than three of its standard deviations.",
                f"<ul>{items}</ul>" if items else "<p>No joint has changed.</p>",
            ),
            Section(
                "time",
                "Friction over time",
                f"Coulomb friction (above) and viscous friction (below) of the {len(shown)} joints that change most, "
                "at one temperature: median of each day (points) and robust line with two standard deviations.",
                figure_html(_over_time(shown, first), "figure-time"),
            ),
            Section(
                "joints",
                "All joints",
                "Change of the robust line from the first to the last day, at one temperature.",
                html_table(trend_table(joints[:_MAX_ROWS])),
            ),
        ),
    )


def _date(day: float) -> str:
    return f"{datetime.fromtimestamp(86_400.0 * day, UTC):%Y-%m-%d}"


def _over_time(joints: Sequence[JointTrend], first: float) -> object:
    names, x_title = [joint.name for joint in joints], f"days since {_date(first)}"
    grid = PanelGrid(
        names, _PANEL_COLUMNS, x_title, "F_c [N m]", panel_height=_PANEL_HEIGHT, lower_title="F_v [N m s/rad]"
    )
    for panel, joint in enumerate(joints):
        for trend, lower in ((joint.coulomb, False), (joint.viscous, True)):
            _draw(grid, panel, joint.days - first, trend, lower)
    return grid.figure


def _draw(grid: PanelGrid, panel: int, days: np.ndarray, trend: Trend, lower: bool) -> None:
    """Points, line and band of one value; the middle of the line is its surest place."""
    share = (days - days[0]) / max(days[-1] - days[0], 1.0)
    level = trend.first + np.nan_to_num(trend.change) * share
    spread = 2.0 * np.nan_to_num(trend.sigma) * np.abs(share - 0.5)
    grid.add(panel, band(days, level, spread), lower)
    grid.add(panel, dots(days, trend.values, "day", FAINT, 5.5), lower)
    grid.add(panel, line(days, level, "line", ESTIMATE, width=1.8), lower)
    low, high = padded(np.concatenate((trend.values, level + spread, level - spread)), 100.0)
    grid.limit_y(panel, min(low, 0.0), high, lower)
