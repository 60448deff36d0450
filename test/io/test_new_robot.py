"""Guesses about a new robot: feet, IMU, waist and topics that an engineer would have chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.errors import RobotModelError
from friction_estimator.io.bags.reader import BagReader, jazzy_typestore
from friction_estimator.io.new_robot import guess_robot
from friction_estimator.io.robot import find_urdf, load_robot, read_urdf
from friction_estimator.robot.model import RobotModel

LINK = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def urdf(*joints: tuple[str, str, str, tuple[float, float, float]], root: str = "trunk") -> str:
    """A robot of joints ``(parent, child, type, place in the parent)``; each joint is named after its child."""
    links = "".join(f'<link name="{name}">{LINK}</link>' for name in (root, *(child for _, child, *_ in joints)))
    parts = "".join(
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{" ".join(map(str, place))}"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
        for parent, child, kind, place in joints
    )
    return f'<robot name="x">{links}{parts}</robot>'


def legs(*places: tuple[float, float]) -> list[tuple[str, str, str, tuple[float, float, float]]]:
    """A thigh and a shank below each of these places, without telling names."""
    joints = []
    for k, (x, y) in enumerate(places):
        joints += [
            ("trunk", f"a{k}", "revolute", (x, y, 0.0)),
            (f"a{k}", f"b{k}", "revolute", (0.0, 0.0, -0.3)),
            (f"b{k}", f"c{k}", "fixed", (0.0, 0.0, -0.3)),
        ]
    return joints


@pytest.mark.parametrize("name", ["suralp", "humanoid"])
def test_the_built_in_robots_are_guessed_as_they_are(name: str) -> None:
    robot = load_robot(name)
    guessed = config_from_parameters(guess_robot(robot.urdf_xml, f"{name}.urdf").parameters)
    assert guessed.imu == robot.config.imu
    for ours, theirs in zip(guessed.feet, robot.config.feet, strict=True):
        assert (ours.name, ours.frame, ours.topic, ours.phase) == (
            theirs.name,
            theirs.frame,
            theirs.topic,
            theirs.phase,
        )


def test_four_lowest_links_without_telling_names_are_point_feet_by_their_places() -> None:
    xml = urdf(*legs((0.3, -0.1), (-0.3, 0.1), (0.3, 0.1), (-0.3, -0.1)))
    guess = guess_robot(xml, "x.urdf")
    config = config_from_parameters(guess.parameters)
    assert {foot.name: foot.frame for foot in config.feet} == {
        "lf_foot": "c2", "rf_foot": "c0", "lh_foot": "c1", "rh_foot": "c3"
    }  # fmt: skip
    assert {foot.contact for foot in config.feet} == {"point"} and config.imu.frame == "trunk"
    assert any("no link has such a name" in reason for reason in guess.reasons)
    assert RobotModel(config, xml).joint_names


def test_words_for_sides_count_more_than_places() -> None:
    left, right = (
        ("trunk", f"{side}_foot", "revolute", (0.0, y, -1.0)) for side, y in (("left", -0.1), ("right", 0.1))
    )
    assert config_from_parameters(guess_robot(urdf(left, right), "x").parameters).feet[0].frame == "left_foot"


def test_an_imu_may_be_above_a_waist_and_not_on_a_leg() -> None:
    waist = [("trunk", "torso", "revolute", (0.0, 0.0, 0.3)), ("torso", "imu_link", "fixed", (0.0, 0.0, 0.1))]
    xml = urdf(*legs((0.0, 0.1), (0.0, -0.1)), *waist)
    guess = guess_robot(xml, "x.urdf")
    assert guess.parameters["imu.frame"] == "imu_link"
    assert "torso_joint" in RobotModel(config_from_parameters(guess.parameters), xml).joint_names
    shank = ("b0", "shank_imu", "fixed", (0.0, 0.0, 0.0))
    with pytest.raises(RobotModelError, match=r"'shank_imu' moves with 'b0_joint', a joint of a leg"):
        guess_robot(urdf(*legs((0.0, 0.1), (0.0, -0.1)), shank), "x.urdf")


def test_without_feet_it_is_an_arm_and_without_joints_an_error() -> None:
    guess = guess_robot(read_urdf(find_urdf("arm.urdf")), "arm.urdf")
    parameters = guess.parameters
    assert parameters["observer"] == "momentum" and any("observer is momentum, which" in one for one in guess.reasons)
    assert parameters["robot.fixed_base"] is True and "imu.frame" not in parameters
    with pytest.raises(RobotModelError, match="no joint that moves"):
        guess_robot(urdf(("trunk", "cover", "fixed", (0.0, 0.0, 0.0))), "x.urdf")


def test_topics_frames_and_missing_joints_come_from_the_bag(tmp_path: Path) -> None:
    rosbags = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed")
    types = jazzy_typestore()
    kinds = types.types
    xml = urdf(
        *legs((0.0, 0.1), (0.0, -0.1)), ("trunk", "imu_a", "fixed", (0, 0, 0)), ("trunk", "imu_b", "fixed", (0, 0, 0))
    )

    def header(frame: str) -> Any:
        stamp = kinds["builtin_interfaces/msg/Time"](sec=1, nanosec=0)
        return kinds["std_msgs/msg/Header"](stamp=stamp, frame_id=frame)

    vector, quaternion = kinds["geometry_msgs/msg/Vector3"](0, 0, 0), kinds["geometry_msgs/msg/Quaternion"](0, 0, 0, 1)
    nine, four = np.zeros(9), np.zeros(3)
    wrench = kinds["geometry_msgs/msg/Wrench"](force=vector, torque=vector)
    messages = {
        "/robot/states": kinds["sensor_msgs/msg/JointState"](
            header(""), ["a0_joint", "b0_joint", "a1_joint"], four, four, four
        ),
        "/robot/imu": kinds["sensor_msgs/msg/Imu"](header("imu_b"), quaternion, nine, vector, nine, vector, nine),
        "/robot/ft_one": kinds["geometry_msgs/msg/WrenchStamped"](header("c1"), wrench),
        "/robot/left_ft": kinds["geometry_msgs/msg/WrenchStamped"](header("sensor"), wrench),
    }
    with rosbags.Writer(tmp_path / "bag", version=9) as writer:
        for topic, message in messages.items():
            connection = writer.add_connection(topic, message.__msgtype__, typestore=types)
            writer.write(connection, 1_000_000_000, types.serialize_cdr(message, message.__msgtype__))
    guess = guess_robot(xml, "x.urdf", BagReader(tmp_path / "bag"))
    config = config_from_parameters(guess.parameters)
    assert (config.imu.frame, config.imu.topic) == ("imu_b", "robot/imu")
    assert config.output.joint_states_topic == "robot/states"
    assert config.robot.joints == ("a0_joint", "b0_joint", "a1_joint")
    feet = [(foot.topic, foot.frame, foot.message_frame) for foot in config.feet]
    assert feet == [("robot/left_ft", "c0", "sensor"), ("robot/ft_one", "c1", "")]
    assert any("b1_joint" in reason for reason in guess.reasons)
