"""The page of a recording and its figures: errors, friction over time and velocity, parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from friction_estimator.messages.recording import PhaseInterval, Recording, Series
from friction_estimator.reports.page import (
    ESTIMATE,
    INK,
    MODELLED,
    PANEL_HEIGHT,
    SWING,
    TRUTH,
    Page,
    PanelGrid,
    Section,
    band,
    dots,
    envelope_rows,
    even_rows,
    figure_html,
    line,
    padded,
)
from friction_estimator.reports.recording_tables import (
    collision_table,
    error_table,
    errors_by_part,
    learned_parameter_table,
    phase_table,
    speed_range,
)
from friction_estimator.tables import UNKNOWN, html_table, number
from friction_estimator.types import BoolArray, FloatArray, IntArray

WINDOW = 12.0
"""Long recordings open on this many seconds at their end, in fine resolution [s]."""

_CURVE_POINTS, _WINDOW_POINTS, _SMOOTH_POINTS, _MAX_DOTS = 800, 1400, 600, 700
"""Points of a panel at most: of a whole curve, of its window, of a slow output, of a cloud."""
_DIVIDED_HEIGHT = 250  # of a panel with two parts [pixel]
_TIME, _FRICTION, _VELOCITY, _ERROR = "time [s]", "friction [N m]", "velocity [rad/s]", "error [N m]"


def friction_over_time(recording: Recording) -> go.Figure:
    """Friction of every joint: measured and modelled parts, truth, swing shaded; below it the residual.

    The residual is the estimate minus the truth, or minus the friction of the identified law when there is no truth,
    in the band of two standard deviations of the estimate. Without both there is no lower part.
    """
    residual, name = _residuals(recording)
    lower = "" if residual is None else _ERROR if recording.truth is not None else "residual [N m]"
    grid, panels = _joint_grid(recording, _TIME, _FRICTION, lower_title=lower)
    for panel, foot, joint in panels:
        low, high = _limits(recording, joint)
        _shade_swing(grid, panel, recording.swing_intervals(foot), low, high)
        estimate, measured = recording.friction[:, joint], recording.measured[:, joint]
        rows = _rows(recording, estimate)
        time = recording.time[rows]
        for part, color, where in (("measured", ESTIMATE, measured), ("modelled", MODELLED, ~measured)):
            grid.add(panel, line(*_parts(time, estimate[rows], where[rows]), part, color))
        if recording.truth is not None:
            truth = recording.truth[:, joint]
            kept = _rows(recording, truth)
            grid.add(panel, line(recording.time[kept], truth[kept], "truth", TRUTH, dash="dash"))
        grid.limit_y(panel, low, high)
        if residual is not None:
            _add_residual(grid, panel, recording, residual[:, joint], 2.0 * recording.sigma[:, joint], name)
    return _opened(grid.figure, recording)


def _residuals(recording: Recording) -> tuple[FloatArray | None, str]:
    """Residuals (m, n) of the friction [N m] and their name; None without truth and law."""
    if recording.truth is not None:
        return recording.friction - recording.truth, "estimate minus truth"
    if recording.model is None:
        return None, ""
    return recording.friction - recording.model.at(recording.time), "estimate minus law"


def _add_residual(
    grid: PanelGrid, panel: int, recording: Recording, residual: FloatArray, spread: FloatArray, name: str
) -> None:
    """Residual (m,) and band (m,) in the lower part of a panel, at a scale that fits both after the first quarter."""
    if np.isfinite(spread).any():
        rows = _rows(recording, spread, 0.25)
        grid.add(panel, band(recording.time[rows], np.zeros(rows.size), spread[rows]), lower=True)
    rows = _rows(recording, residual)
    grid.add(panel, line(recording.time[rows], residual[rows], name, INK, width=1.0), lower=True)
    late = slice(recording.time.size // 4, None)
    finite = np.abs(np.concatenate((residual[late], spread[late])))
    _, limit = padded(np.concatenate((finite, [0.0])))
    grid.limit_y(panel, -limit, limit, lower=True)


def paper_figure(recording: Recording) -> go.Figure:
    """Figure 6 of Hashlamon & Erbatur 2014, for every leg: estimate solid blue, truth dashed red."""
    grid, panels = _joint_grid(recording, _TIME, _FRICTION)
    for panel, _, joint in panels:
        estimate = recording.friction[:, joint]
        rows = _rows(recording, estimate)
        grid.add(panel, line(recording.time[rows], estimate[rows], "estimated", ESTIMATE))
        if recording.truth is not None:
            truth = recording.truth[:, joint]
            rows = _rows(recording, truth)
            grid.add(panel, line(recording.time[rows], truth[rows], "true", TRUTH, dash="dash"))
        grid.limit_y(panel, *_limits(recording, joint))
    return _opened(grid.figure, recording)


def _recorded_friction_over_velocity(recording: Recording) -> go.Figure:
    """Friction against joint velocity: estimates, truth, and the law with the last parameters."""
    grid, panels = _joint_grid(recording, _VELOCITY, _FRICTION, shared_x=False)
    rows = even_rows(recording.time.size, 2 * _MAX_DOTS)
    for panel, _, joint in panels:
        velocity, estimate = recording.velocity[rows, joint], recording.friction[rows, joint]
        measured = recording.measured[rows, joint]
        for name, color, where in (("measured", ESTIMATE, measured), ("modelled", MODELLED, ~measured)):
            grid.add(panel, dots(velocity[where], estimate[where], name, color))
        if recording.truth is not None:
            grid.add(panel, dots(velocity, recording.truth[rows, joint], "truth", TRUTH, size=2.5))
        law = _law_curve(recording, joint)
        if law is not None:
            grid.add(panel, line(*law, "Coulomb and viscous friction at the end", INK))
        grid.limit_y(panel, *_limits(recording, joint))
    return grid.figure


def _convergence(recording: Recording, parameter: str) -> go.Figure | None:
    """One identified parameter of every joint over time, with its 2-sigma band.

    Parameters
    ----------
    recording : with slow outputs
    parameter : ``coulomb`` or ``viscous``

    Returns
    -------
    None when the recording lacks that parameter.
    """
    values: Series | None = getattr(recording, parameter)
    sigma: Series | None = getattr(recording, f"{parameter}_sigma")
    if values is None:
        return None
    label = "F<sub>c</sub> [N m]" if parameter == "coulomb" else "F<sub>v</sub> [N m s/rad]"
    grid, panels = _joint_grid(recording, _TIME, label)
    for panel, _, joint in panels:
        value = values.values[:, joint]
        spread = _two_sigma(values, sigma, joint)
        rows = even_rows(value.size, _SMOOTH_POINTS)
        spread_band = band(values.time[rows], value[rows], spread[rows])
        if sigma is not None:
            grid.add(panel, spread_band)
        grid.add(panel, line(values.time[rows], value[rows], "identified", ESTIMATE))
        settled = slice(value.size // 4, None)
        inside = np.concatenate((value[settled] - spread[settled], value[settled] + spread[settled], [0.0]))
        grid.limit_y(panel, *padded(inside, 100.0))
    return grid.figure


def _is_long(recording: Recording) -> bool:
    """Whether figures over time open on the last seconds only."""
    return bool(recording.time[-1] > 1.5 * WINDOW)


def _opened(figure: go.Figure, recording: Recording) -> go.Figure:
    if _is_long(recording):
        end = float(recording.time[-1])
        figure.update_xaxes(range=[end - WINDOW, end])
    return figure


def _rows(recording: Recording, values: FloatArray, fineness: float = 1.0) -> IntArray:
    """Rows to draw over time: the whole recording coarsely, the window on which it opens finely."""
    rows = envelope_rows(values, round(fineness * _CURVE_POINTS))
    if not _is_long(recording):
        return rows
    start = int(np.searchsorted(recording.time, recording.time[-1] - WINDOW))
    return np.union1d(rows, start + envelope_rows(values[start:], round(fineness * _WINDOW_POINTS)))


def _joint_grid(
    recording: Recording, x_title: str, y_title: str, shared_x: bool = True, lower_title: str = ""
) -> tuple[PanelGrid, list[tuple[int, str, int]]]:
    """A column for each limb and a row for each joint; returns (panel, foot, joint) of the filled panels."""
    limbs = recording.limbs
    on_limbs = {joint for joints in limbs.values() for joint in joints}
    others = tuple(joint for joint in range(len(recording.joint_names)) if joint not in on_limbs)
    groups = [(foot, joints) for foot, joints in (*limbs.items(), ("", others)) if joints]
    if len(groups) == 1:  # one column would be wasteful
        foot, joints = groups[0]
        half = -(-len(joints) // 2)
        groups = [(foot, joints[:half]), (foot, joints[half:])] if half else groups
    height = max(len(joints) for _, joints in groups)
    titles = [
        recording.joint_names[joints[row]] if row < len(joints) else "" for row in range(height) for _, joints in groups
    ]
    panels = [
        (row * len(groups) + column, foot, joint)
        for column, (foot, joints) in enumerate(groups)
        for row, joint in enumerate(joints)
    ]
    height_of_panel = _DIVIDED_HEIGHT if lower_title else PANEL_HEIGHT
    return PanelGrid(titles, len(groups), x_title, y_title, shared_x, height_of_panel, lower_title), panels


def _shade_swing(grid: PanelGrid, panel: int, swings: list[PhaseInterval], low: float, high: float) -> None:
    """One polygon for all swing phases: quick to draw, however long the walk."""
    if not swings:
        return
    x = [edge for swing in swings for edge in (swing.start, swing.start, swing.end, swing.end, None)]
    y = len(swings) * [low, high, high, low, None]
    area = go.Scatter(
        x=x, y=y, name="swing", mode="lines", fill="toself", fillcolor=SWING, line={"width": 0}, hoverinfo="skip"
    )
    grid.add(panel, area)


def _law_curve(recording: Recording, joint: int) -> tuple[FloatArray, FloatArray] | None:
    if recording.coulomb is None or recording.viscous is None:
        return None
    fastest = float(np.nan_to_num(speed_range(recording.velocity[:, joint])[1]))
    velocity = np.array([-fastest, -1e-9, 1e-9, fastest])
    torque = recording.coulomb.values[-1, joint] * np.sign(velocity) + recording.viscous.values[-1, joint] * velocity
    return velocity, torque


def _two_sigma(values: Series, sigma: Series | None, joint: int) -> FloatArray:
    if sigma is None:
        return np.zeros(values.time.size)
    return 2.0 * np.interp(values.time, sigma.time, sigma.values[:, joint])


def _limits(recording: Recording, joint: int) -> tuple[float, float]:
    """Range of a friction panel: what nearly all samples need, so that one spike does not flatten the rest."""
    parts = [recording.friction[:, joint]]
    if recording.truth is not None:
        parts += 2 * [recording.truth[:, joint]]
    return padded(np.concatenate(parts))


def _parts(x: FloatArray, y: FloatArray, where: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Points of some stretches of a line, with one NaN after each stretch so that the line breaks there."""
    keep = where.copy()
    keep[1:] |= where[:-1]
    return x[keep], np.where(where, y, np.nan)[keep]


def recording_page(recording: Recording, title: str, after: float = 0.0) -> Page:
    """Page of a recording, without samples before ``after`` [s] in its tables; ``title`` is usually the bag's name."""
    sections = tuple(_sections(recording, after))
    return Page("Joint friction report", title, _facts(recording), _tiles(recording, after), sections)


def _sections(recording: Recording, after: float) -> Iterator[Section]:
    """Parts of the page of which there is data, in order."""
    errors = [table for table in (error_table(recording, after), phase_table(recording, after)) if table]
    if errors:
        skipped = f" The first {after:g} s are left out." if after > 0.0 else ""
        text = (
            "Errors against the ground truth of the recording. Relative error: RMSE divided by the RMS of the true "
            "friction; 1 is as good as predicting zero. NEES (normalised estimation error squared): mean of the "
            "squared error divided by the published variance. It is 1 when the standard deviations are right, and "
            f"larger when they are too small.{skipped}"
        )
        yield Section("errors", "Errors", text, "".join(map(html_table, errors)))
    swing = " Grey: the leg is swinging." if recording.description.supports else ""
    text = f"Blue: the observer measured the friction. Orange: the identified law predicted it.{swing}"
    text += _residual_text(recording) + _zoom_hint(recording)
    yield Section("time", "Friction over time", text, figure_html(friction_over_time(recording), "figure-time"))
    text = (
        "The same samples against the joint velocity, with the line of Coulomb and viscous friction through the "
        "identified law."
    )
    figure = figure_html(_recorded_friction_over_velocity(recording), "figure-velocity")
    yield Section("velocity", "Friction over velocity", text, figure)
    parts = [html_table(table) for table in (learned_parameter_table(recording),) if table]
    for name, title in (("coulomb", "Coulomb friction F<sub>c</sub>"), ("viscous", "Viscous friction F<sub>v</sub>")):
        if (curves := _convergence(recording, name)) is not None:
            parts.append(f"<h3>{title}</h3>{figure_html(curves, f'figure-{name}')}")
    if parts:
        text = (
            "Coulomb friction F<sub>c</sub> and viscous friction F<sub>v</sub> at the end of the recording and over "
            "time, with two standard deviations. They are the line F<sub>c</sub> sgn(v) + F<sub>v</sub> v that "
            "fits the identified law best over the velocities that the joint had until then. The line does not hold "
            "beyond these speeds. F<sub>v</sub> is negative where the friction falls with the speed. Valid: no sensor "
            "that the joint needs was wrong or silent, and it had moved in both directions."
        )
        yield Section("parameters", "Identified parameters", text, "".join(parts))
    if recording.collisions:
        text = (
            "External torque, or its standard deviation, above the thresholds of normal walking. Only the first "
            "detection of each collision of a limb is shown."
        )
        yield Section("collisions", "Collisions", text, html_table(collision_table(recording)))
    text = (
        "Figure 6 of Hashlamon &amp; Erbatur (2014), for every leg: estimated friction (solid blue) and true friction "
        "(dashed red)." + _zoom_hint(recording)
    )
    yield Section("paper", "As in the paper", text, figure_html(paper_figure(recording), "figure-paper"))


def _residual_text(recording: Recording) -> str:
    """What the lower part of the figure shows."""
    band = "in the band of two standard deviations"
    if recording.truth is not None:
        return f" The lower part of each panel shows the error (estimate minus truth) {band}."
    if recording.model is not None:
        return f" The lower part of each panel shows the estimate minus the friction of the identified law, {band}."
    return ""


def _zoom_hint(recording: Recording) -> str:
    if not _is_long(recording):
        return ""
    return f" The figure opens on the last {WINDOW:g} s; a double click shows the whole run."


def _facts(recording: Recording) -> tuple[tuple[str, str], ...]:
    description = recording.description
    return (
        ("robot", description.robot),
        ("source", description.source),
        ("observer", ", smoothed ".join(filter(None, (description.observer, description.smoothing)))),
        ("friction law", description.law),
        ("joints", str(len(recording.joint_names))),
        ("ground truth", "yes" if recording.truth is not None else "none in this recording"),
    )


def _tiles(recording: Recording, after: float) -> list[tuple[str, str, str]]:
    seconds = float(recording.time[-1] - recording.time[0])
    rate = (recording.time.size - 1) / seconds if seconds > 0.0 else 0.0
    tiles = [("duration", f"{seconds:.1f}", "s"), ("estimates", f"{recording.time.size:,}", f"at {rate:.0f} Hz")]
    for name, errors in errors_by_part(recording, after):
        tiles.append((f"RMSE, {name}", _mean(errors.rmse), "N m, mean of joints"))
    return tiles


def _mean(values: FloatArray) -> str:
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if finite.size else UNKNOWN
