"""Simulator and estimator as two processes, and a recorder beside them: one live run from start to end."""

from __future__ import annotations

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

from friction_estimator.bags.writer import BagWriter
from friction_estimator.core.exceptions import FrictionEstimatorError
from friction_estimator.files.robot import Robot
from friction_estimator.ros.live_state import LiveState, LiveTopics
from friction_estimator.ros.recorder import (
    DIAGNOSTICS,
    Recorder,
    StampClock,
    input_topics,
    result_topics,
    truth_topics,
)
from friction_estimator.ros.spin import Running

_VIEW_PERIOD = 0.25
_QUIET = 1.0
_PATIENCE = 20.0
_START_UP = 60.0
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


class LiveRun(Node):
    """Starts the processes, records all topics, and stops everything in the order that loses nothing.

    Parameters
    ----------
    options : what to run
    view : what people see meanwhile

    Attributes
    ----------
    state : newest values and counters; final after :meth:`play`
    """

    def __init__(self, options: LiveRunOptions, view: View) -> None:
        super().__init__("live_run")
        self._options = options
        self._view = view
        self._topics = LiveTopics(options.robot.config)
        self._next_view = 0.0

    @property
    def state(self) -> LiveState:
        """Newest values and counters."""
        return self._topics.state()

    def play(self, executor: Executor, running: Running) -> None:
        """Run until the simulation ends or the process shall end; the bag is complete afterwards."""
        options = self._options
        with ExitStack() as stack:
            writer = stack.enter_context(
                BagWriter(options.output / "run", custom_data=options.custom_data, overwrite=True)
            )
            self._record(Recorder(self, writer))
            estimator = self._process(stack, "estimator", {"inputs_reliable": True})
            self._await_estimator(executor, running, estimator)
            simulation = self._process(stack, "simulation", options.simulation)
            self._watch(executor, running, simulation, estimator)
            self._finish(executor, simulation, estimator)
            for subscription in list(self.subscriptions):
                self.destroy_subscription(subscription)

    def _record(self, recorder: Recorder) -> None:
        config, watch = self._options.robot.config, self._topics.handler
        sensors, results = StampClock(), StampClock()
        for topic, type_name in [*input_topics(config), *truth_topics(config)]:
            recorder.record(topic, type_name, clock=sensors.of_type(type_name), also=watch(topic))
        for topic, type_name in [*result_topics(config), DIAGNOSTICS]:
            recorder.record(topic, type_name, clock=results.of_type(type_name), also=watch(topic))
        self._topics.counts = recorder.counts

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
        return process

    def _log(self, name: str) -> Path:
        return self._options.output / f"{name}.log"

    def _await_estimator(self, executor: Executor, running: Running, estimator: subprocess.Popen[bytes]) -> None:
        """Spin until the topics of the estimator are known here: what it publishes before is lost to the recorder.

        The simulation starts only then, and its own start gives the estimator the time to know the recorder.
        """
        wanted = [topic for topic, _ in result_topics(self._options.robot.config)]
        give_up = time.monotonic() + _START_UP
        while running() and not all(self.count_publishers(topic) for topic in wanted):
            self._spin(executor, 0.05)
            if estimator.poll() is not None:
                raise LiveRunError(self._last_words("estimator"))
            if time.monotonic() > give_up:
                raise LiveRunError(f"the estimator did not start in {_START_UP:.0f} s; see {self._log('estimator')}")

    def _watch(self, executor: Executor, running: Running, *processes: subprocess.Popen[bytes]) -> None:
        """Record and show until the simulation has ended."""
        simulation, estimator = processes
        started = time.monotonic()
        while running() and simulation.poll() is None:
            self._spin(executor, 0.1)
            if estimator.poll() is not None:
                raise LiveRunError(self._last_words("estimator"))
            if not self._topics.state().joint_samples and time.monotonic() - started > _START_UP:
                raise LiveRunError(f"no sensor message in {_START_UP:.0f} s; see {self._log('simulation')}")
        if simulation.poll():
            raise LiveRunError(self._last_words("simulation"))

    def _finish(self, executor: Executor, *processes: subprocess.Popen[bytes]) -> None:
        """Simulation first, then all that is still on its way, then the estimator, then its last words."""
        simulation, estimator = processes
        self._end(executor, simulation)
        deadline, quiet_since, before = time.monotonic() + _PATIENCE, time.monotonic(), -1
        while time.monotonic() < min(deadline, quiet_since + _QUIET):
            self._spin(executor, 0.1)
            state = self._topics.state()
            if state.estimates != before:
                before, quiet_since = state.estimates, time.monotonic()
            if state.estimates >= state.joint_samples:
                break
        self._end(executor, estimator)
        self._spin(executor, _GOODBYE)
        self._view.show(self._topics.state())

    def _end(self, executor: Executor, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            self._spin(executor, 0.05)

    def _spin(self, executor: Executor, seconds: float) -> None:
        """Record for a while, and show now and then."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            executor.spin_once(timeout_sec=end - now)
            if now >= self._next_view:
                self._next_view = now + _VIEW_PERIOD
                self._view.show(self._topics.state())

    def _last_words(self, name: str) -> str:
        """Why a process ended: the last line of its log that says so."""
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines
        return f"the {name} ended too early: {reasons[-1] if reasons else 'see ' + str(self._log(name))}"


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
