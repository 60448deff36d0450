"""Is the observer right on robots that nobody chose, and is the friction of right joints valid?

    python -m benchmarks.random_robots [--robots 20] [--first-seed 0] [--simulator both] [--set PARAM=VALUE ...]

Every seed is a robot drawn at random, which walks for 20 s. Even seeds walk in the built-in simulator and odd ones in
MuJoCo with its own friction, unless one simulator is chosen. Walks are simulated once and kept in the folder --walks.
One line of JSON a robot is appended to --records as it is done; a second call with the same file goes on where the
first one ended. Seeds below 1000 are for development, those from 1000 on for reports. Twenty robots take five minutes
on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.random_robots.evaluation import CALIBRATION, LAW, ORACLES, evaluate
from benchmarks.random_robots.robots import KINDS, SIMULATORS
from benchmarks.random_robots.scores import HEADING, Record, summary
from benchmarks.random_robots.walks import load_walk
from benchmarks.shared.command import add_processes, command, command_line, count, make_parser, setting
from benchmarks.shared.pages import DOCS, add_page, table
from friction_estimator.errors import SimulationError

PAGE = DOCS / "results" / "random_robots.md"
WALKS = Path(tempfile.gettempdir()) / "random_robots"

SWITCHES = (
    "kalman.calibrate_sensors=false",
    "kalman.link_mass_std=0.0",
    "kalman.link_com_std=0.0",
    "kalman.law_process_noise=0.0",
    "kalman.calibration_process_noise=0.0",
    "kalman.innovation_gate=1000000.0",
)
"""Mechanisms of the observer that can be switched off, one a row of the ablation."""
Variant = tuple[tuple[str, ...], dict[str, Any]]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("random_robots", __doc__)
    parser.add_argument("--robots", type=count, default=20, help="number of robots")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--simulator", choices=(*SIMULATORS, "both"), default="both")
    parser.add_argument("--oracles", action="store_true", help="further rows: what the estimator may be given right")
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="PARAM=VALUE", help="of the estimator")
    parser.add_argument(
        "--ablation", nargs="*", metavar="PARAM=VALUE",
        help="further rows, one with each of these parameters changed; none given: " + " ".join(SWITCHES),
    )  # fmt: skip
    parser.add_argument("--walks", type=Path, default=WALKS, help="folder of the simulated walks")
    parser.add_argument("--records", type=Path, help="file with one line of JSON a robot")
    add_page(parser, PAGE, "command", "robots", optional=True)
    add_processes(parser)
    options = parser.parse_args(arguments)
    options.walks.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first_seed, options.first_seed + options.robots)
    robots = [(seed, options.simulator if options.simulator in SIMULATORS else SIMULATORS[seed % 2]) for seed in seeds]
    rows = list(_rows(robots, _variants(options), options))
    print(*table(HEADING, rows), sep="\n")
    if options.output is not None:
        options.output.fill("command", [f"`{command_line('random_robots', arguments)}`"])
        options.output.fill("robots", table(HEADING, rows))


def _variants(options: argparse.Namespace) -> dict[str, Variant]:
    """Label of a row, what is right, and the parameters of the estimator."""
    given = dict(options.set)
    variants: dict[str, Variant] = {"all": ((), given)}
    if options.oracles:
        variants |= {f"right: {name}": ((name,), given) for name in ORACLES}
        variants["right: calibration, law"] = (CALIBRATION, LAW), given
    switches = map(setting, () if options.ablation is None else options.ablation or SWITCHES)
    return variants | {f"{name}={value}": ((), {**given, name: value}) for name, value in switches}


def perform(
    robots: Sequence[tuple[int, str]], variants: Sequence[Variant], options: argparse.Namespace
) -> dict[str, Record]:
    """Records of all robots but those that fall; those that the file holds already are not made anew."""
    records, jobs = {_key_of(record): record for record in _read(options.records)}, []
    with ProcessPoolExecutor(options.processes) as pool:
        for robot in robots:
            if missing := [variant for variant in variants if _key(*robot, *variant) not in records]:
                jobs.append(pool.submit(_perform_one, options.walks, *robot, missing))
        for done, job in enumerate(as_completed(jobs), 1):
            try:
                found = job.result()
            except SimulationError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            for record in found:
                records[_key_of(record)] = record
                print(f"{done} of {len(jobs)}: {' | '.join(summary(_key_of(record), [record]))}", file=sys.stderr)
            if options.records is not None:
                with options.records.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(record) + "\n" for record in found)
    return records


def _perform_one(folder: Path, seed: int, simulator: str, variants: Sequence[Variant]) -> list[Record]:
    walk = load_walk(folder, seed, simulator)
    return [evaluate(walk, changes, right) for right, changes in variants]


def _key(seed: int, simulator: str, right: Sequence[str], changes: Mapping[str, Any]) -> str:
    return json.dumps([seed, simulator, list(right), changes], sort_keys=True)


def _key_of(record: Record) -> str:
    return _key(record["seed"], record["simulator"], record["right"], record["set"])


def _read(path: Path | None) -> list[Record]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _rows(
    robots: Sequence[tuple[int, str]], variants: Mapping[str, Variant], options: argparse.Namespace
) -> Iterator[list[str]]:
    """Lines of the table: all robots, those of each simulator and of each kind of friction, and every variant."""
    records = perform(robots, list(variants.values()), options)
    found = {
        label: [records[key] for robot in robots if (key := _key(*robot, *variant)) in records]
        for label, variant in variants.items()
    }
    for field, values in (("", ("all",)), ("simulator", SIMULATORS), ("kind", KINDS)):
        for value in values:
            yield summary(value, [record for record in found["all"] if not field or record[field] == value])
    for label in list(variants)[1:]:
        yield summary(label, found[label])


if __name__ == "__main__":
    sys.exit(main())
