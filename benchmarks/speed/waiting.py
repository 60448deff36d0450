"""Processes of a measurement: in a separate ROS domain, waited for, and with their children."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from friction_estimator.ros.processes import ProcessError, Processes


class WaitedProcesses(Processes):
    """Processes that a measurement waits for.

    Parameters
    ----------
    folder : for their logs, one file per name
    environment : of the processes; None: that of this process
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self._environment = environment

    def start(self, name: str, module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a module in the environment of all processes."""
        return super().start(name, module, *arguments, env=self._environment, **options)

    def wait(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Wait until one process has ended by itself, without an error, while all others run."""
        name, _ = self._running[process.pid]
        self.wait_until(lambda: process.poll() is not None, seconds, f"the process {name!r} has not ended", process)
        self.check(process)
        del self._running[process.pid]

    def wait_until(
        self, condition: Callable[[], bool], seconds: float, otherwise: str, *ending: subprocess.Popen[bytes]
    ) -> None:
        """Wait for a condition while all processes run, except those that may end.

        Raises
        ------
        ProcessError
            When a process ends, or after ``seconds``, with the text ``otherwise``.
        """
        give_up = time.monotonic() + seconds
        while not condition():
            try:
                self.check(*ending)
            except ProcessError:
                if not condition():
                    raise
            if time.monotonic() > give_up:
                raise ProcessError(f"{otherwise} after {seconds:g} s")
            time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Running child processes of a process; empty when it has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]
