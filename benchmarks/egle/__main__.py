"""How accurate is the identification of Egle 2021 (section 6.2.2, chapter 7), compared with the thesis?

    python -m benchmarks.egle [--duration 14]

Fills the tables of docs/results/egle.md (Tables 6.1 and 6.2) and draws figures 7.2, 7.5 and 7.6. Takes ten minutes.

The robot walks in MuJoCo with exact sensors: straight ahead, and sideways to both sides (`walks.GAIT`, `walks.ASIDE`).
All leg joints have the friction of eq. 3.5 with the parameters of the tables. Friction is estimated in the swing of
each leg, without 0.1 s at both ends, and eq. 3.5 is fitted by plain least squares (eq. 6.4) from many starts. The two
tables use the true attitude, central differences of the positions (eq. 6.2), and each torque as the integrator of the
simulation uses it (`walks.torque_weight`, `walks.sharpened`). The Kalman observer also measures in stance
(`walks.kalman`).

In figures 7.5 and 7.6 the simulation is unchanged, and all bodies of the estimator's model are scaled. The shift is the
mean error of the curve, the distance that between its branches of rising and falling speed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.egle.fits import SIDEWAYS_TOO, STRAIGHT, SYMBOLS, FittedLegs, fit_legs
from benchmarks.egle.knee import INERTIA_SCALES, SCALES, draw_filters, draw_inertias, filtered, scaled
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
from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, Page, add_page, number, table
from benchmarks.shared.walks import LEG_JOINTS, SimulatedRun
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

PAGE = DOCS / "results" / "egle.md"
SHORTEST = 5.0
"""Shortest walk with several swings of each leg, which cross-validation needs [s]."""
_TRIMMED = {"constrained.trim_start": 0.1, "constrained.trim_end": 0.1}
_CENTRAL = {**_TRIMMED, "constrained.window": 3, "constrained.order": 2}
_SIDES = ("left", "right")

Estimate = Callable[[SimulatedRun], FloatArray]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("egle", __doc__)
    parser.add_argument("--duration", type=longer_than(SHORTEST), default=14.0, help="of each walk [s]")
    add_page(parser, PAGE, "command", "table 6.1", "fit report", "table 6.2", "estimates", "filters", "inertias")
    options = parser.parse_args(arguments)
    page, robot = options.output, load_robot("suralp")
    model = RobotModel(robot.config, robot.urdf_xml)
    runs = walks(robot, model, options.duration)
    filters(robot, model, runs[0], page)
    inertias(robot, runs[0], page)
    identification(robot, model, runs, page)
    page.fill("command", [f"`{command_line('egle', arguments)}`"])
    print(page.path)


def identification(robot: Robot, model: RobotModel, runs: Sequence[SimulatedRun], page: Page) -> None:
    """Tables 6.1 and 6.2, and their errors from other estimates of the friction."""
    rows: list[tuple[str, ...]] = []
    heading = (
        "friction from",
        *(f"{name}: {what}" for name in ("6.1", "6.2") for what in ("median", "no worse", "not shown")),
    )
    for label, estimate in _variants(robot, model, substeps(robot, runs[0])).items():
        frictions = [estimate(run) for run in runs]
        straight = fit_legs(runs[:1], frictions[:1], model.joint_names)
        both = fit_legs(runs, frictions, model.joint_names)
        if not rows:
            page.fill("table 6.1", _table(straight, STRAIGHT))
            texts = [text for text in straight.result.verdicts if "identifiable" in text or ": " not in text]
            page.fill("fit report", [f"- {text}" for text in texts])
            page.fill("table 6.2", _table(both, SIDEWAYS_TOO))
        rows.append((label, *_summary(straight, STRAIGHT), *_summary(both, SIDEWAYS_TOO)))
        page.fill("estimates", table(heading, rows))
        print(*rows[-1], sep=" | ", file=sys.stderr)


def _variants(robot: Robot, model: RobotModel, steps: int) -> dict[str, Estimate]:
    """Estimates of the friction by name; the first one is that of the tables."""

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


def _table(fit: FittedLegs, paper: FloatArray) -> list[str]:
    rows = []
    for row, (ours, theirs, shown) in enumerate(zip(fit.error, paper, fit.identifiable, strict=True)):
        cells = [_cell(*numbers) for numbers in zip(ours, theirs, shown, strict=True)]
        rows.append((f"{_SIDES[row // 6]} {LEG_JOINTS[row % 6]}", *cells))
    return table(("error, ours / published [%]", *SYMBOLS), rows)


def _cell(ours: float, theirs: float, shown: bool) -> str:
    text = f"{number(ours)} / {number(theirs)}"
    if not _no_worse(ours, theirs):
        text = f"**{text}**"
    return text if shown else f"({text})"


def _no_worse(ours: float, theirs: float) -> bool:
    return round(ours, 2) <= theirs


def _summary(fit: FittedLegs, paper: FloatArray) -> tuple[str, str, str]:
    """Median error, number of errors not above the published ones, number of parameters marked as not identifiable."""
    kept = sum(_no_worse(a, b) for a, b in zip(fit.error.ravel(), paper.ravel(), strict=True))
    return (
        f"{number(float(np.median(fit.error)))} % / {number(float(np.median(paper)))} %",
        f"{kept} of {paper.size}",
        str(int((~fit.identifiable).sum())),
    )


def filters(robot: Robot, model: RobotModel, run: SimulatedRun, page: Page) -> None:
    """Figure 7.2 and its table."""
    curves = filtered(robot, run, model)
    draw_filters(curves, page.images / "egle_filters.svg")
    rows = [
        (name, number(curve.error(), 3), number(curve.error(0.0, 0.4), 3), number(curve.error(0.4), 3))
        for name, curve in curves.items()
    ]
    page.fill("filters", table(("acceleration from", "RMS error [N m]", "below 0.4 rad/s", "above"), rows))


def inertias(robot: Robot, run: SimulatedRun, page: Page) -> None:
    """Figures 7.5 and 7.6 and their table."""
    shown = {
        "mass and moments of inertia times": {scale: scaled(robot, run, scale, scale) for scale in SCALES},
        "moments of inertia times": {scale: scaled(robot, run, 1.0, scale) for scale in INERTIA_SCALES},
    }
    draw_inertias(shown, page.images / "egle_inertias.svg")
    rows = [
        (f"{title} {scale:g}", *(number(value, 3) for value in (curve.shift, curve.separation, curve.driving)))
        for title, curves in shown.items()
        for scale, curve in curves.items()
    ]
    heading = ("model", "shift of the curve [N m]", "distance of the branches [N m]", "share that drives (eq. 7.9)")
    page.fill("inertias", table(heading, rows))


if __name__ == "__main__":
    sys.exit(main())
