"""The launch file under the real `ros2 launch`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.faults.live import TIME_OUT
from friction_estimator.errors import choices
from friction_estimator.io.robot import robot_names

pytest.importorskip("launch_ros", reason="launch_ros is not installed: it comes with ROS 2")
pytest.importorskip("ros2launch", reason="ros2launch is not installed: it comes with ROS 2")

ROOT = Path(__file__).resolve().parents[2]
ROS2 = "import sys; from ros2cli.cli import main; sys.exit(main(argv=sys.argv[1:]))"


class Launch:
    """`ros2 launch` as a terminal runs it: one process group, which Ctrl-C reaches as a whole."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "launch.log"
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", ROS2, "launch", str(ROOT / "launch" / "biped.launch.py"), *arguments],
                cwd=folder, env={**os.environ, "PYTHONPATH": path, "ROS_LOG_DIR": str(folder)},
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def output(self) -> str:
        return self.log.read_text()

    def await_words(self, words: str) -> None:
        end = time.monotonic() + TIME_OUT
        while words not in self.output():
            assert time.monotonic() < end and self.process.poll() is None, self.output()
            time.sleep(0.02)

    def await_handlers(self, count: int) -> None:
        """Wait until the processes handle signals: before that Python itself starts, and a signal ends it."""
        end = time.monotonic() + TIME_OUT
        while True:
            pids = re.findall(r"process started with pid \[(\d+)\]", self.output())
            status = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
            caught = [int(mask, 16) for text in status for mask in re.findall(r"SigCgt:\s*(\w+)", text)]
            if len(caught) == count and all(mask >> (signal.SIGTERM - 1) & 1 for mask in caught):
                return
            assert time.monotonic() < end, self.output()
            time.sleep(0.02)

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self) -> int:
        return self.process.wait(TIME_OUT)


@pytest.fixture
def launch(tmp_path: Path):
    started = []

    def start(*arguments: str) -> Launch:
        started.append(Launch(tmp_path, *arguments))
        return started[-1]

    yield start
    for item in started:
        if item.process.poll() is None:
            os.killpg(item.process.pid, signal.SIGKILL)
            item.process.wait()


def test_all_ends_well_when_the_simulation_is_over(launch: Callable[..., Launch]) -> None:
    run = launch("duration:=0.2", "real_time_factor:=0.0", "namespace:=robot1", "rviz:=true", "scenaro:=walk")
    assert run.wait() == 0, run.output()
    output = run.output()
    assert output.count("process has finished cleanly") >= 2 and "Traceback" not in output
    assert "[robot1.friction_estimator]: estimating 12 joints" in output
    assert "has no argument 'scenaro': did you mean 'scenario'?" in output
    assert "rviz2 is not installed: rviz:=true is ignored" in output or "rviz2" in output


@pytest.mark.parametrize("moment", ["process started with pid", "estimating 12 joints", "simulating 'walk'"])
def test_control_c_ends_all_nodes_without_a_traceback(launch: Callable[..., Launch], moment: str) -> None:
    run = launch()
    run.await_words(moment)
    run.await_handlers(2)
    run.interrupt()
    assert run.wait() == 0, run.output()
    assert "Traceback" not in run.output() and "process has died" not in run.output(), run.output()


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("source:=fly", "Valid options are: ['simulation', 'robot', 'bag']"),
        ("robot:=nobody", f"the robots of friction_estimator are {choices(robot_names())}"),
        ("scenario:=fly", "the scenarios are 'collisions', 'friction_change',"),
    ],
)
def test_a_wrong_argument_fails_with_the_choices(launch: Callable[..., Launch], argument: str, reason: str) -> None:
    run = launch(argument)
    assert run.wait() == 1, run.output()
    assert reason in run.output() and "Traceback" not in run.output(), run.output()
