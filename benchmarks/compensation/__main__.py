"""What does friction compensation bring? The walk of Hashlamon & Erbatur 2014, section 7.4, in closed loop.

    python -m benchmarks.compensation [--walks 3] [--controllers ours ...] [--methods "kalman, desired" ...]

Fills the tables of docs/results/compensation.md, controller by controller, and draws its figure. The whole study takes
20 minutes on two cores; one controller, one method and one walk take one minute.

RSE is eq. 70, ``sqrt((c_des - c)^2)`` of each axis, averaged over a walk that stops at 10.1 s, and over walks with
different step lengths; the gain is by how much it shrinks. Sensors are those of `paper_std`, every estimator starts
from its prior as in the paper, and the torque made from a sample acts one millisecond later.

- CoM in the world is the published measure. No plan is corrected for where a foot has settled, so this error adds up
  from step to step and is largely random, even in the mean over walks.
- CoM over the feet is the same error relative to the feet that carry the robot: the part that the joints cause.
- Joints: mean error of all joint positions.
- "measured" and "desired" are values of `compensation.velocity`; "exact law" is the injected friction at the measured
  velocity; eq. 69 passes the friction of `fbse` through a low-pass of 1 to 4 rad/s (`published_torque_loop`).
- The published gains of eq. 68 get the feed-forward torque of our plan: without it the walk falls after 3 s.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.compensation.walks import CONTROLLERS, NONE, OURS, STEP_LENGTHS, Walk, method_names, walk
from benchmarks.shared import figures
from benchmarks.shared.command import add_processes, command, command_line, longer_than, make_parser
from benchmarks.shared.pages import DOCS, add_page, number, row_of, table
from friction_estimator.types import FloatArray

PAGE = DOCS / "results" / "compensation.md"
FIGURE = "compensation.svg"
DURATION = 12.0
_HEADING = (
    "compensation", "CoM in the world, RSE x y [mm]", "gain x y [%]", "CoM over the feet [mm]", "gain [%]",
    "joints: gain [%]",
)  # fmt: skip


@command
def main(arguments: Sequence[str] | None = None) -> None:
    methods = method_names()[1:]
    parser = make_parser("compensation", __doc__)
    parser.add_argument("--controllers", nargs="+", choices=CONTROLLERS, default=list(CONTROLLERS), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods), metavar="NAME")
    parser.add_argument("--walks", type=int, choices=range(1, len(STEP_LENGTHS) + 1), default=3)
    parser.add_argument("--duration", type=longer_than(1.0), default=DURATION, help="of each walk [s]")
    add_processes(parser)
    add_page(parser, PAGE, "command", *map(place, CONTROLLERS))
    options = parser.parse_args(arguments)
    page = options.output
    shown = OURS if OURS in options.controllers else options.controllers[0]
    lengths = STEP_LENGTHS[: options.walks]
    for controller, walks in perform(
        options.controllers, options.methods, lengths, options.duration, options.processes
    ):
        page.fill(place(controller), controller_table(walks))
        if controller == shown:
            best = options.methods[-1]
            draw(walks[NONE][0], walks[best][0], best, page.images / FIGURE)
    page.fill("command", [f"`{command_line('compensation', arguments)}`"])
    print(page.path)


def place(controller: str) -> str:
    """Name of the table of a controller on the page."""
    return f"controller {controller}"


def perform(
    controllers: Sequence[str], methods: Sequence[str], lengths: Sequence[float], duration: float, processes: int
) -> Iterator[tuple[str, dict[str, list[Walk]]]]:
    """All walks of each controller by method, those without compensation first."""
    jobs = list(product(controllers, (NONE, *methods), lengths))
    with ProcessPoolExecutor(processes) as pool:
        results = iter(zip(jobs, pool.map(partial(_walk, duration), jobs), strict=True))
        for controller in controllers:
            walks: dict[str, list[Walk]] = {}
            for _ in range(len(jobs) // len(controllers)):
                (_, method, _), run = next(results)
                walks.setdefault(method, []).append(run)
                print(f"{controller}; {method}: {run.fell or 'walked'}", file=sys.stderr)
            yield controller, walks


def _walk(duration: float, job: tuple[str, str, float]) -> Walk:
    return walk(*job, duration)


def controller_table(methods: Mapping[str, Sequence[Walk]]) -> list[str]:
    """One row a method; the gains are against the row without compensation."""
    before = summary(methods[NONE])
    rows = []
    for method, runs in methods.items():
        fallen = sum(bool(run.fell) for run in runs)
        if fallen:
            rows.append((method, f"fell in {fallen} of {len(runs)} walks", "", "", "", ""))
            continue
        now = summary(runs)
        gains = 100.0 * (1.0 - now / before)
        world, feet = (row_of(1e3 * now[part], 3) for part in (slice(0, 2), slice(2, 4)))
        rows.append((method, world, row_of(gains[:2], 0), feet, row_of(gains[2:4], 0), number(gains[4], 0)))
    return table(_HEADING, rows)


def summary(runs: Sequence[Walk]) -> FloatArray:
    """Mean over walks of: RSE x, y in the world, error x, y over the feet [m], error of the joints [rad]; (5,)."""
    each = [
        np.concatenate(
            [run.root_square_error.mean(axis=0), np.abs(run.over_feet).mean(axis=0), [np.abs(run.joints).mean()]]
        )
        for run in runs
    ]
    return np.asarray(np.mean(each, axis=0))


def draw(before: Walk, after: Walk, label: str, path: Path) -> None:
    """Figure 8: trajectory of the centre of mass and its root square error, with and without compensation."""
    rows = []
    for column, axis in enumerate("xy"):
        top = figures.Panel(y_label=f"c_{axis} [m]", legend=column == 0)
        middle = figures.Panel(y_label=f"RSE in c_{axis} [mm]")
        bottom = figures.Panel("", "time [s]", "over the feet [mm]")
        top.line(before.time, before.wanted[:, column], figures.BLACK, "desired")
        for run, name, colour in ((before, "without", figures.RED), (after, label, figures.BLUE)):
            top.line(run.time, run.actual[:, column], colour, name, 0.8)
            middle.line(run.time, 1e3 * run.root_square_error[:, column], colour, width=0.8)
            bottom.line(run.time, 1e3 * np.abs(run.over_feet[:, column]), colour, width=0.8)
        rows.append((top, middle, bottom))
    figures.draw(path, list(zip(*rows, strict=True)), 900.0, 600.0)


if __name__ == "__main__":
    sys.exit(main())
