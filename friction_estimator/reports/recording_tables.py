"""Tables of a recording: errors against the truth, and identified parameters."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.estimation.visited_velocities import MIN_SPEED, RANGE_TAIL
from friction_estimator.messages.recording import Recording, Series
from friction_estimator.metrics import JointErrors, joint_errors, phase_mask
from friction_estimator.tables import Cell, Column, Style, Table, make_table, number, percent, with_spread
from friction_estimator.types import BoolArray, FloatArray

_GOOD_ERROR, _USEFUL_ERROR = 0.3, 1.0
"""Relative errors below which a cell is green, and orange; 1 is as good as predicting zero."""
_CONSISTENT_NEES = (0.3, 3.0)  # standard deviations are right within a factor of 1.7


def error_table(recording: Recording, after: float = 0.0) -> Table | None:
    """Errors of every joint in stance and in swing; None without ground truth.

    Parameters
    ----------
    recording : with truth
    after : samples before this time are left out [s]
    """
    parts = errors_by_part(recording, after)
    if not parts:
        return None
    columns = [
        column
        for part, _ in parts
        for column in (
            Column("RMSE", "N m", part),
            Column("relative to truth", "", part),
            Column("bias", "N m", part),
            Column("NEES", "", part),
        )
    ]
    rows = (
        (name, *(cell for _, errors in parts for cell in _error_cells(errors, row)))
        for row, name in enumerate(recording.joint_names)
    )
    skipped = f", first {after:g} s left out" if after > 0.0 else ""
    return make_table(f"Errors of the friction estimate{skipped}", ("joint", *columns), rows)


def errors_by_part(recording: Recording, after: float = 0.0) -> list[tuple[str, JointErrors]]:
    """Errors [N m] in stance and swing, or in measured and modelled parts when the limbs are unknown.

    Samples before ``after`` [s] are left out. Empty without ground truth.
    """
    if (truth := recording.truth) is None:
        return []
    late = (recording.time >= after)[:, None]
    standing = recording.standing()
    first, second = ("stance", "swing") if standing is not None else ("measured", "modelled")
    where = recording.measured if standing is None else standing
    return [(first, _errors(recording, truth, where & late)), (second, _errors(recording, truth, ~where & late))]


def collision_table(recording: Recording) -> Table:
    """Detected collisions."""
    rows = ((f"{one.time:.3f}", one.joint, one.text) for one in recording.collisions)
    return make_table("Detected collisions", (Column("time", "s"), "joint", "what was detected"), rows)


def phase_table(recording: Recording, after: float = 0.0) -> Table | None:
    """RMSE of every joint in each contact phase; None without ground truth or phases."""
    phases = recording.true_phases or recording.phases
    if (truth := recording.truth) is None or not phases:
        return None
    late = recording.time >= after
    names = sorted({phase.name for phase in phases})
    masks = [phase_mask(recording.time, [(p.start, p.end) for p in phases if p.name == name]) for name in names]
    errors = [_errors(recording, truth, np.broadcast_to((mask & late)[:, None], truth.shape)) for mask in masks]
    rows = ((joint, *(number(one.rmse[row]) for one in errors)) for row, joint in enumerate(recording.joint_names))
    columns = (Column(name.replace("_", " "), "N m", "RMSE") for name in names)
    return make_table("RMSE by contact phase", ("joint", *columns), rows)


def learned_parameter_table(recording: Recording) -> Table | None:
    """Coulomb and viscous friction at the end, with two standard deviations; None when they were not recorded."""
    if recording.coulomb is None or recording.viscous is None:
        return None
    columns = [
        _at_end(values, sigma)
        for values, sigma in (
            (recording.coulomb, recording.coulomb_sigma),
            (recording.viscous, recording.viscous_sigma),
        )
    ]
    share = recording.measured.mean(axis=0).tolist()
    valid = [math.nan] * len(share) if recording.valid is None else recording.valid.mean(axis=0).tolist()
    rows = (
        (
            name,
            *(column[row] for column in columns),
            " to ".join(map(number, speed_range(recording.velocity[:, row]).tolist())),
            percent(share[row]),
            percent(valid[row]),
        )
        for row, name in enumerate(recording.joint_names)
    )
    group = "value ± 2 standard deviations"
    headings = Column("F_c", "N m", group), Column("F_v", "N m s/rad", group)
    further = Column("speeds", "rad/s"), Column("time measured"), Column("time valid")
    return make_table("Identified parameters at the end", ("joint", *headings, *further), rows)


def speed_range(velocity: FloatArray) -> FloatArray:
    """Speeds (2,) between which a joint with velocities (m,) spent nine tenths of its time in motion; NaN: never."""
    moving = np.abs(velocity[np.abs(velocity) > MIN_SPEED])
    return np.asarray(np.quantile(moving, (RANGE_TAIL, 1.0 - RANGE_TAIL))) if moving.size else np.full(2, np.nan)


def grade(relative: float) -> Style:
    """Style of an error that is relative to the error of predicting zero."""
    if math.isnan(relative):
        return ""
    return "good" if relative < _GOOD_ERROR else "fair" if relative < _USEFUL_ERROR else "bad"


def _errors(recording: Recording, truth: FloatArray, where: BoolArray) -> JointErrors:
    return joint_errors(recording.friction, truth, recording.sigma, where)


def _error_cells(errors: JointErrors, row: int) -> tuple[str | Cell, ...]:
    relative, nees = float(errors.relative_rmse[row]), float(errors.nees[row])
    low, high = _CONSISTENT_NEES
    return (
        number(errors.rmse[row]),
        Cell(number(relative), grade(relative)),
        number(errors.bias[row], errors.rmse[row], signed=True),
        Cell(number(nees), "" if math.isnan(nees) else "good" if low <= nees <= high else "fair"),
    )


def _at_end(values: Series, sigma: Series | None) -> list[str]:
    """Last value of every joint with two standard deviations, where these were recorded."""
    last = values.values[-1]
    spread = np.zeros(last.size) if sigma is None else 2.0 * sigma.values[-1]
    return [with_spread(*pair) for pair in zip(last.tolist(), spread.tolist(), strict=True)]
