"""Bags as logs for identification: header stamps, joints by name, and the friction that a replay left behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.errors import BagError
from friction_estimator.io.bags.arrays import joint_log_from_bag
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.robot import Robot

Recorded = list[tuple[str, int, Any]]
WriteBag = Callable[..., Path]
MS = 1_000_000


@pytest.fixture
def states(messages: Recorded) -> Recorded:
    return [entry for entry in messages if entry[0] == "joint_states"]


def test_joint_states_come_by_name_on_their_header_stamps(write_bag: WriteBag, states: Recorded) -> None:
    late = [(topic, time_ns + 7 * MS, message) for topic, time_ns, message in states]  # time of recording
    log = joint_log_from_bag(write_bag("bag", late))
    first = states[0][2]
    assert log.name == "bag" and log.joint_names == tuple(first.name)
    assert np.allclose(log.time, np.arange(len(states)) * 1e-3, atol=1e-12)
    assert log.velocity is not None and log.effort is not None
    for signal, field in ((log.position, "position"), (log.velocity, "velocity"), (log.effort, "effort")):
        assert np.array_equal(signal, [getattr(message, field) for _, _, message in states])
    assert not log.inputs


def test_foot_wrenches_come_at_the_stamps_of_the_joints(write_bag: WriteBag, messages: Recorded, robot: Robot) -> None:
    log = joint_log_from_bag(write_bag("bag", messages), config=robot.config)
    for foot in robot.config.feet:
        sent = [message.wrench for topic, _, message in messages if topic == foot.wrench_topic]
        forces = [[one.force.x, one.force.y, one.force.z, one.torque.x, one.torque.y, one.torque.z] for one in sent]
        np.testing.assert_allclose(log.wrenches[foot.name], forces)
    every_third = [entry for k, entry in enumerate(messages) if entry[0] != foot.wrench_topic or k % 3 == 0]
    slow = joint_log_from_bag(write_bag("slow", every_third), config=robot.config).wrenches[foot.name]
    assert slow.shape == (len(log.time), 6) and np.isfinite(slow).all()


def test_the_order_of_joints_may_change_from_message_to_message(write_bag: WriteBag, states: Recorded) -> None:
    turned = []
    for number, (topic, time_ns, message) in enumerate(states):
        message = copy.deepcopy(message)
        if number % 2:
            message.name = message.name[::-1]
            for field in ("position", "velocity", "effort"):
                setattr(message, field, getattr(message, field)[::-1].copy())
        turned.append((topic, time_ns, message))
    names = tuple(states[0][2].name)
    wanted = (names[3], names[0])
    plain, other = (
        joint_log_from_bag(write_bag("plain", states)),
        joint_log_from_bag(write_bag("turned", turned), "joint_states", wanted),
    )
    assert other.joint_names == wanted
    assert np.array_equal(other.position, plain.position[:, [3, 0]])
    assert np.array_equal(other.effort, plain.effort[:, [3, 0]])


def test_messages_of_a_second_publisher_and_empty_fields_do_no_harm(write_bag: WriteBag, states: Recorded) -> None:
    mixed: Recorded = []
    for number, (topic, time_ns, message) in enumerate(states):
        message = copy.deepcopy(message)
        message.effort = message.effort[:0]
        if number % 2:
            message.velocity = message.velocity[:0]
        mixed.append((topic, time_ns, message))
        if number % 3 == 0:
            gripper = copy.deepcopy(message)
            gripper.name, gripper.position, gripper.velocity = ["finger"], message.position[:1], message.velocity[:0]
            mixed.append((topic, time_ns, gripper))
    log = joint_log_from_bag(write_bag("bag", mixed))
    assert log.joint_names == tuple(states[0][2].name) and log.time.size == len(states)
    assert log.effort is None and log.velocity is not None
    assert np.isnan(log.velocity[1::2]).all() and np.isfinite(log.velocity[::2]).all()
    assert joint_log_from_bag(write_bag("bag2", mixed), joint_names=["finger"]).position.shape == (40, 1)


def with_effort(message: Any, effort: Any) -> Any:
    other = copy.deepcopy(message)
    other.effort = np.array(effort, dtype=float)
    return other


def test_friction_comes_by_stamp_and_only_where_it_was_measured(write_bag: WriteBag, states: Recorded) -> None:
    rng = np.random.default_rng(8)
    n = len(states[0][2].name)
    friction, sigma = rng.normal(size=(len(states), n)), rng.uniform(0.1, 1.0, size=(len(states), n))
    recorded: Recorded = list(states)
    for step in range(10, len(states), 2):  # estimates start later and leave every other sample out
        time_ns, message = states[step][1] + 30 * MS, states[step][2]
        recorded.append(("joint_friction", time_ns, with_effort(message, friction[step])))
        recorded.append(("joint_friction/sigma", time_ns, with_effort(message, sigma[step])))
    for step, measured in ((10, np.ones(n)), (50, np.r_[0.0, np.ones(n - 1)]), (80, np.ones(n))):
        recorded.append(("joint_friction/measured", states[step][1], with_effort(states[step][2], measured)))
    log = joint_log_from_bag(write_bag("bag", sorted(recorded, key=lambda entry: entry[1])))
    wanted = np.full((len(states), n), np.nan)
    wanted[10::2] = friction[10::2]
    wanted[50:80, 0] = np.nan
    assert np.array_equal(log.inputs["friction"], wanted, equal_nan=True)
    assert np.array_equal(np.isnan(log.inputs["friction_sigma"]), np.isnan(wanted))
    assert log.effort is not None and np.isfinite(log.effort).all()


def test_a_bag_with_estimates_only_has_motion_and_friction_but_no_motor_torque(
    write_bag: WriteBag, messages: Recorded, robot: Robot, tmp_path: Path
) -> None:
    replay_bag(write_bag("bag", messages), tmp_path / "out", robot.config, robot.urdf_xml)
    log, source = joint_log_from_bag(tmp_path / "out"), joint_log_from_bag(tmp_path / "bag")
    same = np.searchsorted(source.time, log.time + (source.time[-1] - log.time[-1]) - 1e-9)
    assert log.effort is None and log.time.size > 100
    assert np.array_equal(log.position, source.position[same])
    assert log.inputs["friction"].shape == log.position.shape


def test_the_digest_is_that_of_the_messages_not_of_the_file(write_bag: WriteBag, states: Recorded) -> None:
    mcap, sqlite = joint_log_from_bag(write_bag("a", states)), joint_log_from_bag(write_bag("b", states, "sqlite3"))
    shorter = joint_log_from_bag(write_bag("c", states[1:]))
    assert mcap.digest == sqlite.digest != shorter.digest


def test_what_is_missing_is_named_with_what_is_there(write_bag: WriteBag, messages: Recorded, states: Recorded) -> None:
    with pytest.raises(BagError, match="no topic 'arm/joint_states'.*joint_states"):
        joint_log_from_bag(write_bag("a", states), "arm/joint_states")
    with pytest.raises(BagError, match="no topic 'joint_states'.*imu/data"):
        joint_log_from_bag(write_bag("b", [entry for entry in messages if entry[0] == "imu/data"]))
    with pytest.raises(BagError, match=f"positions of 'tail'; the joints are .*'{states[0][2].name[0]}'"):
        joint_log_from_bag(write_bag("c", states), joint_names=["tail"])
    with pytest.raises(BagError, match="expected a sensor_msgs/msg/JointState"):
        joint_log_from_bag(write_bag("d", messages), "imu/data")
