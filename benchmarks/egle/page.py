"""The page docs/results/egle.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.markdown import number, table
from benchmarks.accuracy.simulated_run import SimulatedRun
from benchmarks.egle import figures, printed, studies
from benchmarks.egle.fits import FittedLegs, fit_legs
from benchmarks.egle.text import FILTERS, INERTIAS, INTRODUCTION, READING, VARIANTS
from benchmarks.egle.walks import (
    central,
    centred,
    friction_from,
    kalman,
    observed,
    sharpened,
    substeps,
    torque_weight,
    walks,
)
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

_TRIMMED = {"constrained.trim_start": 0.1, "constrained.trim_end": 0.1}
_CENTRAL = {**_TRIMMED, "constrained.window": 3, "constrained.order": 2}
_SIDES = ("left", "right")

Estimate = Callable[[SimulatedRun], FloatArray]


def main() -> int:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=14.0, help="of each walk [s]")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    robot = load_robot("suralp")
    model = RobotModel(robot.config, robot.urdf_xml)
    runs = walks(robot, model, options.duration)
    command = f"python benchmarks/egle_identification.py --duration {options.duration:g}"
    lines = [INTRODUCTION.format(command=command), *_identification(robot, model, runs)]
    lines += _filters(robot, model, runs[0], options.output / "images")
    lines += _inertias(robot, runs[0], options.output / "images")
    lines.append(READING)
    (options.output / "egle.md").write_text("\n".join(lines), encoding="utf-8")
    return 0


def _variants(robot: Robot, model: RobotModel, steps: int) -> dict[str, Estimate]:
    """Ways to the friction, by name; the first one makes the tables."""

    def with_torque(before: float) -> Estimate:
        return lambda run: friction_from(robot, centred(run, before), model, central(run))

    exact = torque_weight(steps)
    return {
        "true attitude, central differences, torque timed": lambda run: sharpened(with_torque(exact)(run), steps),
        "the same, averaging of the differences left in": with_torque(exact),
        "and the torque the mean of before and after": with_torque(0.5),
        "and as recorded": with_torque(0.0),
        "observer `constrained`, estimated attitude, central differences": lambda run: observed(
            robot, centred(run, exact), _CENTRAL
        ),
        "observer `constrained` as configured (Savitzky-Golay 51)": lambda run: observed(robot, run, _TRIMMED),
        "observer `kalman`, friction and calibration": lambda run: kalman(robot, run, smooth=False),
        "`kalman`, smoothed, friction and calibration": lambda run: kalman(robot, run, smooth=True),
    }


def _identification(robot: Robot, model: RobotModel, runs: Sequence[SimulatedRun]) -> list[str]:
    lines: list[str] = []
    rows = []
    for label, estimate in _variants(robot, model, substeps(robot, runs[0])).items():
        frictions = [estimate(run) for run in runs]
        straight = fit_legs(runs[:1], frictions[:1], model.joint_names)
        both = fit_legs(runs, frictions, model.joint_names)
        rows.append((label, *_summary(straight, printed.STRAIGHT), *_summary(both, printed.SIDEWAYS_TOO)))
        print(*rows[-1], sep=" | ", file=sys.stderr)
        if not lines:
            lines += ["## Table 6.1: straight ahead", "", *_table(straight, printed.STRAIGHT)]
            lines += ["What the fit says of it, in its own words:", ""]
            lines += [f"- {text}" for text in straight.result.verdicts if "identifiable" in text or ": " not in text]
            lines += ["", "## Table 6.2: straight and sideways", "", *_table(both, printed.SIDEWAYS_TOO)]
    heading = (
        "friction from",
        *(f"{name}: {what}" for name in ("6.1", "6.2") for what in ("median", "no worse", "not shown")),
    )
    return [*lines, VARIANTS, *table(heading, rows)]


def _table(fit: FittedLegs, paper: FloatArray) -> list[str]:
    rows = []
    for row, (ours, theirs, shown) in enumerate(zip(fit.error, paper, fit.identifiable, strict=True)):
        cells = [_cell(*numbers) for numbers in zip(ours, theirs, shown, strict=True)]
        rows.append((f"{_SIDES[row // 6]} {printed.LEG_JOINTS[row % 6]}", *cells))
    return table(("error, ours / printed [%]", *printed.SYMBOLS), rows)


def _cell(ours: float, theirs: float, shown: bool) -> str:
    text = f"{number(ours)} / {number(theirs)}"
    if not _no_worse(ours, theirs):
        text = f"**{text}**"
    return text if shown else f"({text})"


def _no_worse(ours: float, theirs: float) -> bool:
    return round(ours, 2) <= theirs


def _summary(fit: FittedLegs, paper: FloatArray) -> tuple[str, str, str]:
    """Median error, how many are no worse than printed, how many are marked as not identifiable."""
    kept = sum(_no_worse(a, b) for a, b in zip(fit.error.ravel(), paper.ravel(), strict=True))
    return (
        f"{number(float(np.median(fit.error)))} % / {number(float(np.median(paper)))} %",
        f"{kept} of {paper.size}",
        str(int((~fit.identifiable).sum())),
    )


def _filters(robot: Robot, model: RobotModel, run: SimulatedRun, images: Path) -> list[str]:
    curves = studies.filtered(robot, run, model)
    figures.draw_filters(curves, images / "egle_filters.png")
    rows = [
        (name, number(curve.error(), 3), number(curve.error(0.0, 0.4), 3), number(curve.error(0.4), 3))
        for name, curve in curves.items()
    ]
    heading = ("acceleration from", "RMS error [N m]", "below 0.4 rad/s", "above")
    return [FILTERS, *table(heading, rows)]


def _inertias(robot: Robot, run: SimulatedRun, images: Path) -> list[str]:
    masses = {scale: studies.scaled(robot, run, scale, scale) for scale in studies.SCALES}
    inertias = {scale: studies.scaled(robot, run, 1.0, scale) for scale in studies.INERTIA_SCALES}
    shown = {"mass and moments of inertia times": masses, "moments of inertia times": inertias}
    figures.draw_inertias(shown, images / "egle_inertias.png")
    rows = [
        (f"{title} {scale:g}", *(number(value, 3) for value in (curve.shift, curve.separation, curve.driving)))
        for title, curves in shown.items()
        for scale, curve in curves.items()
    ]
    heading = ("model", "shift of the curve [N m]", "distance of the branches [N m]", "share that drives (eq. 7.9)")
    return [INERTIAS, *table(heading, rows)]
