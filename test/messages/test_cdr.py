"""Serialized templates are byte for byte what rclpy and rosbags make; damaged messages are refused, not misread."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.config import Config, FootConfig
from friction_estimator.errors import InputError
from friction_estimator.io.bags.reader import jazzy_typestore
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import JointStateTemplate, StampedTemplate, serialize_string, stamp_of
from friction_estimator.messages.outputs import ODOMETRY_SIZES, FrictionMarkers, JointAxis, odometry_numbers
from friction_estimator.messages.sensors import InputReader
from friction_estimator.types import BaseState, FrictionEstimate
from test.headers import make_header

from .conftest import RclpyTypes, RosbagsTypes, Types

STAMP = 12_345_678_901_234_567
NAMES = [[], [""], ["a"], ["ab", "c"], ["abc", "defg", "h"], [f"joint_{k}" for k in range(36)]]
FRAMES = ["", "a", "odom", "base_link"]


def assert_same_bytes(types: Types, ours: bytes, message: Any, type_name: str) -> None:
    """Equal to the serializer of rosbags; to that of rclpy, too, which leaves memory in padding and at the end."""
    theirs = bytes(types.serialize(message))
    if isinstance(types, RosbagsTypes):
        assert ours == theirs
        return
    assert len(theirs) >= len(ours)
    differing = [place for place, byte in enumerate(ours) if byte != theirs[place]]
    scratched = bytearray(ours)
    for place in differing:
        scratched[place] = 0xFF
    # a byte that means nothing may hold anything
    assert values_of(types.deserialize(bytes(scratched), type_name)) == values_of(message)


def values_of(message: Any) -> Any:
    """Every field of a message of rclpy, in which NaN equals NaN."""
    if hasattr(message, "get_fields_and_field_types"):
        return [values_of(getattr(message, name)) for name in message.get_fields_and_field_types()]
    if isinstance(message, (list, tuple, array.array, np.ndarray)):
        return [values_of(item) for item in message]
    return struct.pack("<d", message) if isinstance(message, float) else message


@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("names", NAMES, ids=len)
def test_joint_states_are_those_of_rclpy_and_rosbags(
    types: Types, names: list[str], frame: str, with_state: bool
) -> None:
    template, rng = JointStateTemplate(frame, names, with_state), np.random.default_rng(len(names))
    for stamp in (STAMP, 0):
        effort, position, velocity = rng.normal(size=(3, len(names)))
        effort[1:2], velocity[:1] = np.nan, -np.inf
        given = {"effort": effort}
        given |= {"position": position, "velocity": velocity} if with_state else {}
        fields = {name: types.floats(given.get(name, np.empty(0))) for name in ("position", "velocity", "effort")}
        message = types.make(topics.JOINT_STATE, header=make_header(types, stamp, frame), name=names, **fields)
        assert_same_bytes(
            types,
            template.serialize(stamp, *(given[name] for name in fields if name in given)),
            message,
            topics.JOINT_STATE,
        )


def test_a_message_stays_as_it_was_when_the_next_one_is_made() -> None:
    template = JointStateTemplate("base_link", ["a", "b"])
    first = template.serialize(1, np.array([1.0, 2.0]))
    kept = bytes(bytearray(first))
    template.serialize(2, np.array([3.0, 4.0]))
    assert first == kept and stamp_of(first) == 1


@pytest.mark.parametrize("frame", FRAMES)
def test_wrenches_and_imus_are_those_of_rclpy_and_rosbags(types: Types, frame: str) -> None:
    values = np.random.default_rng(1).normal(size=37)
    quaternion, rate, force = values[:4], values[13:16], values[25:28]
    header = make_header(types, STAMP, frame)

    def vector(kind: str, numbers: np.ndarray) -> Any:
        return types.make(f"geometry_msgs/msg/{kind}", **dict(zip("xyzw", numbers.tolist(), strict=False)))

    imu = types.make(
        topics.IMU, header=header, orientation=vector("Quaternion", quaternion), orientation_covariance=values[4:13],
        angular_velocity=vector("Vector3", rate), angular_velocity_covariance=values[16:25],
        linear_acceleration=vector("Vector3", force), linear_acceleration_covariance=values[28:],
    )  # fmt: skip
    assert_same_bytes(types, StampedTemplate((37,), frame).serialize(STAMP, values), imu, topics.IMU)
    body = types.make("geometry_msgs/msg/Wrench", force=vector("Vector3", rate), torque=vector("Vector3", force))
    wrench = types.make(topics.WRENCH, header=header, wrench=body)
    assert_same_bytes(types, StampedTemplate((3, 3), frame).serialize(STAMP, rate, force), wrench, topics.WRENCH)


@pytest.mark.parametrize(("frame", "child"), [("odom", "base_link"), ("", ""), ("a", "bc"), ("map", "pelvis")])
def test_odometry_is_that_of_rclpy_and_rosbags(types: Types, frame: str, child: str) -> None:
    make, rng = types.make, np.random.default_rng(2)
    position, linear, angular = rng.normal(size=(3, 3))
    pose_covariance, twist_covariance = rng.normal(size=(2, 6, 6))
    base = BaseState(position, np.eye(3), linear, angular, pose_covariance, twist_covariance)
    ours = StampedTemplate(ODOMETRY_SIZES, frame, child).serialize(STAMP, *odometry_numbers(base))

    def vector(kind: str, numbers: np.ndarray) -> Any:
        return make(f"geometry_msgs/msg/{kind}", **dict(zip("xyz", numbers.tolist(), strict=True)))

    upright = make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    pose = make("geometry_msgs/msg/Pose", position=vector("Point", position), orientation=upright)
    twist = make("geometry_msgs/msg/Twist", linear=vector("Vector3", linear), angular=vector("Vector3", angular))
    message = make(
        topics.ODOMETRY,
        header=make_header(types, STAMP, frame),
        child_frame_id=child,
        pose=make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=pose_covariance.reshape(36)),
        twist=make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=twist_covariance.reshape(36)),
    )
    assert_same_bytes(types, ours, message, topics.ODOMETRY)


def test_the_transform_of_the_base_is_its_pose() -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    base = BaseState(np.array([1.0, 2.0, 3.0]), turned, np.zeros(3), np.zeros(3), np.eye(6), np.eye(6))
    position, quaternion, *_ = odometry_numbers(base)
    template = StampedTemplate((3, 4), "odom", "base_link", sequence=True)
    raw = template.serialize(STAMP, position, quaternion)
    (transform,) = jazzy_typestore().deserialize_cdr(raw, topics.TRANSFORMS).transforms
    assert (transform.header.frame_id, transform.child_frame_id) == ("odom", "base_link")
    assert transform.header.stamp.sec * 10**9 + transform.header.stamp.nanosec == STAMP
    place, rotation = transform.transform.translation, transform.transform.rotation
    assert (place.x, place.y, place.z) == (1.0, 2.0, 3.0)
    assert (rotation.x, rotation.y, rotation.z, rotation.w) == pytest.approx((0, 0, np.sqrt(0.5), np.sqrt(0.5)))
    message = jazzy_typestore().deserialize_cdr(raw, topics.TRANSFORMS)
    assert bytes(jazzy_typestore().serialize_cdr(message, topics.TRANSFORMS)) == raw


@pytest.mark.parametrize("text", ["", "flight", "double_support", "größer"])
def test_strings_are_those_of_rclpy_and_rosbags(types: Types, text: str) -> None:
    assert_same_bytes(types, serialize_string(text), types.make(topics.STRING, data=text), topics.STRING)


@pytest.mark.parametrize("torque", [0.0, -12.345, 123.456, -999.99, 1234.5, -2e7, np.nan, -np.inf])
def test_markers_are_those_of_rclpy_and_rosbags(
    types: Types, make_estimate: Callable[..., FrictionEstimate], torque: float
) -> None:
    axes = [JointAxis(frame, np.eye(3)[k]) for k, frame in enumerate(("l_knee", "a", "torso"))]
    markers = FrictionMarkers(axes)
    for friction in ([1.0, torque, 0.1], [-0.2, 0.3, torque]):
        estimate = make_estimate(STAMP, friction=np.array(friction), measured=np.array([True, False, True]))
        ours = markers.build(estimate)
        # every field of a marker is in the message: nothing is lost or shifted when it is read and serialized again
        message = types.deserialize(ours, topics.MARKERS)
        assert_same_bytes(types, ours, message, topics.MARKERS)
        texts = [f"{value:+.2f} N m" for value in friction]
        expected = [
            text if len(text) < 12 else f"{value:+.0e} N m" for text, value in zip(texts, friction, strict=True)
        ]
        assert [marker.text for marker in message.markers[1::2]] == expected
        assert [(marker.ns, marker.id, marker.frame_locked) for marker in message.markers[4:]] == [
            ("friction", 2, True), ("friction_text", 2, True),
        ]  # fmt: skip
        stamps = {marker.header.stamp.sec * 10**9 + marker.header.stamp.nanosec for marker in message.markers}
        assert stamps == {STAMP} and all(marker.pose.orientation.w == 1.0 for marker in message.markers)
        assert [round(marker.color.r, 2) for marker in message.markers] == [0.12, 0.12, 1.0, 1.0, 0.12, 0.12]


# reading

CONFIG = Config(observer="momentum", feet=(FootConfig(name="l", frame="l_sole", topic="l/wrench"),))
JOINTS = ("a", "bcd")


def swapped(raw: bytes, type_name: str) -> bytes:
    """The same message as a big-endian machine sends it."""
    store = jazzy_typestore()
    return bytes(store.serialize_cdr(store.deserialize_cdr(raw, type_name), type_name, little_endian=False))


def inputs() -> dict[str, tuple[bytes, Callable[[bytes], Any]]]:
    """One good message of every type, and what reads it."""
    reader, values = InputReader(CONFIG, JOINTS), np.arange(37.0)
    joints = JointStateTemplate("base", ["bcd", "extra", "a"], with_state=True)
    return {
        topics.JOINT_STATE: (joints.serialize(STAMP, *np.arange(9.0).reshape(3, 3)), reader.joint_state),
        topics.IMU: (StampedTemplate((37,), "imu_link").serialize(STAMP, values), reader.imu),
        topics.WRENCH: (
            StampedTemplate((6,), "l_sole").serialize(STAMP, values[:6]),
            lambda raw: reader.wrench(0, raw),
        ),
    }


def numbers(sample: Any) -> list[float]:
    return [value for name in sample.__slots__ for value in np.ravel(getattr(sample, name)).tolist()]


@pytest.mark.parametrize("type_name", [topics.JOINT_STATE, topics.IMU, topics.WRENCH])
def test_a_big_endian_message_holds_the_same_numbers_and_may_follow_a_little_endian_one(type_name: str) -> None:
    raw, read = inputs()[type_name]
    expected = numbers(read(raw))
    for _ in range(2):
        sample = read(swapped(raw, type_name))
        assert numbers(sample) == expected
        assert all(getattr(sample, name).dtype.isnative for name in sample.__slots__[1:] if name != "foot")
        assert numbers(read(raw)) == expected


@pytest.mark.parametrize("type_name", [topics.JOINT_STATE, topics.IMU, topics.WRENCH])
def test_a_message_that_is_cut_off_anywhere_is_refused_naming_the_topic(type_name: str) -> None:
    raw, read = inputs()[type_name]
    for kept in (False, True):  # before and after the layout is known
        for length in range(len(raw)):
            with pytest.raises(InputError, match=rf"^(joint_states|imu/data|l/wrench): {length} bytes are not"):
                read(raw[:length])
        assert numbers(read(raw + b"\x07" * 5)) == numbers(read(raw)), kept  # senders may pad the end


@pytest.mark.parametrize("type_name", [topics.JOINT_STATE, topics.IMU, topics.WRENCH])
@pytest.mark.parametrize("head", [b"\x00\x03", b"\x00\x02", b"\x00\x0a", b"\x01\x01", b"\xff\xff"])
def test_other_encapsulations_are_refused(type_name: str, head: bytes) -> None:
    raw, read = inputs()[type_name]
    read(raw)
    with pytest.raises(InputError, match="its encapsulation .* is not plain CDR"):
        read(head + raw[2:])


@given(st.data())
def test_scratched_joint_states_are_refused_or_have_the_right_shape(data: st.DataObject) -> None:
    raw, read = inputs()[topics.JOINT_STATE]
    scratched = bytearray(raw)
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
        scratched[place] = data.draw(st.integers(0, 255))
    for message in (bytes(scratched), raw, bytes(scratched)):
        try:
            sample = read(message)
        except InputError:
            assert message != raw
        else:
            assert sample.position.shape == sample.velocity.shape == sample.effort.shape == (2,)


def test_padding_that_holds_anything_changes_nothing() -> None:
    raw, read = inputs()[topics.JOINT_STATE]
    expected = numbers(read(raw))
    clean, names_end = bytearray(raw), raw.index(b"bcd\x00") + 4
    assert raw[names_end : names_end + 4] == b"\x06\x00\x00\x00"  # no padding before the second name
    padding = raw.index(b"extra\x00") + 6
    clean[padding : padding + 2] = b"\xab\xcd"
    assert numbers(read(bytes(clean))) == expected


def test_samples_do_not_share_memory_with_the_message() -> None:
    raw, read = inputs()[topics.JOINT_STATE]
    message = bytearray(raw)
    sample = read(message)
    expected = numbers(sample)
    message[16:] = bytes(len(message) - 16)
    assert numbers(sample) == expected
    sample.position[:] = 7.0  # kernels want arrays that can be written


def test_messages_of_rclpy_are_read() -> None:
    pytest.importorskip("rclpy", reason="ROS is not installed")
    types = RclpyTypes()
    for type_name, (raw, read) in inputs().items():
        expected = numbers(read(raw))
        for _ in range(3):
            assert numbers(read(types.serialize(types.deserialize(raw, type_name)))) == expected
