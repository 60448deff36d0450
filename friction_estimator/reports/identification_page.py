"""The page of an identification: findings, figures, parameters with error bars, and how it was made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.result import FrictionSamples, Identification
from friction_estimator.reports.identification_tables import (
    QUADRANT_NAMES,
    candidate_table,
    data_table,
    is_significant,
    joint_quadrants,
    load_laws,
    parameter_table,
    quadrant_table,
    range_table,
    score_table,
)
from friction_estimator.reports.page import (
    ESTIMATE,
    INK,
    LEFT_OUT,
    MODELLED,
    MODELLED_BAND,
    PANEL_HEIGHT,
    TRUTH,
    Page,
    PanelGrid,
    Section,
    band,
    dots,
    even_rows,
    figure_html,
    layout_style,
    line,
    padded,
)
from friction_estimator.tables import html_table, number
from friction_estimator.types import FloatArray


def identification_page(identification: Identification, title: str) -> Page:
    """Page of an identification; its title is usually the name of the parameter file, or of the robot."""
    return Page(
        "Joint friction identification",
        title,
        _facts(identification),
        _tiles(identification),
        tuple(_sections(identification)),
    )


def _sections(identification: Identification) -> Iterator[Section]:
    """Parts of the page of which there is data, in order."""
    if identification.verdicts:
        text = "Conclusions about this identification, the most severe first."
        yield Section("verdicts", "Verdict", text, _list(identification.verdicts, "verdicts"))
    if identification.scores:
        new = all(math.isnan(score.fit_error) for score in identification.scores)
        text = (
            f"RMS error of the torque of every joint on {'new recordings' if new else 'segments of time'} that the fit "
            "has not seen, and of two baselines: predicting zero, and the rigid body without friction. Green: below "
            "0.3 of the better baseline; red: no better than it."
        )
        heading = "Errors on new recordings" if new else "Held-out errors"
        yield Section("scores", heading, text, html_table(score_table(identification.scores)))
    if identification.candidates:
        text = (
            "What was not estimated was decided by the error on data that the fit has not seen: of all candidates the "
            "simplest within one standard error of the best. Candidates are in the order of simplicity; what changes "
            "within one standard error is part of the standard deviations."
        )
        yield Section("candidates", "Candidates", text, html_table(candidate_table(identification.candidates)))
    if (speeds := range_table(identification.friction)) is not None:
        text = (
            "Nine tenths of the samples that identified a joint lie between these speeds. Friction is that of the law "
            "without load, in the positive direction. Beyond these speeds the law is an extrapolation."
        )
        yield Section("speeds", "Speeds", text, html_table(speeds))
    if identification.samples:
        text = (
            "Torque minus everything in the model but friction. Grey samples were left out of the fit: near "
            "standstill, stick or outlier. Orange: the identified law, where it depends on velocity alone with two "
            "standard deviations."
        )
        figure = figure_html(friction_over_velocity(identification), "figure-velocity")
        yield Section("velocity", "Friction over velocity", text, figure)
    over_load, quadrants = friction_over_load(identification), quadrant_table(identification)
    if over_load is not None and quadrants is not None:
        text = (
            "By quadrant of velocity and load: the joint drives where their product is positive, and is driven where "
            "it is negative. Samples are moved along the law to the median speed of their quadrant. A mean residual "
            "that differs between quadrants is load dependence that the law does not have."
        )
        body = figure_html(over_load, "figure-load") + html_table(quadrants)
        yield Section("quadrants", "Friction over load", text, body)
    if identification.samples:
        text = "Friction minus law. A curve in it is a shape that the law does not have."
        yield Section("residuals", "Residuals", text, figure_html(residuals(identification), "figure-residuals"))
    text = (
        "Values with two standard deviations, which allow for residuals that are correlated in time. A parameter whose "
        "interval holds zero may be left out; one that is not identifiable has a value without meaning."
    )
    units = enumerate(dict.fromkeys(identification.parameters.units))
    figures = (figure_html(parameters_of_unit(identification, unit), f"figure-unit-{k}", True) for k, unit in units)
    body = html_table(parameter_table(identification.parameters)) + "".join(figures)
    yield Section("parameters", "Parameters", text, body)
    provenance = identification.provenance
    command = f"<pre><code>{escape(provenance.command)}</code></pre>" if provenance.command else ""
    data = html_table(data_table(provenance.data)) if provenance.data else ""
    choices = f"<h3>Chosen from the data</h3>{_list(provenance.choices)}" if provenance.choices else ""
    yield Section("provenance", "How it was made", _method_in_words(identification), command + data + choices)


def _method_in_words(identification: Identification) -> str:
    method = identification.provenance.method
    if not method:
        return "The node or <code>replay</code> has written this file while the robot moved: it has no recorded data."
    condition = number(identification.condition)
    return f"Method {escape(method)}, condition number {condition} of the column-scaled observation matrix."


def _list(sentences: Iterable[str], style: str = "") -> str:
    return f'<ul class="{style}">' + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _facts(identification: Identification) -> tuple[tuple[str, str], ...]:
    provenance = identification.provenance
    return (
        ("method", provenance.method.replace("_", " ")),
        ("experiments", str(len(provenance.data) or "")),
        ("joints", str(len(identification.friction.joint_names))),
        ("friction laws", ", ".join(dict.fromkeys(identification.friction.law_names))),
    )


def _tiles(identification: Identification) -> list[tuple[str, str, str]]:
    table = identification.parameters
    significant = sum(is_significant(table, row) for row in range(len(table.names)))
    tiles = [("parameters", str(len(table.names)), f"{significant} of them significant")]
    if math.isfinite(identification.condition):
        tiles.append(("condition number", number(identification.condition), "columns scaled"))
    scores = [score for score in identification.scores if math.isfinite(score.relative_error)]
    if scores:
        worst = max(scores, key=lambda score: score.relative_error)
        tiles.append(
            ("largest held-out error", f"{100.0 * worst.relative_error:.1f} %", f"of the torque, {worst.joint}")
        )
    return tiles


_QUADRANT_STYLES = {
    (1, 1): (ESTIMATE, "circle"),
    (-1, -1): (ESTIMATE, "circle-open"),
    (1, -1): (MODELLED, "circle"),
    (-1, 1): (MODELLED, "circle-open"),
}
_MAX_DOTS, _CURVE_POINTS = 1500, 500  # of a panel, at most
_LABEL_LENGTH = 28  # longest parameter name in a figure, longer ones are cut [characters]
_FEW_PANELS_HEIGHT = 260  # of a panel, where there are at most two rows of them [pixel]
_VELOCITY, _LOAD, _FRICTION, _RESIDUAL = "velocity [rad/s]", "load [N m]", "friction [N m]", "residual [N m]"
_LARGEST_CURVE_LENGTH = 6.0  # of a law over the velocity, in ranges of its values


def friction_over_velocity(identification: Identification) -> go.Figure:
    """Friction that the data shows, used and left out, with the identified law and its 2-sigma band."""
    grid = _joint_grid([one.joint for one in identification.samples], _VELOCITY, _FRICTION)
    loaded = load_laws(identification.friction)
    for panel, samples in enumerate(identification.samples):
        _add_dots(grid, panel, samples, samples.friction)
        _add_fit(grid, panel, samples, samples.joint in loaded)
        grid.limit_y(panel, *padded(np.concatenate((samples.friction[samples.used], samples.fitted))))
    return grid.figure


def residuals(identification: Identification) -> go.Figure:
    """Measured friction minus law, over velocity, in a band of twice its RMS."""
    grid = _joint_grid([one.joint for one in identification.samples], _VELOCITY, _RESIDUAL)
    for panel, samples in enumerate(identification.samples):
        rest = samples.friction - samples.fitted
        _add_dots(grid, panel, samples, rest)
        used = rest[samples.used]
        if used.size:
            limit = 2.0 * rms(used)
            ends = np.array([samples.velocity.min(), samples.velocity.max()])
            x, y = np.concatenate((ends, [np.nan], ends)), np.array([limit, limit, np.nan, -limit, -limit])
            grid.add(panel, line(x, y, "twice the RMS", INK, dash="dot"))
            grid.limit_y(panel, *padded(np.concatenate((used, [limit, -limit]))))
    return grid.figure


def friction_over_load(identification: Identification) -> go.Figure | None:
    """Friction over load in the four quadrants of velocity and load, with the law; None when no law has a load.

    Samples are moved along the law to the median speed of their quadrant (Hamon et al. 2010, figures 4 and 7).
    """
    fits = [one for one in joint_quadrants(identification) if one]
    if not fits:
        return None
    grid = _joint_grid([joint[0].joint for joint in fits], _LOAD, _FRICTION)
    for panel, joint in enumerate(fits):
        for fit in joint:
            color, symbol = _QUADRANT_STYLES[fit.quadrant]
            rows = even_rows(fit.load.size, _MAX_DOTS // 4)
            trace = dots(fit.load[rows], fit.friction[rows], QUADRANT_NAMES[fit.quadrant], color)
            trace.update(marker={"symbol": symbol})
            grid.add(panel, trace)
        for fit in joint:  # above all dots
            grid.add(panel, line(fit.curve_load, fit.curve, "law at the median speed of the quadrant", INK))
        grid.limit_y(panel, *padded(np.concatenate([fit.friction for fit in joint])))
    return grid.figure


def parameters_of_unit(identification: Identification, unit: str) -> go.Figure:
    """Estimated parameters of one unit with two standard deviations, and the values that were known before."""
    table = identification.parameters
    rows = [row for row, one in enumerate(table.units) if one == unit]
    names, values, spread = [escape(table.names[row]) for row in rows], table.values[rows], 2.0 * table.sigma[rows]
    shown = np.ones(len(rows), dtype=bool) if table.identifiable is None else table.identifiable[rows]
    figure = go.Figure()
    for label, color, where in (("estimated", ESTIMATE, shown), ("not identifiable", LEFT_OUT, ~shown)):
        figure.add_trace(
            _bars([names[row] for row in np.flatnonzero(where)], values[where], spread[where], label, color)
        )
    reference = np.full(len(rows), np.nan) if table.reference is None else table.reference[rows]
    marker = {"symbol": "line-ns-open", "size": 13, "color": TRUTH, "line": {"width": 2}}
    if np.isfinite(reference).any():
        figure.add_trace(go.Scatter(x=reference, y=names, mode="markers", name="known before", marker=marker))
    _style_bars(figure, names, unit)
    clear = values[shown] if shown.any() else values
    edges = np.concatenate((clear - spread[shown], clear + spread[shown])) if shown.any() else clear
    figure.update_xaxes(range=padded(np.concatenate((edges, reference, [0.0])), 100.0))
    return figure


def _bars(names: list[str], values: FloatArray, spread: FloatArray, label: str, color: str) -> go.Scatter:
    return go.Scatter(
        x=values,
        y=names,
        error_x={"type": "data", "array": spread, "thickness": 1.6, "width": 5},
        mode="markers",
        name=label,
        marker={"color": color, "size": 7},
        hovertemplate="%{y}: %{x:.5g} ± %{error_x.array:.2g}<extra></extra>",
    )


def _style_bars(figure: go.Figure, names: list[str], unit: str) -> None:
    figure.update_layout(layout_style(24 * len(names) + 130, 1.0 + 24.0 / (24 * len(names) + 60)))
    figure.update_xaxes(
        title_text=f"[{unit}]" if unit else "without unit", gridcolor="#e6eaef", zerolinecolor="#9aa5b1"
    )
    labels = [name if len(name) <= _LABEL_LENGTH else f"{name[: _LABEL_LENGTH - 1]}…" for name in names]
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=names[::-1],
        tickvals=names,
        ticktext=labels,
        automargin=True,
        gridcolor="#e6eaef",
    )


def _joint_grid(joints: Sequence[str], x_title: str, y_title: str) -> PanelGrid:
    columns = max(min(len(joints), 2 if len(joints) < 9 else 3), 1)
    height = _FEW_PANELS_HEIGHT if len(joints) <= 2 * columns else PANEL_HEIGHT
    return PanelGrid([escape(joint) for joint in joints], columns, x_title, y_title, False, height)


def _add_dots(grid: PanelGrid, panel: int, samples: FrictionSamples, y: FloatArray) -> None:
    for name, color, where in (("left out of the fit", LEFT_OUT, ~samples.used), ("used", ESTIMATE, samples.used)):
        rows = np.flatnonzero(where)
        rows = rows[even_rows(rows.size, _MAX_DOTS)]
        grid.add(panel, dots(samples.velocity[rows], y[rows], name, color))


def _add_fit(grid: PanelGrid, panel: int, samples: FrictionSamples, loaded: bool) -> None:
    """The law as a line with a band for each direction where it depends on velocity alone, as dots else."""
    order = np.argsort(samples.velocity)
    velocity, fitted, sigma = samples.velocity[order], samples.fitted[order], samples.sigma[order]
    if loaded or not _is_curve(fitted):
        rows = even_rows(velocity.size, _MAX_DOTS)
        grid.add(panel, dots(velocity[rows], fitted[rows], "law, at the load of each sample", MODELLED))
        return
    for half in (velocity < 0.0, velocity > 0.0):
        if half.any():
            rows = np.flatnonzero(half)[even_rows(int(half.sum()), _CURVE_POINTS)]
            grid.add(panel, band(velocity[rows], fitted[rows], 2.0 * sigma[rows], MODELLED_BAND))
            grid.add(panel, line(velocity[rows], fitted[rows], "law", MODELLED, width=2.0))


def _is_curve(fitted: FloatArray) -> bool:
    """Whether values in the order of velocity draw one line: friction of position or temperature goes up and down."""
    return fitted.size < 3 or float(np.abs(np.diff(fitted)).sum()) <= _LARGEST_CURVE_LENGTH * float(np.ptp(fitted))
