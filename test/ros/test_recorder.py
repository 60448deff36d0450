"""Claims about the recorder node: order and stamps of what it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from benchmarks.faults.live import TIME_OUT
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate
from friction_estimator.messages.topics import Topic, When
from friction_estimator.ros.middleware import SENSOR_OUTPUT
from friction_estimator.ros.recorder_node import HeaderClock, Recorder

COUNT = 20
EFFORT = np.zeros(1)
PHASES = Topic("phases", topics.STRING, When.SAMPLE, "contact phase")
JOINTS = Topic("joints", topics.JOINT_STATE, When.SAMPLE, "joint states")


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node("recording", namespace="/recorded")
    yield node
    node.destroy_node()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_OUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_messages_are_written_in_the_order_in_which_they_came(node, tmp_path):
    template = JointStateTemplate("base_link", ["knee"])
    joints = node.create_publisher(JointState, "joints", SENSOR_OUTPUT)
    phases = node.create_publisher(String, "phases", SENSOR_OUTPUT)
    seen: list[bytes] = []
    with BagWriter(tmp_path / "bag") as writer:
        recorder = Recorder(node, writer)
        recorder.record(
            (PHASES, JOINTS), SENSOR_OUTPUT, HeaderClock(), dict.fromkeys(("phases", "joints"), seen.append)
        )
        wait_for(lambda: joints.get_subscription_count() > 0 and phases.get_subscription_count() > 0)
        for k in range(COUNT):
            joints.publish(template.serialize(1000 + k, EFFORT))
            phases.publish(String(data=str(k)))
        wait_for(lambda: recorder.take() or recorder.counts == {"joints": COUNT, "phases": COUNT})
        newest = recorder.newest["joints"]
        recorder.close()
    messages = list(BagReader(tmp_path / "bag").messages())
    assert [message.time_ns for message in messages] == [1000 + k for k in range(COUNT) for _ in range(2)]
    assert {message.topic for message in messages} == {"/recorded/joints", "/recorded/phases"}
    assert len(seen) == 2 * COUNT and newest == template.serialize(1000 + COUNT - 1, EFFORT)


def test_messages_without_stamp_are_recorded_under_their_arrival_until_one_with_a_stamp_has_come():
    clock, joint_state = HeaderClock(), JointStateTemplate("", ["knee"]).serialize(5, EFFORT)
    assert clock.time(PHASES, b"", 7) == 7
    assert clock.time(JOINTS, joint_state, 8) == 5
    assert clock.time(PHASES, b"", 9) == 5


def test_a_message_with_an_older_stamp_is_recorded_under_the_time_of_the_newest():
    clock, template = HeaderClock(), JointStateTemplate("", ["knee"])
    assert [clock.time(JOINTS, template.serialize(stamp, EFFORT), 0) for stamp in (5, 9, 7, 11)] == [5, 9, 9, 11]
