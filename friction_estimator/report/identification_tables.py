"""Tables of an identification: held-out scores, parameters with error bars, quadrants, experiments."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.identification.result import Identification, JointScore, ParameterTable
from friction_estimator.report.quadrants import QUADRANTS, joint_quadrants
from friction_estimator.report.tables import Cell, Table, grade, number

_MOST_DECIMALS = 6


def score_table(identification: Identification) -> Table:
    """Errors on held-out segments next to what predicting zero and the rigid body alone would make."""
    rows = tuple(_score_row(score) for score in identification.scores)
    columns = (
        "predict zero<br>[N m]",
        "rigid body only<br>[N m]",
        "whole model<br>[N m]",
        "relative<br>to the torque",
        "data of the fit<br>[N m]",
        "samples",
    )
    return Table("RMS error of the joint torque", (("held out", 4), ("", 2)), columns, rows)


def parameter_table(table: ParameterTable) -> Table:
    """Every parameter with two standard deviations, and what was known of it before."""
    known = table.reference is not None and bool(np.isfinite(table.reference).any())
    columns = (
        "value ± 2 sigma",
        "unit",
        "sigma",
        "verdict",
        *(("known before", "difference") if known else ()),
    )
    rows = tuple(_parameter_row(table, row, known) for row in range(len(table.names)))
    groups = (("estimated", 4), *((("against what was known", 2),) if known else ()))
    return Table("Parameters", groups, columns, rows, first="parameter")


def quadrant_table(identification: Identification) -> Table | None:
    """Samples and residuals in each quadrant; None when no law depends on the load."""
    rows = tuple(
        (
            Cell(f"{fit.joint}, {QUADRANTS[fit.quadrant].name}"),
            Cell(f"{fit.load.size:,}"),
            Cell(number(fit.speed)),
            Cell(f"{number(float(fit.load.min()))} … {number(float(fit.load.max()))}"),
            Cell(number(float(np.sqrt(np.mean(fit.residual**2))))),
            Cell(number(float(fit.residual.mean()), signed=True)),
        )
        for joint in joint_quadrants(identification)
        for fit in joint
    )
    if not rows:
        return None
    columns = ("samples", "median speed<br>[rad/s]", "load<br>[N m]", "RMS<br>[N m]", "mean<br>[N m]")
    return Table("Quadrants", (("data", 3), ("residual", 2)), columns, rows, first="joint, quadrant")


def data_table(identification: Identification) -> Table:
    """Experiments with the hash of their content."""
    rows = tuple((Cell(name), Cell(digest or "–")) for name, digest in identification.provenance.data)
    return Table("Experiments", (("content", 1),), ("SHA-256",), rows, first="name")


def with_spread(value: float, spread: float) -> str:
    """``value ± spread`` with as many digits as the spread leaves sense."""
    if not math.isfinite(value):
        return "–"
    if not math.isfinite(spread) or spread <= 0.0:
        return f"{value:.4g}".replace("-", "\N{MINUS SIGN}") + (" ± \N{INFINITY}" if spread > 0.0 else "")
    power = math.floor(math.log10(max(abs(value), spread)))
    shift = power if power < -3 or power > 5 else 0
    decimals = min(max(1 - math.floor(math.log10(spread)) + shift, 0), _MOST_DECIMALS)
    text = f"{value / 10.0**shift:.{decimals}f} ± {spread / 10.0**shift:.{decimals}f}"
    return (f"({text})·10^{shift}" if shift else text).replace("-", "\N{MINUS SIGN}")


def _score_row(score: JointScore) -> tuple[Cell, ...]:
    others = [one for one in (score.torque_rms, score.rigid_body_error) if math.isfinite(one)]
    baseline = min(others, default=math.nan)
    style = grade(score.model_error / baseline) if baseline > 0.0 else ""
    relative = score.relative_error
    return (
        Cell(score.joint),
        Cell(number(score.torque_rms)),
        Cell(number(score.rigid_body_error)),
        Cell(number(score.model_error), style),
        Cell(f"{100.0 * relative:.1f} %" if math.isfinite(relative) else "–"),
        Cell(number(score.fit_error)),
        Cell(f"{score.samples:,}"),
    )


def _parameter_row(table: ParameterTable, row: int, known: bool) -> tuple[Cell, ...]:
    value, sigma = float(table.values[row]), float(table.sigma[row])
    share = sigma / abs(value) if value else math.inf
    cells = (
        Cell(table.names[row]),
        Cell(with_spread(value, 2.0 * sigma)),
        Cell(table.units[row] or "–"),
        Cell(f"{100.0 * share:.2g} %" if share < 1.0 else "over 100 %" if share < math.inf else "–"),
        _verdict(table, row),
    )
    return (*cells, *_reference_cells(table, row)) if known else cells


def _verdict(table: ParameterTable, row: int) -> Cell:
    if table.identifiable is not None and not table.identifiable[row]:
        return Cell("not identifiable", "bad")
    if 2.0 * float(table.sigma[row]) >= abs(float(table.values[row])):
        return Cell("may be zero", "fair")
    return Cell("significant", "good")


def _reference_cells(table: ParameterTable, row: int) -> tuple[Cell, ...]:
    reference = math.nan if table.reference is None else float(table.reference[row])
    if not math.isfinite(reference):
        return Cell("–"), Cell("–")
    sigma, difference = float(table.sigma[row]), float(table.values[row]) - reference
    text = f"{difference:+.3g}" + (f", {abs(difference) / sigma:.1f} sigma" if sigma > 0.0 else "")
    return Cell(f"{reference:.4g}".replace("-", "\N{MINUS SIGN}")), Cell(text.replace("-", "\N{MINUS SIGN}"))
