"""What all figures share: colours, a grid of panels, lines, points and bands, and fewer points for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from friction_estimator.types import FloatArray, IntArray

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
INK, FAINT, GRID = "#1f2933", "#6b7785", "#e6eaef"
ESTIMATE, MODELLED, TRUTH, SWING = "#1f5fbf", "#e07b1a", "#c92a2a", "rgba(110, 125, 145, 0.14)"
ESTIMATE_BAND = "rgba(31, 95, 191, 0.18)"
MODELLED_BAND = "rgba(224, 123, 26, 0.25)"
LEFT_OUT = "#b4bdc8"
PANEL_HEIGHT = 170
_AXIS = {
    "gridcolor": GRID,
    "zerolinecolor": "#c5ccd5",
    "linecolor": "#9aa5b1",
    "showline": True,
    "ticks": "outside",
    "ticklen": 3,
    "tickcolor": "#9aa5b1",
    "tickfont": {"size": 11, "color": FAINT},
}
_AXIS_TITLE = {"font": {"size": 12, "color": FAINT}, "standoff": 6}
_LOWER_SHARE, _GAP_SHARE = 0.36, 0.06


@dataclass(slots=True)
class PanelGrid:
    """A grid of panels that share one legend.

    Parameters
    ----------
    titles : one a panel, row by row; an empty title means an empty cell
    columns : panels a row
    x_title, y_title : axis labels with unit
    shared_x : zoom all panels in time together
    panel_height : of one row of panels [pixel]
    lower_title : axis label of a second, lower part of every panel, on the same x axis; empty for panels of one part
    """

    titles: Sequence[str]
    columns: int
    x_title: str
    y_title: str
    shared_x: bool = True
    panel_height: int = PANEL_HEIGHT
    lower_title: str = ""
    figure: go.Figure = field(init=False)
    _in_legend: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        rows = -(-len(self.titles) // self.columns)
        subplots = make_subplots(
            rows=rows,
            cols=self.columns,
            subplot_titles=list(self.titles),
            shared_xaxes="all" if self.shared_x else False,
            vertical_spacing=min(0.3 / max(rows - 1, 1), 50.0 / (self.panel_height * rows)),
            horizontal_spacing=0.07 if self.columns > 1 else 0.0,
        )
        layout = subplots.layout.to_plotly_json()
        self._style(layout, rows)
        if self.lower_title:
            for panel in filter(self._has_panel, range(len(self.titles))):
                self._divide(layout, panel)
        self.figure = go.Figure(layout=layout)

    def add(self, panel: int, trace: Any, lower: bool = False) -> None:
        """Add a trace to a panel, or to its lower part; each name stands in the legend once."""
        first = trace.name not in self._in_legend
        self._in_legend.add(trace.name)
        x, y = self._axes(panel)
        trace.update(legendgroup=trace.name, showlegend=first, xaxis=x, yaxis=self._lower(panel) if lower else y)
        self.figure.add_trace(trace)

    def limit_y(self, panel: int, low: float, high: float, lower: bool = False) -> None:
        """Range of one panel, or of its lower part."""
        axis = self._lower(panel) if lower else self._axes(panel)[1]
        self.figure.layout[_axis(axis)].range = [low, high]

    def _style(self, layout: dict[str, Any], rows: int) -> None:
        """Style a plain layout: plotly takes ten times as long to change the axes of a figure one after the other."""
        for panel in range(rows * self.columns):
            x, y = self._axes(panel)
            lowest = not any(map(self._has_panel, range(panel + self.columns, rows * self.columns, self.columns)))
            title = {"title": {**_AXIS_TITLE, "text": self.x_title}} if lowest and self._has_panel(panel) else {}
            layout[_axis(x)] |= {"showticklabels": True, **_AXIS, **title}
            layout[_axis(y)] |= {"zeroline": True, **_AXIS, "title": {**_AXIS_TITLE, "text": self.y_title}}
        for annotation in layout.get("annotations", ()):
            annotation["font"] = {"size": 13, "color": INK}
        layout |= layout_style(self.panel_height * rows + 110, 1.0 + 30.0 / (self.panel_height * rows))

    def _divide(self, layout: dict[str, Any], panel: int) -> None:
        """Make room for the lower part of a panel; the x axis moves below it."""
        x, y = self._axes(panel)
        bottom, top = layout[_axis(y)]["domain"]
        height = top - bottom
        layout[_axis(y)]["domain"] = [bottom + (_LOWER_SHARE + _GAP_SHARE) * height, top]
        lower = {"domain": [bottom, bottom + _LOWER_SHARE * height], "anchor": x, "zeroline": True, "nticks": 4}
        title = {**_AXIS_TITLE, "text": self.lower_title}
        layout[_axis(self._lower(panel))] = {**_AXIS, **lower, "title": title}
        layout[_axis(x)]["anchor"] = self._lower(panel)

    @staticmethod
    def _axes(panel: int) -> tuple[str, str]:
        """Names of the axes as traces use them, e.g. ``x3`` and ``y3``."""
        number = str(panel + 1) if panel else ""
        return f"x{number}", f"y{number}"

    def _lower(self, panel: int) -> str:
        return f"y{len(self.titles) + self.columns + panel + 1}"

    def _has_panel(self, panel: int) -> bool:
        return panel < len(self.titles) and bool(self.titles[panel])


def layout_style(height: int, legend_y: float) -> dict[str, Any]:
    """Fonts, margins and legend of any figure, ``height`` pixels high."""
    return {
        "template": "plotly_white",
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 70, "b": 50},
        "font": {"family": FONT, "color": INK, "size": 12},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0.0, "y": legend_y, "yanchor": "bottom", "itemsizing": "constant"},
        "hovermode": "closest",
        "hoverlabel": {"font": {"family": FONT}},
    }


def _axis(name: str) -> str:
    """Name of an axis in a layout: ``xaxis3`` for ``x3``."""
    return f"{name[0]}axis{name[1:]}"


def line(
    x: FloatArray, y: FloatArray, name: str, color: str, dash: str = "solid", width: float | None = None
) -> go.Scatter:
    """A line through points; NaN breaks it."""
    width = width or (1.1 if dash == "solid" else 1.6)
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        line={"color": color, "width": width, "dash": dash},
        hovertemplate="%{x:.3f}, %{y:.3f}<extra>" + name + "</extra>",
    )


def dots(x: FloatArray, y: FloatArray, name: str, color: str, size: float = 3.5) -> go.Scatter:
    """Points."""
    marker = {"color": color, "size": size, "opacity": 0.55}
    return go.Scatter(x=x, y=y, name=name, mode="markers", marker=marker)


def band(x: FloatArray, value: FloatArray, spread: FloatArray, color: str = ESTIMATE_BAND) -> go.Scatter:
    """The area ``spread`` (two standard deviations) about a line."""
    return go.Scatter(
        x=np.concatenate((x, x[::-1])),
        y=np.concatenate((value + spread, (value - spread)[::-1])),
        name="2 standard deviations",
        mode="lines",
        fill="toself",
        fillcolor=color,
        line={"width": 0},
        hoverinfo="skip",
    )


def padded(values: FloatArray, percentile: float) -> tuple[float, float]:
    """Range of a panel: what this share of the values needs [percent], and a margin."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return -1.0, 1.0
    low, high = np.percentile(finite, (100.0 - percentile, percentile)).tolist()
    margin = 0.12 * (high - low) or 0.1
    return low - margin, high + margin


def envelope_rows(values: FloatArray, count: int) -> IntArray:
    """Rows that keep the smallest and largest value of every bucket of neighbours, in order.

    Parameters
    ----------
    values : (m,) may hold NaN
    count : how many rows are wanted at most, at least 4
    """
    if values.size <= count:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, count // 2 + 1).astype(np.intp)
    finite = np.where(np.isfinite(values), values, 0.0)
    rows = {0, values.size - 1}
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        bucket = finite[start:end]
        rows.add(start + int(bucket.argmin()))
        rows.add(start + int(bucket.argmax()))
    return np.array(sorted(rows), dtype=np.intp)


def even_rows(total: int, count: int) -> IntArray:
    """At most ``count`` of ``total`` rows, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(total, count)).astype(np.intp))
