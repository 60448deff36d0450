"""What waits is used in order; only a node that is behind leaves joint samples out, and keeps the newest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from std_msgs.msg import String

from benchmarks.speed.live_nodes import with_stamp
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import Robot
from friction_estimator.messages.cdr import CdrScanner, stamp_of
from friction_estimator.ros.diagnostics import NodeDiagnostics
from friction_estimator.ros.input_queue import InputQueue, Use
from friction_estimator.ros.middleware import RELIABLE_INPUT, SENSOR_OUTPUT, SubscriptionOnDemand
from friction_estimator.ros.spin import make_executor
from friction_estimator.simulation import SimulationSample


class Line:
    """A queue whose joint samples (numbers) arrive once a millisecond, and whose estimates take ``step`` seconds."""

    def __init__(self, leave_out: bool = True) -> None:
        self.time = self.step = 0.0
        self.joints: list[int] = []
        self.others: list[int] = []
        self.ages: list[float] = []
        self.arrived = 0
        self.queue = InputQueue(leave_out, now=lambda: self.time)
        self._joint = partial(self.queue.enqueue_joints, self._estimate)
        self._other = partial(self.queue.enqueue, self._use_other)

    def _estimate(self, raw: bytes, arrived: float) -> bool:
        self.joints.append(int(raw))
        self.time += self.step
        self.ages.append(self.time - 1e-3 * int(raw))
        return True

    def _use_other(self, raw: bytes, arrived: float) -> bool:
        self.others.append(int(raw))
        return False

    def run(self, seconds: float, step: float) -> None:
        """Fetch whatever has arrived, make one estimate, and so on."""
        self.step, end = step, self.time + seconds
        while self.time < end:
            if self.arrived == self.queue.used + self.queue.left_out:  # nothing waits
                self.time = max(self.time, 1e-3 * self.arrived)
            while 1e-3 * self.arrived <= self.time:
                self._other(str(self.arrived).encode())
                self._joint(str(self.arrived).encode())
                self.arrived += 1
            self.queue.check()
            self.queue.use_until_estimate()


def test_a_node_that_keeps_up_uses_all_in_order() -> None:
    line = Line()
    line.run(2.0, step=0.8e-3)
    line.run(0.1, step=0.5)  # a pause
    line.run(2.0, step=0.2e-3)
    line.queue.use_all()
    assert line.joints == list(range(line.arrived))
    assert line.queue.left_out == 0 and line.queue.used == line.arrived


def test_a_node_that_cannot_keep_up_uses_new_samples_in_order_and_counts_the_others() -> None:
    line = Line()
    line.run(6.0, step=2.5e-3)
    joints = line.joints
    assert joints == sorted(joints) and line.queue.used == len(joints)
    assert max(line.ages) < 2.0 and max(line.ages[-300:]) < 0.03
    assert max(after - before for before, after in zip(joints, joints[1:], strict=False)) <= 105  # milliseconds
    steps = [after - before for before, after in zip(joints[-300:], joints[-299:], strict=False)]
    assert sum(steps) / len(steps) == pytest.approx(2.5, abs=0.1) and max(steps) <= 4
    line.queue.use_all()
    assert line.queue.used + line.queue.left_out == line.arrived and line.joints[-1] == line.arrived - 1


def test_a_node_that_keeps_up_again_leaves_nothing_out_any_more() -> None:
    line = Line()
    line.run(4.0, step=2.5e-3)
    line.run(3.0, step=0.5e-3)
    before = line.queue.left_out
    line.run(0.1, step=0.5)
    line.run(3.0, step=0.5e-3)
    assert before > 0 and line.queue.left_out == before


def test_messages_of_other_sensors_are_all_used() -> None:
    line = Line()
    line.run(4.0, step=2.5e-3)
    line.queue.use_all()
    assert line.others == list(range(line.arrived))


def test_nothing_is_left_out_where_every_sample_counts() -> None:
    line = Line(leave_out=False)
    line.run(1.0, step=2.5e-3)
    line.queue.use_all()
    assert line.queue.left_out == 0 and line.joints == list(range(line.arrived))


def test_an_overloaded_node_reports_both_rates_and_what_to_do(robot: Robot) -> None:
    line = Line()
    diagnostics = NodeDiagnostics("node", line.queue, Estimator(robot.config, robot.urdf_xml), list)
    diagnostics.input_counters("joint_states").received = 6000
    line.run(6.0, step=2.5e-3)
    (load,) = [status for status in diagnostics.report() if status.name == "node: load"]
    assert load.level == DiagnosticStatus.WARN
    assert "joint states arrive at" in load.message and "can process only" in load.message
    assert f"{line.queue.left_out} of {line.queue.left_out + line.queue.used} were left out" in load.message
    assert "lower rate" in load.message and "momentum" in load.message
    values = {item.key: item.value for item in load.values}
    assert values["joint states left out"] == str(line.queue.left_out)


def test_joint_states_that_repeat_their_stamp_are_no_good_data(
    robot: Robot, samples: Sequence[SimulationSample]
) -> None:
    """A driver that never sets the stamps: the node gets 1000 messages per second, and the estimate is void."""
    estimator = Estimator(robot.config, robot.urdf_xml)
    diagnostics = NodeDiagnostics("node", InputQueue(leave_out=False), estimator, list)
    diagnostics.input_counters("joint_states")
    for sample in samples[:50]:
        for reading in sample.readings:
            estimator.add(replace(reading, stamp_ns=0))
    (sensors,) = [status for status in diagnostics.report() if status.name == "node: sensors"]
    assert sensors.level == DiagnosticStatus.WARN
    assert "joint_states: 49 of 50 joint states repeat the stamp" in sensors.message


@pytest.fixture
def nodes() -> Iterator[tuple[Node, Node]]:
    """A node that sends, and one that receives."""
    both = Node("sender", namespace="/queued"), Node("receiver", namespace="/queued")
    yield both
    for node in both:
        node.destroy_node()


@pytest.mark.parametrize(("leave_out", "cost"), [(False, 0.0), (False, 2e-3), (True, 4e-3)])
def test_the_loop_uses_messages_of_a_real_executor_in_order(
    nodes: tuple[Node, Node], leave_out: bool, cost: float
) -> None:
    """Joint samples that take longer than their period may be left out, but not the last one nor other messages."""
    sender, receiver = nodes
    count, queue, executor = 1500, InputQueue(leave_out), make_executor()
    executor.add_node(receiver)
    used: dict[str, list[int]] = {"joints": [], "others": []}

    def take_joints(raw: bytes, arrived: float) -> bool:
        used["joints"].append(int(CdrScanner(raw).string()))
        time.sleep(cost)
        return True

    def use_other(raw: bytes, arrived: float) -> bool:
        used["others"].append(int(CdrScanner(raw).string()))
        return False

    receiver.create_subscription(String, "joints", partial(queue.enqueue_joints, take_joints), RELIABLE_INPUT, raw=True)
    others = SubscriptionOnDemand(receiver, String, "others", RELIABLE_INPUT, SubscriptionEventCallbacks())
    end_source = queue.add_source(others.fetch, partial(queue.enqueue, use_other))
    publishers = [sender.create_publisher(String, topic, SENSOR_OUTPUT) for topic in ("others", "joints")]
    give_up = time.monotonic() + 60.0

    def send() -> None:
        while any(publisher.get_subscription_count() == 0 for publisher in publishers) and time.monotonic() < give_up:
            time.sleep(0.01)
        for number in range(count):
            for publisher in publishers:
                publisher.publish(String(data=str(number)))
            time.sleep(1e-3)

    def running() -> bool:
        done = queue.used + queue.left_out == count and len(used["others"]) == count
        return not done and time.monotonic() < give_up

    thread = threading.Thread(target=send)
    thread.start()
    queue.run(executor, running)
    thread.join()
    executor.shutdown()
    assert used["others"] == list(range(count))
    assert queue.used == len(used["joints"]) and queue.used + queue.left_out == count
    assert used["joints"] == sorted(used["joints"]) and used["joints"][-1] == count - 1
    assert leave_out or queue.left_out == 0
    assert queue.idle > 0.0
    end_source()
    others.destroy()
    assert not [name for name, _ in receiver.get_topic_names_and_types() if receiver.count_subscribers("others")]


def test_a_report_in_the_middle_of_a_wait_counts_what_was_waited_until_then() -> None:
    """Reports are made while the node waits: the rest of a wait belongs to the next one, not the whole of it."""

    class ReportingExecutor:
        def __init__(self) -> None:
            self.time, self.reported = 0.0, list[float]()

        def spin_once(self, timeout_sec: float) -> None:
            self.time += 0.3
            self.reported.append(queue.idle)
            self.time += 0.7

    executor = ReportingExecutor()
    queue = InputQueue(leave_out=True, now=lambda: executor.time)
    queue.run(executor, lambda: executor.time < 3.0)
    assert executor.reported == pytest.approx([0.3, 1.3, 2.3])
    assert queue.idle == pytest.approx(3.0)


def test_stamps_that_lag_are_named_by_a_node_that_is_late_itself(
    robot: Robot, samples: Sequence[SimulationSample]
) -> None:
    """Each time it looks, 300 ms of messages have come: every reading is there when its joint state is used."""
    time_now, lag = [0.0], 10_000_000
    queue, estimator = InputQueue(leave_out=False, now=lambda: time_now[0]), Estimator(robot.config, robot.urdf_xml)
    for sample in samples[:20]:
        estimator.add(sample.joints)
    diagnostics = NodeDiagnostics("node", queue, estimator, list)
    joint = partial(queue.enqueue_joints, lambda raw, arrived: True)
    messages: list[bytes] = []
    queue.add_source(
        lambda: messages.pop(0) if messages else None, partial(queue.enqueue, lambda *_: False), "imu/data"
    )
    for start in range(1, 4):
        stamps = [1_000_000_000 + 1_000_000 * k for k in range(300 * start, 300 * start + 300)]
        messages += [with_stamp(bytes(16), stamp - lag) for stamp in stamps]
        for stamp in stamps:
            joint(with_stamp(bytes(16), stamp))
        time_now[0] += 0.3
        queue.check()
        queue.use_all()
    (sensors,) = [status for status in diagnostics.report() if status.name == "node: sensors"]
    assert (
        "imu/data: its stamps are at least 9.0 ms behind those of joint_states on arrival, too late" in sensors.message
    )
    assert queue.take_lags() == {}


STAMPS = [1_000_000_000 + 10_000_000 * k for k in range(1, 10)]


@pytest.mark.parametrize("hours_ahead", [0, 1])
def test_after_a_pause_readings_and_joint_samples_advance_together(hours_ahead: int) -> None:
    """Each joint sample finds the readings up to its own stamp; readings of another clock are all used at once."""
    queue, order = InputQueue(leave_out=False, now=lambda: 0.0), list[tuple[str, int]]()

    def noting(name: str) -> Use:
        return lambda raw, arrived: order.append((name, stamp_of(raw))) is None and name == "joints"

    lead = hours_ahead * 3_600_000_000_000
    messages = [with_stamp(bytes(16), stamp_ns + lead) for stamp_ns in STAMPS]
    queue.add_source(lambda: messages.pop(0) if messages else None, partial(queue.enqueue, noting("reading")))
    joint = partial(queue.enqueue_joints, noting("joints"))
    for stamp_ns in STAMPS[2:9:3]:
        joint(with_stamp(bytes(16), stamp_ns))
        queue.use_until_estimate()
    kinds = "".join(name[0] for name, _ in order)
    assert kinds == ("rrrjrrrjrrrj" if hours_ahead == 0 else "rrrrrrrrrjjj")
