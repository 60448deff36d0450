"""One look for all figures: colours, fonts, axes and a grid of panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
INK, FAINT, GRID = "#1f2933", "#6b7785", "#e6eaef"
ESTIMATE, MODELLED, TRUTH, SWING = "#1f5fbf", "#e07b1a", "#c92a2a", "rgba(110, 125, 145, 0.14)"
ESTIMATE_BAND = "rgba(31, 95, 191, 0.18)"
MODELLED_BAND = "rgba(224, 123, 26, 0.25)"
LEFT_OUT = "#b4bdc8"
PANEL_HEIGHT = 170


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
    """

    titles: Sequence[str]
    columns: int
    x_title: str
    y_title: str
    shared_x: bool = True
    panel_height: int = PANEL_HEIGHT
    figure: go.Figure = field(init=False)
    _in_legend: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        rows = -(-len(self.titles) // self.columns)
        self.figure = make_subplots(
            rows=rows,
            cols=self.columns,
            subplot_titles=list(self.titles),
            shared_xaxes="all" if self.shared_x else False,
            vertical_spacing=min(0.3 / max(rows - 1, 1), 50.0 / (self.panel_height * rows)),
            horizontal_spacing=0.07 if self.columns > 1 else 0.0,
        )
        self._style(rows)

    def add(self, panel: int, trace: Any) -> None:
        """Add a trace; each name stands in the legend once."""
        first = trace.name not in self._in_legend
        self._in_legend.add(trace.name)
        trace.update(legendgroup=trace.name, showlegend=first)
        self.figure.add_trace(trace, row=panel // self.columns + 1, col=panel % self.columns + 1)

    def limit_y(self, panel: int, low: float, high: float) -> None:
        """Range of one panel."""
        self.figure.update_yaxes(range=[low, high], row=panel // self.columns + 1, col=panel % self.columns + 1)

    def _style(self, rows: int) -> None:
        figure = self.figure
        axis = {
            "gridcolor": GRID,
            "zerolinecolor": "#c5ccd5",
            "linecolor": "#9aa5b1",
            "ticks": "outside",
            "ticklen": 3,
            "tickcolor": "#9aa5b1",
            "tickfont": {"size": 11, "color": FAINT},
            "title_font": {"size": 12, "color": FAINT},
            "title_standoff": 6,
        }
        figure.update_xaxes(showline=True, showticklabels=True, **axis)
        figure.update_yaxes(showline=True, zeroline=True, **axis)
        for column in range(1, self.columns + 1):
            last = max(row for row in range(rows) if self._has_panel(row, column - 1)) + 1
            figure.update_xaxes(title_text=self.x_title, row=last, col=column)
        figure.update_yaxes(title_text=self.y_title)
        figure.update_annotations(font={"size": 13, "color": INK})
        self.style_layout(figure, self.panel_height * rows + 110)
        figure.update_layout(legend={"y": 1.0 + 30.0 / (self.panel_height * rows)})

    @staticmethod
    def style_layout(figure: go.Figure, height: int) -> None:
        """Fonts, margins and legend of any figure, ``height`` pixels high."""
        figure.update_layout(
            template="plotly_white",
            height=height,
            margin={"l": 60, "r": 20, "t": 70, "b": 50},
            font={"family": FONT, "color": INK, "size": 12},
            showlegend=True,
            legend={"orientation": "h", "x": 0.0, "yanchor": "bottom"},
            legend_itemsizing="constant",
            hovermode="closest",
            hoverlabel={"font": {"family": FONT}},
        )

    def _has_panel(self, row: int, column: int) -> bool:
        index = row * self.columns + column
        return index < len(self.titles) and bool(self.titles[index])
