"""One self-contained HTML page: facts, tiles and sections; nothing is loaded from a network."""

from __future__ import annotations

import base64
import gzip
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.utils import PlotlyJSONEncoder

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.documents import write_atomically


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
    """A page, in plain text but for its sections.

    Attributes
    ----------
    kind : what sort of page it is, above the title
    title : of the page
    facts : name and value of what is known of its data
    tiles : name, value and unit of the numbers to see first
    sections : the parts, in order
    """

    kind: str
    title: str
    facts: Sequence[tuple[str, str]]
    tiles: Sequence[tuple[str, str, str]]
    sections: Sequence[Section]

    def render(self) -> str:
        """Text of the page."""
        template = Template((files(__package__) / "template.html").read_text(encoding="utf-8"))
        return template.substitute(
            kind=escape(self.kind),
            title=escape(self.title),
            style=(files(__package__) / "style.css").read_text(encoding="utf-8"),
            plotly=packed(get_plotlyjs()),
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


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page whole or not at all.

    Raises
    ------
    ReportError
        When the file cannot be written.
    """
    target = Path(path).expanduser()
    try:
        write_atomically(target, text)
    except OSError as error:
        raise ReportError(f"cannot write the report {target}: {error.strerror or error}") from None


def figure_html(figure: go.Figure, name: str, narrow: bool = False) -> str:
    """A figure with the identifier ``name``; one that is not ``narrow`` scrolls on a narrow screen."""
    config: dict[str, Any] = {
        "responsive": True,
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d"],
    }
    if narrow:  # there the buttons would lie on the legend
        config["displayModeBar"] = False
    content = {  # arrays as lists of short numbers: plotly's own text has them in base64, which cannot be packed
        "data": [_shortened(trace.to_plotly_json()) for trace in figure.data],
        "layout": figure.layout.to_plotly_json(),
        "config": config,
    }
    data = packed(json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")))
    height = figure.layout.height
    return (
        f'<div class="figure{" narrow" if narrow else ""}"><div id="{name}" style="height: {height}px"></div>'
        f'<script type="text/plain" data-figure="{name}">{data}</script></div>'
    )


def packed(text: str) -> str:
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
