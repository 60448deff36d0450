"""The page of an identification: what to think of it, figures, parameters with error bars, and how it was made."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from html import escape

from friction_estimator.identification.result import Identification
from friction_estimator.reports.identification_figures import (
    friction_over_load,
    friction_over_velocity,
    parameters_of_unit,
    residuals,
)
from friction_estimator.reports.identification_tables import (
    data_table,
    is_significant,
    parameter_table,
    quadrant_table,
    score_table,
)
from friction_estimator.reports.page import Page, Section, figure_html, write_page
from friction_estimator.tables import html_table, number


def write_identification_report(path: str | os.PathLike[str], identification: Identification, title: str) -> None:
    """Write the page of an identification.

    Parameters
    ----------
    path : file to write
    identification : what to show
    title : usually the name of the parameter file, or of the robot

    Raises
    ------
    ReportError
        When the file cannot be written.
    """
    write_page(path, render_identification(identification, title))


def render_identification(identification: Identification, title: str) -> str:
    """Text of the page."""
    sections = [
        *_verdict_section(identification),
        *_score_section(identification),
        *_velocity_sections(identification),
        *_quadrant_section(identification),
        *_residual_section(identification),
        _parameter_section(identification),
        _provenance_section(identification),
    ]
    return Page(
        "Joint friction identification", title, _facts(identification), _tiles(identification), sections
    ).render()


def _verdict_section(identification: Identification) -> Iterator[Section]:
    if identification.verdicts:
        text = "Conclusions about this identification, the most severe first."
        yield Section("verdicts", "Verdict", text, _list(identification.verdicts, "verdicts"))


def _score_section(identification: Identification) -> Iterator[Section]:
    if identification.scores:
        yield Section(
            "scores",
            "Held-out errors",
            "RMS error of the torque of every joint on segments of time that the fit has not seen, and of two "
            "baselines: predicting zero, and the rigid body without friction. Green: below 0.3 of the "
            "better baseline; red: no better than it.",
            html_table(score_table(identification.scores)),
        )


def _velocity_sections(identification: Identification) -> Iterator[Section]:
    if identification.samples:
        yield Section(
            "velocity",
            "Friction over velocity",
            "Torque minus everything in the model but friction. Grey samples were left out of the fit: near "
            "standstill, stick or outlier. Orange: the identified law, where it depends on velocity alone with two "
            "standard deviations.",
            figure_html(friction_over_velocity(identification), "figure-velocity"),
        )


def _quadrant_section(identification: Identification) -> Iterator[Section]:
    figure, table = friction_over_load(identification), quadrant_table(identification)
    if figure is not None and table is not None:
        yield Section(
            "quadrants",
            "Friction over load",
            "By quadrant of velocity and load: the joint drives where their product is positive, and is driven where "
            "it is negative. Samples are moved along the law to the median speed of their quadrant. A mean residual "
            "that differs between quadrants is load dependence that the law does not have.",
            figure_html(figure, "figure-load") + html_table(table),
        )


def _residual_section(identification: Identification) -> Iterator[Section]:
    if identification.samples:
        yield Section(
            "residuals",
            "Residuals",
            "Friction minus law. A curve in it is a shape that the law does not have.",
            figure_html(residuals(identification), "figure-residuals"),
        )


def _parameter_section(identification: Identification) -> Section:
    units = list(dict.fromkeys(identification.parameters.units))
    figures = (
        figure_html(parameters_of_unit(identification, unit), f"figure-unit-{row}", narrow=True)
        for row, unit in enumerate(units)
    )
    return Section(
        "parameters",
        "Parameters",
        "Values with two standard deviations, which allow for residuals that are correlated in time. A parameter whose "
        "interval holds zero may be left out; one that is not identifiable has a value without meaning.",
        html_table(parameter_table(identification.parameters)) + "".join(figures),
    )


def _provenance_section(identification: Identification) -> Section:
    provenance = identification.provenance
    command = f"<pre><code>{escape(provenance.command)}</code></pre>" if provenance.command else ""
    choices = f"<h3>Chosen from the data</h3>{_list(provenance.choices)}" if provenance.choices else ""
    return Section(
        "provenance",
        "How it was made",
        _method_in_words(identification),
        command + (html_table(data_table(provenance.data)) if provenance.data else "") + choices,
    )


def _method_in_words(identification: Identification) -> str:
    method = identification.provenance.method
    if not method:
        return "The node or <code>replay</code> has written this file while the robot moved: it has no recorded data."
    condition = number(identification.condition)
    return f"Method {escape(method)}, condition number {condition} of the column-scaled observation matrix."


def _list(sentences: Iterable[str], style: str = "") -> str:
    return f'<ul class="{style}">' + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _facts(identification: Identification) -> tuple[tuple[str, str], ...]:
    provenance = identification.provenance
    return (
        ("method", provenance.method.replace("_", " ")),
        ("experiments", str(len(provenance.data) or "")),
        ("joints", str(len(identification.friction.joint_names))),
        ("friction laws", ", ".join(dict.fromkeys(identification.friction.law_names))),
    )


def _tiles(identification: Identification) -> list[tuple[str, str, str]]:
    table = identification.parameters
    significant = sum(is_significant(table, row) for row in range(len(table.names)))
    tiles = [("parameters", str(len(table.names)), f"{significant} of them significant")]
    if math.isfinite(identification.condition):
        tiles.append(("condition number", number(identification.condition), "columns scaled"))
    scores = [score for score in identification.scores if math.isfinite(score.relative_error)]
    if scores:
        worst = max(scores, key=lambda score: score.relative_error)
        tiles.append(
            ("largest held-out error", f"{100.0 * worst.relative_error:.1f} %", f"of the torque, {worst.joint}")
        )
    return tiles
