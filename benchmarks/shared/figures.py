"""Figures as SVG files: panels with lines and dots over common axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from friction_estimator.io.documents import write_atomically
from friction_estimator.types import FloatArray

BLACK, BLUE, RED, GREY, LIGHT_BLUE, LIGHT_GREY = "#000000", "#4c72b0", "#c44e52", "#7f7f7f", "#9ecae1", "#d9d9d9"
COLOURS = (BLUE, RED, "#55a868", "#8172b2", "#ccb974", "#64b5cd")
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 10.0, 24.0, 40.0
"""Margins of a panel for labels [px]."""
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Series:
    x: FloatArray
    y: FloatArray
    colour: str
    label: str
    width: float
    dash: str
    dots: bool


@dataclass(slots=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title, x_label, y_label : texts
    x_limits, y_limits : ends of the axes, None for those of the data
    legend : whether labels of the series are shown
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    legend: bool = False
    series: list[_Series] = field(default_factory=list)
    bands: list[tuple[float, float]] = field(default_factory=list)

    def line(
        self, x: ArrayLike, y: ArrayLike, colour: str, label: str = "", width: float = 1.2, dashed: bool = False
    ) -> None:
        """Add a line; NaN interrupts it."""
        self.series.append(_Series(_array(x), _array(y), colour, label, width, "5 3" if dashed else "", False))

    def dots(self, x: ArrayLike, y: ArrayLike, colour: str, label: str = "", width: float = 2.0) -> None:
        """Add a cloud of dots."""
        self.series.append(_Series(_array(x), _array(y), colour, label, width, "", True))

    def band(self, start: float, end: float) -> None:
        """Shade an interval of the x axis."""
        self.bands.append((start, end))


def draw(path: Path, rows: Sequence[Sequence[Panel]], width: float = 900.0, height: float = 480.0) -> None:
    """Write rows of panels as one SVG file of this size [px]."""
    cell_height = height / len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
    ]
    for row, panels in enumerate(rows):
        cell_width = width / len(panels)
        for column, panel in enumerate(panels):
            parts.append(f'<g transform="translate({column * cell_width:g} {row * cell_height:g})">')
            parts += _panel(panel, cell_width - _LEFT - _RIGHT, cell_height - _TOP - _BOTTOM, f"clip{row}_{column}")
            parts.append("</g>")
    write_atomically(path, "\n".join([*parts, "</svg>\n"]))


def share_limits(panels: Sequence[Panel], axis: str) -> None:
    """Give several panels the same ends of the axis ``x`` or ``y``."""
    ends = np.array([_limits(panel, axis) for panel in panels])
    for panel in panels:
        setattr(panel, f"{axis}_limits", (float(ends[:, 0].min()), float(ends[:, 1].max())))


def _panel(panel: Panel, width: float, height: float, name: str) -> list[str]:
    (left, right), (low, high) = _limits(panel, "x"), _limits(panel, "y")

    def place(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _LEFT + (x - left) / (right - left) * width, _TOP + (high - y) / (high - low) * height

    parts = [f'<clipPath id="{name}"><rect x="{_LEFT}" y="{_TOP}" width="{width:g}" height="{height:g}"/></clipPath>']
    parts.append(f'<g clip-path="url(#{name})">')
    for start, end in panel.bands:
        x, _ = place(np.array([start, end]), np.zeros(2))
        parts.append(f'<rect x="{x[0]:.1f}" y="{_TOP}" width="{x[1] - x[0]:.1f}" height="{height:g}" fill="#e8e8e8"/>')
    parts += [_path(series, *place(series.x, series.y)) for series in panel.series]
    parts.append("</g>")
    parts.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{width:g}" height="{height:g}" fill="none" stroke="#444"/>')
    middle, bottom = _LEFT + 0.5 * width, _TOP + height
    for value in _ticks(left, right):
        x = float(place(np.array([value]), np.zeros(1))[0][0])
        parts.append(f'<path d="M{x:.1f} {bottom:g}v4" stroke="#444"/>' + _text(x, bottom + 15, f"{value:g}"))
    for value in _ticks(low, high):
        y = float(place(np.zeros(1), np.array([value]))[1][0])
        tick = f'<path d="M{_LEFT} {y:.1f}h-4" stroke="#444"/>'
        parts.append(tick + _text(_LEFT - 6, y + 4, f"{value:g}", "end"))
    parts += [_text(middle, _TOP - 8, panel.title), _text(middle, bottom + 31, panel.x_label)]
    parts.append(f'<g transform="translate(14 {_TOP + 0.5 * height:g}) rotate(-90)">{_text(0, 0, panel.y_label)}</g>')
    if panel.legend:
        for k, series in enumerate(series for series in panel.series if series.label):
            y = _TOP + 14 + 14 * k
            sample = f'<path d="M{_LEFT + 8} {y - 4:g}h16" stroke="{series.colour}" stroke-width="2"'
            parts.append(f'{sample} stroke-dasharray="{series.dash}"/>' + _text(_LEFT + 29, y, series.label, "start"))
    return parts


def _path(series: _Series, x: FloatArray, y: FloatArray) -> str:
    style = f'fill="none" stroke="{series.colour}" stroke-width="{series.width:g}"'
    if series.dots:
        known = np.isfinite(x) & np.isfinite(y)
        points = np.unique(np.round(np.column_stack((x[known], y[known]))), axis=0)  # dots of one pixel are one
        steps = "".join(f"M{a:g} {b:g}h0" for a, b in points)
        return f'<path d="{steps}" {style} stroke-linecap="round"/>'
    steps, pen = [], "M"
    for a, b in _thinned(x, y):
        steps.append(f"{pen}{a:g} {b:g}" if math.isfinite(a + b) else "")
        pen = "L" if math.isfinite(a + b) else "M"
    return f'<path d="{"".join(steps)}" {style} stroke-dasharray="{series.dash}"/>'


def _thinned(x: FloatArray, y: FloatArray) -> list[tuple[float, float]]:
    """Points of a line with its lowest and highest point in each column of half a pixel, and its gaps."""
    column = np.round(2.0 * np.where(np.isfinite(x + y), x, -1e9))
    starts = np.flatnonzero(np.diff(column, prepend=np.nan) != 0.0)
    points: list[tuple[float, float]] = []
    for start, end in zip(starts, np.append(starts[1:], len(x)), strict=True):
        if column[start] < -1e9:
            points.append((math.nan, math.nan))
            continue
        part = y[start:end]
        for k in sorted({int(part.argmin()), int(part.argmax())}):
            points.append((0.5 * float(column[start]), round(float(part[k]), 1)))
    heights = [math.nan, *(y for _, y in points), math.nan]
    level = [heights[k] == heights[k + 1] == heights[k + 2] for k in range(len(points))]
    return [point for point, inside in zip(points, level, strict=True) if not inside]


def _limits(panel: Panel, axis: str) -> tuple[float, float]:
    """Ends of an axis: as given, or those of the data with a margin."""
    given: tuple[float, float] | None = getattr(panel, f"{axis}_limits")
    if given is not None:
        return given
    values = np.concatenate([getattr(series, axis) for series in panel.series] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda factor: abs(factor - rough / power))
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>' if text else ""


def _array(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=float)
