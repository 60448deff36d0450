"""A live run: simulator and estimator as two processes, the recorder in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rclpy.executors import Executor
from rclpy.node import Node

from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot
from friction_estimator.ros.live_state import LiveState, LiveTopics
from friction_estimator.ros.processes import LoadMeter, ProcessError, Processes
from friction_estimator.ros.recorder_node import (
    COLLISION,
    DIAGNOSTICS,
    PERIOD,
    HeaderClock,
    Recorder,
    input_topics,
    result_topics,
    truth_topics,
)
from friction_estimator.ros.spin import Running

_VIEW_PERIOD = 0.25  # between two updates of the view [s]
_QUIET = 1.0  # without a further estimate, after which the estimator is ended [s]
_PATIENCE = 20.0  # for the last estimates, and for the end of a process [s]
_START_UP = 180.0  # longest start; the first one compiles the numerical kernels [s]
_GOODBYE = 0.5  # recording after the end of the estimator [s]


class View(Protocol):
    """Shows a live run while it goes on."""

    def show(self, state: LiveState) -> None:
        """Show the state; called a few times a second."""
        ...


@dataclass(frozen=True, slots=True)
class LiveRunOptions:
    """Robot, parameters and output of a live run.

    Attributes
    ----------
    robot : configuration and URDF
    robot_file : YAML of the robot
    overrides : parameters that replace those of the YAML, by dotted name
    simulation, estimator : parameters of the nodes
    output : folder for the bag ``run`` and the logs
    custom_data : texts that are stored in the bag
    """

    robot: Robot
    robot_file: Path
    overrides: Mapping[str, object]
    simulation: Mapping[str, object]
    estimator: Mapping[str, object]
    output: Path
    custom_data: Mapping[str, str]


class LiveRun(Node):
    """Starts the processes, records all topics, and ends the processes in an order in which no message is lost.

    Parameters
    ----------
    options : robot, parameters and output
    view : shows the state during the run

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
        bag = BagWriter(options.output / "run", custom_data=options.custom_data, overwrite=True)
        with bag as writer, Processes(options.output) as self._processes:
            self._recorder = Recorder(self, writer)
            self._topics = LiveTopics(options.robot.config, self._recorder)
            self._record(self._recorder)
            estimator = self._start("estimator", {"inputs_reliable": True, **options.estimator})
            self._await_estimator(running)
            simulation = self._start("simulation", options.simulation)
            self._watch(running, simulation)
            self._finish(simulation, estimator)
            self._recorder.close()
            self.state = self._show()

    def _record(self, recorder: Recorder) -> None:
        config, watch = self._options.robot.config, self._topics.handler
        sensors, results = HeaderClock(), HeaderClock()
        for topic, type_name in [*input_topics(config), *truth_topics(config)]:
            recorder.record(topic, type_name, clock=sensors.of_type(type_name), also=watch(topic))
        for topic, type_name in [*result_topics(config), DIAGNOSTICS, COLLISION]:
            recorder.record(topic, type_name, clock=results.of_type(type_name), also=watch(topic))

    def _start(self, name: str, own: Mapping[str, object]) -> subprocess.Popen[bytes]:
        options = self._options
        parameters = {**options.overrides, "robot.urdf": str(options.robot.urdf_path), **own}
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={_yaml(value)}")]
        words = ["--ros-args", "--params-file", str(options.robot_file), *words]
        process = self._processes.start(name, "friction_estimator.ros.executables", f"{name}_node", *words)
        self._load.pids[name] = process.pid
        return process

    def _await_estimator(self, running: Running) -> None:
        """Wait until the recorder has found the topics of the estimator: it cannot receive earlier messages.

        The simulation starts only then. While it starts, the estimator finds the recorder.
        """
        names = [topic for topic, _ in result_topics(self._options.robot.config)]
        give_up = time.monotonic() + _START_UP
        while running() and not all(self.count_publishers(name) for name in names):
            self._work(0.05)
            if running():
                self._processes.check()
            if time.monotonic() > give_up:
                log = self._processes.log("estimator")
                raise ProcessError(f"the estimator has not started after {_START_UP:.0f} s; its log is {log}")

    def _watch(self, running: Running, simulation: subprocess.Popen[bytes]) -> None:
        """Record and show until the simulation has ended."""
        started = time.monotonic()
        while running() and simulation.poll() is None:
            self._work(0.1)
            if running():  # Ctrl-C of a terminal ends all processes at once
                self._processes.check(simulation)
            if not self._topics.joint_samples and time.monotonic() - started > _START_UP:
                logs = " and ".join(str(self._processes.log(name)) for name in ("simulation", "estimator"))
                raise ProcessError(f"no sensor message has arrived after {_START_UP:.0f} s; the logs are {logs}")
        if running():
            self._processes.check(simulation)

    def _finish(self, simulation: subprocess.Popen[bytes], estimator: subprocess.Popen[bytes]) -> None:
        """End the simulation, record the remaining estimates, end the estimator, and record its last report."""
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
        """Ask a process to end, and record until it has."""
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            self._work(0.05)

    def _work(self, seconds: float) -> None:
        """Record for some time, and update the view."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._recorder.take()
            if now >= self._next_view:
                self._next_view = now + _VIEW_PERIOD
                self._measure_load()
                self._show()
            time.sleep(PERIOD)

    def _measure_load(self) -> None:
        """Read the CPU times while joint states arrive, so that start and end of the run are not counted."""
        if self._topics.joint_samples > self._samples_before:
            self._samples_before = self._topics.joint_samples
            self._load.read()

    def _show(self) -> LiveState:
        state = self._topics.state(self._load.cores())
        self._view.show(state)
        return state


def _yaml(value: object) -> str:
    """A value in the syntax of the ROS command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
