"""Estimates and ground truth become standard messages, and can be read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.errors import BagError, RobotModelError
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.messages.cdr import header_stamp, serialize_string
from friction_estimator.messages.outputs import FrictionMarkers, OutputMessages, joint_axes
from friction_estimator.messages.recording import Recording, RunDescription
from friction_estimator.messages.sensors import TruthMessages
from friction_estimator.messages.topics import Topic
from friction_estimator.types import FrictionEstimate, GroundTruth
from test.headers import make_header

from .conftest import Types

MakeEstimate = Callable[..., FrictionEstimate]
Decode = Callable[[Iterable[tuple[topics.Topic, bytes]]], dict[str, Any]]
MS = 1_000_000


@pytest.fixture
def outputs(robot: Robot, joint_names: tuple[str, ...]) -> OutputMessages:
    return OutputMessages(robot.config, joint_names, robot.urdf_xml)


def test_the_first_estimate_leaves_on_every_topic(outputs: OutputMessages, make_estimate: MakeEstimate) -> None:
    assert [topic for topic, _ in outputs.build(make_estimate(0))] == list(topics.OUTPUTS)
    assert [topic for topic, _ in outputs.build(make_estimate(MS))] == [topics.FRICTION, topics.SIGMA]


@pytest.mark.parametrize("stamp_ns", [-(2**31) * 10**9, -1, 2**31 * 10**9 - 1])
def test_every_stamp_that_a_message_can_have_comes_back(
    outputs: OutputMessages, make_estimate: MakeEstimate, decoded: Decode, stamp_ns: int
) -> None:
    built = decoded(outputs.build(replace(make_estimate(0), stamp_ns=stamp_ns)))
    assert header_stamp(built[topics.FRICTION.name]) == stamp_ns
    assert header_stamp(built[topics.FRICTION_MARKERS.name].markers[0]) == stamp_ns


def test_what_nobody_wants_is_left_out_but_for_the_friction(
    outputs: OutputMessages, make_estimate: MakeEstimate
) -> None:
    wanted = {topics.MODEL, topics.FRICTION_MARKERS}
    built = outputs.build(make_estimate(0), wanted.__contains__)
    assert {topic for topic, _ in built} == {topics.FRICTION, *wanted}


def test_scalars_are_the_effort_by_joint_name(
    outputs: OutputMessages, make_estimate: MakeEstimate, joint_names: tuple[str, ...], decoded: Decode
) -> None:
    estimate = make_estimate(7 * MS)
    built = decoded(outputs.build(estimate))
    expected = {
        topics.FRICTION: estimate.friction,
        topics.SIGMA: estimate.sigma,
        topics.MODEL: estimate.model,
        topics.COULOMB: estimate.law.coulomb,
        topics.VISCOUS: estimate.law.viscous,
        topics.COULOMB_SIGMA: estimate.law.coulomb_sigma,
        topics.VISCOUS_SIGMA: estimate.law.viscous_sigma,
        topics.EXTERNAL_TORQUE: estimate.external_torque,
        topics.EXTERNAL_TORQUE_SIGMA: estimate.external_torque_sigma,
        topics.MEASURED: estimate.measured.astype(float),
        topics.VALID: estimate.valid.astype(float),
    }
    for topic, values in expected.items():
        message = built[topic.name]
        assert tuple(message.name) == joint_names
        np.testing.assert_array_equal(np.asarray(message.effort), values)
        assert header_stamp(message) == 7 * MS
        assert message.header.frame_id == "base_link"
    np.testing.assert_array_equal(np.asarray(built["joint_friction"].position), estimate.position)
    np.testing.assert_array_equal(np.asarray(built["joint_friction"].velocity), estimate.velocity)


@pytest.mark.parametrize("topic", [topics.MEASURED, topics.VALID], ids=lambda topic: topic.name)
def test_a_joint_that_stops_being_measured_or_valid_is_published_at_once(
    outputs: OutputMessages, make_estimate: MakeEstimate, joint_names: tuple[str, ...], decoded: Decode, topic: Topic
) -> None:
    outputs.build(make_estimate(0))
    flags = np.ones(len(joint_names), dtype=bool)
    flags[3] = False
    built = decoded(outputs.build(make_estimate(MS, **{topic.name.rpartition("/")[2]: flags})))
    assert np.flatnonzero(np.asarray(built[topic.name].effort) == 0.0).tolist() == [3]


def test_compensation_leaves_with_every_estimate_that_has_one_and_ends_with_zero(
    robot: Robot, make_estimate: MakeEstimate, joint_names: tuple[str, ...], decoded: Decode
) -> None:
    config = robot.config
    enabled = replace(config, compensation=replace(config.compensation, enabled=True))
    outputs = OutputMessages(enabled, joint_names, robot.urdf_xml)
    torque = np.linspace(-1.0, 1.0, len(joint_names))
    for stamp in (0, MS):
        message = decoded(outputs.build(make_estimate(stamp, compensation=torque)))["friction_compensation"]
        np.testing.assert_array_equal(np.asarray(message.effort), torque)
        assert header_stamp(message) == stamp and tuple(message.name) == joint_names
    last = decoded([outputs.no_compensation(2 * MS)])["friction_compensation"]
    assert not np.any(last.effort) and header_stamp(last) == 2 * MS
    assert topics.COMPENSATION in outputs.topics
    assert topics.COMPENSATION not in OutputMessages(config, joint_names, robot.urdf_xml).topics


def test_contact_phase_is_published_when_it_changes(
    outputs: OutputMessages, make_estimate: MakeEstimate, decoded: Decode
) -> None:
    outputs.build(make_estimate(0))
    assert topics.CONTACT_PHASE not in dict(outputs.build(make_estimate(MS)))
    built = decoded(outputs.build(make_estimate(2 * MS, phase="flight")))
    assert built[topics.CONTACT_PHASE.name].data == "flight"


def test_twist_of_the_base_is_given_in_base_axes(config: Config, decoded: Decode) -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # the base looks along the world's y
    truth = GroundTruth(
        5, np.zeros(2), np.array([1.0, 2.0, 3.0]), turned, np.array([0.0, 0.7, 0.0]), np.array([0.1, 0.2, 0.3]),
        np.zeros((2, 6)), np.array([True, False]), np.zeros(2), np.zeros(3),
    )  # fmt: skip
    odometry = decoded(TruthMessages(config, ("a", "b")).build(truth))[topics.TRUE_BASE_STATE.name]
    linear, quaternion = odometry.twist.twist.linear, odometry.pose.pose.orientation
    assert (linear.x, linear.y, linear.z) == pytest.approx((0.7, 0.0, 0.0))
    assert (quaternion.w, quaternion.z) == pytest.approx((np.sqrt(0.5), np.sqrt(0.5)))
    assert (odometry.header.frame_id, odometry.child_frame_id) == ("odom", "base_link")


def test_covariance_of_the_twist_turns_with_its_axes(
    outputs: OutputMessages, make_estimate: MakeEstimate, decoded: Decode
) -> None:
    estimate = make_estimate(0)
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    variances = np.diag([1.0, 4.0, 9.0, 16.0, 25.0, 36.0])
    for name, value in (("rotation_base_to_world", turned), ("twist_covariance", variances)):
        object.__setattr__(estimate.base, name, value)
    covariance = decoded(outputs.build(estimate))[topics.BASE_STATE.name].twist.covariance
    assert np.diag(np.reshape(covariance, (6, 6))) == pytest.approx([4.0, 1.0, 9.0, 16.0, 25.0, 36.0])


def test_truth_names_the_phase_as_the_estimator_does(config: Config, decoded: Decode) -> None:
    build = TruthMessages(config, ("a",)).build
    names = []
    for step, contact in enumerate(([True, True], [False, True], [True, False], [False, False])):
        truth = GroundTruth(
            step, np.zeros(1), np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3), np.zeros((2, 6)), np.array(contact),
            np.zeros(1), np.zeros(3),
        )  # fmt: skip
        names.append(decoded(build(truth))[topics.TRUE_CONTACT_PHASE.name].data)
    assert names == ["double_support", "right_support", "left_support", "flight"]


def test_markers_turn_the_way_the_friction_does(types: Types, robot: Robot, make_estimate: MakeEstimate) -> None:
    names = ("l_knee", "r_knee")
    axes = joint_axes(robot.urdf_xml, names)
    estimate = make_estimate(0, friction=np.array([1.25, -2.5]), measured=np.array([True, False]))
    raw = FrictionMarkers(axes).build(estimate)
    markers = types.deserialize(raw, topics.MARKERS).markers
    assert [marker.header.frame_id for marker in markers[::2]] == [axis.frame for axis in axes]
    swept = []
    for marker, axis in zip(markers[::2], axes, strict=True):
        points = np.array([[point.x, point.y, point.z] for point in marker.points])
        steps = np.cross(points[:-1], points[1:]) @ axis.axis / np.sum(points[0] ** 2)
        swept.append(np.arcsin(steps).sum())
    assert swept == pytest.approx([0.25 * 1.5 * np.pi, -0.5 * 1.5 * np.pi])
    assert [marker.text for marker in markers[1::2]] == ["+1.25 N m", "-2.50 N m"]


def test_markers_need_joints_of_the_urdf(robot: Robot) -> None:
    with pytest.raises(RobotModelError, match="no joint 'l_tail'"):
        joint_axes(robot.urdf_xml, ("l_tail",))


def read_back(
    folder: Path, recorded: Iterable[tuple[str, str, int, bytes]], description: RunDescription | None = None
) -> Recording:
    """Recording of a bag with these topics, types, times [ns] and serialized messages."""
    with BagWriter(folder / "bag") as writer:
        for one in recorded:
            writer.write_raw(*one)
    return read_recording(folder / "bag", description=description)


def test_a_recording_gives_the_estimates_back(
    outputs: OutputMessages, make_estimate: MakeEstimate, joint_names: tuple[str, ...], config: Config, tmp_path: Path
) -> None:  # fmt: skip
    n = len(joint_names)
    estimates, recorded = [], []
    truths = TruthMessages(config, joint_names)
    for step in range(60):
        swing = 20 <= step < 40
        measured = np.full(n, not swing)
        phase = "right_support" if swing else "double_support"
        estimate = make_estimate(step * MS, phase=phase, measured=measured, valid=np.full(n, step >= 30))
        contact = np.array([not swing, True])
        truth = GroundTruth(
            step * MS, 2.0 * estimate.friction, np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3),
            np.zeros((2, 6)), contact, 3.0 * estimate.friction, np.zeros(3),
        )  # fmt: skip
        built = (*truths.build(truth), *outputs.build(estimate))
        recorded += [(topic.name, topic.type, step * MS + 300, raw) for topic, raw in built]
        estimates.append(estimate)
    limbs = {"l_foot": joint_names[:6], "r_foot": joint_names[6:]}
    supports = {"l_foot": "left_support", "r_foot": "right_support"}
    description = RunDescription(limbs=limbs, supports=supports)
    recording = read_back(tmp_path, recorded, description)

    for name in ("position", "velocity", "friction", "sigma"):
        np.testing.assert_array_equal(getattr(recording, name), [getattr(item, name) for item in estimates])
    np.testing.assert_array_equal(recording.measured, [item.measured for item in estimates])
    np.testing.assert_array_equal(recording.valid, [item.valid for item in estimates])
    np.testing.assert_array_equal(recording.truth, 2.0 * recording.friction)
    assert [(phase.name, round(phase.start, 4)) for phase in recording.phases] == [
        ("double_support", 0.0), ("right_support", 0.02), ("double_support", 0.04),
    ]  # fmt: skip
    assert recording.coulomb is not None
    np.testing.assert_array_equal(recording.coulomb.values[1], estimates[20].law.coulomb)
    standing = recording.standing()
    assert standing is not None
    np.testing.assert_array_equal(standing[:, 0], [not 20 <= step < 40 for step in range(60)])
    assert standing[:, 6:].all()


def friction_message(types: Types, stamp: int, effort: list[float]) -> tuple[str, str, int, bytes]:
    header = make_header(types, stamp, "base_link")
    message = types.make(topics.JOINT_STATE, header=header, name=["a", "b"], effort=types.floats(np.array(effort)))
    return "joint_friction", topics.JOINT_STATE, stamp, types.serialize(message)


def test_estimates_of_other_sources_may_lack_what_is_not_needed(types: Types, tmp_path: Path) -> None:
    steps = (3, 1, 2)  # also out of order
    recorded = [friction_message(types, step * MS, [1.0 * step, 2.0 * step]) for step in steps]
    recording = read_back(tmp_path, recorded)
    assert recording.friction.tolist() == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    assert recording.time.tolist() == pytest.approx([0.0, 0.001, 0.002])
    assert np.isnan(recording.velocity).all() and np.isnan(recording.sigma).all() and recording.measured.all()
    assert recording.truth is None and recording.standing() is None


def test_estimates_of_wrong_length_are_one_clear_error(types: Types, tmp_path: Path) -> None:
    with pytest.raises(BagError, match="topic joint_friction: effort has 3 values for 2 joint names"):
        read_back(tmp_path, [friction_message(types, 0, [1.0, 2.0, 3.0])])


def test_a_recording_needs_estimates(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic("joint_friction", topics.JOINT_STATE)
        writer.write_raw("contact_phase", topics.STRING, 0, serialize_string("flight"))
    with pytest.raises(BagError, match="no message on the topic 'joint_friction'"):
        read_recording(tmp_path / "bag")


def test_a_description_survives_the_bag(robot: Robot) -> None:
    description = RunDescription.from_config(robot.config, robot.urdf_xml, "suralp", "a test")
    assert RunDescription.from_custom_data(description.to_custom_data()) == description
    assert description.limbs["l_foot"][3] == "l_knee"
    assert description.standing_feet("right_support") == {"r_foot"}
    assert description.standing_feet("double_support") == {"l_foot", "r_foot"}
    assert description.standing_feet("flight") == set()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"limbs": 3}'])
def test_a_foreign_description_is_unknown(text: str) -> None:
    assert RunDescription.from_custom_data({"friction_estimator": text}) == RunDescription()
