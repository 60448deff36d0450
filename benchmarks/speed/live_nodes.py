"""Processes around the measured node: a robot that sends sensor messages, the yardstick node, and a listener.

Each is started as ``python -m benchmarks.speed.live_nodes ROLE SETTINGS``, settings as JSON.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.messages.cdr import BODY, stamp_of
from friction_estimator.ros.middleware import FAST_OUTPUT, RECORDER, SENSOR_INPUT, SENSOR_OUTPUT, message_class
from friction_estimator.ros.spin import Running, await_subscribers, run, spin
from friction_estimator.types import FloatArray

RELAYED = "relayed_joint_states"
"""Topic of the yardstick node."""
LATENESS = 0.5, 0.99, 1.0
"""Quantiles of ages and of lateness that are shown."""
_LEAD_NS = 10_000_000


def with_stamp(raw: bytes, stamp_ns: int) -> bytes:
    """Return the same serialized message with another header stamp [ns]."""
    stamp = struct.pack("<iI", *divmod(stamp_ns, 10**9))
    return raw[:BODY] + stamp + raw[BODY + len(stamp) :]


class RobotNode(Node):
    """Publishes the sensor messages of a bag in real time, and starts the bag anew at its end.

    Stamps are one period apart, as those of a robot whose bus gives the clock. A sample is sent at its stamp, or
    later when the machine is busy.

    Parameters
    ----------
    settings : ``bag``; ``rate`` of its samples [Hz]; ``topics`` in the order of sending; ``subscribers`` to wait for on
        each topic; ``samples`` to send; ``report``: JSON file that is written at the first sample and again at the end
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__("benchmark_robot")
        reader = BagReader(settings["bag"])
        recorded: dict[str, list[bytes]] = {f"/{topic}": [] for topic in settings["topics"]}
        for message in reader.messages(recorded):
            recorded[message.topic].append(bytes(message.raw))
        self._tracks: list[tuple[Publisher, list[bytes]]] = [
            (self.create_publisher(message_class(reader.topics[topic]), topic[1:], SENSOR_OUTPUT), messages)
            for topic, messages in recorded.items()
        ]
        self._period_ns = round(1e9 / settings["rate"])
        self._subscribers, self._samples = settings["subscribers"], settings["samples"]
        self._report = Path(settings["report"])

    def play(self, executor: Executor, running: Running) -> None:
        """Send all samples, or until the process shall end."""
        for publisher, _ in self._tracks:
            await_subscribers(executor, publisher, self._subscribers, running)
        start_ns = time.time_ns() + _LEAD_NS
        self._write(start_ns, np.zeros(0))
        late, sent = np.zeros(self._samples), 0
        while running() and sent < self._samples:
            stamp_ns = start_ns + sent * self._period_ns
            wait_ns = stamp_ns - time.time_ns()
            if wait_ns > 0:
                time.sleep(1e-9 * wait_ns)
            late[sent] = 1e-6 * (time.time_ns() - stamp_ns)
            for publisher, messages in self._tracks:
                publisher.publish(with_stamp(messages[sent % len(messages)], stamp_ns))
            sent += 1
        self._write(start_ns, late[:sent])
        time.sleep(0.5)  # the last samples are still being sent

    def _write(self, start_ns: int, late: FloatArray) -> None:
        quantiles = np.quantile(late, LATENESS).tolist() if late.size else None
        part = self._report.with_suffix(".part")
        part.write_text(json.dumps({"start_ns": start_ns, "sent": late.size, "late_ms": quantiles}))
        part.replace(self._report)


class YardstickNode(Node):
    """Receives the four inputs as serialized messages and publishes each joint state again: the least work of a node.

    Parameters
    ----------
    settings : ``types`` of the topics by name; ``relayed``: topic to publish again
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__("benchmark_yardstick")
        types, relayed = settings["types"], settings["relayed"]
        output = self.create_publisher(message_class(types[relayed]), RELAYED, FAST_OUTPUT)
        for topic, type_name in types.items():
            receive: Callable[[bytes], None] = output.publish if topic == relayed else _ignore
            self.create_subscription(message_class(type_name), topic, receive, SENSOR_INPUT, raw=True)


class ListenerNode(Node):
    """Records stamp and arrival time of every message of some topics.

    Parameters
    ----------
    settings : ``types`` of the topics by name; ``output``: ``.npz`` with an array (m, 2) of stamps and arrivals [ns] by
        topic; ``first``: true to end with the first message
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__("benchmark_listener")
        types = settings["types"]
        self._output, self._first = Path(settings["output"]), settings["first"]
        self._seen: dict[str, array[int]] = {topic: array("q") for topic in types}
        for topic, type_name in types.items():
            self.create_subscription(message_class(type_name), topic, self._noting(topic), RECORDER, raw=True)
        self._output.with_suffix(".ready").touch()

    def _noting(self, topic: str) -> Callable[[bytes], None]:
        seen, clock = self._seen[topic], time.time_ns

        def note(raw: bytes) -> None:
            arrival = clock()
            seen.append(stamp_of(raw))
            seen.append(arrival)

        return note

    def play(self, executor: Executor, running: Running) -> None:
        """Listen until the process shall end, or to the first message."""
        if not self._first:
            spin(self, executor, running)
        while running() and not any(self._seen.values()):
            executor.spin_once(timeout_sec=0.1)
        arrays = {topic: np.array(seen, dtype=np.int64).reshape(-1, 2) for topic, seen in self._seen.items()}
        np.savez(self._output, allow_pickle=False, **arrays)


def _ignore(raw: bytes) -> None:
    pass


def main(words: Sequence[str]) -> int:
    """Run the node of one role."""
    role, settings = words[0], json.loads(words[1])
    if role == "robot":
        return run(lambda: RobotNode(settings), [], RobotNode.play)
    if role == "yardstick":
        return run(lambda: YardstickNode(settings), [])
    if role == "listener":
        return run(lambda: ListenerNode(settings), [], ListenerNode.play)
    raise FrictionEstimatorError(f"unknown role {role!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
