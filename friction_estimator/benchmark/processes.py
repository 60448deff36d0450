"""Processes that a measurement starts: in a random ROS domain, and ended with the measurement."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from friction_estimator.errors import FrictionEstimatorError

_DOMAINS = 101  # higher domain ids collide with the ephemeral ports of Linux
_GOODBYE = 15.0


class BenchmarkError(FrictionEstimatorError):
    """A process of the benchmark ended too early, or did not do its work in time."""


def environment() -> dict[str, str]:
    """Environment of this process with a random ROS domain, reachable from this machine only."""
    domain = str(random.SystemRandom().randrange(1, _DOMAINS + 1))
    return {**os.environ, "ROS_DOMAIN_ID": domain, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """End a process with SIGINT, and with SIGKILL when it does not end in time."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_GOODBYE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Processes:
    """Python modules as processes, a context manager that ends all of them.

    Parameters
    ----------
    folder : for their logs
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = environment()
        self._running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in list(self._running):
            self.end(pid)

    def start(self, name: str, module: str, *arguments: str) -> int:
        """Start ``python -m module arguments``; return the process id."""
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
            )
        self._running[process.pid] = name, process
        return process.pid

    def end(self, pid: int) -> None:
        """End one process."""
        _, process = self._running.pop(pid)
        interrupt(process)

    def check(self) -> None:
        """Raise an error when a process has ended that should run."""
        for name, process in self._running.values():
            if process.poll() is not None:
                raise BenchmarkError(f"the process {name!r} ended too early: {self._last_line(name)}")

    def wait(self, pid: int, seconds: float) -> None:
        """Wait until one process has ended by itself, without an error."""
        name, process = self._running[pid]
        self.wait_until(lambda: process.poll() is not None, seconds, f"the process {name!r} has not ended", pid)
        if process.returncode:
            raise BenchmarkError(f"the process {name!r} failed: {self._last_line(name)}")
        del self._running[pid]

    def wait_until(self, condition: Callable[[], bool], seconds: float, otherwise: str, ending: int = 0) -> None:
        """Wait for a condition while all processes run, apart from the one that is ending."""
        give_up = time.monotonic() + seconds
        while not condition():
            for pid, (name, process) in self._running.items():
                if pid != ending and process.poll() is not None and not condition():
                    raise BenchmarkError(f"the process {name!r} ended too early: {self._last_line(name)}")
            if time.monotonic() > give_up:
                raise BenchmarkError(f"{otherwise} after {seconds:g} s")
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _last_line(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it wrote nothing"
