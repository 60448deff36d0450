"""Driver of the live node: this process is its robot, and plays the faults."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile

from benchmarks.faults.live import MATCHING, NodeProcess, RobotNode
from benchmarks.faults.matrix import Fault
from benchmarks.faults.readings import Messages, Reading, Walk
from benchmarks.faults.runs import LEVELS, Estimates, Outcome, Scorer, Show, Stream
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.middleware import RECORDER, SENSOR_OUTPUT, message_class
from friction_estimator.ros.processes import environment
from friction_estimator.types import JointSample

COMPENSATION_LIMIT = 2.0
"""Parameter ``compensation.limit`` of the node [N m]."""
_REPORT = 1.0
"""Time between two reports of the node, and so the age of what a report may not know yet [s]."""
_SETTLE = 2.0
"""Pieces of good data in which warnings must disappear [s]."""
_PIECES = 5
"""Number of these pieces."""
_LEAD = 500
"""Joint states that may be without an estimate before the robot waits."""
_NO_PROGRESS = 0.3
"""Time without an estimate after which the robot goes on [s]."""
_OPTIONS = ("inputs_reliable:=true", "compensation.enabled:=true", f"compensation.limit:={COMPENSATION_LIMIT}")


class FaultyRobot(RobotNode):
    """Publishes readings at the times of their arrival, and listens to what the estimator makes of them.

    Parameters
    ----------
    walk : of the robot
    namespace : of all topics
    qos : of the sensor topics
    """

    def __init__(self, walk: Walk, namespace: str = "", qos: QoSProfile = SENSOR_OUTPUT) -> None:
        self._messages = Messages(walk.robot, walk.joint_names)
        super().__init__("faulty_robot", namespace, self._messages.topics, qos)
        self.numbers = 8 * len(walk.joint_names)
        self._joint_topic = self._messages.topics[0].name
        self.friction: list[bytes] = []
        self.sigma: list[bytes] = []
        self.compensation: list[bytes] = []
        self.reports: list[tuple[float, dict[str, tuple[str, str]]]] = []
        self.values: dict[str, dict[str, str]] = {}
        self.published = 0
        outputs = (
            (topics.FRICTION, self.friction),
            (topics.SIGMA, self.sigma),
            (topics.COMPENSATION, self.compensation),
        )
        for topic, store in outputs:
            self.node.create_subscription(message_class(topic.type), topic.name, store.append, RECORDER, raw=True)
        self._outputs = [topic.name for topic, _ in outputs]
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, RECORDER)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        statuses = {}
        for status in message.status:
            name = status.name.partition(": ")[2]
            statuses[name] = LEVELS[ord(status.level)], status.message
            self.values[name] = {item.key: item.value for item in status.values}
        self.reports.append((time.monotonic(), statuses))

    def connect(self, compensation: bool = True) -> None:
        """Wait until both sides have found each other."""
        self.await_node(self._outputs if compensation else self._outputs[:2])

    def clear(self) -> None:
        """Forget all received messages but the newest compensation."""
        del self.friction[:], self.sigma[:], self.compensation[:-1], self.reports[:]

    def publish(self, reading: Reading) -> str:
        """Publish one reading; the name of its topic."""
        topic, raw = self._messages.build(reading)
        self.publishers[topic.name].publish(raw)
        self.published += 1
        return topic.name

    def send(self, readings: Sequence[Reading]) -> None:
        """Publish readings at the pace of their arrival, slower where the node cannot follow."""
        spin_once, now = self.executor.spin_once, time.perf_counter
        shift = now() - 1e-9 * readings[0].arrival_ns
        received, progress, sent = len(self.friction), now(), 0
        missing = 0
        for reading in readings:
            due = shift + 1e-9 * reading.arrival_ns
            while (left := due - now()) > 0.0:
                spin_once(timeout_sec=min(left, 0.001))
            if self.publish(reading) != self._joint_topic:
                continue
            sent += 1
            spin_once(timeout_sec=0.0)
            if sent - missing - (len(self.friction) - received) > _LEAD:
                before, progress = len(self.friction), now()
                while sent - missing - (len(self.friction) - received) > _LEAD // 2:
                    spin_once(timeout_sec=0.01)
                    if len(self.friction) > before:
                        before, progress = len(self.friction), now()
                    if now() - progress > _NO_PROGRESS:  # these joint states get no estimate
                        missing = sent - (len(self.friction) - received)
                shift = max(shift, now() - 1e-9 * reading.arrival_ns)

    def finish(self, readings: Sequence[Reading]) -> None:
        """Receive until the estimate of the newest joint state is there, or no further one comes."""
        wanted = next(one.stamp_ns for one in reversed(readings) if isinstance(one.sample, JointSample))
        before, progress = -1, time.monotonic()
        while not (self._newest(self.friction) == self._newest(self.sigma) == wanted):
            self.executor.spin_once(timeout_sec=0.02)
            if len(self.friction) + len(self.sigma) > before:
                before, progress = len(self.friction) + len(self.sigma), time.monotonic()
            elif time.monotonic() - progress > 4.0 * _NO_PROGRESS:
                return

    @staticmethod
    def _newest(messages: Sequence[bytes]) -> int:
        return stamp_of(messages[-1]) if messages else -1

    def estimates(self, start: float, end: float) -> Estimates:
        """Received estimates, and statuses of the reports between two times of ``time.monotonic`` [s]."""
        made = Estimates()
        if len(self.friction) != len(self.sigma):
            made.errors.append(f"{len(self.friction)} estimates, but {len(self.sigma)} sigmas")
        for friction, sigma in zip(self.friction, self.sigma, strict=False):
            made.stamps.append(stamp_of(friction))
            made.friction.append(np.frombuffer(friction[-self.numbers :]))
            made.sigma.append(np.frombuffer(sigma[-self.numbers :]))
        torques = np.array([np.frombuffer(raw[-self.numbers :]) for raw in self.compensation])
        if torques.size and not (np.abs(torques) <= COMPENSATION_LIMIT).all():
            made.errors.append(f"a compensation torque of {np.abs(torques).max()} N m")
        for at, statuses in self.reports:
            if start < at <= end:
                made.texts |= {(name, level, text) for name, (level, text) in statuses.items()}
        return made

    def quiet(self) -> bool:
        """Whether the newest report has no warning but those about compensation."""
        newest = self.reports[-1][1] if self.reports else {}
        return bool(newest) and all(level == "OK" for name, (level, _) in newest.items() if name != "compensation")


@contextmanager
def middleware() -> Iterator[None]:
    """A ROS domain of this process and its children alone."""
    os.environ.update(environment())
    rclpy.init()
    try:
        yield
    finally:
        rclpy.try_shutdown()


class LiveRun:
    """A node and its robot, and the faults that they go through one after the other.

    Parameters
    ----------
    walk : of the robot
    folder : for logs and the parameter file
    before : good data before the first fault [s]
    seed : of the faults
    parameters : of the node, such as ``use_sim_time:=true``
    """

    def __init__(
        self, walk: Walk, folder: Path, before: float, seed: int, *parameters: str, namespace: str = ""
    ) -> None:
        self.saved = folder / f"identified_{time.monotonic_ns()}.yaml"
        options = (*_OPTIONS, f"identified_parameters:={self.saved}", *parameters)
        self.process = NodeProcess(folder, *options, namespace=namespace)
        self.robot = FaultyRobot(walk, namespace)
        self.scorer = Scorer()
        self._seed, self._before = seed, before
        self._walk = walk

    def start(self, index: int = 0) -> None:
        """Connect, and walk from this instant of the walk on until the first fault may come."""
        self.process.await_output("estimating")
        self.robot.connect()
        self.stream = Stream(self._walk, self._seed, time.time_ns())
        self.stream.index = index
        self.good = self.play(self.stream.good(self._before))
        self.scorer.learn(self.good, self.robot.estimates(0.0, 0.0))

    def play(self, readings: list[Reading]) -> list[Reading]:
        """Publish readings, and wait for the newest estimate."""
        self.robot.send(readings)
        self.robot.finish(readings)
        return readings

    def run(self, fault: Fault, seconds: float, after: float) -> Outcome:
        """One fault, and good data after it."""
        robot = self.robot
        robot.clear()
        readings, window = self.stream.faulty(fault, seconds, after)
        border = next(place for place, one in enumerate(readings) if one.index >= window.end)
        start = time.monotonic()
        if border:
            robot.send(readings[:border])
        else:
            robot.spin(seconds)
        end = time.monotonic() + _REPORT
        robot.send(readings[border:])
        robot.finish(readings)
        robot.spin_until(lambda: bool(robot.reports) and robot.reports[-1][0] > end, "report")
        end = next(at for at, _ in robot.reports if at > end)
        self.readings, self.window = readings, window
        estimates = robot.estimates(start, end)
        if (code := self.process.process.poll()) is not None:
            estimates.errors.append(f"the node ended with exit code {code}")
        return self.scorer.outcome(window, "node", readings, estimates)

    def settles(self) -> bool:
        """Whether all warnings disappear with good data."""
        pieces = 0
        while not self.robot.quiet() and pieces < _PIECES:
            self.play(self.stream.good(_SETTLE))
            pieces += 1
        return self.robot.quiet()

    def end(self, *signals: int, pause: float = 0.0) -> list[str]:
        """End the node with signals, by default SIGINT; what is wrong about its end."""
        code = self.process.end(*signals, pause=pause)
        self.robot.spin(MATCHING)
        wrong = [] if code == 0 else [f"exit code {code}"]
        if "Traceback" in self.process.output:
            wrong.append(f"a traceback: {self.process.output[-1000:]}")
        torque = np.frombuffer(self.robot.compensation[-1][-self.robot.numbers :]) if self.robot.compensation else 0.0
        return wrong + (["the last compensation torque is not zero"] if np.any(torque) else [])

    def close(self) -> None:
        """End process and robot whatever happened."""
        self.process.close()
        self.robot.close()


def run_node(
    walk: Walk, faults: Sequence[Fault], folder: Path, before: float, after: float, seed: int, show: Show
) -> None:
    """Faults one after the other in a node; it starts anew after a shortcoming, or when warnings do not disappear."""
    left = list(faults)
    while left:
        live = LiveRun(walk, folder, before, seed)
        try:
            live.start()
            clean = True
            while left and clean:
                fault = left.pop(0)
                outcome = live.run(fault, fault.seconds, after)
                clean = not outcome.shortcomings and fault.status != "friction diagnosis" and live.settles()
                wrong = tuple(live.end()) if not (clean and left) else ()
                show(outcome.but(wrong))
        finally:
            live.close()
