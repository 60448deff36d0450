"""Tables for the terminal and for HTML pages from one description, and one format of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from textwrap import wrap
from typing import Any, Literal

UNKNOWN = "–"
"""Text of a number that is not known. A column that holds nothing else is not shown."""

_MINUS_SIGN = "\N{MINUS SIGN}"
_MINUS = re.compile(r"(?<![\w)])-(?=[\d.\N{INFINITY}])")
_SUBSCRIPT = re.compile(r"\b([A-Z])_(\w)\b")
_TERMINAL_STYLES = {"good": "green", "fair": "yellow", "bad": "red"}
_MAX_DECIMALS = 6
_HEADING_WIDTH = 12
"""Width of a heading on the terminal [characters]."""
_NAME_WIDTH = 24
"""Least width of the first column on the terminal, unless its texts are shorter [characters]."""


Style = Literal["", "good", "fair", "bad"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Plain text with a style."""

    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column.

    Attributes
    ----------
    heading : plain text; ``F_c`` is shown with a subscript on a page
    unit : of all its numbers, empty for texts and ratios
    group : common title of neighbouring columns, empty for none
    align : side on which the cells are flush
    """

    heading: str
    unit: str = ""
    group: str = ""
    align: Literal["left", "right"] = "right"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Attributes
    ----------
    title : what the table shows
    columns : (n) the first one names the rows
    rows : n cells each
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def without_empty_columns(self) -> Table:
        """The table without the columns that hold no text and no known number; the first column always stays."""
        kept = [0] + [
            place
            for place in range(1, len(self.columns))
            if any(row[place].text not in ("", UNKNOWN) for row in self.rows)
        ]
        return Table(
            self.title,
            tuple(self.columns[place] for place in kept),
            tuple(tuple(row[place] for place in kept) for row in self.rows),
        )


def make_table(title: str, columns: Iterable[str | Column], rows: Iterable[Iterable[str | Cell]]) -> Table:
    """Table of plain texts and styled cells; a column that is given by its name alone holds text, at the left."""
    headings = tuple(Column(one, align="left") if isinstance(one, str) else one for one in columns)
    cells = tuple(tuple(Cell(one) if isinstance(one, str) else one for one in row) for row in rows)
    return Table(title, headings, cells)


def html_table(table: Table) -> str:
    """HTML of a table, without empty columns."""
    shown = table.without_empty_columns()
    groups = "".join(
        f'<th colspan="{sum(1 for _ in columns)}" class="group">{escape(group)}</th>'
        for group, columns in groupby(shown.columns[1:], key=lambda column: column.group)
    )
    group_row = f"<tr><th></th>{groups}</tr>" if any(column.group for column in shown.columns) else ""
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0].text)}</th>'
        + "".join(_html_cell(column, cell) for column, cell in zip(shown.columns[1:], row[1:], strict=True))
        + "</tr>"
        for row in shown.rows
    )
    headings = "".join(f'<th class="{column.align}">{_html_heading(column)}</th>' for column in shown.columns)
    return (
        f'<div class="table"><table><caption>{escape(shown.title)}</caption>'
        f"<thead>{group_row}<tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def terminal_table(table: Table) -> Any:
    """``rich.table.Table`` of a table, without empty columns; the library `rich` is imported here only."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape as escape_markup
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = table.without_empty_columns()
    printed = RichTable(
        title=escape_markup(shown.title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for place, column in enumerate(shown.columns):
        is_text = place == 0 or column.align == "left"
        lines = [part for text in (column.group, column.heading) for part in _heading_lines(text)]
        longest = max((len(row[place].text) for row in shown.rows), default=0)
        printed.add_column(
            Text("\n".join([*lines, *([f"[{column.unit}]"] if column.unit else [])])),
            justify="left" if is_text else "right",
            overflow="fold",
            min_width=longest if not is_text else min(longest, _NAME_WIDTH) if place == 0 else None,
        )
    for row in shown.rows:
        printed.add_row(*(Text(cell.text, style=_TERMINAL_STYLES.get(cell.style, "")) for cell in row))
    return printed


def number(value: float, sigma: float = math.nan, *, digits: int = 3, signed: bool = False) -> str:
    """Text of a number.

    Parameters
    ----------
    value : a number that is not finite gives :data:`UNKNOWN`
    sigma : standard deviation of the value. The text has two digits of it; NaN or zero: ``digits`` decide
    digits : significant digits of a value without a standard deviation
    signed : a plus sign stands in front of a positive value
    """
    if not math.isfinite(value):
        return UNKNOWN
    sign = "+" if signed else ""
    if math.isfinite(sigma) and sigma > 0.0:
        decimals = 1 - math.floor(math.log10(sigma))
        if 0 <= decimals <= _MAX_DECIMALS:
            return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}"  # + 0.0: no minus in front of zero
    magnitude = abs(float(f"{value:.{digits}g}"))
    if magnitude and not 1e-4 <= magnitude < 1e6:
        return f"{value:{sign}.{digits - 1}e}"
    decimals = max(0, min(_MAX_DECIMALS, digits - 1 - math.floor(math.log10(magnitude)))) if magnitude else digits - 1
    return f"{float(f'{value:.{digits}g}'):{sign}.{decimals}f}"


def with_spread(value: float, spread: float) -> str:
    """``value ± spread``, both with two digits of the spread."""
    if not math.isfinite(value):
        return UNKNOWN
    if not math.isfinite(spread) or spread <= 0.0:
        return f"{value:.4g}" + (" ± \N{INFINITY}" if spread > 0.0 else "")
    power = math.floor(math.log10(max(abs(value), spread)))
    shift = power if power < -3 or power > 5 else 0
    decimals = min(max(1 - math.floor(math.log10(spread)) + shift, 0), _MAX_DECIMALS)
    rounded = round(value / 10.0**shift, decimals) + 0.0
    text = f"{rounded:.{decimals}f} ± {spread / 10.0**shift:.{decimals}f}"
    return f"({text})·10^{shift}" if shift else text


def percent(ratio: float) -> str:
    """A ratio as a percentage, with one decimal below 10 %."""
    if not math.isfinite(ratio):
        return UNKNOWN
    return f"{100.0 * ratio:.{1 if 0.0 < abs(ratio) < 0.1 else 0}f} %"


def _heading_lines(text: str) -> list[str]:
    return wrap(text, _HEADING_WIDTH, break_long_words=False)


def _html_cell(column: Column, cell: Cell) -> str:
    style = f"{column.align} {cell.style}".strip()
    return f'<td class="{style}">{_MINUS.sub(_MINUS_SIGN, escape(cell.text))}</td>'


def _html_heading(column: Column) -> str:
    heading = _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escape(column.heading))
    return f"{heading}<br>[{escape(column.unit)}]" if column.unit else heading
