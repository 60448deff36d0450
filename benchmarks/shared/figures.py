"""Figures as SVG files: panels with lines and dots over common axes, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from friction_estimator.io.documents import write_atomically
from friction_estimator.types import FloatArray

BLACK, BLUE, RED, GREY, LIGHT_BLUE, LIGHT_GREY = "#000000", "#4c72b0", "#c44e52", "#7f7f7f", "#9ecae1", "#d9d9d9"
COLOURS = (BLUE, RED, "#55a868", "#8172b2", "#ccb974", "#64b5cd")
_PIXELS_AN_INCH = 96.0
_STYLE = {"font.size": 8.0, "svg.fonttype": "none", "svg.hashsalt": "figure"}
"""Texts stay texts, and the same figure is the same file."""


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
    series: list[tuple[FloatArray, FloatArray, dict[str, Any]]] = field(default_factory=list)
    bands: list[tuple[float, float]] = field(default_factory=list)

    def line(
        self, x: ArrayLike, y: ArrayLike, colour: str, label: str = "", width: float = 1.2, dashed: bool = False
    ) -> None:
        """Add a line; NaN interrupts it."""
        self._add(x, y, color=colour, label=label, linewidth=width, linestyle="--" if dashed else "-")

    def dots(self, x: ArrayLike, y: ArrayLike, colour: str, label: str = "", width: float = 2.0) -> None:
        """Add a cloud of dots; they are a picture in the file, because there may be many."""
        look = {"linestyle": "", "marker": ".", "markersize": width, "rasterized": True}
        self._add(x, y, color=colour, label=label, **look)

    def band(self, start: float, end: float) -> None:
        """Shade an interval of the x axis."""
        self.bands.append((start, end))

    def _add(self, x: ArrayLike, y: ArrayLike, **look: Any) -> None:
        self.series.append((np.asarray(x, dtype=float), np.asarray(y, dtype=float), look))


def draw(path: Path, rows: Sequence[Sequence[Panel]], width: float = 900.0, height: float = 480.0) -> None:
    """Write rows of panels as one SVG file of this size [px]."""
    figure = Figure(figsize=(width / _PIXELS_AN_INCH, height / _PIXELS_AN_INCH), layout="constrained")
    text = StringIO()
    with rc_context(_STYLE):
        for row, panels in enumerate(rows):
            for column, panel in enumerate(panels):
                axes = figure.add_subplot(len(rows), len(panels), row * len(panels) + column + 1)
                for start, end in panel.bands:
                    axes.axvspan(start, end, color="#e8e8e8", linewidth=0)
                for x, y, look in panel.series:
                    axes.plot(x, y, **look)
                axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
                axes.set(xlim=_limits(panel, 0), ylim=_limits(panel, 1))
                if panel.legend:
                    axes.legend(loc="upper left", frameon=False)
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_atomically(path, text.getvalue())


def share_limits(panels: Sequence[Panel], axis: str) -> None:
    """Give several panels the same ends of the axis ``x`` or ``y``."""
    ends = np.array([_limits(panel, "xy".index(axis)) for panel in panels])
    for panel in panels:
        setattr(panel, f"{axis}_limits", (float(ends[:, 0].min()), float(ends[:, 1].max())))


def _limits(panel: Panel, axis: int) -> tuple[float, float]:
    """Ends of the axis x (0) or y (1): as given, or those of the data with a margin."""
    if (given := (panel.x_limits, panel.y_limits)[axis]) is not None:
        return given
    values = np.concatenate([series[axis] for series in panel.series] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin
