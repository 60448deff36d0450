"""One self-contained HTML page: facts, tables, figures; nothing is loaded from a network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go
from plotly.io import to_html
from plotly.offline import get_plotlyjs

from friction_estimator.core.exceptions import FrictionEstimatorError
from friction_estimator.core.types import FloatArray
from friction_estimator.messages.recording import Recording
from friction_estimator.report.figures import (
    WINDOW,
    convergence,
    friction_over_time,
    friction_over_velocity,
    is_long,
    paper_figure,
)
from friction_estimator.report.tables import Table, error_table, parameter_table, phase_table, split
from friction_estimator.report.trust import trust_table


class ReportError(FrictionEstimatorError):
    """The page cannot be written."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page."""

    anchor: str
    title: str
    text: str
    body: str


def write_report(path: str | os.PathLike[str], recording: Recording, title: str, after: float = 0.0) -> None:
    """Write the page of a recording.

    Parameters
    ----------
    path : file to write
    recording : what to show
    title : usually the name of the bag
    after : samples before this time are left out of the tables [s]

    Raises
    ------
    ReportError
        When the file cannot be written.
    """
    page = render(recording, title, after)
    target = Path(path).expanduser()
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(page, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise ReportError(f"cannot write the report {target}: {error.strerror or error}") from None


def render(recording: Recording, title: str, after: float = 0.0) -> str:
    """Text of the page."""
    sections = [
        *_error_section(recording, after),
        *_friction_sections(recording),
        *_parameter_section(recording),
        _trust_section(recording, after),
        _paper_section(recording),
    ]
    template = Template((files(__package__) / "template.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        style=(files(__package__) / "style.css").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        facts=_facts(recording),
        tiles=_tiles(recording, after),
        navigation="".join(f'<a href="#{part.anchor}">{escape(part.title)}</a>' for part in sections),
        sections="".join(
            f'<section id="{part.anchor}"><h2>{escape(part.title)}</h2><p>{part.text}</p>{part.body}</section>'
            for part in sections
        ),
    )


def _error_section(recording: Recording, after: float) -> Iterator[Section]:
    tables = [table for table in (error_table(recording, after), phase_table(recording, after)) if table]
    if not tables:
        return
    skipped = f" The first {after:g} s are left out." if after > 0.0 else ""
    yield Section(
        "errors",
        "Errors",
        "Against the ground truth of the recording. Relative: RMSE divided by the RMS of the true friction; 1 is "
        "as good as predicting zero. NEES: mean squared error in units of the published variance, 1 when the "
        f"standard deviations are right, larger when they are too small.{skipped}",
        "".join(map(_table, tables)),
    )


def _friction_sections(recording: Recording) -> Iterator[Section]:
    swing = " Grey: the leg is swinging." if recording.description.supports else ""
    yield Section(
        "time",
        "Friction over time",
        f"Blue where the observer measured the friction, orange where the identified law spoke for it.{swing}"
        + _zoom_hint(recording),
        _figure(friction_over_time(recording), "figure-time"),
    )
    yield Section(
        "velocity",
        "Friction over velocity",
        "The same samples against the joint velocity, with the Coulomb and viscous part that was identified.",
        _figure(friction_over_velocity(recording), "figure-velocity"),
    )


def _parameter_section(recording: Recording) -> Iterator[Section]:
    parts = [_table(table) for table in (parameter_table(recording),) if table]
    for name, title in (("coulomb", "Coulomb friction F<sub>c</sub>"), ("viscous", "Viscous friction F<sub>v</sub>")):
        figure = convergence(recording, name)
        if figure is not None:
            parts.append(f"<h3>{title}</h3>{_figure(figure, f'figure-{name}')}")
    if parts:
        yield Section(
            "parameters",
            "Identified parameters",
            "Coulomb friction F<sub>c</sub> and viscous friction F<sub>v</sub> when the recording ended, and how they "
            "got there, with two standard deviations.",
            "".join(parts),
        )


def _trust_section(recording: Recording, after: float) -> Section:
    return Section(
        "trust",
        "May it be believed?",
        "Friction that drives its joint beyond three standard deviations is wrong; a joint that hardly moves teaches "
        "no law, and is believed only with the parameters of an earlier run; a law that changes must be learned anew. "
        "Innovations, calibration and pushes are not recorded: see the diagnostics of the live node, or what "
        "<code>replay</code> says.",
        _table(trust_table(recording, after)),
    )


def _paper_section(recording: Recording) -> Section:
    return Section(
        "paper",
        "As in the paper",
        "Figure 6 of Hashlamon &amp; Erbatur (2014), for every leg: estimated friction (solid blue) and true friction "
        "(dashed red)." + _zoom_hint(recording),
        _figure(paper_figure(recording), "figure-paper"),
    )


def _zoom_hint(recording: Recording) -> str:
    return f" Shows the last {WINDOW:g} s; a double click shows the whole run." if is_long(recording) else ""


def _figure(figure: go.Figure, name: str) -> str:
    config = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d"]}
    body = to_html(figure, full_html=False, include_plotlyjs=False, include_mathjax=False, div_id=name, config=config)
    return f'<div class="figure">{body}</div>'


def _table(table: Table) -> str:
    groups = "".join(f'<th colspan="{span}" class="group">{title}</th>' for title, span in table.groups)
    columns = "".join(f"<th>{column}</th>" for column in table.columns)
    rows = "".join(
        "<tr>"
        + f'<th scope="row">{escape(row[0].text)}</th>'
        + "".join(f'<td class="{cell.style}">{escape(cell.text)}</td>' for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="table"><table><caption>{escape(table.caption)}</caption>'
        f"<thead><tr><th></th>{groups}</tr><tr><th>joint</th>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _facts(recording: Recording) -> str:
    description = recording.description
    facts = (
        ("robot", description.robot),
        ("source", description.source),
        ("observer", ", smoothed ".join(filter(None, (description.observer, description.smoothing)))),
        ("friction law", description.law),
        ("joints", str(len(recording.joint_names))),
        ("ground truth", "yes" if recording.truth is not None else "none in this recording"),
    )
    return "".join(f"<div><dt>{name}</dt><dd>{escape(value or 'not recorded')}</dd></div>" for name, value in facts)


def _tiles(recording: Recording, after: float) -> str:
    seconds = float(recording.time[-1] - recording.time[0])
    rate = (recording.time.size - 1) / seconds if seconds > 0.0 else 0.0
    tiles = [("duration", f"{seconds:.1f}", "s"), ("estimates", f"{recording.time.size:,}", f"at {rate:.0f} Hz")]
    for name, errors in split(recording, after):
        tiles.append((f"RMSE, {name}", _mean(errors.rmse), "N m, mean of joints"))
    return "".join(
        f'<div class="tile"><span>{name}</span><strong>{value}</strong><small>{unit}</small></div>'
        for name, value, unit in tiles
    )


def _mean(values: FloatArray) -> str:
    finite = values[np.isfinite(values)]
    return f"{finite.mean():.3f}" if finite.size else "–"
