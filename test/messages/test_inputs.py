"""Sensor messages become samples in model order, or one clear error."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.config import Config
from friction_estimator.errors import InputError
from friction_estimator.messages.sensors import InputReader, SensorMessages
from friction_estimator.types import ImuSample, JointSample, WrenchSample
from test.headers import make_header

from .conftest import RosbagsTypes, Types

TYPES = RosbagsTypes()


def joint_message(types: Types, names: list[str], **fields: Any) -> bytes:
    count = len(names)
    values = {name: np.arange(count) + 100.0 * row for row, name in enumerate(("position", "velocity", "effort"))}
    values.update(fields)
    arrays = {name: types.floats(np.asarray(value, dtype=float)) for name, value in values.items()}
    header = make_header(types, 3_000_000_007, "base_link")
    return types.serialize(types.make("sensor_msgs/msg/JointState", header=header, name=names, **arrays))


def imu_message(types: Types, frame: str = "imu_link", **fields: Any) -> bytes:
    return types.serialize(types.make("sensor_msgs/msg/Imu", header=make_header(types, 5, frame), **fields))


def wrench_message(types: Types, frame: str, force_z: float = 500.0) -> bytes:
    force = types.make("geometry_msgs/msg/Vector3", x=1.0, y=2.0, z=force_z)
    moment = types.make("geometry_msgs/msg/Vector3", x=4.0, y=5.0, z=6.0)
    wrench = types.make("geometry_msgs/msg/Wrench", force=force, torque=moment)
    header = make_header(types, 9, frame)
    return types.serialize(types.make("geometry_msgs/msg/WrenchStamped", header=header, wrench=wrench))


@pytest.fixture
def reader(config: Config, joint_names: tuple[str, ...]) -> InputReader:
    return InputReader(config, joint_names)


def test_samples_survive_the_way_through_messages(
    config: Config, joint_names: tuple[str, ...], reader: InputReader
) -> None:
    rng = np.random.default_rng(1)
    messages = SensorMessages(config, joint_names)
    joints = JointSample(12_345_678_901, *rng.normal(size=(3, len(joint_names))))
    imu = ImuSample(7, *rng.normal(size=(2, 3)))
    wrench = WrenchSample(8, 1, rng.normal(size=6))

    (_, joint_state), (_, imu_message), (_, wrench_message) = messages.build([joints, imu, wrench])
    read_joints = reader.joint_state(joint_state)
    read_imu = reader.imu(imu_message)
    read_wrench = reader.wrench(1, wrench_message)

    assert (read_joints.stamp_ns, read_imu.stamp_ns, read_wrench.stamp_ns) == (12_345_678_901, 7, 8)
    for name in ("position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(read_joints, name), getattr(joints, name))
    np.testing.assert_array_equal(read_imu.angular_velocity, imu.angular_velocity)
    np.testing.assert_array_equal(read_imu.specific_force, imu.specific_force)
    np.testing.assert_array_equal(read_wrench.wrench, wrench.wrench)
    assert read_wrench.foot == 1


@given(order=st.permutations(range(4)), extra=st.integers(0, 3))
def test_order_of_joints_and_extra_joints_do_not_matter(order: list[int], extra: int) -> None:
    names = ["a", "b", "c", "d"]
    reader = InputReader(Config(observer="momentum"), names)
    plain = reader.joint_state(joint_message(TYPES, names))
    shuffled_names = [names[place] for place in order] + [f"extra_{k}" for k in range(extra)]
    fields = {
        name: np.append(getattr(plain, name)[list(order)], np.full(extra, np.nan))
        for name in ("position", "velocity", "effort")
    }
    shuffled = reader.joint_state(joint_message(TYPES, shuffled_names, **fields))
    for name in fields:
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(plain, name))


def test_order_is_followed_when_it_changes_between_messages(types: Types) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    assert reader.joint_state(joint_message(types, ["a", "b"])).position.tolist() == [0.0, 1.0]
    assert reader.joint_state(joint_message(types, ["b", "a"])).position.tolist() == [1.0, 0.0]
    assert reader.joint_state(joint_message(types, ["b", "x", "a"])).position.tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    ("names", "fields", "message"),
    [
        (["a", "x"], {}, r"joint 'b' missing; the message holds 'a', 'x'"),
        (["a", "b", "a"], {}, r"joint 'a' is named more than once"),
        (["a", "b"], {"position": [1.0, 2.0, 3.0]}, r"position has 3 values for 2 joint names"),
        (["a", "b"], {"position": []}, r"position is empty, .* needs the joint positions"),
        (["a", "b"], {"velocity": [1.0]}, r"velocity has 1 values for 2 joint names"),
        (["a", "b"], {"effort": [1.0]}, r"effort has 1 values for 2 joint names"),
    ],
)
def test_unusable_joint_states_are_refused(
    types: Types, names: list[str], fields: dict[str, list[float]], message: str
) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    with pytest.raises(InputError, match=message):
        reader.joint_state(joint_message(types, names, **fields))


def test_the_reason_of_a_refusal_is_short_however_many_joints_a_message_names(types: Types) -> None:
    """An error is repeated in the diagnostics once a second."""
    reader, names = InputReader(Config(observer="momentum"), ("a", "b")), [f"joint_{k}" for k in range(20_000)]
    for wrong in (names, ["a", "b", *names, *names], ["a" * 100_000]):
        with pytest.raises(InputError) as error:
            reader.joint_state(joint_message(types, wrong))
        assert len(str(error.value)) < 2000


def test_a_joint_state_without_effort_has_unknown_torques(types: Types) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    for effort in ([], [np.nan, np.nan]):
        sample = reader.joint_state(joint_message(types, ["b", "a"], effort=effort))
        assert sample.position.tolist() == [1.0, 0.0] and np.isnan(sample.effort).all()


def test_a_joint_state_without_velocity_has_unknown_velocities(types: Types) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    for velocity in ([], [np.nan, np.nan]):
        sample = reader.joint_state(joint_message(types, ["b", "a"], velocity=velocity))
        assert np.isnan(sample.velocity).all()
        assert sample.position.tolist() == [1.0, 0.0] and sample.effort.tolist() == [201.0, 200.0]
    sample = reader.joint_state(joint_message(types, ["a", "b"], velocity=[], effort=[]))
    assert sample.position.tolist() == [0.0, 1.0] and np.isnan([sample.velocity, sample.effort]).all()
    assert reader.joint_state(joint_message(types, ["a", "b"])).velocity.tolist() == [100.0, 101.0]


def test_of_a_command_only_the_velocities_are_read_whatever_else_it_lacks(types: Types) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    command = joint_message(types, ["b", "x", "a"], position=[], velocity=[1.0, 2.0, 3.0], effort=[])
    assert reader.command(command).velocity.tolist() == [3.0, 1.0]
    with pytest.raises(InputError, match="^joint_commands: .*velocity is empty"):
        reader.command(joint_message(types, ["a", "b"], velocity=[]))


def test_reader_recovers_after_a_refused_message(types: Types) -> None:
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    for bad in (joint_message(types, ["a"]), joint_message(types, ["a", "b"], effort=[0.0])):
        with pytest.raises(InputError):
            reader.joint_state(bad)
        assert reader.joint_state(joint_message(types, ["a", "b"])).position.tolist() == [0.0, 1.0]


def test_a_stamp_with_a_second_of_nanoseconds_is_refused(types: Types, reader: InputReader) -> None:
    raw = bytearray(imu_message(types))
    raw[8:12] = (10**9).to_bytes(4, "little")
    with pytest.raises(InputError, match="the stamp has 1000000000 nanoseconds"):
        reader.imu(bytes(raw))
    reader = InputReader(Config(observer="momentum"), ("a", "b"))
    raw = bytearray(joint_message(types, ["a", "b"]))
    raw[8:12] = (10**9).to_bytes(4, "little")
    with pytest.raises(InputError, match="the stamp has 1000000000 nanoseconds"):
        reader.joint_state(bytes(raw))


def test_an_imu_that_declares_its_quantities_absent_is_refused(types: Types, reader: InputReader) -> None:
    absent = np.array([-1.0] + 8 * [0.0])
    for field in ("angular_velocity_covariance", "linear_acceleration_covariance"):
        with pytest.raises(InputError, match=rf"{field}\[0\] is -1"):
            reader.imu(imu_message(types, **{field: absent}))
    reader.imu(imu_message(types, orientation_covariance=absent))


def test_imu_in_another_frame_is_refused(types: Types, reader: InputReader) -> None:
    with pytest.raises(InputError, match=r"frame_id is 'camera', but imu.frame is 'imu_link'.*or imu.message_frame"):
        reader.imu(imu_message(types, "camera"))
    reader.imu(imu_message(types, ""))


def test_a_frame_of_another_name_is_taken_where_the_configuration_names_it(
    types: Types, config: Config, joint_names: tuple[str, ...]
) -> None:
    feet = tuple(replace(foot, message_frame="sensor") for foot in config.feet)
    config = replace(config, imu=replace(config.imu, message_frame="xsens"), feet=feet)
    reader = InputReader(config, joint_names)
    reader.imu(imu_message(types, "xsens"))
    assert reader.wrench(0, wrench_message(types, "sensor")).wrench[2] == 500.0
    with pytest.raises(InputError, match="or feet.l_foot.message_frame"):
        reader.wrench(0, wrench_message(types, "r_sole"))


def test_the_reason_of_a_refusal_is_short_however_long_the_name_of_the_frame(types: Types, reader: InputReader) -> None:
    name = "x" * 100_000
    for read, message in ((reader.imu, imu_message), (partial(reader.wrench, 0), wrench_message)):
        with pytest.raises(InputError, match="frame_id is 'xxx") as error:
            read(message(types, name))
        assert len(str(error.value)) < 500


def test_wrench_in_another_frame_is_refused_naming_both(types: Types, reader: InputReader) -> None:
    with pytest.raises(InputError, match=re.escape("frame_id is 'l_sole', but feet.r_foot.frame is 'r_sole'")):
        reader.wrench(1, wrench_message(types, "l_sole"))
    assert reader.wrench(1, wrench_message(types, "")).wrench[2] == 500.0


def test_flipped_sensor_gives_the_wrench_of_the_ground_on_the_foot(
    types: Types, config: Config, joint_names: tuple[str, ...]
) -> None:
    flipped = replace(config, feet=(replace(config.feet[0], flip=True), config.feet[1]))
    reader = InputReader(flipped, joint_names)
    message = wrench_message(types, "l_sole")
    assert reader.wrench(0, message).wrench.tolist() == [-1.0, -2.0, -500.0, -4.0, -5.0, -6.0]
    sample = WrenchSample(1, 0, np.arange(6.0))
    ((_, written),) = SensorMessages(flipped, joint_names).build([sample])
    np.testing.assert_array_equal(reader.wrench(0, written).wrench, sample.wrench)
