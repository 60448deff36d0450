"""The tables of the report: rows of text from a recording."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.messages.recording import Recording
from friction_estimator.report.metrics import JointErrors, joint_errors, phase_mask
from friction_estimator.types import BoolArray

GOOD, USEFUL = 0.3, 1.0
"""Limits of the relative error for the verdicts; 1 is as good as predicting zero."""
_CONSISTENT = (0.3, 3.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a style: ``good``, ``fair``, ``bad`` or none."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with grouped columns.

    Attributes
    ----------
    caption : what it shows
    groups : title and number of columns of each group, left to right after the joint
    columns : headings
    rows : joint name first
    first : heading of the first column
    """

    caption: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    first: str = "joint"


def error_table(recording: Recording, after: float = 0.0) -> Table | None:
    """Errors of every joint in stance and in swing; None without ground truth.

    Parameters
    ----------
    recording : with truth
    after : samples before this time are left out [s]
    """
    parts = split(recording, after)
    if not parts:
        return None
    columns = ("RMSE<br>[N m]", "relative<br>to truth", "bias<br>[N m]", "NEES")
    names = recording.joint_names
    rows = [
        (Cell(name), *(cell for _, errors in parts for cell in _error_cells(errors, row)))
        for row, name in enumerate(names)
    ]
    return Table(
        "Errors of the friction estimate",
        tuple((title, len(columns)) for title, _ in parts),
        columns * len(parts),
        tuple(rows),
    )


def split(recording: Recording, after: float = 0.0) -> list[tuple[str, JointErrors]]:
    """Errors in stance and swing; in measured and modelled parts when the limbs are unknown; empty without truth."""
    if recording.truth is None:
        return []
    late = (recording.time >= after)[:, None]
    standing = recording.standing()
    first, second = ("stance", "swing") if standing is not None else ("measured", "modelled")
    where = recording.measured if standing is None else standing
    return [(first, _errors(recording, where & late)), (second, _errors(recording, ~where & late))]


def phase_table(recording: Recording, after: float = 0.0) -> Table | None:
    """RMSE of every joint in each contact phase; None without ground truth or phases."""
    phases = recording.true_phases or recording.phases
    if recording.truth is None or not phases:
        return None
    late = recording.time >= after
    names = sorted({phase.name for phase in phases})
    masks = [phase_mask(recording.time, [(p.start, p.end) for p in phases if p.name == name]) for name in names]
    errors = [_errors(recording, np.broadcast_to((mask & late)[:, None], recording.friction.shape)) for mask in masks]
    rows = [
        (Cell(joint), *(Cell(number(error.rmse[row])) for error in errors))
        for row, joint in enumerate(recording.joint_names)
    ]
    titles = tuple(name.replace("_", " ") for name in names)
    return Table("RMSE by contact phase", (("RMSE [N m]", len(names)),), titles, tuple(rows))


def parameter_table(recording: Recording) -> Table | None:
    """Identified parameters at the end, with two standard deviations; None when they were not recorded."""
    if recording.coulomb is None or recording.viscous is None:
        return None
    columns = []
    for values, sigma in (
        (recording.coulomb, recording.coulomb_sigma),
        (recording.viscous, recording.viscous_sigma),
    ):
        spread = 2.0 * sigma.values[-1] if sigma is not None else np.full(values.values.shape[1], np.nan)
        columns.append(list(zip(values.values[-1].tolist(), spread.tolist(), strict=True)))
    share = recording.measured.mean(axis=0).tolist()
    rows = [
        (Cell(name), *(_with_spread(column[row]) for column in columns), Cell(f"{100.0 * share[row]:.0f} %"))
        for row, name in enumerate(recording.joint_names)
    ]
    headings = ("F<sub>c</sub> [N m]", "F<sub>v</sub> [N m s/rad]", "time measured")
    return Table(
        "Identified parameters at the end", (("value ± 2 standard deviations", 2), ("", 1)), headings, tuple(rows)
    )


def _errors(recording: Recording, where: BoolArray) -> JointErrors:
    if recording.truth is None:
        raise ValueError("errors need a ground truth")
    return joint_errors(recording.friction, recording.truth, recording.sigma, where)


def _error_cells(errors: JointErrors, row: int) -> tuple[Cell, ...]:
    relative, nees = float(errors.relative_rmse[row]), float(errors.nees[row])
    return (
        Cell(number(errors.rmse[row])),
        Cell(number(relative), grade(relative)),
        Cell(number(errors.bias[row], signed=True)),
        Cell(number(nees), "" if math.isnan(nees) else "good" if _CONSISTENT[0] <= nees <= _CONSISTENT[1] else "fair"),
    )


def grade(relative: float) -> str:
    """Style of an error that is relative to what predicting zero would make."""
    if math.isnan(relative):
        return ""
    return "good" if relative < GOOD else "fair" if relative < USEFUL else "bad"


def _with_spread(pair: tuple[float, float]) -> Cell:
    value, spread = pair
    text = f"{value:.3f} ± {spread:.3f}" if math.isfinite(spread) else f"{value:.3f}"
    return Cell(text.replace("-", "\N{MINUS SIGN}"))


def number(value: float, signed: bool = False) -> str:
    """Three significant digits."""
    if not math.isfinite(value):
        return "–"
    value = float(f"{value:.3g}")
    digits = max(0, min(4, 2 - math.floor(math.log10(abs(value))))) if value else 2
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "\N{MINUS SIGN}")
