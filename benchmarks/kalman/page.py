"""The tables of docs/results/kalman.md, between markers: the words are the page's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.cases import find_case
from benchmarks.accuracy.markdown import number, row_of, table
from benchmarks.accuracy.simulated_run import simulate
from benchmarks.accuracy.track import configure
from benchmarks.kalman.forms import (
    Problem,
    covariance_form,
    largest_difference,
    record,
    square_root_form,
    unscented_form,
)
from benchmarks.kalman.measure import ROBOT, Errors, measure_all
from benchmarks.kalman.variants import VARIANTS
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FloatArray

NOISES = ("paper_std", "realistic", "paper")
LONG = 60.0
"""Length of the run for the forms of the filter [s]."""
UNSCENTED = 300
"""Windows that the unscented filter is tried on."""
DOCS = Path(__file__).resolve().parents[2] / "docs"

Found = Mapping[tuple[str, int], list[Errors]]
"""Errors of every seed, by noise level and number of the variant."""


def main() -> int:
    """Measure, then write the tables into the page."""
    parser = argparse.ArgumentParser(description="What the parts of the Kalman stage are worth: docs/results/kalman.md")
    parser.add_argument("--duration", type=float, default=20.0, help="of each walk [s]; errors count from 6 s")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=DOCS / "results" / "kalman.md")
    options = parser.parse_args()
    text = options.output.read_text()
    fill(fill(text, "errors", []), "forms", [])  # a page without the markers ends it before the work
    found: dict[tuple[str, int], list[Errors]] = {}
    for job, results in measure_all(NOISES, options.seeds, options.duration, options.processes):
        for variant, errors in results.items():
            found.setdefault((job.noise, variant), []).append(errors)
            print(job.noise, VARIANTS[variant].title, errors.stance.round(3), errors.swing.round(3), file=sys.stderr)
    command = f"python benchmarks/kalman_study.py --duration {options.duration:g} --seeds {options.seeds}"
    errors = [f"Made by `{command}`; errors after 6 s.", "", *absolute(found), *relative(found)]
    text = fill(fill(text, "errors", errors), "forms", forms(long_problem()))
    options.output.write_text(text)
    print(options.output)
    return 0


def fill(text: str, name: str, lines: Sequence[str]) -> str:
    """The page with these lines between its markers of that name.

    Raises
    ------
    SystemExit
        When the page does not have the markers.
    """
    begin, end = f"<!-- begin of the {name} -->", f"<!-- end of the {name} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"the page has no lines {begin!r} and {end!r} to write between")
    return "\n".join([f"{before}{begin}", "", *lines, "", f"{end}{after}"])


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
    lines = [
        "",
        "Errors relative to those of the stage as it is, mean over the joints, stance / swing; and the part of the",
        "samples with an error inside its own 95 % interval, the worst joint at each level:",
        "",
    ]
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
    return [*lines, *table(("", *(f"`{noise}`" for noise in NOISES), "inside 95 %"), rows)]


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
    return [
        f"Condition number of P during {LONG:g} s, units taken out (correlations): {condition}.",
        "Largest difference to the covariance form, of a state in its sigmas and of a sigma relative, and time a",
        "window in dense NumPy:",
        "",
        *table(("form", "windows", "state", "sigma", "ms"), rows),
    ]
