"""How well is friction estimated? Every observer on every case and sensor level, against targets and references.

    python -m benchmarks.accuracy [--cases walk ...] [--noise paper_std ...] [--observers ...] [--seeds 2] [--quick]

Writes all numbers to FOLDER/accuracy.json while the runs finish, then fills the tables of docs/results/accuracy.md and
writes FOLDER/accuracy_details.md. All cases take more than half an hour on two cores, ``--quick`` ten minutes or less.

Errors are in N m and count from 6 s on. A cell with six numbers has hip yaw, hip roll, hip pitch, knee, ankle pitch and
ankle roll, both legs together; values of `friction_load` are parts of the RMS of the friction. Stance and swing follow
from the true wrenches, by the contact detector of the estimator. All observers get the same recording, the datasheet of
the sensors, and the other parameters of the robot's YAML. A seed draws noise, biases and gain errors of the sensors, in
`inertia_errors` also masses and centres of mass. All seeds have the same motion, and errors are means over the seeds.
`clean` sensors have no noise: one seed.

A Wiener filter is the best linear filter of the momentum residual (`wiener.py`). It has no friction law and no
calibration, so an observer that has them may be better; the causal one uses no later samples. The best law is the
linear law that fits the true friction best at the true velocity and motor torque: no estimate by a law alone is better.
"fbse / kalman" is a geometric mean over joints and phases; 5 is required.

NEES is the mean of (error / published sigma)^2, 1 for a consistent sigma. "Inside" is the part of the samples below
3.84, the 95 % quantile of chi-square with one degree of freedom. Joints and samples are tested one by one, because the
estimator publishes no covariance between joints. Errors that are correlated over time scatter the part inside, but its
mean stays 95 %, so 90 % is required. Bold: less. Italic: a mean NEES below 0.05, so sigma is much too wide. Joints with
an error below 1 mN m do not count.

The external torque of a push counts at its end. A push is detected at the first sample at which the external torque of
any joint exceeds five of its sigmas; false alarms are the part of all other late samples at which that happens.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.accuracy.results import Results, merge, read_json, write_json
from benchmarks.accuracy.runs import make_jobs, perform_all
from benchmarks.accuracy.tables import PLACES, details, page_tables
from benchmarks.shared.command import (
    add_processes,
    command,
    command_line,
    count,
    existing_path,
    longer_than,
    make_parser,
)
from benchmarks.shared.pages import DOCS, add_page
from benchmarks.shared.walks import CASES, case_names
from friction_estimator.config import parameter_fields
from friction_estimator.errors import ConfigError
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.robot import load_robot

PAGE = DOCS / "results" / "accuracy.md"
NOISES = ("clean", "paper_std", "paper", "realistic")
DURATION = 22.0
SEEDS = 2
QUICK = {"cases": ["walk", "push_knee"], "noise": list(NOISES[:2]), "seeds": 1, "duration": 12.0}
_SHORTEST = 7.0
"""Errors count after 6 s [s]."""


def observer_names() -> tuple[str, ...]:
    """The observers that a configuration may name, the default one last."""
    field = next(field for field in parameter_fields(()) if field.name == "observer")
    return tuple(sorted(field.range.choices, key=lambda name: (name == field.default, name)))


def options_parser() -> argparse.ArgumentParser:
    """Options of the command."""
    parser = make_parser("accuracy", __doc__)
    observers = observer_names()
    parser.add_argument("--robot", default="suralp", help="name in config/robots or path of a YAML")
    parser.add_argument("--cases", nargs="+", choices=case_names(), default=list(CASES), metavar="CASE")
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES), metavar="LEVEL")
    parser.add_argument("--observers", nargs="+", choices=observers, default=list(observers), metavar="OBSERVER")
    parser.add_argument("--judge", choices=observers, help="observer of the targets; default: the last of --observers")
    parser.add_argument("--seeds", type=count, default=SEEDS, help="runs of each case and noisy sensor level")
    parser.add_argument("--duration", type=longer_than(_SHORTEST), default=DURATION, help="of each run [s]")
    parser.add_argument("--set", nargs="+", default=[], metavar="PARAMETER=VALUE", help="differing from the YAML")
    parser.add_argument("--quick", action="store_true", help="two cases, two sensor levels, one seed of 12 s")
    add_processes(parser)
    parser.add_argument(
        "--from", dest="source", type=existing_path, metavar="JSON", help="no runs; tables of this file"
    )
    parser.add_argument("--results", type=Path, default="accuracy_results", metavar="FOLDER", help="for all numbers")
    add_page(parser, PAGE, *PLACES)
    return parser


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = options_parser()
    options = parser.parse_args(arguments)
    if options.quick:  # options that were given stay
        parser.set_defaults(**QUICK)
        options = parser.parse_args(arguments)
    options.results.mkdir(exist_ok=True)
    if options.source:
        results = read_json(options.source)
    else:
        results = _run(options, command_line("accuracy", arguments), options.results / "accuracy.json")
    write_atomically(options.results / "accuracy_details.md", details(results))
    for place, lines in page_tables(results).items():
        options.output.fill(place, lines)
    print(options.results / "accuracy_details.md", options.output.path, sep="\n")
    return 1 if results.failures else 0


def _run(options: argparse.Namespace, line: str, file: Path) -> Results:
    changes = dict(_assignment(text) for text in options.set)
    load_robot(options.robot, changes)  # a wrong robot or parameter is an error before the work, not after it
    settings = {
        "command": line,
        "robot": options.robot,
        "cases": options.cases,
        "noise": options.noise,
        "observers": options.observers,
        "judged": options.judge or options.observers[-1],
        "seeds": options.seeds,
        "duration": options.duration,
    }
    jobs = make_jobs(
        options.robot, options.cases, options.noise, options.observers, options.seeds, options.duration, changes
    )
    results = Results(settings)
    for part in perform_all(jobs, options.processes, lambda line: print(line, file=sys.stderr, flush=True)):
        results = merge(settings, (results, part))
        write_json(results, file)
    print(file)
    return results


def _assignment(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes PARAMETER=VALUE, got {text!r}")
    return name, yaml.safe_load(value)


if __name__ == "__main__":
    sys.exit(main())
