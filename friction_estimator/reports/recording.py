"""The page of a recording: errors, friction over time and velocity, identified parameters, diagnosis."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from friction_estimator.messages.recording import Recording
from friction_estimator.reports.page import Page, Section, figure_html, write_page
from friction_estimator.reports.recording_figures import (
    WINDOW,
    convergence,
    friction_over_time,
    friction_over_velocity,
    is_long,
    paper_figure,
)
from friction_estimator.reports.recording_tables import (
    collision_table,
    diagnosis_table,
    error_table,
    errors_by_part,
    parameter_table,
    phase_table,
)
from friction_estimator.tables import UNKNOWN, html_table, number
from friction_estimator.types import FloatArray


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
        *_collision_section(recording),
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
        "Errors against the ground truth of the recording. Relative error: RMSE divided by the RMS of the true "
        "friction; 1 is as good as predicting zero. NEES (normalised estimation error squared): mean of the squared "
        "error divided by the published variance. It is 1 when the standard deviations are right, and larger when they "
        f"are too small.{skipped}",
        "".join(map(html_table, tables)),
    )


def _friction_sections(recording: Recording) -> Iterator[Section]:
    swing = " Grey: the leg is swinging." if recording.description.supports else ""
    yield Section(
        "time",
        "Friction over time",
        f"Blue: the observer measured the friction. Orange: the identified law predicted it.{swing}"
        + _residual_text(recording)
        + _zoom_hint(recording),
        figure_html(friction_over_time(recording), "figure-time"),
    )
    yield Section(
        "velocity",
        "Friction over velocity",
        "The same samples against the joint velocity, with the line of Coulomb and viscous friction through the "
        "identified law.",
        figure_html(friction_over_velocity(recording), "figure-velocity"),
    )


def _residual_text(recording: Recording) -> str:
    """What the lower part of the figure shows."""
    band = "in the band of two standard deviations"
    if recording.truth is not None:
        return f" The lower part of each panel shows the error (estimate minus truth) {band}."
    if recording.model is not None:
        return f" The lower part of each panel shows the estimate minus the friction of the identified law, {band}."
    return ""


def _parameter_section(recording: Recording) -> Iterator[Section]:
    parts = [html_table(table) for table in (parameter_table(recording),) if table]
    for name, title in (("coulomb", "Coulomb friction F<sub>c</sub>"), ("viscous", "Viscous friction F<sub>v</sub>")):
        figure = convergence(recording, name)
        if figure is not None:
            parts.append(f"<h3>{title}</h3>{figure_html(figure, f'figure-{name}')}")
    if parts:
        yield Section(
            "parameters",
            "Identified parameters",
            "Coulomb friction F<sub>c</sub> and viscous friction F<sub>v</sub> at the end of the recording and over "
            "time, with two standard deviations. They are the line F<sub>c</sub> sgn(v) + F<sub>v</sub> v that "
            "fits the identified law best over the velocities that the joint had until then. The line does not hold "
            "beyond these speeds. F<sub>v</sub> is negative where the friction falls with the speed.",
            "".join(parts),
        )


def _diagnosis_section(recording: Recording, after: float) -> Section:
    return Section(
        "diagnosis",
        "Diagnosis",
        "Passivity: the friction drives its joint by more than three standard deviations, so torque, offset or model "
        "are wrong. Excitation: the joint hardly moves, so its law cannot be identified; use the parameters of an "
        "earlier run. Drift: the law changes, so identify it again. Innovations, calibration and pushes are not "
        "recorded: the diagnostics of the live node and the warnings of <code>replay</code> have them.",
        html_table(diagnosis_table(recording, after)),
    )


def _collision_section(recording: Recording) -> Iterator[Section]:
    if recording.collisions:
        yield Section(
            "collisions",
            "Collisions",
            "External torque, or its standard deviation, above the thresholds of normal walking. Only the first "
            "detection of each collision of a limb is shown.",
            html_table(collision_table(recording)),
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
    if not is_long(recording):
        return ""
    return f" The figure opens on the last {WINDOW:g} s; a double click shows the whole run."


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
    for name, errors in errors_by_part(recording, after):
        tiles.append((f"RMSE, {name}", _mean(errors.rmse), "N m, mean of joints"))
    return tiles


def _mean(values: FloatArray) -> str:
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if finite.size else UNKNOWN
