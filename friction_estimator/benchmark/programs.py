"""Rows that run whole commands: the demo, and the tests."""

from __future__ import annotations

import math
import os
import subprocess
import time
from pathlib import Path

import friction_estimator
from friction_estimator.benchmark.rows import BenchmarkError, Figure, NotMeasurableError, Progress, Run
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp, stamp_of
from friction_estimator.ros.processes import LoadMeter, Processes, children

_SIMULATOR = "simulation: "
"""Start of the names of the simulator node's own diagnostics."""
_DEMO_PROCESSES = 2  # simulator and estimator; the demo itself records
_POLL = 0.2
_SLOWEST = 20.0
"""Longest time that the demo may take, in simulated durations, beyond two minutes for start and report."""


def demo(run: Run, progress: Progress) -> list[Figure]:
    """Demo without a terminal: delay of the simulation, and CPU of demo, simulator and estimator together."""
    seconds, folder = run.options.demo_seconds, run.folder / "demo"
    with Processes(run.folder) as processes:
        options = ("--headless", "--duration", str(seconds), "--output", str(folder))
        process = processes.start("demo", "friction_estimator", "demo", *options)
        cores = _cores_of_the_walk(process, processes, 120.0 + _SLOWEST * seconds, progress)
    simulated = {"simulated time [s]": seconds}
    return [
        Figure("demo: behind real time at the end", _behind(folder / "run"), "s", must=0.1, details=simulated),
        Figure("demo: CPU of all its processes", cores, "cores", must=1.4, aim=1.0),
    ]


def tests(run: Run, progress: Progress) -> list[Figure]:
    """Tests as README runs them, in the environment of this Python."""
    root = Path(friction_estimator.__file__).resolve().parent.parent
    if not (root / "test").is_dir():
        raise NotMeasurableError(f"the row needs the sources: there is no folder {root / 'test'}")
    before = os.times()
    with Processes(run.folder) as processes:
        processes.wait(processes.start("tests", "pytest", cwd=root), math.inf)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    duration = {"duration [min]": (after.elapsed - before.elapsed) / 60.0}
    return [Figure("README's test command: CPU time", used / 60.0, "min", must=6.0, aim=3.6, details=duration)]


def _cores_of_the_walk(
    process: subprocess.Popen[bytes], processes: Processes, patience: float, progress: Progress
) -> float:
    """CPU time divided by real time while the simulator's process runs; waits for the end of the demo."""
    meter, give_up = LoadMeter({}), time.monotonic() + patience
    while process.poll() is None:
        if time.monotonic() > give_up:
            raise BenchmarkError(f"the demo has not ended after {patience:.0f} s")
        started = children(process.pid)
        if len(started) >= _DEMO_PROCESSES:
            meter.pids = meter.pids or {str(pid): pid for pid in (process.pid, *started)}
            meter.read()
            progress(meter.seconds, patience)
        time.sleep(_POLL)
    processes.check(process)
    if not (cores := meter.cores()):
        raise BenchmarkError("the demo ended before its simulator had run")
    return sum(cores.values())


def _behind(bag: Path) -> float:
    """Wall-clock time of the simulator's last report minus the stamp of the last joint state [s].

    The simulator stamps its samples from the wall clock at its start on, and reports after the last one.
    """
    reader = BagReader(bag)
    joint_states = reader.find_topic("joint_states", topics.JOINT_STATE) or ""
    last_sample = last_report = 0
    for message in reader.messages((joint_states, topics.DIAGNOSTICS_TOPIC)):
        if message.topic == joint_states:
            last_sample = stamp_of(message.raw)
            continue
        decoded = reader.decode(message)
        if any(status.name.startswith(_SIMULATOR) for status in decoded.status):
            last_report = header_stamp(decoded)
    if not last_sample or not last_report:
        raise BenchmarkError(f"the bag {bag} of the demo lacks joint states or diagnostics of the simulator")
    return 1e-9 * (last_report - last_sample)
