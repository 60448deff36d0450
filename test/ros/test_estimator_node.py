"""Claims about the estimator node over DDS: topics, services, diagnostics and bad messages."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu
from std_srvs.srv import Trigger

from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp
from friction_estimator.ros.middleware import SENSOR_OUTPUT


def _joints(message: dict, **fields: object) -> None:
    for name, value in fields.items():
        setattr(message["joint_states"], name, value)


def _drop_last_joint(m: dict) -> None:
    state = m["joint_states"]
    _joints(
        m, name=state.name[:-1], position=state.position[:-1], velocity=state.velocity[:-1], effort=state.effort[:-1]
    )


def _nan_velocity(m: dict) -> None:
    m["joint_states"].velocity[4] = math.nan


def _infinite_gyro(m: dict) -> None:
    m["imu/data"].angular_velocity.y = math.inf


def _strange_sole(m: dict) -> None:
    m["l_foot/wrench"].header.frame_id = "r_sole"


BAD_MESSAGES = {
    "missing joint": ("joint_states", _drop_last_joint, "'r_ankle_roll' missing"),
    "short array": ("joint_states", lambda m: _joints(m, effort=m["joint_states"].effort[:3]), "effort has 3 values"),
    "NaN": ("joint_states", _nan_velocity, "joint velocity l_ankle_pitch = nan cannot be true"),
    "infinite gyroscope": ("imu/data", _infinite_gyro, "angular velocity y = inf cannot be true"),
    "wrong foot frame": ("l_foot/wrench", _strange_sole, "frame_id is 'r_sole'"),
}


def test_a_law_that_is_new_is_reported_and_no_fault(talking):
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    talking.await_report(lambda d: "the law is new" in d["friction diagnosis"].message, "the new law")
    assert talking.diagnostics["friction diagnosis"].level == DiagnosticStatus.OK


def test_joints_whose_friction_is_not_valid_are_reported_with_the_reason(talking):
    """Torques of the wrong sign."""

    def flip(messages: dict) -> None:
        _joints(messages, effort=[-value for value in messages["joint_states"].effort])

    for _ in range(4):
        talking.send(250, flip)
        talking.await_estimate(talking.sent[-1])
    sign = re.compile(r"joint_states: the effort of joint [^;]*'l_knee'[^;]* has the opposite sign")
    affected = re.compile(r"correct the sensors first [^;]*l_knee")
    talking.await_report(
        lambda d: bool(sign.search(d["sensors"].message) and affected.search(d["friction diagnosis"].message)),
        "the sign of the left knee's torque",
    )
    assert talking.diagnostics["friction diagnosis"].level == DiagnosticStatus.WARN
    reason = talking.value("friction diagnosis", "valid l_knee")
    assert "'l_knee'" in reason and reason in talking.diagnostics["sensors"].message


def test_every_joint_state_gets_one_estimate_and_its_sigma(talking):
    before = len(talking.sent)
    talking.send(100)
    talking.await_estimate(talking.sent[-1])
    assert talking.estimated()[before - len(talking.sent) :] == talking.sent[before:]
    assert len(talking.received[topics.SIGMA.name]) == len(talking.received[topics.FRICTION.name])
    newest, sigma = talking.received[topics.FRICTION.name][-1], talking.received[topics.SIGMA.name][-1]
    assert len(newest.name) == len(newest.effort) == len(newest.position) == len(sigma.effort) == 12
    assert newest.header.frame_id == "base_link"
    assert np.isfinite(newest.effort).all() and (np.asarray(sigma.effort) >= 0.0).all()


def test_slow_topics_come_at_their_own_rate_and_a_phase_is_named(talking):
    before = len(talking.received[topics.MODEL.name])
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    assert 9 <= len(talking.received[topics.MODEL.name]) - before <= 11
    assert talking.received[topics.CONTACT_PHASE.name][-1].data in ("double_support", "left_support", "right_support")


def test_other_joints_and_another_order_change_nothing(talking):
    def shuffle(messages: dict) -> None:
        state = messages["joint_states"]
        order = [5, *range(5), *range(6, 12)]
        fields = {key: [getattr(state, key)[i] for i in order] for key in ("position", "velocity", "effort")}
        _joints(messages, name=[*(state.name[i] for i in order), "head"], **{k: [*v, 0.1] for k, v in fields.items()})

    before = len(talking.sent)
    talking.send(50, shuffle)
    talking.await_estimate(talking.sent[-1])
    newest = talking.received[topics.FRICTION.name][-1]
    assert talking.estimated()[before - len(talking.sent) :] == talking.sent[before:]
    assert list(newest.name)[0] == "l_hip_yaw" and "head" not in newest.name


@pytest.mark.parametrize("kind", BAD_MESSAGES)
def test_bad_messages_are_named_in_the_diagnostics_and_the_next_good_ones_are_used(talking, kind):
    topic, spoil, reason = BAD_MESSAGES[kind]
    talking.send(20, spoil)
    talking.await_report(
        lambda d: d[f"input {topic}"].level == DiagnosticStatus.ERROR and reason in d[f"input {topic}"].message, reason
    )
    assert re.search(rf"{topic}: \d+ of \d+ messages refused: ", talking.diagnostics["sensors"].message)
    talking.send(50)
    talking.await_estimate(talking.sent[-1])
    assert talking.estimated()[-30:] == talking.sent[-30:]
    assert np.isfinite(talking.received[topics.FRICTION.name][-1].effort).all()


@pytest.mark.parametrize("effort", [[], [math.nan] * 12])
def test_without_efforts_friction_is_missing_until_they_come_and_the_diagnostics_say_so(talking, effort):
    talking.send(20, lambda m: _joints(m, effort=effort))
    talking.await_estimate(talking.sent[-1])
    assert np.isnan(talking.received[topics.FRICTION.name][-1].effort).all()
    talking.await_report(lambda d: d["estimates"].level == DiagnosticStatus.ERROR, "an error of the estimates")
    assert "friction of 12 of 12 joints is NaN" in talking.diagnostics["estimates"].message
    assert re.search(r"joint_states: \d+ joint states without effort", talking.diagnostics["sensors"].message)
    talking.send(20)
    talking.await_estimate(talking.sent[-1])
    assert np.isfinite(talking.received[topics.FRICTION.name][-1].effort).all()


def test_silent_sensors_are_named_and_joints_are_still_estimated(talking):
    before, words = len(talking.sent), [f"{topic}: no usable reading" for topic in ("imu/data", "r_foot/wrench")]
    talking.send(400, lambda messages: [messages.pop(topic) for topic in ("imu/data", "r_foot/wrench")])
    talking.await_report(lambda d: all(text in d["sensors"].message for text in words), str(words))
    talking.send(650)
    talking.await_estimate(talking.sent[-1])
    missing = set(talking.sent[before:]) - set(talking.estimated())
    assert len(missing) <= 3  # where the walk begins anew: a jump of the positions is accepted after three periods
    talking.finish_walk()
    talking.send(900)  # the jump looks like a second publisher, until two conclusions, one per second, were right
    talking.await_report(lambda d: d["sensors"].level == DiagnosticStatus.OK, "data of all sensors")
    talking.finish_walk()
    talking.send(50)  # the next tests begin behind the jump


def test_a_second_publisher_of_any_input_is_named_by_the_graph(talking):
    """Its readings need not differ, and need not even come."""
    second = talking.node.create_publisher(Imu, "imu/data", SENSOR_OUTPUT)
    try:
        talking.await_report(lambda d: "second publisher on imu/data" in d["sensors"].message, "second publisher")
        assert talking.value("input imu/data", "publishers").count("talking_robot") == 2
    finally:
        talking.node.destroy_publisher(second)
    talking.await_report(lambda d: "second publisher" not in d["sensors"].message, "one publisher")


def test_a_publisher_whose_qos_does_not_match_is_named_while_nothing_arrives(talking):
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = talking.node.create_publisher(WrenchStamped, "l_foot/wrench", best_effort)
    words = "offers another QoS (RELIABILITY); set inputs_reliable to false"
    try:
        talking.await_report(lambda d: words in d["input l_foot/wrench"].message, words)
    finally:
        talking.node.destroy_publisher(publisher)


def test_the_load_of_the_node_is_reported(talking):
    talking.send(100)
    talking.await_estimate(talking.sent[-1])
    busy = "busy time per joint state"
    talking.await_report(lambda d: float(talking.value("load", busy).removesuffix(" ms")) > 0.0, busy)
    status = talking.diagnostics["load"]
    keeps_up = status.level == DiagnosticStatus.OK  # or not, where other programs take the processor
    assert status.message.endswith("% busy") if keeps_up else "can process only" in status.message
    assert float(talking.value("load", "highest possible rate").removesuffix(" Hz")) > 0.0
    assert not keeps_up or talking.value("load", "joint states left out") == "0"
    for label in ("step time", "age"):
        shown = [talking.value("load", f"{label} {name}").removesuffix(" ms") for name in ("min", "mean", "p99", "max")]
        assert [float(one) for one in shown] == sorted(map(float, shown)) and float(shown[0]) > 0.0


def test_a_clock_that_stands_still_jumps_or_skips_is_counted_and_survived(talking):
    stamp = talking.stamp_ns
    for _ in range(10):
        talking.send(1)
        talking.stamp_ns = stamp
    talking.stamp_ns += 10_000_000
    talking.await_report(lambda _: int(talking.value("sensors", "repeated samples dropped")) >= 9, "repeated")
    talking.stamp_ns += 1_000_000_000
    talking.send(50)
    talking.await_report(lambda _: talking.value("sensors", "gaps in time") == "1", "gap")
    assert "joint_states: the filters restarted 1 times" in talking.diagnostics["sensors"].message
    talking.stamp_ns -= 5_000_000_000
    talking.send(200)
    talking.await_report(lambda _: talking.value("sensors", "jumps back in time") == "1", "jump back")
    events = [pair.value for pair in talking.diagnostics["sensors"].values if pair.key.startswith("event ")]
    for text in ("do not advance", "no joint states for 1.0", "time jumped back by 4.9"):
        assert sum(text in event for event in events) == 1, (text, events)
    talking.await_estimate(talking.sent[-1])
    assert talking.estimated()[-100:] == talking.sent[-100:]


def test_a_flipped_wrench_is_suspected_by_name(talking):
    def flip(messages: dict) -> None:
        for topic in ("l_foot/wrench", "r_foot/wrench"):
            wrench = messages[topic].wrench
            wrench.force.z, wrench.force.x, wrench.force.y = -wrench.force.z, -wrench.force.x, -wrench.force.y

    talking.send(625, flip)
    talking.await_report(lambda d: "set feet.l_foot.flip" in d["sensors"].message, "flip suspected")
    assert talking.diagnostics["sensors"].level == DiagnosticStatus.WARN


def test_a_clock_that_jumps_with_every_sample_voids_the_estimates_but_fills_no_log(talking):
    def jump(_: dict) -> None:
        talking.stamp_ns += 3_600_000_000_000

    before = int(talking.value("sensors", "events"))
    talking.send(400, jump)
    talking.await_report(lambda d: "restarted" in d["estimates"].message, "restarts")
    assert talking.diagnostics["sensors"].level == talking.diagnostics["estimates"].level == DiagnosticStatus.WARN
    assert int(talking.value("sensors", "events")) <= before + 2


def test_friction_is_not_compensated_unless_asked_for(talking):
    names = dict(talking.node.get_topic_names_and_types())
    assert "/robot1/joint_friction" in names and "/robot1/friction_compensation" not in names


def test_saving_without_a_file_names_the_missing_parameter(talking):
    answer = talking.call(Trigger, "save_parameters", Trigger.Request())
    assert not answer.success and "identified_parameters" in answer.message


def test_only_what_needs_no_new_filter_may_change_while_running(talking):
    client = AsyncParameterClient(talking.node, "friction_estimator")
    assert client.wait_for_services(10.0)

    def change(name: str, value: float) -> object:
        future = client.set_parameters([Parameter(name, value=value)])
        talking.spin_until(future.done, name)
        return future.result().results[0]

    assert change("output.slow_rate", 10.0).successful
    assert not change("output.slow_rate", -1.0).successful
    assert "read-only" in change("momentum.gain", 20.0).reason
    first = talking.stamp_ns  # earlier messages may still arrive
    talking.send(100)
    talking.await_estimate(talking.sent[-1])
    assert 4 <= sum(header_stamp(message) >= first for message in talking.received[topics.COULOMB.name]) <= 5
    described = client.describe_parameters(["momentum.gain"])
    talking.spin_until(described.done, "description")
    descriptor = described.result().descriptors[0]
    assert "rad/s" in descriptor.description and descriptor.floating_point_range[0].step == 0.0
