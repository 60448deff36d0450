"""A robot of simulated samples that talks to a real estimator node over DDS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import deserialize_message

from benchmarks.faults.live import NodeProcess, RobotNode
from benchmarks.faults.readings import Walk, simulated_walk
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.messages.sensors import SensorMessages
from friction_estimator.ros.middleware import RECORDER, message_class
from friction_estimator.simulation import SimulationSample

from .warm_nodes import WarmNodes

ROBOT = "suralp"


class TalkingRobot(RobotNode):
    """Publishes samples of a simulated walk, and listens to what the estimator makes of them.

    Stamps go on by the period of the samples whatever is sent.
    """

    def __init__(self, namespace: str, robot: Robot, samples: Sequence[SimulationSample]) -> None:
        self._samples = samples
        self._messages = SensorMessages(robot.config, robot_joints(samples, robot))
        super().__init__("talking_robot", namespace, self._messages.topics)
        self.received: dict[str, list] = {}
        self.diagnostics: dict[str, object] = {}
        self.stamp_ns = 1_000_000_000
        self._period_ns = samples[1].joints.stamp_ns - samples[0].joints.stamp_ns
        self.sent: list[int] = []
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, RECORDER)

    def listen(self, *wanted: topics.Topic) -> None:
        for topic in wanted:
            store = self.received.setdefault(topic.name, [])
            self.node.create_subscription(message_class(topic.type), topic.name, store.append, RECORDER)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.diagnostics[status.name.partition(": ")[2]] = status

    def connect(self) -> None:
        self.await_node(tuple(self.received))

    def send(self, count: int, change: Callable[[dict[str, object]], object] | None = None) -> None:
        """Publish samples; ``change`` may alter or drop messages of each (a dict by topic) before they leave."""
        for _ in range(count):
            messages: dict[str, object] = self._built(self._samples[len(self.sent) % len(self._samples)])
            if change is not None:
                classes = {topic.name: message_class(topic.type) for topic in self._messages.topics}
                messages = {name: deserialize_message(raw, classes[name]) for name, raw in messages.items()}
                change(messages)
            for topic, message in messages.items():
                self.publishers[topic].publish(message)
            self.sent.append(self.stamp_ns)
            self.stamp_ns += self._period_ns
            self.executor.spin_once(timeout_sec=0.0005)

    def finish_walk(self) -> None:
        """Publish the rest of the walk: the next sample is its first one, and joints jump there."""
        self.send(-len(self.sent) % len(self._samples))

    def _built(self, sample: SimulationSample) -> dict[str, bytes]:
        """Serialized messages of a sample, with the next stamp."""
        readings = [replace(reading, stamp_ns=self.stamp_ns) for reading in sample.readings]
        return {topic.name: raw for topic, raw in self._messages.build(readings)}

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

    def value(self, status: str, key: str) -> str:
        return next(item.value for item in self.diagnostics[status].values if item.key == key)


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


@pytest.fixture(scope="session", autouse=True)
def warm_nodes() -> Iterator[None]:
    """Every node of the tests is a fork of one process."""
    nodes = WarmNodes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeProcess, "start", staticmethod(nodes.start))
        yield
    nodes.close()


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ros")


@pytest.fixture(scope="module")
def talking(robot: Robot, samples: Sequence[SimulationSample], workplace: Path) -> Iterator[TalkingRobot]:
    """A robot in a namespace that sends at 250 Hz, and an estimator that hears it."""
    process = NodeProcess(workplace, "inputs_reliable:=true", namespace="robot1")
    talking = TalkingRobot("robot1", robot, samples[::4])
    talking.listen(topics.FRICTION, topics.SIGMA, topics.MODEL, topics.COULOMB, topics.CONTACT_PHASE)
    try:
        talking.connect()
        talking.send(75)
        talking.await_estimate(talking.sent[-1])
        talking.await_report(bool, "the first one")
        yield talking
        assert process.end() == 0, process.output
    finally:
        process.close()
        talking.close()
