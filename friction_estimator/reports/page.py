"""One self-contained HTML page: facts, tiles, sections and figures; nothing is loaded from a network."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots
from plotly.utils import PlotlyJSONEncoder

from friction_estimator.errors import FrictionEstimatorError, file_errors
from friction_estimator.io.documents import write_atomically
from friction_estimator.types import AnyPath, FloatArray, IntArray

_FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
INK, FAINT, _GRID = "#1f2933", "#6b7785", "#e6eaef"
ESTIMATE, MODELLED, TRUTH, SWING = "#1f5fbf", "#e07b1a", "#c92a2a", "rgba(110, 125, 145, 0.14)"
_ESTIMATE_BAND = "rgba(31, 95, 191, 0.18)"
MODELLED_BAND = "rgba(224, 123, 26, 0.25)"
LEFT_OUT = "#b4bdc8"
PANEL_HEIGHT = 170  # [pixel]
_AXIS = {
    "gridcolor": _GRID,
    "zerolinecolor": "#c5ccd5",
    "linecolor": "#9aa5b1",
    "showline": True,
    "ticks": "outside",
    "ticklen": 3,
    "tickcolor": "#9aa5b1",
    "tickfont": {"size": 11, "color": FAINT},
}
_AXIS_TITLE = {"font": {"size": 12, "color": FAINT}, "standoff": 6}
_LOWER_SHARE, _GAP_SHARE = 0.36, 0.06  # of the height of a panel with two parts


@dataclass(slots=True)
class PanelGrid:
    """A grid of panels that share one legend."""

    titles: Sequence[str]  # one a panel, row by row; an empty title means an empty cell
    columns: int  # panels a row
    x_title: str  # axis label with unit
    y_title: str  # axis label with unit
    shared_x: bool = True  # zoom all panels in time together
    panel_height: int = PANEL_HEIGHT  # of one row of panels [pixel]
    # axis label of a second, lower part of every panel, on the same x axis; empty for panels of one part
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
        """Set the range of the y axis of one panel, or of its lower part."""
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
        "font": {"family": _FONT, "color": INK, "size": 12},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0.0, "y": legend_y, "yanchor": "bottom", "itemsizing": "constant"},
        "hovermode": "closest",
        "hoverlabel": {"font": {"family": _FONT}},
    }


def _axis(name: str) -> str:
    """Name of an axis in a layout: ``xaxis3`` for ``x3``."""
    return f"{name[0]}axis{name[1:]}"


def line(
    x: FloatArray, y: FloatArray, name: str, color: str, dash: str = "solid", width: float | None = None
) -> go.Scatter:
    """Plotly trace of a line through points.

    Parameters
    ----------
    x, y : (N,) points, in the units of the axes; NaN breaks the line
    name : text of the legend
    color, dash : of CSS, e.g. ``#123456``; of plotly, e.g. ``solid`` or ``dash``
    width : of the line [pixels]; None: 1.1 solid, else 1.6
    """
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
    """Plotly trace of points.

    Parameters
    ----------
    x, y : (N,) points, in the units of the axes
    name, color : text of the legend; colour of CSS
    size : diameter of the points [pixels]
    """
    marker = {"color": color, "size": size, "opacity": 0.55}
    return go.Scatter(x=x, y=y, name=name, mode="markers", marker=marker)


def band(x: FloatArray, value: FloatArray, spread: FloatArray, color: str = _ESTIMATE_BAND) -> go.Scatter:
    """The area ``spread`` (two standard deviations) about a line; all (N,), in the units of the axes."""
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


def padded(values: FloatArray, percentile: float = 99.5) -> tuple[float, float]:
    """Lowest and highest value of a panel, in the unit of ``values`` (any shape; NaN is left out).

    It holds the values between this percentile [percent] and its opposite, so that a spike does not flatten the rest.
    """
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


class ReportError(FrictionEstimatorError):
    """The page cannot be written."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page; ``text`` and ``body`` are HTML."""

    anchor: str
    title: str
    text: str
    body: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page, in plain text but for its sections."""

    kind: str  # what sort of page it is, above the title
    title: str  # of the page
    facts: Sequence[tuple[str, str]]  # name and value of what is known of its data
    tiles: Sequence[tuple[str, str, str]]  # name, value and unit of the numbers to see first
    sections: Sequence[Section]  # the parts, in order

    def render(self) -> str:
        """Text of the page."""
        template = Template((files(__package__) / "template.html").read_text(encoding="utf-8"))
        return template.substitute(
            kind=escape(self.kind),
            title=escape(self.title),
            style=(files(__package__) / "style.css").read_text(encoding="utf-8"),
            plotly=_compressed(get_plotlyjs()),
            facts="".join(
                f"<div><dt>{escape(name)}</dt><dd>{escape(value or 'not recorded')}</dd></div>"
                for name, value in self.facts
            ),
            tiles="".join(
                f'<div class="tile"><span>{escape(name)}</span><strong>{escape(value)}</strong>'
                f"<small>{escape(unit)}</small></div>"
                for name, value, unit in self.tiles
            ),
            navigation="".join(f'<a href="#{part.anchor}">{escape(part.title)}</a>' for part in self.sections),
            sections="".join(
                f'<section id="{part.anchor}"><h2>{escape(part.title)}</h2><p>{part.text}</p>{part.body}</section>'
                for part in self.sections
            ),
        )

    def write(self, path: AnyPath) -> None:
        """Write the page whole or not at all.

        Raises
        ------
        ReportError
            When the file cannot be written.
        """
        target = Path(path).expanduser()
        with file_errors(f"write the report {target}", ReportError):
            write_atomically(target, self.render())


def figure_html(figure: go.Figure, name: str, narrow: bool = False) -> str:
    """HTML of a plotly figure with the id ``name``; a wide one scrolls on a narrow screen."""
    config: dict[str, Any] = {
        "responsive": True,
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d"],
    }
    if narrow:  # there the buttons would lie on the legend
        config["displayModeBar"] = False
    content = {  # arrays as lists of short numbers: plotly's own text has them in base64, which cannot be compressed
        "data": [_shortened(trace.to_plotly_json()) for trace in figure.data],
        "layout": figure.layout.to_plotly_json(),
        "config": config,
    }
    data = _compressed(json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")))
    height = figure.layout.height
    return (
        f'<div class="figure{" narrow" if narrow else ""}"><div id="{name}" style="height: {height}px"></div>'
        f'<script type="text/plain" data-figure="{name}">{data}</script></div>'
    )


def _compressed(text: str) -> str:
    """A text as gzip in base64, which the script of the template unpacks: a page has less than half the size."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _shortened(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace whose numbers have 1e-4 of the largest one as their last digit: more than any screen shows."""
    for axis in ("x", "y"):
        values = trace.get(axis)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
            trace[axis] = np.round(values.astype(float), 4 - math.floor(math.log10(largest)) if largest > 0.0 else 0)
    return trace
