"""The command line of the compensation benchmark."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.compensation.closed_loop import STEP_LENGTHS, Walk, walk
from benchmarks.compensation.controllers import CONTROLLERS, OURS
from benchmarks.compensation.methods import NONE, method_names
from benchmarks.compensation.page import Walks, draw, page

DURATION = 12.0
_DESCRIPTION = "The walk of the paper with and without friction compensation: one page and one figure."


def make_parser() -> argparse.ArgumentParser:
    """Options of the command."""
    methods = method_names()
    parser = argparse.ArgumentParser(description=_DESCRIPTION)
    parser.add_argument("--controllers", nargs="+", choices=CONTROLLERS, default=list(CONTROLLERS), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=methods[1:], default=list(methods[1:]), metavar="NAME")
    parser.add_argument("--walks", type=int, choices=range(1, len(STEP_LENGTHS) + 1), default=3)
    parser.add_argument("--duration", type=float, default=DURATION, help="of each walk [s]")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at the same time")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("docs/results/compensation.md"), help="images/ lies beside it"
    )
    return parser


def perform(
    controllers: Sequence[str], methods: Sequence[str], lengths: Sequence[float], duration: float, processes: int
) -> Walks:
    """All walks, those without compensation first."""
    names = list(product(controllers, (NONE, *methods)))
    jobs = [(controller, method, length) for controller, method in names for length in lengths]
    with ProcessPoolExecutor(processes) as pool:
        results = pool.map(partial(_walk, duration), jobs)
        walks: dict[tuple[str, str], tuple[Walk, ...]] = dict.fromkeys(names, ())
        for (controller, method, _), run in zip(jobs, results, strict=True):
            walks[controller, method] = (*walks[controller, method], run)
            print(f"{controller}; {method}: {run.fell or 'walked'}", file=sys.stderr)
    return walks


def _walk(duration: float, job: tuple[str, str, float]) -> Walk:
    return walk(*job, duration)


def main(arguments: Sequence[str] | None = None) -> int:
    """Walk, write page and figure, print the name of the page."""
    options = make_parser().parse_args(arguments)
    walks = perform(
        options.controllers, options.methods, STEP_LENGTHS[: options.walks], options.duration, options.processes
    )
    images = options.output.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    shown = OURS if OURS in options.controllers else options.controllers[0]
    best = options.methods[-1]
    draw(walks[shown, NONE][0], walks[shown, best][0], best, images / "compensation.png")
    command = shlex.join(["python", "benchmarks/compensation.py", *(sys.argv[1:] if arguments is None else arguments)])
    options.output.write_text(page(walks, command, "images/compensation.png"), encoding="utf-8")
    print(options.output)
    return 0
