"""The machine of the benchmark, and the CPU time and memory of its processes, from /proc."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from friction_estimator.compiled import COMPILED

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_UTIME = 11  # fields of /proc/<pid>/stat behind the name of the program: user time, then system time


def describe() -> dict[str, str]:
    """Processor, cores, versions of Python and NumPy, and whether kernels are compiled."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernels": "compiled" if COMPILED else "plain Python",
    }


def load_average() -> float:
    """Average number of running or waiting threads of the whole machine during the last minute."""
    return os.getloadavg()[0]


def cpu_seconds(pid: int) -> float:
    """CPU time of a running process and all its threads, user and system [s].

    Raises
    ------
    OSError
        When there is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / _TICKS


def children(pid: int) -> list[int]:
    """Processes that a process has started and that have not ended."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def resident_bytes() -> int:
    """Resident memory of this process [byte]."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()
