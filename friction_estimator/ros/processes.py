"""Processes of the demo: start, check and end of Python modules, and CPU time from ``/proc``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from friction_estimator.errors import FrictionEstimatorError

_MAX_DOMAIN = 101
"""Higher domain ids collide with the ephemeral ports of Linux."""

_END_TIMEOUT = 15.0
"""Time between SIGINT and SIGKILL for a process that does not end [s]."""

_UTIME = 11
"""Index of the user time, before the system time, in the fields of ``/proc/<pid>/stat`` after the program's name."""


class ProcessError(FrictionEstimatorError):
    """A process ended too early, failed, or did not do its work in time."""


def environment() -> dict[str, str]:
    """Environment of this process with a random ROS domain, reachable from this machine only."""
    domain = str(random.SystemRandom().randrange(1, _MAX_DOMAIN + 1))
    return {**os.environ, "ROS_DOMAIN_ID": domain, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}


class Processes:
    """Runs Python modules as processes; a context manager that ends all of them.

    Parameters
    ----------
    folder : for their logs, one file per name
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, process in list(self._running.values()):
            self.end(process)

    def start(self, name: str, module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start ``python -m MODULE ARGUMENTS``; ``options`` are those of ``subprocess.Popen``."""
        with self.log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **options,
            )
        self._running[process.pid] = name, process
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End one process with SIGINT, and with SIGKILL if it does not end in time."""
        self._running.pop(process.pid, None)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def check(self, *ending: subprocess.Popen[bytes]) -> None:
        """Check that all processes run, and that those that may end have not failed.

        Raises
        ------
        ProcessError
            With the name of the process and the reason in its log.
        """
        for name, process in self._running.values():
            code = process.poll()
            if code is None or (process in ending and not code):
                continue
            outcome = "failed" if process in ending else "ended too early"
            raise ProcessError(f"the process {name!r} {outcome}: {self._last_words(name)}")

    def log(self, name: str) -> Path:
        """File with the output of the processes of a name."""
        return self._folder / f"{name}.log"

    def _last_words(self, name: str) -> str:
        """Reason in a log: the last line with an error, or the last line."""
        lines = self.log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines
        return reasons[-1] if reasons else "it wrote nothing"


def cpu_seconds(pid: int) -> float:
    """CPU time of a running process and all its threads, user and system [s].

    Raises
    ------
    OSError
        When there is no such process, or the system has no ``/proc``.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / os.sysconf("SC_CLK_TCK")


def core_count() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_average() -> float:
    """Mean number of running or waiting threads of the whole machine during the last minute."""
    return os.getloadavg()[0]


class LoadMeter:
    """CPU time of processes between the first and the last reading.

    Parameters
    ----------
    pids : by name of the process; more may be added before the first reading
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self.pids = dict(pids)
        self._readings: list[tuple[float, dict[str, float]]] = []

    def read(self) -> None:
        """Read the CPU times; processes that have ended keep their last reading."""
        before, times = self._readings[-1][1] if self._readings else {}, {}
        for name, pid in self.pids.items():
            try:
                used = cpu_seconds(pid)
            except OSError:
                used = 0.0
            times[name] = used or before.get(name, 0.0)
        self._readings[1:] = [(time.monotonic(), times)]

    @property
    def seconds(self) -> float:
        """Time between the first and the last reading [s]."""
        return self._readings[-1][0] - self._readings[0][0] if self._readings else 0.0

    def cores(self) -> dict[str, float]:
        """CPU time by process, divided by the time between the readings; empty before the second one.

        Processes whose time cannot be read are left out.
        """
        if len(self._readings) < 2:
            return {}
        (_, first), (_, last) = self._readings
        return {name: (last[name] - first[name]) / self.seconds for name in first if last[name]}
