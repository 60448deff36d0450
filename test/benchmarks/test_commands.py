"""The commands that the pages show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_benchmark_starts_as_a_command():
    """With the folder of the benchmarks first on the path of the imports: no name in it may hide a library's."""
    command = [sys.executable, str(ROOT / "benchmarks" / "accuracy.py"), "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "--cases" in done.stdout, done.stderr
