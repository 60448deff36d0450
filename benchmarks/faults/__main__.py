"""What does the estimator do when sensors, files, signals or other processes fail? A table of faults and outcomes.

    python -m benchmarks.faults [--only FAULT ...] [--drivers Estimator replay node] [--random SECONDS]

Faults of the sensor streams run through the estimator, the replay of a bag and the live node; faults of process, files
and middleware through the node and the command line; drives that do not obey in closed loop with the simulation. Fills
the tables of docs/results/reliability.md; lines of faults that did not run stay. All faults take about 100 minutes.
With ``--random`` the live node goes through random faults of the streams for this real time instead.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.matrix import DRIVERS, Fault, ProcessFault, stream_faults
from benchmarks.faults.offline import make_stream, run_estimator, run_replay
from benchmarks.faults.readings import Walk, simulated_walk
from benchmarks.faults.runs import Outcome
from benchmarks.shared.command import command, command_line, longer_than, make_parser, output_file, require
from benchmarks.shared.pages import DOCS, NOTHING, add_page, number, table
from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.robot import load_robot
from friction_estimator.kernels import compiler

PAGE = DOCS / "results" / "reliability.md"
STREAMS, PROCESSES, RANDOM = "faults of the streams", "faults of process and files", "random faults"
_WALK = 36.0
"""Duration of the simulated walk, which is repeated [s]."""
_BEFORE, _AFTER = 6.0, 6.0
"""Good data before a fault and after it [s]."""
_SEED = 1
_PROCESS = "process"


def options_parser() -> argparse.ArgumentParser:
    """Options of the command."""
    parser = make_parser("faults", __doc__)
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="run these faults; --list shows their names")
    parser.add_argument("--drivers", nargs="+", choices=(*DRIVERS, _PROCESS), default=[*DRIVERS, _PROCESS])
    parser.add_argument(
        "--random", type=longer_than(0.0), metavar="SECONDS", help="random faults through the live node"
    )
    parser.add_argument("--seed", type=int, default=_SEED, help="of the faults")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    parser.add_argument(
        "--results", type=output_file, default="faults.json", metavar="FILE", help="of all outcomes so far"
    )
    add_page(parser, PAGE, STREAMS, PROCESSES, RANDOM)
    return parser


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = options_parser()
    options = parser.parse_args(arguments)
    if {"node", _PROCESS} & set(options.drivers):
        require("rclpy", "Faults of the live node")
    from benchmarks.faults import drives, node, processes  # they need ROS

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the node must end with this process
    walk, others = simulated_walk(load_robot("suralp"), _WALK), processes.process_faults() | drives.drive_faults()
    streams = stream_faults(walk)
    unknown = sorted(set(options.only or ()) - {*streams, *others})
    if unknown:
        parser.error(f"argument --only: no faults {', '.join(unknown)}; --list prints the names")
    if options.list:
        print(*(f"{fault.name:24} {fault.what}" for fault in (*streams.values(), *others.values())), sep="\n")
        return 0
    chosen = [fault for fault in streams.values() if not options.only or fault.name in options.only]
    compiler.prepare()  # else each of the first processes would compile the kernels
    with tempfile.TemporaryDirectory(prefix="friction_estimator_faults_") as name, node.middleware():
        if options.random:
            return _random(options, walk, chosen, Path(name), command_line("faults", arguments))
        results = Results(options.results)
        for driver in (driver for driver in DRIVERS if driver in options.drivers):
            _run(walk, [fault for fault in chosen if driver in fault.drivers], driver, options, Path(name), results)
        if _PROCESS in options.drivers:
            for fault in others.values():
                if not options.only or fault.name in options.only:
                    results.add(_process(fault, walk, Path(name)))
    options.output.fill(STREAMS, stream_table(streams.values(), results))
    options.output.fill(PROCESSES, process_table(others.values(), results))
    return 1 if results.failed else 0


class Results:
    """Outcomes of this run and of earlier ones, in a JSON file.

    Parameters
    ----------
    path : of the file
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.failed = 0
        self.outcomes: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def add(self, outcome: Outcome) -> None:
        """Print and keep an outcome."""
        self.failed += bool(outcome.shortcomings)
        verdict = "; ".join(outcome.shortcomings) or "as expected"
        figures = ""
        if outcome.driver != _PROCESS:
            figures = f"{outcome.ratio:8.3g} x  within {outcome.within:5.3f}  recovery {outcome.recovery:5.2f} s  "
        print(f"{outcome.driver:10} {outcome.name:22} {figures}{verdict}  {outcome.shown[:100]}", flush=True)
        self.outcomes[f"{outcome.name} {outcome.driver}"] = dataclasses.asdict(outcome)
        self._path.write_text(json.dumps(self.outcomes, indent=1), encoding="utf-8")

    def of(self, name: str, *drivers: str) -> dict[str, dict[str, Any]]:
        """Outcomes of a fault by driver."""
        found = {driver: self.outcomes.get(f"{name} {driver}") for driver in drivers}
        return {driver: outcome for driver, outcome in found.items() if outcome}


def _run(
    walk: Walk, faults: Sequence[Fault], driver: str, options: argparse.Namespace, folder: Path, results: Results
) -> None:
    """Run faults through one driver: each in a separate run offline, one after the other in one live node."""
    if driver == "node":
        from benchmarks.faults.node import run_node

        run_node(walk, faults, folder, _BEFORE, _AFTER, options.seed, results.add)
        return
    for fault in faults:
        good, faulty = make_stream(walk, [fault], _BEFORE, _AFTER, options.seed)
        if driver == "replay":
            outcomes, _ = run_replay(walk, good, faulty, folder)
        else:
            outcomes, _ = run_estimator(walk, good, faulty)
        for outcome in outcomes:
            results.add(outcome)


def _process(fault: ProcessFault, walk: Walk, folder: Path) -> Outcome:
    place = folder / fault.name
    place.mkdir()
    try:
        wrong = fault.run(walk, place)
    except FrictionEstimatorError as error:
        wrong = [str(error)]
    return Outcome(fault.name, _PROCESS, 0, *(5 * [math.nan]), "", (), tuple(wrong))


def _random(options: argparse.Namespace, walk: Walk, faults: Sequence[Fault], folder: Path, line: str) -> int:
    from benchmarks.faults.random_faults import RandomFaults

    report = RandomFaults(walk, faults, folder, options.seed, lambda text: print(text, flush=True)).run(options.random)
    lines = [*table(("what", "measured"), report.rows()), f"Measured by `{line}`."]
    print(*lines, sep="\n")
    options.output.fill(RANDOM, lines)
    return 1 if report.failures or report.lost or report.not_finite else 0


def stream_table(faults: Iterable[Fault], results: Results) -> list[str]:
    """One line a fault; errors are those of the node, or of the estimator where the node did not run."""
    rows = []
    for fault in faults:
        if not (found := results.of(fault.name, *DRIVERS)):
            continue
        newest = found.get("node") or next(iter(found.values()))
        status = f"`{fault.status}` {fault.level}: {', '.join(fault.words)}" if fault.status else NOTHING
        figures = [number(newest["ratio"], 1), number(100.0 * newest["within"], 0), number(newest["recovery"], 1)]
        rows.append((f"`{fault.name}`", fault.what, status, fault.friction, *figures, _verdict(found)))
    heading = ("fault", "what happens", "status, and words in it", "friction", "error, x before", "within 3 sigma [%]")
    return [*table((*heading, "recovery [s]", "outcome"), rows), *_count(rows)]


def process_table(faults: Iterable[ProcessFault], results: Results) -> list[str]:
    """One line a fault."""
    rows = [
        (f"`{fault.name}`", fault.what, fault.expected, _verdict(found))
        for fault in faults
        if (found := results.of(fault.name, _PROCESS))
    ]
    return [*table(("fault", "what happens", "expected", "outcome"), rows), *_count(rows)]


def _verdict(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What was not as expected, by driver."""
    wrong = {driver: "; ".join(outcome["shortcomings"]) for driver, outcome in found.items()}
    texts = [f"**{driver}**: {text}".replace("|", "/") for driver, text in wrong.items() if text]
    return " ".join(texts) or f"as expected ({', '.join(found)})"


def _count(rows: Sequence[Sequence[str]]) -> list[str]:
    good = sum("as expected" in row[-1] for row in rows)
    return [f"{good} of {len(rows)} faults have the expected outcome in all drivers that ran."]


if __name__ == "__main__":
    sys.exit(main())
