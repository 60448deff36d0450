"""What does it cost to run many bags as a fleet: overhead a bag, speed-up by workers, memory of a worker?

    python -m benchmarks.fleet_speed [--bags N] [--duration S] [--workers N]... [--walks FOLDER]

Simulates ten walks of half to the whole duration. The bags are their copies, which differ in a comment, so that all of
them are replayed, once with each number of workers. Rates are those of the second half of the bags, so that the start
of the processes does not count. Overhead is CPU time in this process: hash, robot and rows of a bag against the
estimator alone. Rates and overhead need a machine on which nothing else runs; memory does not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import table
from friction_estimator import fleet
from friction_estimator.fleet.bag_task import BagResult, Settings, process_bag
from friction_estimator.fleet.robots import load_fleet_robots
from friction_estimator.fleet.simulated import ROBOTS_YAML, FleetPlan, simulate_fleet
from friction_estimator.io.bags import replay as bags
from friction_estimator.io.robot import load_robot

ROBOTS, DAYS = 5, 2
MEGABYTE = 1e6
_PARTS = 0.05, 0.1, 0.25, 0.5, 0.75, 1.0  # of the bags, after which memory is shown


def find_walks(folder: Path, duration: float) -> list[Path]:
    """Whole bags of a simulated fleet, which is made when the folder does not exist."""
    if not folder.exists():
        simulate_fleet(folder, load_robot("suralp"), FleetPlan(ROBOTS, DAYS, duration))
    return sorted(path.parent for path in folder.glob("unit_*/2026-*/metadata.yaml"))


def copy_bags(walks: Sequence[Path], folder: Path, number: int) -> None:
    """That many bags, in turn of each walk; their messages are links."""
    for k in range(number):
        walk = walks[k % len(walks)]
        bag = folder / walk.parent.name / f"{k:06d}"
        bag.mkdir(parents=True)
        for file in walk.iterdir():
            if file.suffix == ".yaml":
                (bag / file.name).write_text(f"{file.read_text()}# copy {k}\n")
            else:
                os.link(file, bag / file.name)


class Watch:
    """Time and memory after every bag."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.here: list[float] = []
        self.workers: list[float] = []
        self._process = psutil.Process()

    def note(self, result: BagResult, done: int, total: int) -> None:
        """Progress of a fleet."""
        if result.status != "finished":
            raise SystemExit(f"{result.bag}: {result.status} {result.reason}")
        self.seconds.append(time.perf_counter())
        self.here.append(self._process.memory_info().rss)
        children = [child.memory_info().rss for child in self._process.children(recursive=True)]
        self.workers.append(max(children))

    def rate(self) -> float:
        """Bags a second, of the second half."""
        half = len(self.seconds) // 2
        return (len(self.seconds) - 1 - half) / (self.seconds[-1] - self.seconds[half])


def overhead(walks: Sequence[Path], robots_yaml: Path, output: Path) -> tuple[float, float]:
    """CPU time a bag as a task of the fleet, and of the estimator alone [s]."""
    robots, settings = load_fleet_robots(robots_yaml), Settings("replay", str(output))
    robot = robots.robots[0].robot
    process_bag(str(walks[0]), robots, Settings("replay", str(output / "first")))  # loads what is loaded once
    spent = [0.0, 0.0]
    for walk in walks:
        start = time.process_time()
        process_bag(str(walk), robots, settings)
        middle = time.process_time()
        bags.replay(walk, None, robot.config, robot.urdf_xml, on_estimate=lambda estimate: None)
        spent[0] += middle - start
        spent[1] += time.process_time() - middle
    return spent[0] / len(walks), spent[1] / len(walks)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser("fleet_speed", __doc__)
    parser.add_argument("--bags", type=count, default=60, help="number of bags")
    parser.add_argument("--duration", type=float, default=10.0, help="length of the longest walk [s]")
    parser.add_argument(
        "--workers", type=count, action="append", help="processes; may be repeated; 1 and 2 when not given"
    )
    parser.add_argument("--walks", type=Path, help="folder of the walks, to make them only once")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=chosen.walks and chosen.walks.absolute().parent) as scratch:
        folder = Path(scratch)
        walks = find_walks(chosen.walks or folder / "walks", chosen.duration)
        robots_yaml = walks[0].parents[1] / ROBOTS_YAML
        fleet_time, alone = overhead(walks, robots_yaml, folder / "alone")
        print(
            f"CPU time a bag: {fleet_time:.3f} s, of which the estimator {alone:.3f} s: {fleet_time / alone - 1.0:+.1%}"
        )
        copy_bags(walks, folder / "bags", chosen.bags)
        rows = []
        first_rate = None
        for workers in chosen.workers or (1, 2):
            watch = Watch()
            output = folder / f"friction_{workers}"
            fleet.replay(folder / "bags", robots_yaml, output=output, workers=workers, progress=watch.note)
            first_rate = first_rate or watch.rate()
            print(f"{workers} workers: {watch.rate():.2f} bags/s, {watch.rate() / first_rate:.2f} times the first rate")
            for part in _PARTS:
                done = max(int(part * chosen.bags), 1)
                largest, here = max(watch.workers[:done]), max(watch.here[:done])
                rows.append((workers, done, f"{largest / MEGABYTE:.0f}", f"{here / MEGABYTE:.0f}"))
        heads = ("workers", "bags done", "largest worker so far [MB]", "client and scheduler so far [MB]")
        print("\n".join(table(heads, rows)))


if __name__ == "__main__":
    sys.exit(main())
