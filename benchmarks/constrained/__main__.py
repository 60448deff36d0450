"""How accurate is friction without force sensors, by constrained dynamics (Egle 2021, chapters 5 and 6)?

    python -m benchmarks.constrained [--duration 22]

Fills the tables of docs/results/constrained.md and draws its three figures. Takes ten minutes.

Six numbers in a cell are hip yaw, hip roll, hip pitch, knee, ankle pitch and ankle roll, both legs together.

- Rigid ground: the planned walk (single support 0.8 s, step 0.2 m), torques by inverse dynamics, friction of eq. 3.5 in
  the right knee only; single support by eq. 5.13, double support by eq. 6.1.
- Built-in walk: 22 s in MuJoCo, from 2 s on, friction of Table I in all joints, a large `constrained.max_sigma`. Errors
  are those against the true friction of the instant that the estimate is about; "when published" against the friction
  at the time of publication, as for FBSE and momentum observer, which estimate at all times. Velocities and eqs. 6.2
  and 6.3 are trimmed by 0.12 s, too. NEES is that of stance and of swing; true states have no covariance, so no NEES.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.constrained.measure import (
    LEG,
    SCHEMES,
    SETTLED,
    Errors,
    errors_with_true_states,
    measured_errors,
    published_errors,
    rigid_friction,
)
from benchmarks.constrained.rigid_walk import PERIOD, RigidWalk, rigid_walk
from benchmarks.shared import figures
from benchmarks.shared.command import command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, Page, add_page, number, row_of, table
from benchmarks.shared.walks import LEG_JOINTS, SimulatedRun, simulate
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import Gait, make_scenario
from friction_estimator.types import BoolArray, FloatArray

PAGE = DOCS / "results" / "constrained.md"
NOISES = ("clean", "paper_std")
GAIT = Gait(single_support=0.8, double_support=0.3, step_length=0.2)
"""As long a single support as in the thesis."""
JOINT = 9  # right knee
LONG_TRIM = {"constrained.trim_start": 0.12, "constrained.trim_end": 0.12}
SETTINGS: dict[str, dict[str, Any]] = {
    "as configured: positions, Savitzky-Golay 51": {},
    "trimmed by 0.12 s at both ends": LONG_TRIM,
    "velocities, Savitzky-Golay 51": {**LONG_TRIM, "constrained.signal": "velocity"},
    "positions, central difference (eq. 6.2)": {**LONG_TRIM, "constrained.window": 3, "constrained.order": 2},
    "velocities, backward difference (eq. 6.3)": {
        **LONG_TRIM,
        "constrained.signal": "velocity",
        "constrained.differences": "backward",
        "constrained.window": 2,
        "constrained.order": 1,
    },
}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("constrained", __doc__)
    parser.add_argument("--duration", type=longer_than(SETTLED), default=22.0, help="of the simulated walk [s]")
    add_page(parser, PAGE, "command", "rigid walk", *map(place, NOISES))
    options = parser.parse_args(arguments)
    page, robot = options.output, load_robot("suralp")
    rigid_study(robot, page)
    model = RobotModel(robot.config, robot.urdf_xml)
    for noise in NOISES:
        run = simulate(robot, model, make_scenario("walk", options.duration), noise, 0)
        heading = ("", "stance", "swing", "share of single support", "NEES")
        page.fill(place(noise), table(heading, simulated_rows(robot, run, noise)))
    page.fill("command", [f"`{command_line('constrained', arguments)}`"])
    print(page.path)


def place(noise: str) -> str:
    """Name of the table of a sensor level on the page."""
    return f"sensors {noise}"


def rigid_study(robot: Robot, page: Page) -> None:
    """Table and figures of the rigid walk with exact signals."""
    walk = rigid_walk(robot, GAIT, 6.0, "r_knee")
    schemes = {name: rigid_friction(robot, walk, name) for name in SCHEMES}
    page.fill("rigid walk", rigid_table(walk, schemes))
    draw_supports(walk, schemes["exact"], JOINT, page.images / "constrained_supports.svg")
    draw_differences(walk, schemes, JOINT, page.images / "constrained_differences.svg")
    draw_over_velocity(walk, schemes, page.images / "constrained_velocity.svg")


def rigid_table(walk: RigidWalk, schemes: dict[str, FloatArray]) -> list[str]:
    """Errors on the rigid walk by difference scheme."""
    rows = []
    left, right = (single_support(walk, right=stands) for stands in (False, True))
    for name, friction in schemes.items():
        error = friction - walk.friction
        stance = np.concatenate((error[left, :LEG], error[right, LEG:]))
        swing = np.concatenate((error[right, :LEG], error[left, LEG:]))
        largest = max(np.abs(stance).max(), np.abs(swing).max())
        rows.append((SCHEMES[name], *(_rms_cell(e) for e in (stance, swing)), f"{largest:.0e}"))
    both = (schemes["exact"] - walk.friction)[walk.contact.all(axis=1)].reshape(-1, LEG)
    largest = np.abs(both).max()
    rows.append(("double support, exact acceleration, eq. 6.1", _rms_cell(both), "", f"{largest:.0e}"))
    return table(("accelerations", "stance", "swing", "largest error"), rows)


def _rms_cell(error: FloatArray) -> str:
    return row_of(np.sqrt((error**2).mean(axis=0)), 4)


def simulated_rows(robot: Robot, run: SimulatedRun, noise: str) -> Iterator[tuple[str, ...]]:
    """Errors on the simulated walk by setting, and of other observers."""
    if noise == "clean":
        yield from _true_rows(robot, run)
    for label, changes in SETTINGS.items():
        errors = measured_errors(robot, run, noise, changes)
        if not changes:
            delayed = row_of(errors.late_stance), row_of(errors.late_swing)
        print(noise, label, errors.stance.round(3), errors.swing.round(3), file=sys.stderr)
        yield _row(label, errors)
    yield ("as configured, when published", *delayed, "", "")
    for label, name in (("FBSE as published", "fbse"), ("momentum observer", "momentum")):
        yield (label, *(row_of(rms) for rms in published_errors(robot, run, noise, name)), "", "")


def _true_rows(robot: Robot, run: SimulatedRun) -> list[tuple[str, ...]]:
    rows = []
    for label, changes in (("true states", {}), ("true states, trimmed by 0.12 s", LONG_TRIM)):
        rows.append((*_row(label, errors_with_true_states(robot, run, changes))[:-1], ""))
    return rows


def _row(label: str, errors: Errors) -> tuple[str, ...]:
    return label, row_of(errors.stance), row_of(errors.swing), number(errors.share), row_of(errors.nees)


def draw_supports(walk: RigidWalk, friction: FloatArray, joint: int, path: Path) -> None:
    """Figure 6.1: friction of one joint only, estimated in single and in double support."""
    top = figures.Panel("grey: double support", "", "right knee [N m]", legend=True)
    bottom = figures.Panel("", "time [s]", "the other 11 joints [N m]")
    time = PERIOD * np.arange(len(friction))
    double = np.concatenate(([0], walk.contact.all(axis=1).astype(int), [0]))
    for start, end in zip(np.flatnonzero(np.diff(double) > 0), np.flatnonzero(np.diff(double) < 0), strict=True):
        for panel in (top, bottom):
            panel.band(PERIOD * start, PERIOD * end)
    top.line(time, friction[:, joint], figures.RED, "estimated")
    top.line(time, walk.friction[:, joint], figures.BLACK, "target", 0.8, dashed=True)
    others = np.delete(np.arange(friction.shape[1]), joint)
    for k, other in enumerate(others):
        bottom.line(time, friction[:, other], figures.COLOURS[k % len(figures.COLOURS)], width=0.8)
    figures.draw(path, [[top], [bottom]])


def draw_differences(walk: RigidWalk, schemes: dict[str, FloatArray], joint: int, path: Path) -> None:
    """Figure 6.2: the same knee in swing and in stance, by difference scheme, and the errors."""
    time, columns = PERIOD * np.arange(len(walk.friction)), []
    for label, rows in _phases(walk):
        top = figures.Panel(label, "", "right knee [N m]", legend=not columns)
        bottom = figures.Panel("", "time [s]", "error [mN m]")
        top.line(time[rows], walk.friction[rows, joint], figures.BLACK, "target", 1.6)
        for name, colour in (("central", figures.BLUE), ("backward", figures.RED)):
            error = schemes[name][rows, joint] - walk.friction[rows, joint]
            top.line(time[rows], schemes[name][rows, joint], colour, name, 0.9)
            bottom.line(time[rows], 1e3 * error, colour, width=0.9)
        columns.append((top, bottom))
    panels = list(zip(*columns, strict=True))
    for row in panels:
        figures.share_limits(row, "y")
    figures.draw(path, panels, height=520.0)


def draw_over_velocity(walk: RigidWalk, schemes: dict[str, FloatArray], path: Path) -> None:
    """Figure 6.3 as errors: knee and ankle pitch of the right leg over their velocity, swing and stance."""
    velocity, panels = walk.column("velocity"), []
    for joint in (9, 10):
        name, row = LEG_JOINTS[joint - LEG], []
        for stands, title in ((False, "right leg swings"), (True, "right leg stands")):
            rows = single_support(walk, right=stands)
            panel = figures.Panel(title, f"velocity of the {name} [rad/s]", f"{name}: error [mN m]", legend=not panels)
            for scheme, colour in (("backward", figures.RED), ("central", figures.BLUE)):
                error = schemes[scheme][rows, joint] - walk.friction[rows, joint]
                panel.dots(velocity[rows, joint], 1e3 * error, colour, scheme)
            row.append(panel)
        figures.share_limits(row, "x")
        figures.share_limits(row, "y")
        panels.append(row)
    figures.draw(path, panels, height=520.0)


def single_support(walk: RigidWalk, right: bool) -> BoolArray:
    """Rows (m,) where only that foot stands, without the samples whose differences reach over a change."""
    stands = walk.contact[:, 1] if right else walk.contact[:, 0]
    alone = stands & (walk.contact.sum(axis=1) == 1)
    return alone & np.roll(alone, 1) & np.roll(alone, -1)


def _phases(walk: RigidWalk) -> list[tuple[str, slice]]:
    """The second swing of the right leg, and the stance before it."""
    result = []
    for label, right in (("right leg swings", False), ("right leg stands", True)):
        rows = np.flatnonzero(single_support(walk, right))
        starts = rows[np.flatnonzero(np.diff(rows, prepend=-9) > 1)]
        last = rows[rows < (starts[2] if len(starts) > 2 else len(walk.friction))][-1]
        result.append((label, slice(int(starts[1]), int(last) + 1)))
    return result


if __name__ == "__main__":
    sys.exit(main())
