"""Fewer points for the screen, without losing peaks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from friction_estimator.types import FloatArray


def envelope_rows(values: FloatArray, count: int) -> NDArray[np.intp]:
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


def even_rows(total: int, count: int) -> NDArray[np.intp]:
    """At most ``count`` of ``total`` rows, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(total, count)).astype(np.intp))
