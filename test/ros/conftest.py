"""A real estimator node in a process of its own, and a robot of recorded samples that talks to it over DDS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.serialization import deserialize_message

from benchmarks.faults.readings import Walk, simulated_walk
from friction_estimator.io.resources import robot_file
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.messages.simulated import SensorMessages
from friction_estimator.ros.middleware import RECORDER, SENSOR_OUTPUT, message_class
from friction_estimator.ros.spin import make_executor
from friction_estimator.simulation import SimulationSample

ROBOT = "suralp"
PERIOD_NS = 1_000_000
TIME_OUT = 60.0
"""Nothing waits that long unless it is broken [s]; busy machines are slow."""


class NodeProcess:
    """One node of the package as a process, its output in a file."""

    def __init__(
        self,
        module: str,
        folder: Path,
        *parameters: str,
        namespace: str = "",
        name: str = "",
        params_file: Path | None = None,
    ) -> None:
        self.log = folder / f"{module}_{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "friction_estimator.ros.executables", module, "--ros-args"]
        command += ["--params-file", str(robot_file(ROBOT))]
        command += ["--params-file", str(params_file)] if params_file else []
        command += ["-r", f"__ns:=/{namespace}"] if namespace else []
        command += ["-r", f"__node:={name}"] if name else []
        for parameter in parameters:
            command += ["-p", parameter]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def output(self) -> str:
        return self.log.read_text()

    def wait(self, seconds: float = TIME_OUT) -> int:
        return self.process.wait(seconds)

    def end(self, number: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class TalkingRobot:
    """Publishes samples of a simulated walk, and listens to what the estimator makes of them.

    Stamps go on by 1 ms a sample whatever is sent; ``skip`` moves them.
    """

    def __init__(self, namespace: str, robot: Robot, samples: Sequence[SimulationSample]) -> None:
        self.node = Node("talking_robot", namespace=f"/{namespace}" if namespace else "")
        self.executor = make_executor()
        self.executor.add_node(self.node)
        self._samples = samples
        self._messages = SensorMessages(robot.config, robot_joints(samples, robot))
        self.publishers = {
            topic.name: self.node.create_publisher(message_class(topic.type), topic.name, SENSOR_OUTPUT)
            for topic in self._messages.topics
        }
        self.received: dict[str, list] = {}
        self.diagnostics: dict[str, object] = {}
        self.reports = 0
        self.stamp_ns = 1_000_000_000
        self.sent: list[int] = []
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, RECORDER)

    def listen(self, *wanted: topics.Topic) -> None:
        for topic in wanted:
            store = self.received.setdefault(topic.name, [])
            self.node.create_subscription(message_class(topic.type), topic.name, store.append, RECORDER)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        self.reports += 1
        for status in message.status:
            self.diagnostics[status.name.partition(": ")[2]] = status

    def spin_until(self, condition: Callable[[], bool], what: str, seconds: float = TIME_OUT) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"timed out: {what}"
            self.executor.spin_once(timeout_sec=0.05)

    def connect(self) -> None:
        def connected() -> bool:
            everybody = all(publisher.get_subscription_count() for publisher in self.publishers.values())
            return everybody and all(self.node.count_publishers(name) for name in self.received)

        self.spin_until(connected, "discovery")
        end = time.monotonic() + 0.5  # the other side must have matched, too
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.05)

    def send(self, count: int, change: Callable[[dict[str, object]], object] | None = None) -> None:
        """Publish samples; ``change`` may alter or drop messages of each (a dict by topic) before they leave."""
        for _ in range(count):
            sample = self._samples[len(self.sent) % len(self._samples)]
            messages = self._at_stamp(sample)
            if change is not None:
                change(messages)
            for topic, message in messages.items():
                self.publishers[topic].publish(message)
            self.sent.append(self.stamp_ns)
            self.stamp_ns += PERIOD_NS
            self.executor.spin_once(timeout_sec=0.0005)

    def _at_stamp(self, sample: SimulationSample) -> dict[str, object]:
        built = {
            topic.name: deserialize_message(raw, message_class(topic.type))
            for topic, raw in self._messages.build(sample.readings)
        }
        for message in built.values():
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = self.stamp_ns // 10**9, self.stamp_ns % 10**9
        return built

    def estimated(self) -> list[int]:
        """Stamps of all estimates so far."""
        return [header_stamp(message) for message in self.received[topics.FRICTION.name]]

    def await_estimate(self, stamp_ns: int) -> None:
        """Spin until the estimate of this sample is here, with all messages that left before it."""

        def here() -> bool:
            newest = [self.received[topic.name][-1:] for topic in (topics.FRICTION, topics.SIGMA)]
            return all(message and header_stamp(message[0]) == stamp_ns for message in newest)

        self.spin_until(here, "estimate of the newest sample")

    def await_report(self, condition: Callable[[dict], bool], what: str) -> None:
        self.spin_until(lambda: condition(self.diagnostics), f"diagnostic: {what}; last: {self.diagnostics}")

    def call(self, service_type: Any, name: str, request: Any) -> Any:
        """Answer of a service of the estimator."""
        client = self.node.create_client(service_type, f"friction_estimator/{name}")
        assert client.wait_for_service(10.0)
        future = client.call_async(request)
        self.spin_until(future.done, name)
        self.node.destroy_client(client)
        return future.result()

    def value(self, status: str, key: str) -> str:
        return next(item.value for item in self.diagnostics[status].values if item.key == key)

    def close(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()


def robot_joints(samples: Sequence[SimulationSample], robot: Robot) -> tuple[str, ...]:
    from friction_estimator.robot.model import RobotModel

    return RobotModel(robot.config, robot.urdf_xml).joint_names


@pytest.fixture(scope="session")
def robot() -> Robot:
    return load_robot(ROBOT)


@pytest.fixture(scope="session")
def walk(robot: Robot) -> Walk:
    return simulated_walk(robot, 9.0)


@pytest.fixture(scope="session")
def samples(walk: Walk) -> Sequence[SimulationSample]:
    return walk.samples[:4000]


@pytest.fixture(scope="session", autouse=True)
def ros() -> Iterator[None]:
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ros")


@pytest.fixture(scope="module")
def talking(robot: Robot, samples: Sequence[SimulationSample], workplace: Path) -> Iterator[TalkingRobot]:
    """A robot in a namespace, and an estimator that hears it."""
    process = NodeProcess("estimator_node", workplace, "inputs_reliable:=true", namespace="robot1")
    talking = TalkingRobot("robot1", robot, samples)
    talking.listen(topics.FRICTION, topics.SIGMA, topics.MODEL, topics.COULOMB, topics.CONTACT_PHASE)
    try:
        talking.connect()
        talking.send(300)
        talking.await_estimate(talking.sent[-1])
        talking.await_report(bool, "the first one")
        yield talking
        assert process.end() == 0, process.output()
    finally:
        process.kill()
        talking.close()
