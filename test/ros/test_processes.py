"""Processes of demo and benchmark: started, watched, ended, and their CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.speed.waiting import WaitedProcesses, children
from friction_estimator.ros import processes
from friction_estimator.ros.processes import LoadMeter, ProcessError

SLEEP = ("-n1", "-r1", "import time; time.sleep(60)")


def test_cpu_time_of_a_process_lies_between_two_readings_of_its_own_clock() -> None:
    def own() -> float:
        used = os.times()
        return round(used.user + used.system, 6)  # whole clock ticks

    before = own()
    between = processes.cpu_seconds(os.getpid())
    assert before <= between <= own()


def test_children_are_the_processes_that_still_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert process.pid in children(os.getpid())
    finally:
        process.communicate(b"\n")
    assert process.pid not in children(os.getpid())


def test_the_load_is_the_cpu_time_between_the_readings_and_outlives_the_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    meter = LoadMeter({"busy": process.pid, "nobody": 2**22})
    try:
        while not meter.cores().get("busy"):
            meter.read()
    finally:
        process.kill()
        process.wait()
    meter.read()
    assert 0.0 < meter.cores()["busy"] <= 1.1 and "nobody" not in meter.cores()


def test_a_process_that_ends_too_early_is_named_with_its_last_line_and_the_others_end(tmp_path: Path) -> None:
    with (
        pytest.raises(ProcessError, match="'short' ended too early: .*no_such_module"),
        WaitedProcesses(tmp_path) as running,
    ):
        long = running.start("long", "timeit", *SLEEP)
        running.start("short", "no_such_module")
        running.wait_until(lambda: False, 30.0, "nothing happened")
    assert long.poll() is not None


def test_a_process_may_end_when_it_is_waited_for_but_not_fail(tmp_path: Path) -> None:
    with WaitedProcesses(tmp_path) as running:
        running.start("long", "timeit", *SLEEP)
        running.wait(running.start("short", "timeit", "-n1", "-r1", "pass"), 30.0)
        running.check()
        with pytest.raises(ProcessError, match="'wrong' failed: .*no_such_module"):
            running.wait(running.start("wrong", "no_such_module"), 30.0)


def test_the_reason_of_an_end_is_the_line_with_the_error(tmp_path: Path) -> None:
    program = "print('error: no URDF'); print('bye'); raise SystemExit(1)"
    with WaitedProcesses(tmp_path) as running, pytest.raises(ProcessError, match="'node' ended too early: no URDF$"):
        running.start("node", "timeit", "-n1", "-r1", program)
        running.wait_until(lambda: False, 30.0, "nothing happened")
