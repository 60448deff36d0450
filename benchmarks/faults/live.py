"""Starts a node of the package in a separate process, and publishes the sensor messages of a robot to it over DDS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.robot import robot_file
from friction_estimator.messages import topics
from friction_estimator.ros.middleware import SENSOR_OUTPUT, message_class
from friction_estimator.ros.spin import make_executor

TIME_OUT = 60.0
"""Nothing waits that long unless it is broken; busy machines are slow [s]."""
MATCHING = 0.5
"""Time in which the other side finds this one [s]."""


class NodeError(FrictionEstimatorError):
    """The node under test ended, or did not do in time what it must do."""


def start_process(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start the node ``words[0]`` with the other words as its command line, and its output in a file."""
    command = [sys.executable, "-m", "friction_estimator.ros.executables", *words]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


class NodeProcess:
    """A node as a process, its output in a file.

    Parameters
    ----------
    folder : of the output
    parameters : such as ``inputs_reliable:=true``
    executable : of the package
    namespace : of its topics
    name : replaces the default name of the node; empty: keep the default
    params_file : YAML that is read after that of the robot ``suralp``, and overrides it
    """

    start: Callable[[Sequence[str], Path], Any] = staticmethod(start_process)
    """How the process is started."""

    def __init__(
        self,
        folder: Path,
        *parameters: str,
        executable: str = "estimator_node",
        namespace: str = "",
        name: str = "",
        params_file: Path | None = None,
    ) -> None:
        self.log = folder / f"{executable}_{time.monotonic_ns()}.log"
        words = [executable, "--ros-args", "--params-file", str(robot_file("suralp"))]
        words += ["--params-file", str(params_file)] if params_file else []
        words += ["-r", f"__ns:=/{namespace}"] if namespace else []
        words += ["-r", f"__node:={name}"] if name else []
        words += [word for parameter in parameters for word in ("-p", parameter)]
        self.process = self.start(words, self.log)

    @property
    def output(self) -> str:
        """All that the process has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def memory(self) -> float:
        """Resident memory [MiB]; NaN when the process has ended."""
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            return float("nan")
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def await_output(self, text: str) -> None:
        """Wait until the process has printed a text."""
        give_up = time.monotonic() + TIME_OUT
        while text not in self.output:
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise NodeError(f"the node does not print {text!r}: {self.output[-2000:]}")
            time.sleep(0.02)

    def wait(self, seconds: float = TIME_OUT) -> int:
        """Exit code of a process that ends by itself."""
        return self.process.wait(seconds)

    def send(self, *signals: int, pause: float = 0.0) -> None:
        """Send signals, with a pause between them [s]."""
        for place, number in enumerate(signals):
            time.sleep(pause if place else 0.0)
            if self.process.poll() is None:
                self.process.send_signal(number)

    def end(self, *signals: int, pause: float = 0.0) -> int:
        """Send signals, by default SIGINT, and wait; the exit code, or minus the signal that killed the process."""
        self.send(*(signals or (signal.SIGINT,)), pause=pause)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.close()
            return -int(signal.SIGKILL)

    def close(self) -> None:
        """End the process without its consent."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class RobotNode:
    """ROS node of a robot: publishers of its sensors, services of the estimator.

    Parameters
    ----------
    name : of the node
    namespace : of all topics
    sensors : topics of the sensors
    qos : of these topics
    """

    def __init__(
        self, name: str, namespace: str, sensors: Iterable[topics.Topic], qos: QoSProfile = SENSOR_OUTPUT
    ) -> None:
        self.node = Node(name, namespace=f"/{namespace}" if namespace else "")
        self.executor = make_executor()
        self.executor.add_node(self.node)
        self.publishers = {
            topic.name: self.node.create_publisher(message_class(topic.type), topic.name, qos) for topic in sensors
        }

    def spin(self, seconds: float) -> None:
        """Receive messages for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=min(left, 0.05))

    def spin_until(self, condition: Callable[[], bool], what: str, seconds: float = TIME_OUT) -> None:
        """Receive messages until a condition holds.

        Raises
        ------
        NodeError
            When it never does.
        """
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise NodeError(f"after {seconds:g} s there is still no {what}")
            self.executor.spin_once(timeout_sec=0.02)

    def await_node(self, outputs: Sequence[str]) -> None:
        """Wait until the estimator hears all sensors and publishes these topics, and both sides have matched."""

        def connected() -> bool:
            heard = all(publisher.get_subscription_count() for publisher in self.publishers.values())
            return heard and all(self.node.count_publishers(name) for name in outputs)

        self.spin_until(connected, "connection to the node")
        self.spin(MATCHING)

    def call(self, service_type: Any, name: str, request: Any = None) -> Any:
        """Answer of a service of the estimator."""
        client = self.node.create_client(service_type, f"friction_estimator/{name}")
        try:
            self.spin_until(client.service_is_ready, f"service {name}")
            future = client.call_async(service_type.Request() if request is None else request)
            self.spin_until(future.done, f"answer of {name}")
            return future.result()
        finally:
            self.node.destroy_client(client)

    def close(self) -> None:
        """Leave the network."""
        self.executor.shutdown()
        self.node.destroy_node()
