"""The report of a recording: errors, friction over time and velocity, parameters, trust."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from friction_estimator.messages.recording import Recording
from friction_estimator.report.diagnosis import diagnosis_table
from friction_estimator.report.figures import (
    WINDOW,
    convergence,
    friction_over_time,
    friction_over_velocity,
    is_long,
    paper_figure,
)
from friction_estimator.report.page import Page, ReportError, Section, figure_html, table_html, write_page
from friction_estimator.report.tables import error_table, parameter_table, phase_table, split
from friction_estimator.types import FloatArray

__all__ = ["ReportError", "render", "write_report"]


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
    write_page(path, render(recording, title, after))


def render(recording: Recording, title: str, after: float = 0.0) -> str:
    """Text of the page."""
    sections = [
        *_error_section(recording, after),
        *_friction_sections(recording),
        *_parameter_section(recording),
        _diagnosis_section(recording, after),
        _paper_section(recording),
    ]
    return Page("Joint friction report", title, _facts(recording), _tiles(recording, after), sections).render()


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
        "".join(map(table_html, tables)),
    )


def _friction_sections(recording: Recording) -> Iterator[Section]:
    swing = " Grey: the leg is swinging." if recording.description.supports else ""
    yield Section(
        "time",
        "Friction over time",
        f"Blue where the observer measured the friction, orange where the identified law spoke for it.{swing}"
        + _zoom_hint(recording),
        figure_html(friction_over_time(recording), "figure-time"),
    )
    yield Section(
        "velocity",
        "Friction over velocity",
        "The same samples against the joint velocity, with the Coulomb and viscous part that was identified.",
        figure_html(friction_over_velocity(recording), "figure-velocity"),
    )


def _parameter_section(recording: Recording) -> Iterator[Section]:
    parts = [table_html(table) for table in (parameter_table(recording),) if table]
    for name, title in (("coulomb", "Coulomb friction F<sub>c</sub>"), ("viscous", "Viscous friction F<sub>v</sub>")):
        figure = convergence(recording, name)
        if figure is not None:
            parts.append(f"<h3>{title}</h3>{figure_html(figure, f'figure-{name}')}")
    if parts:
        yield Section(
            "parameters",
            "Identified parameters",
            "Coulomb friction F<sub>c</sub> and viscous friction F<sub>v</sub> when the recording ended, and how they "
            "got there, with two standard deviations.",
            "".join(parts),
        )


def _diagnosis_section(recording: Recording, after: float) -> Section:
    return Section(
        "diagnosis",
        "Which joints may be trusted?",
        "Friction that drives its joint beyond three standard deviations is wrong. The law of a joint that "
        "hardly moves is not identified, unless parameters of an earlier run were loaded. A law that changes must be "
        "identified anew. Innovations, calibration and pushes are not recorded: see the diagnostics of the node, or "
        "the warnings of <code>replay</code>.",
        table_html(diagnosis_table(recording, after)),
    )


def _paper_section(recording: Recording) -> Section:
    return Section(
        "paper",
        "As in the paper",
        "Figure 6 of Hashlamon &amp; Erbatur (2014), for every leg: estimated friction (solid blue) and true friction "
        "(dashed red)." + _zoom_hint(recording),
        figure_html(paper_figure(recording), "figure-paper"),
    )


def _zoom_hint(recording: Recording) -> str:
    return f" Shows the last {WINDOW:g} s; a double click shows the whole run." if is_long(recording) else ""


def _facts(recording: Recording) -> tuple[tuple[str, str], ...]:
    description = recording.description
    return (
        ("robot", description.robot),
        ("source", description.source),
        ("observer", ", smoothed ".join(filter(None, (description.observer, description.smoothing)))),
        ("friction law", description.law),
        ("joints", str(len(recording.joint_names))),
        ("ground truth", "yes" if recording.truth is not None else "none in this recording"),
    )


def _tiles(recording: Recording, after: float) -> list[tuple[str, str, str]]:
    seconds = float(recording.time[-1] - recording.time[0])
    rate = (recording.time.size - 1) / seconds if seconds > 0.0 else 0.0
    tiles = [("duration", f"{seconds:.1f}", "s"), ("estimates", f"{recording.time.size:,}", f"at {rate:.0f} Hz")]
    for name, errors in split(recording, after):
        tiles.append((f"RMSE, {name}", _mean(errors.rmse), "N m, mean of joints"))
    return tiles


def _mean(values: FloatArray) -> str:
    finite = values[np.isfinite(values)]
    return f"{finite.mean():.3f}" if finite.size else "–"
