"""One live run from start to end: simulator and estimator as two processes, the recorder in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rclpy.executors import Executor
from rclpy.node import Node

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot
from friction_estimator.ros.live_state import LiveState, LiveTopics
from friction_estimator.ros.recorder import (
    DIAGNOSTICS,
    PERIOD,
    HeaderClock,
    Recorder,
    input_topics,
    result_topics,
    truth_topics,
)
from friction_estimator.ros.spin import Running

_VIEW_PERIOD = 0.25
_QUIET = 1.0
_PATIENCE = 20.0
_START_UP = 180.0
"""A first start compiles the numerical kernels [s]."""
_GOODBYE = 0.5


class LiveRunError(FrictionEstimatorError):
    """A process of a live run ended too early."""


class View(Protocol):
    """Shows a live run while it goes on."""

    def show(self, state: LiveState) -> None:
        """Show how things are now; called a few times a second."""
        ...


@dataclass(frozen=True, slots=True)
class LiveRunOptions:
    """What to run.

    Attributes
    ----------
    robot : configuration and URDF
    robot_file : YAML it came from
    overrides : flat parameters on top of that YAML
    simulation : parameters of the simulation node
    output : folder for the bag ``run`` and the logs
    custom_data : texts to keep in the bag
    """

    robot: Robot
    robot_file: Path
    overrides: Mapping[str, object]
    simulation: Mapping[str, object]
    output: Path
    custom_data: Mapping[str, str]


class LoadMeter:
    """Processor time of processes from the first to the last reading, by ``/proc``.

    Parameters
    ----------
    pids : by name of the process; more may be added before the first reading
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self.pids = dict(pids)
        self._readings: list[tuple[float, dict[str, float]]] = []

    def read(self) -> None:
        """Read the processor times; processes that have ended keep their last reading."""
        before = self._readings[-1][1] if self._readings else {}
        times = {name: _processor_time(pid) or before.get(name, 0.0) for name, pid in self.pids.items()}
        self._readings[1:] = [(time.monotonic(), times)]

    def cores(self) -> dict[str, float]:
        """Processor time by process, divided by the time between the readings; empty before the second one.

        Processes whose time cannot be read are left out.
        """
        if len(self._readings) < 2:
            return {}
        (start, first), (end, last) = self._readings
        return {name: (last[name] - first[name]) / (end - start) for name in first if last[name]}


class LiveRun(Node):
    """Starts the processes, records all topics, and stops everything in the order that loses nothing.

    Parameters
    ----------
    options : what to run
    view : what people see meanwhile

    Attributes
    ----------
    state : values and counters at the end; None until :meth:`play` is over
    """

    def __init__(self, options: LiveRunOptions, view: View) -> None:
        super().__init__("live_run")
        self._options = options
        self._view = view
        self.state: LiveState | None = None
        self._load = LoadMeter({"recorder and display": os.getpid()})
        self._next_view = 0.0
        self._samples_before = 0

    def play(self, executor: Executor, running: Running) -> None:
        """Run until the simulation ends or the process shall end; the bag is complete afterwards."""
        options = self._options
        with ExitStack() as stack:
            writer = stack.enter_context(
                BagWriter(options.output / "run", custom_data=options.custom_data, overwrite=True)
            )
            self._recorder = Recorder(self, writer)
            self._topics = LiveTopics(options.robot.config, self._recorder)
            self._record(self._recorder)
            estimator = self._process(stack, "estimator", {"inputs_reliable": True})
            self._await_estimator(running, estimator)
            simulation = self._process(stack, "simulation", options.simulation)
            self._watch(running, simulation, estimator)
            self._finish(simulation, estimator)
            self._recorder.close()
            self.state = self._show()

    def _record(self, recorder: Recorder) -> None:
        config, watch = self._options.robot.config, self._topics.handler
        sensors, results = HeaderClock(), HeaderClock()
        for topic, type_name in [*input_topics(config), *truth_topics(config)]:
            recorder.record(topic, type_name, clock=sensors.of_type(type_name), also=watch(topic))
        for topic, type_name in [*result_topics(config), DIAGNOSTICS]:
            recorder.record(topic, type_name, clock=results.of_type(type_name), also=watch(topic))

    def _process(self, stack: ExitStack, name: str, own: Mapping[str, object]) -> subprocess.Popen[bytes]:
        options = self._options
        parameters = {**options.overrides, "robot.urdf": str(options.robot.urdf_path), **own}
        command = [sys.executable, "-m", "friction_estimator.ros.executables", f"{name}_node", "--ros-args"]
        command += ["--params-file", str(options.robot_file)]
        for key, value in parameters.items():
            command += ["-p", f"{key}:={_yaml(value)}"]
        log = stack.enter_context(self._log(name).open("wb"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        stack.callback(_make_sure_it_ended, process)
        self._load.pids[name] = process.pid
        return process

    def _log(self, name: str) -> Path:
        return self._options.output / f"{name}.log"

    def _await_estimator(self, running: Running, estimator: subprocess.Popen[bytes]) -> None:
        """Wait until the recorder has found the topics of the estimator; it would not receive what is published before.

        The simulation starts only then, and its own start gives the estimator the time to find the recorder.
        """
        wanted = [topic for topic, _ in result_topics(self._options.robot.config)]
        give_up = time.monotonic() + _START_UP
        while running() and not all(self.count_publishers(topic) for topic in wanted):
            self._work(0.05)
            if estimator.poll() is not None:
                raise LiveRunError(self._last_words("estimator"))
            if time.monotonic() > give_up:
                raise LiveRunError(f"the estimator did not start in {_START_UP:.0f} s; see {self._log('estimator')}")

    def _watch(self, running: Running, *processes: subprocess.Popen[bytes]) -> None:
        """Record and show until the simulation has ended."""
        simulation, estimator = processes
        started = time.monotonic()
        while running() and simulation.poll() is None:
            self._work(0.1)
            if estimator.poll() is not None:
                raise LiveRunError(self._last_words("estimator"))
            if not self._topics.joint_samples and time.monotonic() - started > _START_UP:
                logs = f"{self._log('simulation')} and {self._log('estimator')}"
                raise LiveRunError(f"no sensor message in {_START_UP:.0f} s; see {logs}")
        if simulation.poll():
            raise LiveRunError(self._last_words("simulation"))

    def _finish(self, *processes: subprocess.Popen[bytes]) -> None:
        """Simulation first, then the estimates that are still to come, then the estimator, then its last report."""
        simulation, estimator = processes
        self._end(simulation)
        deadline, quiet_since, before = time.monotonic() + _PATIENCE, time.monotonic(), -1
        while time.monotonic() < min(deadline, quiet_since + _QUIET):
            self._work(0.1)
            estimates = self._topics.estimates
            if estimates != before:
                before, quiet_since = estimates, time.monotonic()
            if estimates >= self._topics.joint_samples:
                break
        self._end(estimator)
        self._work(_GOODBYE)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            self._work(0.05)

    def _work(self, seconds: float) -> None:
        """Record for a while, and show now and then."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._recorder.take()
            if now >= self._next_view:
                self._next_view = now + _VIEW_PERIOD
                self._measure_load()
                self._show()
            time.sleep(PERIOD)

    def _measure_load(self) -> None:
        """Only while joint states come: start-up and end are not what a core is needed for."""
        if self._topics.joint_samples > self._samples_before:
            self._samples_before = self._topics.joint_samples
            self._load.read()

    def _show(self) -> LiveState:
        state = self._topics.state(self._load.cores())
        self._view.show(state)
        return state

    def _last_words(self, name: str) -> str:
        """Why a process ended: the last line of its log that says so."""
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines
        return f"the {name} ended too early: {reasons[-1] if reasons else 'see ' + str(self._log(name))}"


def _processor_time(pid: int) -> float | None:
    """User and system time of a process [s]; None where it has ended, or the system has no ``/proc``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _make_sure_it_ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


def _yaml(value: object) -> str:
    """A value as the ROS command line reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
