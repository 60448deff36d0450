"""Nodes of the tests are forks of one process that has imported all nodes and loaded the kernels.

Imports and loading take 1.3 s of CPU time, which are the same for every node. A fork has them behind it, and is
otherwise a process as a robot runs it: with its own DDS participant, signals, output and end of Python.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path


class WarmNodes:
    """The process to fork, which the first node starts."""

    @cached_property
    def _process(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from test.ros.warm_nodes import serve; serve()"]
        return subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *question: object) -> int | None:
        """Answer to a question: ``"start", words, log`` or ``"poll", pid``."""
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def start(self, words: Sequence[str], log: Path) -> ForkedNode:
        """Start the node ``words[0]`` with the other words as its command line."""
        log.touch()
        return ForkedNode(self, self.ask("start", words, str(log)))

    def close(self) -> None:
        if "_process" in vars(self):
            self._process.communicate()


class ForkedNode:
    """What the tests need of ``subprocess.Popen``."""

    def __init__(self, nodes: WarmNodes, pid: int) -> None:
        self.pid = pid
        self._nodes = nodes
        self._returncode: int | None = None

    def poll(self) -> int | None:
        if self._returncode is None:
            self._returncode = self._nodes.ask("poll", self.pid)
        return self._returncode

    def wait(self, timeout: float = float("inf")) -> int:
        give_up = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > give_up:
                raise subprocess.TimeoutExpired("node", timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def serve() -> None:
    """Fork a node for each line of the standard input that asks for one."""
    from friction_estimator.kernels import compiler
    from friction_estimator.ros import executables

    for module in ("spin", *(module for module, _ in executables.NODES.values())):
        executables.import_module(f"friction_estimator.ros.{module}")
    executables.import_module("friction_estimator.simulation")
    executables.import_module("friction_estimator.io.bags.replay")
    compiler.prepare()
    gc.freeze()
    for line in sys.stdin:
        kind, *question = json.loads(line)
        if kind == "poll":
            pid, status = os.waitpid(question[0], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif (answer := os.fork()) == 0:
            words, log = question
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            output = os.open(log, os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.exit(executables.main(words))
        print(json.dumps(answer), flush=True)
