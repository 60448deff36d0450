"""Rows that run whole commands: the demo, and the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import friction_estimator
from friction_estimator.benchmark import machine
from friction_estimator.benchmark.processes import BenchmarkError, environment, interrupt
from friction_estimator.benchmark.rows import Figure, NotMeasurableError, Progress, Run
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp, stamp_of

_DIAGNOSTICS = "/diagnostics"
_SIMULATOR = "simulation: "
"""Start of the names of the simulator node's own diagnostics."""
_DEMO_PROCESSES = 2  # simulator and estimator; the demo itself records
_POLL = 0.2
_SLOWEST = 20.0
"""Longest time that the demo may take, in simulated durations, beyond two minutes for start and report."""


def demo(run: Run, progress: Progress) -> list[Figure]:
    """Demo without a terminal: delay of the simulation, and CPU of demo, simulator and estimator together."""
    seconds, folder = run.options.demo_seconds, run.folder / "demo"
    command = [sys.executable, "-m", "friction_estimator", "demo", "--headless"]
    command += ["--duration", str(seconds), "--output", str(folder)]
    log = run.folder / "demo.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, env=environment()
        )
    try:
        cores = _cores_while_it_walks(process, 120.0 + _SLOWEST * seconds, progress)
    finally:
        interrupt(process)
    if process.returncode:
        raise BenchmarkError(f"the demo failed: {(log.read_text().splitlines() or ['no output'])[-1]}")
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
    log = run.folder / "tests.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest"], cwd=root, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    before = os.times()
    try:
        process.wait()
    finally:
        interrupt(process)
    after = os.times()
    if process.returncode:
        raise BenchmarkError(f"the tests failed: {(log.read_text().splitlines() or ['no output'])[-1]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    duration = {"duration [min]": (after.elapsed - before.elapsed) / 60.0}
    return [Figure("README's test command: CPU time", used / 60.0, "min", must=6.0, aim=3.6, details=duration)]


def _cores_while_it_walks(process: subprocess.Popen[bytes], patience: float, progress: Progress) -> float:
    """CPU time by real time while the simulator's process runs; waits for the end of the demo.

    The CPU time of a process is lost with it, so the newest value of each is kept.
    """
    first: dict[int, float] = {}
    newest: dict[int, float] = {}
    begun, ended, give_up = 0.0, 0.0, time.monotonic() + patience
    while process.poll() is None:
        now = time.monotonic()
        if now > give_up:
            raise BenchmarkError(f"the demo has not ended after {patience:.0f} s")
        try:
            started = machine.children(process.pid)
            if len(started) >= _DEMO_PROCESSES:
                newest.update({pid: machine.cpu_seconds(pid) for pid in (process.pid, *started)})
                first = first or dict(newest)
                begun, ended = begun or now, now
                progress(now - begun, give_up - begun)
        except OSError:  # a process has ended in between
            pass
        time.sleep(_POLL)
    if ended <= begun:
        raise BenchmarkError("the demo ended before its simulator had run")
    return (sum(newest.values()) - sum(first.values())) / (ended - begun)


def _behind(bag: Path) -> float:
    """Wall-clock time of the simulator's last report minus the stamp of the last joint state [s].

    The simulator stamps its samples from the wall clock at its start on, and reports after the last one.
    """
    reader = BagReader(bag)
    joint_states = reader.find_topic("joint_states", topics.JOINT_STATE) or ""
    last_sample = last_report = 0
    for message in reader.messages((joint_states, _DIAGNOSTICS)):
        if message.topic == joint_states:
            last_sample = stamp_of(message.raw)
            continue
        decoded = reader.decode(message)
        if any(status.name.startswith(_SIMULATOR) for status in decoded.status):
            last_report = header_stamp(decoded)
    if not last_sample or not last_report:
        raise BenchmarkError(f"the bag {bag} of the demo lacks joint states or diagnostics of the simulator")
    return 1e-9 * (last_report - last_sample)
