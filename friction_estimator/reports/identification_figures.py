"""Figures of an identification: friction and residuals over velocity, dry friction over load, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from friction_estimator.identification.result import FrictionSamples, Identification
from friction_estimator.reports.drawing import (
    ESTIMATE,
    INK,
    LEFT_OUT,
    MODELLED,
    MODELLED_BAND,
    PANEL_HEIGHT,
    TRUTH,
    PanelGrid,
    band,
    dots,
    even_rows,
    line,
    padded,
)
from friction_estimator.reports.identification_tables import QUADRANT_NAMES, joint_quadrants, load_laws
from friction_estimator.types import FloatArray

_QUADRANT_STYLES = {
    (1, 1): (ESTIMATE, "circle"),
    (-1, -1): (ESTIMATE, "circle-open"),
    (1, -1): (MODELLED, "circle"),
    (-1, 1): (MODELLED, "circle-open"),
}
_DOTS = 1500
_CURVE = 500
_LABEL = 28
_FEW_HEIGHT = 260
_VELOCITY, _LOAD, _FRICTION, _RESIDUAL = "velocity [rad/s]", "load [N m]", "friction [N m]", "residual [N m]"
_MOST_TURNS = 6.0


def friction_over_velocity(identification: Identification) -> go.Figure:
    """Friction that the data shows, used and left out, with the identified law and its 2-sigma band."""
    grid = _joint_grid([one.joint for one in identification.samples], _VELOCITY, _FRICTION)
    loaded = load_laws(identification.friction)
    for panel, samples in enumerate(identification.samples):
        _add_dots(grid, panel, samples, samples.friction)
        _add_fit(grid, panel, samples, samples.joint in loaded)
        grid.limit_y(panel, *padded(np.concatenate((samples.friction[samples.used], samples.fitted)), 99.8))
    return grid.figure


def residuals(identification: Identification) -> go.Figure:
    """What the law leaves over, over velocity, with twice its RMS."""
    grid = _joint_grid([one.joint for one in identification.samples], _VELOCITY, _RESIDUAL)
    for panel, samples in enumerate(identification.samples):
        rest = samples.friction - samples.fitted
        _add_dots(grid, panel, samples, rest)
        used = rest[samples.used]
        if used.size:
            limit = 2.0 * float(np.sqrt(np.mean(used**2)))
            ends = np.array([samples.velocity.min(), samples.velocity.max()])
            x, y = np.concatenate((ends, [np.nan], ends)), np.array([limit, limit, np.nan, -limit, -limit])
            grid.add(panel, line(x, y, "twice the RMS", INK, dash="dot"))
            grid.limit_y(panel, *padded(np.concatenate((used, [limit, -limit])), 99.8))
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
            rows = even_rows(fit.load.size, _DOTS // 4)
            trace = dots(fit.load[rows], fit.friction[rows], QUADRANT_NAMES[fit.quadrant], color)
            trace.update(marker={"symbol": symbol})
            grid.add(panel, trace)
        for fit in joint:  # above all dots
            grid.add(panel, line(fit.curve_load, fit.curve, "law at the median speed of the quadrant", INK))
        grid.limit_y(panel, *padded(np.concatenate([fit.friction for fit in joint]), 99.8))
    return grid.figure


def parameters_of_unit(identification: Identification, unit: str) -> go.Figure:
    """Estimated parameters of one unit with two standard deviations, and what was known of them before."""
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
    PanelGrid.style_layout(figure, 24 * len(names) + 130)
    figure.update_xaxes(
        title_text=f"[{unit}]" if unit else "without unit", gridcolor="#e6eaef", zerolinecolor="#9aa5b1"
    )
    labels = [name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…" for name in names]
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=names[::-1],
        tickvals=names,
        ticktext=labels,
        automargin=True,
        gridcolor="#e6eaef",
    )
    figure.update_layout(legend={"y": 1.0 + 24.0 / (24 * len(names) + 60)})


def _joint_grid(joints: Sequence[str], x_title: str, y_title: str) -> PanelGrid:
    columns = max(min(len(joints), 2 if len(joints) < 9 else 3), 1)
    height = _FEW_HEIGHT if len(joints) <= 2 * columns else PANEL_HEIGHT
    return PanelGrid([escape(joint) for joint in joints], columns, x_title, y_title, False, height)


def _add_dots(grid: PanelGrid, panel: int, samples: FrictionSamples, y: FloatArray) -> None:
    for name, color, where in (("left out of the fit", LEFT_OUT, ~samples.used), ("used", ESTIMATE, samples.used)):
        rows = np.flatnonzero(where)
        rows = rows[even_rows(rows.size, _DOTS)]
        grid.add(panel, dots(samples.velocity[rows], y[rows], name, color))


def _add_fit(grid: PanelGrid, panel: int, samples: FrictionSamples, loaded: bool) -> None:
    """The law as a line with a band for each direction where it depends on velocity alone, as dots else."""
    order = np.argsort(samples.velocity)
    velocity, fitted, sigma = samples.velocity[order], samples.fitted[order], samples.sigma[order]
    if loaded or not _is_curve(fitted):
        rows = even_rows(velocity.size, _DOTS)
        grid.add(panel, dots(velocity[rows], fitted[rows], "law, at the load of each sample", MODELLED))
        return
    for half in (velocity < 0.0, velocity > 0.0):
        if half.any():
            rows = np.flatnonzero(half)[even_rows(int(half.sum()), _CURVE)]
            grid.add(panel, band(velocity[rows], fitted[rows], 2.0 * sigma[rows], MODELLED_BAND))
            grid.add(panel, line(velocity[rows], fitted[rows], "law", MODELLED, width=2.0))


def _is_curve(fitted: FloatArray) -> bool:
    """Whether values in the order of velocity draw one line: friction of position or temperature goes up and down."""
    return fitted.size < 3 or float(np.abs(np.diff(fitted)).sum()) <= _MOST_TURNS * float(np.ptp(fitted))
