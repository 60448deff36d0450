"""Signals before a node has its own handlers, and after its end."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from friction_estimator.ros.executables import END_SIGNALS, NODES

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


SIGNALLED_AT_EVERY_MOMENT = """
import os, signal, sys
import rclpy
from friction_estimator.ros.spin import run

class EndOfPython:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=int(sys.argv[1])):
        kill(pid, number)  # Python has restored the default actions by now

class Node(rclpy.node.Node):
    def close(self):
        os.kill(os.getpid(), int(sys.argv[1]))

sys.end_of_python = EndOfPython()
sys.exit(run(lambda: Node("x"), [], lambda *_: os.kill(os.getpid(), int(sys.argv[1]))))
"""

PRINTS_AFTER_ITS_TERMINAL_CLOSED = """
import fcntl, sys, termios
import rclpy
from friction_estimator.ros.spin import run, spin

class Node(rclpy.node.Node):
    def close(self):
        print("last words", flush=True)

def loop(*arguments):
    print("ready", flush=True)
    spin(*arguments)

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(run(lambda: Node("x"), [], loop))
"""

STARTED_BY_NOHUP = """
import signal
from friction_estimator.ros.executables import on_end_signals
signal.signal(signal.SIGHUP, signal.SIG_IGN)
on_end_signals(print)
assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN and signal.getsignal(signal.SIGTERM) is print
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("node", "number"), [*zip(NODES, END_SIGNALS, strict=True)])
def test_a_signal_during_the_imports_ends_a_node_without_a_word(node: str, number: int) -> None:
    process = run("-c", INTERRUPTED_BY_ITSELF, str(int(number)), node)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.mark.parametrize("number", END_SIGNALS)
def test_signals_while_a_node_closes_and_python_ends_change_nothing(number: int) -> None:
    process = run("-c", SIGNALLED_AT_EVERY_MOMENT, str(int(number)))
    assert (process.returncode, process.stderr) == (0, "")


def test_a_node_whose_terminal_is_closed_ends_well_though_it_can_print_no_more() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PRINTS_AFTER_ITS_TERMINAL_CLOSED],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        assert b"ready" in os.read(ours, 1000)
        os.close(ours)
        assert process.wait(60) == 0


def test_a_process_that_nohup_started_outlives_its_terminal() -> None:
    assert run("-c", STARTED_BY_NOHUP).returncode == 0


def test_an_unknown_node_is_refused_with_the_names_of_all() -> None:
    process = run("-m", "friction_estimator.ros.executables", "estimator")
    assert process.returncode == 2
    assert all(node in process.stderr for node in NODES)


def test_a_node_with_default_parameters_imports_no_add_on() -> None:
    code = "import friction_estimator.ros.estimator_node, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("friction_estimator.")}
    assert "estimation" in rooms
    assert not {"learning", "collision", "simulation", "reports", "fleet", "api", "cli"} & rooms


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_is_printed_to_a_closed_stream_is_not_written_to_a_file(tmp_path: Path, closed: str) -> None:
    code = (
        "import os, sys; from friction_estimator.ros import executables; executables.open_standard_streams(); "
        "file = open(sys.argv[1], 'w'); os.write(1, b'a library'); print('a program', file=sys.stderr, flush=True); "
        "sys.stdin.read(); file.write('content')"
    )
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {tmp_path}/file {closed}"
    subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, check=True, timeout=60)
    assert (tmp_path / "file").read_text() == "content"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--params-file", "missing.yaml"], "--params-file: cannot read .*missing.yaml: No such file or directory"),
        (["--params-file", "cut.yaml"], "--params-file: .*cut.yaml is not valid YAML: line "),
        (
            ["--params-file", "flat.yaml"],
            "flat.yaml, given as --params-file, cannot be used: .* below it ros__parameters",
        ),
        (
            ["--params-file"],
            "the command line cannot be read: .*No file path provided. Behind --ros-args",
        ),
        (["-p", "observer"], "the command line cannot be read: .*'-p observer'.* a parameter is -p NAME:=VALUE"),
    ],
)
def test_arguments_of_ros_that_cannot_be_read_are_one_error_with_the_remedy(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    (tmp_path / "cut.yaml").write_text("a: [1")
    (tmp_path / "flat.yaml").write_text("estimator:\n  observer: kalman\n")
    given = [str(tmp_path / word) if word.endswith(".yaml") else word for word in words]
    code = "import sys, rclpy; from friction_estimator.ros.spin import run; sys.exit(run(lambda: None, sys.argv[1:]))"
    process = run("-c", code, "--ros-args", *given)
    (line,) = [line for line in process.stderr.splitlines() if "[rcl]" not in line]
    assert process.returncode == 1 and re.fullmatch(f"error: .*{reason}.*", line), line
