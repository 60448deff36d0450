"""The table of a Markdown page, between two markers: what was measured, and the values to reach."""

from __future__ import annotations

from collections.abc import Sequence

from friction_estimator.benchmark.rows import Figure, RowResult
from friction_estimator.errors import FrictionEstimatorError

BEGIN, END = "<!-- begin of the benchmark -->", "<!-- end of the benchmark -->"
_HEAD = ["| what | measured | must | aim |", "|---|---|---|---|"]


class PageError(FrictionEstimatorError):
    """A page has no place for the table."""


def fill(page: str, results: Sequence[RowResult], facts: Sequence[str]) -> str:
    """Return the page with a new table between its markers.

    Parameters
    ----------
    page : Markdown text
    results : measured rows; lines of the old table that they do not replace stay
    facts : command, machine and load, one line each

    Raises
    ------
    PageError
        When the page does not have both markers.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise PageError(f"the page has no lines {BEGIN!r} and {END!r} to write the table between")
    lines = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("| ")}
    lines.pop("what", None)
    measured_now = {figure.what: _line(figure) for result in results for figure in result.figures}
    earlier = [] if lines.keys() <= measured_now.keys() else ["Lines of other rows are from earlier runs."]
    lines.update(measured_now)
    listed = [f"- {fact}" for fact in (*facts, *earlier, *_not_measured(results))]
    return "\n".join([f"{before}{begin}", "", *_HEAD, *lines.values(), "", *listed, "", f"{end}{after}"])


def measured(figure: Figure) -> str:
    """Value with unit, and its quartiles."""
    unit = f" {figure.unit}" if figure.unit else ""
    between = "" if figure.low is None or figure.high is None else f" ({number(figure.low)} to {number(figure.high)})"
    return f"{number(figure.value)}{unit}{between}"


def wanted(figure: Figure, value: float | None) -> str:
    """Value to reach with unit and direction."""
    if value is None:
        return ""
    unit = f" {figure.unit}" if figure.unit else ""
    bound = "at least " if figure.at_least else "at most " if value else ""
    return f"{bound}{number(value)}{unit}"


def number(value: float) -> str:
    """Three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100.0 or value == round(value) else f"{value:.3g}"


def _line(figure: Figure) -> str:
    value = measured(figure)
    details = "; ".join(f"{name} {number(value)}" for name, value in figure.details.items())
    value = f"**{value}**" if figure.missed else value
    cells = (figure.what, f"{value}; {details}" if details else value)
    return f"| {' | '.join(cells)} | {wanted(figure, figure.must)} | {wanted(figure, figure.aim)} |"


def _not_measured(results: Sequence[RowResult]) -> list[str]:
    return [f"`{r.name}` is not measured: {r.skipped or r.failed}" for r in results if not r.figures]
