"""Numbers and tables as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

NOTHING = "–"


def number(value: float, digits: int = 2) -> str:
    """With so many digits after the point, no minus in front of a zero; a dash for NaN."""
    if not math.isfinite(value):
        return NOTHING
    return f"{round(value, digits) + 0.0:.{digits}f}"


def row_of(values: Iterable[float], digits: int = 2) -> str:
    """Several numbers in one cell."""
    return " ".join(number(float(value), digits) for value in values)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table, an empty one behind."""
    lines = [_line(heading), "|" + "---|" * len(heading)]
    return [*lines, *(_line(row) for row in rows), ""]


def judged(value: float, limit: float, kept: bool) -> str:
    """A value beside its limit; bold when it misses."""
    text = f"{number(value, 3)} {'≤' if kept else '>'} {number(limit, 3).rstrip('0')}"
    return text if kept else f"**{text}**"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
