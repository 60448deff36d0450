"""Tables of an identification: held-out errors, parameters with error bars, quadrants of velocity and load, data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from friction_estimator.identification.linear_problem import rms
from friction_estimator.identification.result import (
    Candidate,
    FrictionSamples,
    Identification,
    JointScore,
    ParameterTable,
)
from friction_estimator.laws.identified import IdentifiedParameters, JointLaw
from friction_estimator.reports.recording_tables import grade
from friction_estimator.tables import UNKNOWN, Cell, Column, Table, make_table, number, percent, with_spread
from friction_estimator.types import FloatArray

_SIGNIFICANT_SIGMAS = 2.0
"""A parameter is significant when its value is more than this many standard deviations from zero."""
QUADRANT_NAMES = {
    (1, 1): "drives, forward",
    (-1, -1): "drives, backward",
    (1, -1): "driven, forward",
    (-1, 1): "driven, backward",
}
"""Quadrants by the signs of velocity and load (Hamon et al. 2010, figure 2)."""
_CURVE_POINTS = 60  # of a law over the load


def score_table(scores: tuple[JointScore, ...]) -> Table:
    """RMS errors of the joint torque on held-out segments, compared with predicting zero and the rigid body alone.

    Scores of a validation are those of new recordings: nothing was fitted to these.
    """
    new = all(math.isnan(score.fit_error) for score in scores)
    held_out, fitted = ("new recordings",) * 2 if new else ("held-out segments", "data of the fit")
    columns = (
        "joint",
        Column("predict zero", "N m", held_out),
        Column("rigid body only", "N m", held_out),
        Column("whole model", "N m", held_out),
        Column("relative to the torque", "", held_out),
        Column("whole model", "N m", fitted),
        Column("samples", "", fitted),
    )
    title = "RMS error of the joint torque"
    return make_table(f"{title} on new recordings" if new else title, columns, map(_score_row, scores))


def rollout_table(scores: Sequence[Any]) -> Table:
    """RMS errors of simulated positions, and those of the URDF alone."""
    columns = (
        "recording",
        "joint",
        Column("travel", "mrad", "RMS of the recording"),
        Column("identified", "mrad", "RMS error of the rollout"),
        Column("URDF alone", "mrad", "RMS error of the rollout"),
    )
    rows = (
        (one.recording, one.joint, *(number(1e3 * value) for value in (one.travel, one.identified, one.urdf)))
        for one in scores
    )
    return make_table("Simulated positions", columns, rows)


def check_table(checks: Sequence[Any]) -> Table:
    """Parameters in simulated recordings of a motion, see `api.validate.ParameterCheck`."""
    numbers = map(Column, ("simulated", "RMS error", "sigma", "within 2 sigma"))
    rows = (
        (one.name, one.unit, *map(number, (one.truth, one.error, one.sigma)), percent(one.inside), one.verdict)
        for one in checks
    )
    return make_table("What this motion can show", ("parameter", "unit", *numbers, "verdict"), rows)


def candidate_table(candidates: Sequence[Candidate]) -> Table:
    """What was compared by held-out errors, and chosen: the simplest within one standard error of the best."""
    columns = (
        "decision",
        "candidate",
        Column("held-out error", "", "relative to the torque"),
        Column("above the best", "", "relative to it"),
        Column("standard error", "", "relative to it"),
        "chosen",
    )
    rows = (
        (
            one.decision,
            one.settings,
            *map(percent, (one.error, one.excess, one.sigma)),
            "chosen" if one.chosen else "",
        )
        for one in candidates
    )
    return make_table("Candidates", columns, rows)


def range_table(friction: IdentifiedParameters) -> Table | None:
    """Friction at the slowest and fastest speeds that identified each joint; None where no range is known."""
    ranges = friction.velocity_range
    if ranges is None or np.isnan(ranges).all():
        return None
    columns = (
        "joint",
        "law",
        Column("speed", "rad/s", "slow"),
        Column("friction ± 2 sigma", "N m", "slow"),
        Column("speed", "rad/s", "fast"),
        Column("friction ± 2 sigma", "N m", "fast"),
    )
    known = [row for row in range(len(friction.joint_names)) if np.isfinite(ranges[row]).all()]
    return make_table("Friction over the speeds of the identification", columns, (_ends(friction, k) for k in known))


def _ends(friction: IdentifiedParameters, row: int) -> tuple[str, ...]:
    """Speed, and friction without load, at both ends of the range of one joint."""
    joint, speeds = friction.joint_names[row], np.asarray(friction.velocity_range)[row]
    torque, sigma = JointLaw.from_identified(friction, joint).predict(speeds, np.zeros(2))
    ends = [(number(speeds[k]), with_spread(float(torque[k]), 2.0 * float(sigma[k]))) for k in (0, 1)]
    return joint, friction.law_names[row], *ends[0], *ends[1]


def parameter_table(table: ParameterTable) -> Table:
    """Every parameter with two standard deviations, and the value that was known before, e.g. from the URDF."""
    columns = (
        "parameter",
        Column("value ± 2 sigma"),
        "unit",
        Column("sigma"),
        "verdict",
        Column("known before"),
        Column("difference"),
    )
    return make_table("Parameters", columns, (_parameter_row(table, row) for row in range(len(table.names))))


def is_significant(table: ParameterTable, row: int) -> bool:
    """Whether a parameter is identifiable and its value is clearly not zero."""
    shown = table.identifiable is None or bool(table.identifiable[row])
    return shown and abs(float(table.values[row])) > _SIGNIFICANT_SIGMAS * float(table.sigma[row])


def quadrant_table(identification: Identification) -> Table | None:
    """Samples and residuals in each quadrant of velocity and load; None when no law depends on the load."""
    rows = [
        (
            f"{fit.joint}, {QUADRANT_NAMES[fit.quadrant]}",
            f"{fit.load.size:,}",
            number(fit.speed),
            f"{number(float(fit.load.min()))} … {number(float(fit.load.max()))}",
            number(rms(fit.residual)),
            number(float(fit.residual.mean()), signed=True),
        )
        for joint in joint_quadrants(identification)
        for fit in joint
    ]
    if not rows:
        return None
    columns = (
        "joint, quadrant",
        Column("samples", "", "data"),
        Column("median speed", "rad/s", "data"),
        Column("load", "N m", "data"),
        Column("RMS", "N m", "residual"),
        Column("mean", "N m", "residual"),
    )
    return make_table("Quadrants", columns, rows)


def data_table(data: tuple[tuple[str, str], ...]) -> Table:
    """Experiments with the hash of their content."""
    rows = ((name, digest or UNKNOWN) for name, digest in data)
    return make_table("Experiments", ("experiment", "SHA-256 of its content"), rows)


@dataclass(frozen=True, slots=True)
class QuadrantFit:
    """Used samples of one joint in one quadrant, and the law there."""

    joint: str  # its name
    quadrant: tuple[int, int]  # signs of velocity and load
    speed: float  # median of |velocity| [rad/s]
    load: FloatArray  # (K,) [N m]
    friction: FloatArray  # (K,) moved along the law to the median speed [N m]
    residual: FloatArray  # (K,) friction minus law [N m]
    curve_load: FloatArray  # (C,) loads of a curve [N m]
    curve: FloatArray  # (C,) the law there, at the median speed [N m]


def joint_quadrants(identification: Identification) -> list[tuple[QuadrantFit, ...]]:
    """Quadrants of velocity and load of every joint, empty where its law does not depend on the load."""
    laws = load_laws(identification.friction)
    return [
        tuple(_fits(samples, laws[samples.joint])) if samples.joint in laws else ()
        for samples in identification.samples
    ]


def load_laws(friction: IdentifiedParameters) -> dict[str, JointLaw]:
    """Laws of the joints whose friction depends on the load."""
    laws = {joint: JointLaw.from_identified(friction, joint) for joint in friction.joint_names}
    return {joint: one for joint, one in laws.items() if one.law.depends_on_load}


def _fits(samples: FrictionSamples, law: JointLaw) -> Iterator[QuadrantFit]:
    signs = np.stack((np.sign(samples.velocity), np.sign(samples.load)))
    for quadrant in QUADRANT_NAMES:
        where = samples.used & (signs[0] == quadrant[0]) & (signs[1] == quadrant[1])
        if not where.any():
            continue
        load, residual = samples.load[where], samples.friction[where] - samples.fitted[where]
        speed = float(np.median(np.abs(samples.velocity[where])))
        velocity = quadrant[0] * speed
        curve_load = np.linspace(load.min(), load.max(), _CURVE_POINTS)
        yield QuadrantFit(
            joint=samples.joint,
            quadrant=quadrant,
            speed=speed,
            load=load,
            friction=law.torque(np.full(load.size, velocity), load) + residual,
            residual=residual,
            curve_load=curve_load,
            curve=law.torque(np.full(_CURVE_POINTS, velocity), curve_load),
        )


def _score_row(score: JointScore) -> tuple[str | Cell, ...]:
    others = [one for one in (score.torque_rms, score.rigid_body_error) if math.isfinite(one)]
    baseline = min(others, default=math.nan)
    return (
        score.joint,
        number(score.torque_rms),
        number(score.rigid_body_error),
        Cell(number(score.held_out_error), grade(score.held_out_error / baseline) if baseline > 0.0 else ""),
        percent(score.relative_error),
        number(score.fit_error),
        f"{score.samples:,}",
    )


def _parameter_row(table: ParameterTable, row: int) -> tuple[str | Cell, ...]:
    value, sigma = float(table.values[row]), float(table.sigma[row])
    share = sigma / abs(value) if value else math.inf
    return (
        table.names[row],
        with_spread(value, 2.0 * sigma),
        table.units[row] or UNKNOWN,
        "over 100 %" if 1.0 <= share < math.inf else percent(share),
        _verdict(table, row),
        *_reference_cells(table, row),
    )


def _verdict(table: ParameterTable, row: int) -> Cell:
    if table.identifiable is not None and not table.identifiable[row]:
        return Cell("not identifiable", "bad")
    return Cell("significant", "good") if is_significant(table, row) else Cell("may be zero", "fair")


def _reference_cells(table: ParameterTable, row: int) -> tuple[str, ...]:
    reference = math.nan if table.reference is None else float(table.reference[row])
    if not math.isfinite(reference):
        return UNKNOWN, UNKNOWN
    sigma, difference = float(table.sigma[row]), float(table.values[row]) - reference
    text = number(difference, sigma, signed=True) + (f", {abs(difference) / sigma:.1f} sigma" if sigma > 0.0 else "")
    return f"{reference:.4g}", text
