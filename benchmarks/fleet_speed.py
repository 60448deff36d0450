"""What does it cost to run many bags as a fleet: overhead a bag, speed-up by workers, memory of a worker?

    python -m benchmarks.fleet_speed [--bags N] [--duration S] [--workers N]... [--walks FOLDER]

Simulates ten walks of half to the whole duration. The bags are their copies, which differ in a comment, so that all of
them are replayed, once with each number of workers. Rates are those of the second half of the bags, so that the start
of the processes does not count. Overhead of a bag is the CPU time of its task outside of the estimator (open and hash
the bag, find its robot, write its rows), and that of client and scheduler. Workers wait while they have no task. Rates
and overhead need a machine on which nothing else runs; memory does not. Without options it takes six minutes, with
bags of a minute (--duration 60 --bags 20) ten.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.fleet_walks import ROBOTS_YAML, FleetPlan, simulate_fleet
from benchmarks.shared.command import command, count, make_parser
from benchmarks.shared.pages import table
from friction_estimator import fleet
from friction_estimator.fleet import bag_task
from friction_estimator.fleet.bag_task import BagResult, ReplayTask, load_fleet_robots, process_bag
from friction_estimator.io.bags.replay import ReplaySummary, replay_bag
from friction_estimator.io.robot import load_robot

ROBOTS, DAYS = 5, 2
MEGABYTE = 1e6
_EVERY = 10  # bags, after which memory is measured
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
        self._largest = 0
        self._tasks: list[float] = []
        self._cpu: list[float] = []
        self._process = psutil.Process()

    def note(self, result: BagResult, done: int, total: int) -> None:
        """Progress of a fleet."""
        if result.status != "finished":
            raise SystemExit(f"{result.bag}: {result.status} {result.reason}")
        self.seconds.append(time.perf_counter())
        self.here.append(self._process.memory_info().rss)
        if done == total or len(self.seconds) % _EVERY == 1:  # to look for processes takes milliseconds
            self._largest = max(child.memory_info().rss for child in self._process.children(recursive=True))
        self.workers.append(self._largest)
        self._tasks.append(result.seconds)
        self._cpu.append(sum(self._process.cpu_times()[:2]))

    def second_half(self, workers: int) -> tuple[float, float, float]:
        """Of the second half of the bags: bags a second, part of the time in which workers wait, CPU here a bag [s]."""
        half = len(self.seconds) // 2
        bags, elapsed = len(self.seconds) - 1 - half, self.seconds[-1] - self.seconds[half]
        waiting = 1.0 - sum(self._tasks[half + 1 :]) / (workers * elapsed)
        return bags / elapsed, waiting, (self._cpu[-1] - self._cpu[half]) / bags


def task_time(walks: Sequence[Path], robots_yaml: Path, output: Path) -> tuple[float, float]:
    """CPU time of the task of a bag, and the part of it in the estimator [s]."""
    robots, task = load_fleet_robots(robots_yaml), ReplayTask(str(output))
    process_bag(str(walks[0]), robots, ReplayTask(str(output / "first")))  # loads what is loaded once
    inside = 0.0

    def timed(*arguments: Any, **options: Any) -> ReplaySummary:
        nonlocal inside
        start = time.process_time()
        summary = replay_bag(*arguments, **options)
        inside += time.process_time() - start
        return summary

    bag_task.replay_bag = timed
    start = time.process_time()
    for walk in walks:
        process_bag(str(walk), robots, task)
    whole = time.process_time() - start
    bag_task.replay_bag = replay_bag
    return whole / len(walks), inside / len(walks)


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
        whole, inside = task_time(walks, robots_yaml, folder / "alone")
        around = whole - inside
        print(f"CPU time of a task: estimator {inside:.3f} s, all else {around:.4f} s or {around / inside:.2%} of it")
        copy_bags(walks, folder / "bags", chosen.bags)
        rows = []
        first_rate = None
        for workers in chosen.workers or (1, 2):
            watch = Watch()
            output = folder / f"friction_{workers}"
            fleet.replay(folder / "bags", robots_yaml, output=output, workers=workers, progress=watch.note)
            rate, waiting, cpu = watch.second_half(workers)
            first_rate = first_rate or rate
            print(
                f"{workers} workers: {rate:.2f} bags/s, {rate / first_rate:.2f} times the first rate; they wait "
                f"{waiting:.1%} of the time; CPU of client and scheduler {cpu:.4f} s a bag"
            )
            for part in _PARTS:
                done = max(int(part * chosen.bags), 1)
                largest, here = max(watch.workers[:done]), max(watch.here[:done])
                rows.append((workers, done, f"{largest / MEGABYTE:.0f}", f"{here / MEGABYTE:.0f}"))
        heads = ("workers", "bags done", "largest worker so far [MB]", "client and scheduler so far [MB]")
        print("\n".join(table(heads, rows)))


if __name__ == "__main__":
    sys.exit(main())
