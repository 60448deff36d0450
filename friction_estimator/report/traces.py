"""Lines, points and ranges as all figures draw them."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from friction_estimator.report.theme import ESTIMATE_BAND
from friction_estimator.types import FloatArray


def line(
    x: FloatArray, y: FloatArray, name: str, color: str, dash: str = "solid", width: float | None = None
) -> go.Scatter:
    """A line through points; NaN breaks it."""
    width = width or (1.1 if dash == "solid" else 1.6)
    return go.Scatter(
        x=short(x),
        y=short(y),
        name=name,
        mode="lines",
        line={"color": color, "width": width, "dash": dash},
        hovertemplate="%{x:.3f}, %{y:.3f}<extra>" + name + "</extra>",
    )


def dots(x: FloatArray, y: FloatArray, name: str, color: str, size: float = 3.5) -> go.Scatter:
    """Points."""
    marker = {"color": color, "size": size, "opacity": 0.55}
    return go.Scatter(x=short(x), y=short(y), name=name, mode="markers", marker=marker)


def band(x: FloatArray, value: FloatArray, spread: FloatArray, color: str = ESTIMATE_BAND) -> go.Scatter:
    """The area ``spread`` (two standard deviations) about a line."""
    return go.Scatter(
        x=short(np.concatenate((x, x[::-1]))),
        y=short(np.concatenate((value + spread, (value - spread)[::-1]))),
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


def short(values: FloatArray) -> FloatArray:
    """Single precision: half the size of the page, and more digits than any screen shows."""
    return values.astype(np.float32)
