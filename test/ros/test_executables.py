"""Ctrl-C while a node still imports its libraries."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from friction_estimator.ros.executables import NODES

INTERRUPTED_BY_ITSELF = """
import os, sys

class Interrupt:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "rclpy":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Interrupt)
from friction_estimator.ros.executables import main
sys.exit(main(sys.argv[2:]))
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("node", NODES)
def test_a_signal_during_the_imports_ends_a_node_without_a_word(node: str, number: int) -> None:
    process = run("-c", INTERRUPTED_BY_ITSELF, str(int(number)), node)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_an_unknown_node_is_refused_with_the_names_of_all() -> None:
    process = run("-m", "friction_estimator.ros.executables", "estimator")
    assert process.returncode == 2
    assert all(node in process.stderr for node in NODES)
