"""What is each part of the Kalman stage worth, and is its plain covariance form numerically safe?

    python -m benchmarks.kalman [--duration 20] [--seeds 1]

Fills the tables of docs/results/kalman.md: 18 variants of the stage at three sensor levels, and other forms of the
filter. Takes 30 minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.kalman.forms import (
    Problem,
    covariance_form,
    largest_difference,
    record,
    square_root_form,
    unscented_form,
)
from benchmarks.kalman.variants import ROBOT, VARIANTS, Errors, measure_all
from benchmarks.shared.command import add_processes, command, command_line, count, longer_than, make_parser
from benchmarks.shared.estimates import configure
from benchmarks.shared.pages import DOCS, add_page, number, row_of, table
from benchmarks.shared.walks import find_case, simulate
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

NOISES = ("paper_std", "realistic", "paper")
LONG = 60.0
"""Length of the run for the forms of the filter [s]."""
UNSCENTED = 300
"""Number of windows for the unscented filter."""
PAGE = DOCS / "results" / "kalman.md"
SHORTEST = 6.0
"""Errors count from here on [s]."""

Found = Mapping[tuple[str, int], list[Errors]]
"""Errors of every seed, by noise level and number of the variant."""


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("kalman", __doc__)
    parser.add_argument("--duration", type=longer_than(SHORTEST), default=20.0, help="of each walk [s]")
    parser.add_argument("--seeds", type=count, default=1, help="of the sensor noise")
    add_processes(parser)
    add_page(parser, PAGE, "command", "errors", "variants", "forms")
    options = parser.parse_args(arguments)
    page = options.output
    page.fill("forms", forms(long_problem()))
    found: dict[tuple[str, int], list[Errors]] = {}
    for job, results in measure_all(NOISES, options.seeds, options.duration, options.processes):
        for variant, errors in results.items():
            found.setdefault((job.noise, variant), []).append(errors)
            print(job.noise, VARIANTS[variant].title, errors.stance.round(3), errors.swing.round(3), file=sys.stderr)
    page.fill("errors", absolute(found))
    page.fill("variants", relative(found))
    page.fill("command", [f"`{command_line('kalman', arguments)}`"])
    print(page.path)


def absolute(found: Found) -> list[str]:
    """Errors of the stage as it is, and of the smoother."""
    rows = []
    for noise in NOISES:
        for variant in (0, 1, 2):
            errors = found[noise, variant]
            rows.append(
                (
                    f"`{noise}`",
                    VARIANTS[variant].title,
                    row_of(_mean([one.stance for one in errors]), 3),
                    row_of(_mean([one.swing for one in errors]), 3),
                    number(float(np.mean([one.inside for one in errors])), 3),
                )
            )
    return table(("sensors", "", "stance", "swing", "inside 95 %"), rows)


def relative(found: Found) -> list[str]:
    """Every variant, its errors over those of the stage as it is, mean over the joints."""
    rows = []
    for variant in range(1, len(VARIANTS)):
        cells = []
        for noise in NOISES:
            ratios = [
                (one.stance / base.stance, one.swing / base.swing)
                for one, base in zip(found[noise, variant], found[noise, 0], strict=True)
            ]
            stance, swing = np.mean(ratios, axis=(0, 2))
            cells.append(f"{number(float(stance))} / {number(float(swing))}")
        inside = [min(float(one.inside.min()) for one in found[noise, variant]) for noise in NOISES]
        rows.append((VARIANTS[variant].title, *cells, row_of(inside)))
    return table(("", *(f"`{noise}`" for noise in NOISES), "inside 95 %"), rows)


def _mean(values: list[FloatArray]) -> FloatArray:
    return np.asarray(np.mean(values, axis=0))


def long_problem() -> Problem:
    """Windows of one leg in a long walk with realistic sensors."""
    robot = load_robot(ROBOT)
    run = simulate(robot, RobotModel(robot.config, robot.urdf_xml), find_case("walk").scenario(LONG), "realistic", 0)
    return record(configure(ROBOT, "realistic", {}), robot.urdf_xml, run)


def forms(problem: Problem) -> list[str]:
    """Unscented and square-root form against the covariance form."""
    plain, root = covariance_form(problem), square_root_form(problem)
    short = Problem(problem.layout, problem.config, problem.windows[:UNSCENTED])
    unscented = unscented_form(short)
    rows = [
        ("covariance, `P -= K C P`, symmetrised", str(len(problem.windows)), "", "", number(1e3 * plain.seconds, 1))
    ]
    for title, result, windows in (
        ("square root, by QR", root, len(problem.windows)),
        ("unscented, 2 s points", unscented, UNSCENTED),
    ):
        state, std = largest_difference(result, plain)
        rows.append((title, str(windows), f"{state:.0e}", f"{std:.0e}", number(1e3 * result.seconds, 1)))
    condition = f"{plain.condition.min():.0e} to {plain.condition.max():.0e}"
    return [*table(("form", "windows", "state", "sigma", "ms"), rows), f"Condition number of P: {condition}."]


if __name__ == "__main__":
    sys.exit(main())
