"""What is each part of the Kalman stage worth?

    python -m benchmarks.kalman [--duration 20] [--seeds 1]

Fills the tables of docs/results/kalman.md: 16 variants of the stage at three sensor levels, on a walk of the built-in
biped. Errors count from 6 s on; the same joint of both legs counts together. The second table has the mean over the
joints, and the fraction of errors inside their 95 % interval, of the worst joint at each level. Takes 30 minutes on two
cores.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.kalman.variants import VARIANTS, Errors, measure_all
from benchmarks.shared.command import add_processes, command, command_line, count, longer_than, make_parser
from benchmarks.shared.pages import DOCS, add_page, number, row_of, table
from friction_estimator.types import FloatArray

NOISES = ("paper_std", "realistic", "paper")
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
    add_page(parser, PAGE, "command", "errors", "variants")
    options = parser.parse_args(arguments)
    page = options.output
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
        for variant in (0, 1):
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


if __name__ == "__main__":
    sys.exit(main())
