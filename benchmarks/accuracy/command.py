"""The command line of the accuracy benchmark."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.accuracy.cases import CASES, case_names
from benchmarks.accuracy.page import page
from benchmarks.accuracy.results import Results, merge, read_json, write_json
from benchmarks.accuracy.runs import make_jobs, perform_all
from friction_estimator.config import parameter_fields
from friction_estimator.errors import ConfigError, FrictionEstimatorError
from friction_estimator.io.robot import load_robot

NOISES = ("clean", "paper_std", "paper", "realistic")
DURATION = 22.0
SEEDS = 2
QUICK = {"cases": ["walk", "push_knee"], "noise": list(NOISES[:2]), "seeds": 1, "duration": 12.0}
_DESCRIPTION = "Every observer on every case and sensor level: errors, consistency, references; one page and one JSON."


def observer_names() -> tuple[str, ...]:
    """The observers that a configuration may name, the default one last."""
    field = next(field for field in parameter_fields(()) if field.name == "observer")
    return tuple(sorted(field.range.choices, key=lambda name: (name == field.default, name)))


def make_parser() -> argparse.ArgumentParser:
    """Options of the command."""
    parser = argparse.ArgumentParser(description=_DESCRIPTION)
    parser.add_argument("--robot", default="suralp", help="name in config/robots or path of a YAML")
    parser.add_argument("--cases", nargs="+", choices=case_names(), default=list(CASES), metavar="CASE")
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES), metavar="LEVEL")
    observers = observer_names()
    parser.add_argument("--observers", nargs="+", choices=observers, default=list(observers), metavar="OBSERVER")
    parser.add_argument(
        "--judge", choices=observers, help="observer held against the targets; default: the last of --observers"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each case and noisy sensor level")
    parser.add_argument("--duration", type=float, default=DURATION, help="of each run, more than 7 [s]")
    parser.add_argument("--set", nargs="+", default=[], metavar="PARAMETER=VALUE", help="differing from the YAML")
    parser.add_argument("--quick", action="store_true", help="two cases, two sensor levels, one seed of 12 s")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at the same time")
    parser.add_argument("--from", dest="source", type=Path, help="make the page from this JSON, run nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/accuracy.md"), help="with .json beside")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write page and JSON, print their names."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.quick:  # options that were given stay
        parser.set_defaults(**QUICK)
        options = parser.parse_args(arguments)
    if options.duration <= 7.0 or options.seeds < 1 or options.processes < 1:
        parser.error("--duration must be more than 7 s, --seeds and --processes at least 1")
    if not options.output.parent.is_dir():  # said now, not after half an hour
        parser.error(f"there is no folder {options.output.parent} to write {options.output.name} to")
    source = options.source or options.output.with_suffix(".json")
    try:
        if not options.source:
            write_json(_run(options), source)
            print(source)
        results = read_json(source)
    except FrictionEstimatorError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 1
    options.output.write_text(page(results), encoding="utf-8")
    print(options.output)
    return 1 if results.failures else 0


def _run(options: argparse.Namespace) -> Results:
    changes = dict(_assignment(text) for text in options.set)
    load_robot(options.robot, changes)  # a wrong robot or parameter is refused before hours of work
    settings = {
        "command": shlex.join(["python", "benchmarks/accuracy.py", *_shown(options)]),
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
    return merge(settings, perform_all(jobs, options.processes, lambda line: print(line, file=sys.stderr, flush=True)))


def _assignment(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes PARAMETER=VALUE, got {text!r}")
    return name, yaml.safe_load(value)


def _shown(options: argparse.Namespace) -> list[str]:
    """The options that make another page than the defaults."""
    defaults = make_parser().parse_args([])
    shown = []
    for name in ("robot", "cases", "noise", "observers", "judge", "seeds", "duration", "set"):
        value = getattr(options, name)
        if value != getattr(defaults, name):
            shown += [f"--{name}", *(map(str, value) if isinstance(value, list) else [f"{value}"])]
    return shown
