"""A live run: simulator and estimator as processes, the recorder in this one; newest values on topics, and a view."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from friction_estimator.config import Config
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.middleware import SENSOR_INPUT
from friction_estimator.ros.processes import LoadMeter, ProcessError, Processes
from friction_estimator.ros.recorder_node import TAKE_PERIOD, HeaderClock, Recorder
from friction_estimator.ros.spin import Running
from friction_estimator.types import FloatArray
from friction_estimator.views.live_view import LiveView, Skeleton

_LOAD_PERIOD = 0.25  # between two readings of the CPU times [s]
_QUIET = 1.0  # without a further estimate, after which the estimator is ended [s]
_PATIENCE = 20.0  # for the last estimates, and for the end of a process [s]
_START_UP = 180.0  # longest start; the first one compiles the numerical kernels [s]
_CHECK_PERIOD = 0.05  # between two checks of the processes [s]
_GOODBYE = 0.5  # recording after the end of the estimator [s]


_PERIOD_OF_FRAMES = 0.05
"""Time between two frames of a view [s]."""
_SHOWN = (
    topics.FRICTION, topics.SIGMA, topics.MEASURED, topics.COULOMB, topics.VISCOUS, topics.CONTACT_PHASE,
    topics.BASE_STATE, topics.TRUE_FRICTION,
)  # fmt: skip
_TRUTH_KEPT = 2000
"""Kept messages of the true friction: more than the simulator can be ahead of the estimator."""


_EFFORTS = {field.removeprefix("law."): topic for field, topic in topics.SCALARS.items() if topic in _SHOWN}
"""Topics of the attributes of :class:`LiveState` that are the newest ``effort``."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """Newest values, counters and load of a live run."""

    joint_names: tuple[str, ...]  # (n); empty before the first estimate
    # (n,) newest values on their topics; NaN while unknown
    friction: FloatArray
    sigma: FloatArray
    coulomb: FloatArray
    viscous: FloatArray
    measured: FloatArray
    position: FloatArray  # (n,) of the joints [rad]; NaN while unknown
    truth: FloatArray  # (n,) true friction at the stamp of `friction`; NaN while unknown
    base_position: FloatArray  # (3,) of the base in the world [m]
    base_quaternion: FloatArray  # (4,) x, y, z, w
    phase: str  # contact phase
    elapsed: float  # header time since the first joint state [s]
    joint_samples: int  # joint states recorded
    estimates: int  # estimates recorded
    sent: int  # joint states that the simulator has published
    received: int  # joint states that the estimator has received
    behind: float  # delay of the simulation against real time [s]
    waited: float  # part of this delay in which the simulation waited for the estimator [s]
    latency: str  # median and 99th percentile of the estimator's processing time
    collisions: tuple[str, ...]  # what was detected so far, one sentence each
    # processor time by process, divided by real time, from the first joint state to the last
    cores: Mapping[str, float]


class _LiveTopics:
    """Deserializes the newest messages of a recorder.

    Parameters
    ----------
    config : topic names
    recorder : of the topics

    Attributes
    ----------
    handlers : functions for :meth:`Recorder.record`
    """

    def __init__(self, config: Config, recorder: Recorder) -> None:
        self._recorder = recorder
        self._joint_topic = config.output.joint_states_topic
        self._truth: deque[bytes] = deque(maxlen=_TRUTH_KEPT)
        self._first_stamp: int | None = None
        self._reported: dict[str, str] = {}
        self._collisions: list[str] = []
        self.handlers: dict[str, Callable[[bytes], None]] = {
            topics.NODE_STATUS.name: self._diagnostics,
            topics.COLLISION.name: self._collision,
            topics.TRUE_FRICTION.name: self._truth.append,
        }

    @property
    def joint_samples(self) -> int:
        """Joint states recorded."""
        return self._recorder.counts[self._joint_topic]

    @property
    def estimates(self) -> int:
        """Estimates recorded."""
        return self._recorder.counts[topics.FRICTION.name]

    def state(self, cores: Mapping[str, float]) -> LiveState:
        """State from the newest messages; ``cores`` as in :class:`LiveState`."""
        friction = self._message(topics.FRICTION.name, JointState)
        names = tuple(friction.name)
        reported = self._reported
        base_position, base_quaternion = _pose(self._message(topics.BASE_STATE.name, Odometry))
        return LiveState(
            joint_names=names,
            position=_joint_field(friction, "position", names),
            base_position=base_position,
            base_quaternion=base_quaternion,
            truth=self._truth_at_estimate(names),
            friction=_joint_field(friction, "effort", names),
            **{
                name: _joint_field(self._message(topic.name, JointState), "effort", names)
                for name, topic in _EFFORTS.items()
            },
            phase=self._message(topics.CONTACT_PHASE.name, String).data,
            elapsed=self._elapsed(),
            joint_samples=self.joint_samples,
            estimates=self.estimates,
            sent=int(reported.get("published", "0")),
            received=int(reported.get("received", "0")),
            behind=float(reported.get("behind", "0").removesuffix(" s")),
            waited=float(reported.get("waited", "0").removesuffix(" s")),
            latency=reported.get("latency", ""),
            collisions=tuple(self._collisions),
            cores=cores,
        )

    def _elapsed(self) -> float:
        newest = self._recorder.newest.get(self._joint_topic)
        if newest is None:
            return 0.0
        stamp = stamp_of(newest)
        if self._first_stamp is None:
            self._first_stamp = stamp
        return 1e-9 * (stamp - self._first_stamp)

    def _truth_at_estimate(self, names: tuple[str, ...]) -> FloatArray:
        """True friction at the stamp of the newest estimate: the simulator may be ahead of the estimator."""
        newest = self._recorder.newest.get(topics.FRICTION.name)
        stamp, kept = 0 if newest is None else stamp_of(newest), tuple(self._truth)
        index = bisect_left(kept, stamp, key=stamp_of)
        found = index < len(kept) and stamp_of(kept[index]) == stamp
        return _joint_field(deserialize_message(kept[index], JointState) if found else JointState(), "effort", names)

    def _message(self, topic: str, message_type: Any) -> Any:
        """Newest message of a topic; an empty one before the first."""
        raw = self._recorder.newest.get(topic)
        return message_type() if raw is None else deserialize_message(raw, message_type)

    def _collision(self, raw: bytes) -> None:
        seconds = 0.0 if self._first_stamp is None else 1e-9 * (stamp_of(raw) - self._first_stamp)
        for status in deserialize_message(raw, DiagnosticArray).status:
            self._collisions.append(f"{seconds:.3f} s: {status.message}")

    def _diagnostics(self, raw: bytes) -> None:
        for status in deserialize_message(raw, DiagnosticArray).status:
            values = {item.key: item.value for item in status.values}
            if status.name.endswith(": samples"):
                self._reported.update(values)
            elif status.name.endswith(f": input {self._joint_topic}"):
                self._reported["received"] = values["received"]
            elif status.name.endswith(": estimates") and not values.get("processing p50", "nan").startswith("nan"):
                self._reported["latency"] = f"p50 {values['processing p50']}, p99 {values['processing p99']}"


def _joint_field(message: Any, field: str, joint_names: Sequence[str]) -> FloatArray:
    """One field of a sensor_msgs/JointState, (n,) in the order of these joints.

    NaN for joints that the message does not name, and for a field that is empty.

    """
    values = getattr(message, field)
    found = dict(zip(message.name, values, strict=True)) if len(values) else {}
    return np.array([found.get(name, np.nan) for name in joint_names])


def _pose(odometry: Odometry) -> tuple[FloatArray, FloatArray]:
    """Position (3,) [m] and orientation (x, y, z, w) of the base."""
    at, turn = odometry.pose.pose.position, odometry.pose.pose.orientation
    return np.array([at.x, at.y, at.z]), np.array([turn.x, turn.y, turn.z, turn.w])


class View(Protocol):
    """Shows a live run while it goes on."""

    period: float
    """Time between two states [s]."""

    def show(self, state: LiveState) -> None:
        """Show the state; called a few times a second."""
        ...


class StateView:
    """Hands the state of a live run to a view, as frames.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    period = _PERIOD_OF_FRAMES

    def __init__(self, robot: Robot, view: LiveView) -> None:
        self._robot, self._view = robot, view
        self._skeleton: Skeleton | None = None
        self._events = 0

    def show(self, state: LiveState) -> None:
        """Send a frame; nothing before the first estimate."""
        if not state.joint_names:
            return
        if self._skeleton is None:
            self._skeleton = Skeleton(self._robot, state.joint_names)
        new, self._events = state.collisions[self._events :], len(state.collisions)
        pose = state.base_position, state.base_quaternion
        signals = state.friction, state.sigma, state.truth
        self._view.send(self._skeleton.frame(state.elapsed, state.position, pose, signals, state.phase, new))


class ViewNode(Node):
    """Subscribes to the topics of an estimator and shows them until the process ends.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    def __init__(self, robot: Robot, view: LiveView) -> None:
        super().__init__("friction_view")
        self._view = StateView(robot, view)
        self._recorder = Recorder(self)
        self._topics = _LiveTopics(robot.config, self._recorder)
        joint_states = topics.sensor_topics(robot.config)[0]
        shown = (joint_states, *_SHOWN, topics.NODE_STATUS, topics.COLLISION)
        self._recorder.record(shown, SENSOR_INPUT, handlers=self._topics.handlers)

    def play(self, executor: Executor, running: Running) -> None:
        """Show until the process shall end."""
        next_frame = 0.0
        while running():
            self._recorder.take()
            if time.monotonic() >= next_frame:
                next_frame = time.monotonic() + _PERIOD_OF_FRAMES
                self._view.show(self._topics.state({}))
            executor.spin_once(timeout_sec=TAKE_PERIOD)
        self._recorder.close()


class LiveRun(Node):
    """Starts the processes, records all topics, and ends the processes in an order in which no message is lost.

    Parameters
    ----------
    config : of the robot
    nodes : command line of the nodes ``estimator`` and ``simulation``
    output : folder for the bag ``run`` and the logs
    custom_data : texts that are stored in the bag
    overwrite : delete an older bag in the folder first
    views : show the state during the run

    Attributes
    ----------
    state : values and counters at the end; None until :meth:`play` is over
    """

    def __init__(
        self,
        config: Config,
        nodes: Mapping[str, Sequence[str]],
        output: Path,
        custom_data: Mapping[str, str],
        overwrite: bool,
        views: Sequence[View],
    ) -> None:
        super().__init__("live_run")
        self._config, self._nodes, self._output, self._custom_data = config, nodes, output, custom_data
        self._overwrite, self._views = overwrite, views
        self._next_views = [0.0] * len(views)
        self.state: LiveState | None = None
        self._load = LoadMeter({"recorder and display": os.getpid()})
        self._next_load = 0.0
        self._samples_before = 0
        self._processes = Processes(output)
        self._recorder = Recorder(self)
        self._topics = _LiveTopics(config, self._recorder)

    def play(self, executor: Executor, running: Running) -> None:
        """Run until the simulation ends or the process shall end; the bag is complete afterwards."""
        bag = BagWriter(self._output / "run", custom_data=self._custom_data, overwrite=self._overwrite)
        with bag as writer, self._processes:
            self._recorder = Recorder(self, writer)
            self._topics = _LiveTopics(self._config, self._recorder)
            self._record(self._recorder)
            estimator = self._start("estimator")
            self._await_estimator(running)
            simulation = self._start("simulation")
            self._watch(running, simulation)
            self._finish(simulation, estimator)
            self._recorder.close()
            self.state = self._show(math.inf)

    def _record(self, recorder: Recorder) -> None:
        config, handlers = self._config, self._topics.handlers
        sensors = (*topics.input_topics(config), *topics.truth_topics(config))
        recorder.record(sensors, clock=HeaderClock(), handlers=handlers)
        results = (*topics.result_topics(config), topics.NODE_STATUS, topics.COLLISION)
        recorder.record(results, clock=HeaderClock(), handlers=handlers)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        words = f"{name}_node", *self._nodes[name]
        process = self._processes.start(name, "friction_estimator.ros.executables", *words)
        self._load.pids[name] = process.pid
        return process

    def _await_estimator(self, running: Running) -> None:
        """Wait until the recorder has found the topics of the estimator: it cannot receive earlier messages.

        The simulation starts only then. While it starts, the estimator finds the recorder.
        """
        names = [topic.name for topic in topics.result_topics(self._config)]
        give_up = time.monotonic() + _START_UP
        while running() and not all(self.count_publishers(name) for name in names):
            self._work(_CHECK_PERIOD)
            if running():
                self._processes.check()
            if time.monotonic() > give_up:
                log = self._processes.log("estimator")
                raise ProcessError(f"the estimator has not started after {_START_UP:.0f} s; its log is {log}")

    def _watch(self, running: Running, simulation: subprocess.Popen[bytes]) -> None:
        """Record and show until the simulation has ended."""
        started = time.monotonic()
        while running() and simulation.poll() is None:
            self._work(_CHECK_PERIOD)
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
            self._work(_CHECK_PERIOD)
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
            self._work(_CHECK_PERIOD)

    def _work(self, seconds: float) -> None:
        """Record for some time, and update the view."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._recorder.take()
            if now >= self._next_load:
                self._next_load = now + _LOAD_PERIOD
                self._measure_load()
            if any(now >= next_view for next_view in self._next_views):
                self._show(now)
            time.sleep(TAKE_PERIOD)

    def _measure_load(self) -> None:
        """Read the CPU times while joint states arrive, so that start and end of the run are not counted."""
        if self._topics.joint_samples > self._samples_before:
            self._samples_before = self._topics.joint_samples
            self._load.read()

    def _show(self, now: float) -> LiveState:
        """Hand the state to the views whose time has come."""
        state = self._topics.state(self._load.cores())
        for number, view in enumerate(self._views):
            if now >= self._next_views[number]:
                self._next_views[number] = now + view.period
                view.show(state)
        return state
