"""Claims about YAML files of robots: found by name and path, merged, and refused with the reason."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from friction_estimator.errors import ConfigError, RobotModelError
from friction_estimator.io.documents import parse_value
from friction_estimator.io.node_parameters import NODE_PARAMETERS
from friction_estimator.io.robot import (
    coupling_of_joints,
    load_coupling,
    load_robot,
    read_node_parameters,
    read_robot_parameters,
    robot_names,
)
from friction_estimator.robot.model import RobotModel

URDF = '<?xml version="1.0" encoding="utf-8"?>\n<robot name="arm"><link name="base"/></robot>\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def robot_yaml(folder: Path, parameters: str) -> Path:
    return write(folder / "arm.yaml", f"/**:\n  ros__parameters:\n    observer: momentum\n{parameters}")


@pytest.mark.parametrize("name", robot_names())
def test_every_shipped_robot_loads_with_its_urdf(name: str) -> None:
    robot = load_robot(name)
    assert robot.urdf_path is not None
    assert robot.urdf_xml == robot.urdf_path.read_text()
    assert RobotModel(robot.config, robot.urdf_xml).joint_names  # its frames and joints are in the URDF


def test_a_robot_is_found_by_name_and_by_path_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suralp").mkdir()  # a folder of that name must not hide the robot
    monkeypatch.chdir(tmp_path)
    by_name = load_robot("suralp")
    assert by_name.urdf_path is not None
    assert load_robot(by_name.urdf_path.parent.parent / "config" / "robots" / "suralp.yaml") == by_name


def test_overrides_replace_values_of_the_file() -> None:
    assert load_robot("suralp").config.observer == "kalman"
    assert load_robot("suralp", {"observer": "momentum"}).config.observer == "momentum"


def test_an_unknown_robot_is_refused_with_the_names() -> None:
    with pytest.raises(ConfigError, match=r"no robot 'surapl'.*'suralp'"):
        load_robot("surapl")


def test_the_urdf_may_lie_beside_the_yaml_whatever_the_working_folder(tmp_path: Path) -> None:
    urdf = write(tmp_path / "arm.urdf", URDF)
    robot = load_robot(robot_yaml(tmp_path, "    robot: {urdf: arm.urdf}\n"))
    assert robot.urdf_path == urdf
    assert robot.urdf_xml == URDF


def test_a_package_url_is_found_in_a_cmeel_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "site-packages" / "cmeel.prefix" / "share" / "arm_description"
    share.mkdir(parents=True)
    urdf = write(share / "arm.urdf", URDF)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    yaml = robot_yaml(tmp_path, "    robot: {urdf: 'package://arm_description/arm.urdf'}\n")
    assert load_robot(yaml).urdf_path == urdf


def test_the_error_for_missing_robot_data_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("friction_estimator.io.robot._shares", lambda package: iter(()))
    with pytest.raises(ConfigError, match=r"no package 'example-robot-data'.* -m pip install example-robot-data`"):
        load_robot("g1")


def test_a_package_url_is_found_in_the_ament_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "install" / "share" / "arm_description"
    share.mkdir(parents=True)
    urdf = write(share / "arm.urdf", URDF)
    yaml = robot_yaml(tmp_path, "    robot: {urdf: 'package://arm_description/arm.urdf'}\n")
    with pytest.raises(ConfigError, match="no package 'arm_description'"):
        load_robot(yaml)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'other'}:{tmp_path / 'install'}")
    assert load_robot(yaml).urdf_path == urdf
    yaml = robot_yaml(tmp_path, "    robot: {urdf: 'package://friction_estimator/urdf/suralp.urdf'}\n")
    assert load_robot(yaml).urdf_xml == load_robot("suralp").urdf_xml


def test_without_a_urdf_name_the_text_is_left_to_robot_description(tmp_path: Path) -> None:
    robot = load_robot(robot_yaml(tmp_path, "    identified_parameters: x.yaml\n    use_sim_time: true\n"))
    assert (robot.urdf_xml, robot.urdf_path) == ("", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    compensaton: {timeout: 0.1}\n", r"arm.yaml: unknown parameter 'compensaton.timeout' \(did you mean"),
        ("    momentum: {gian: 10.0}\n", r"unknown parameter 'momentum.gian' \(did you mean 'momentum.gain'"),
        ("    momentum: {gain: fast}\n", "momentum.gain = 'fast' has the wrong type: expected a number"),
        ("    momentum: {gain: -1.0}\n", "out of range"),
        ("    momentum: {gain: 10.0\n", r"arm.yaml is not valid YAML: line \d"),
        (
            "    momentum: {gain: 10.0}\n    momentum: {gain: 20.0}\n",
            "line 5, column 5: the key 'momentum' is given twice",
        ),
    ],
)
def test_a_typing_error_in_the_yaml_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_robot(robot_yaml(tmp_path, line))


@pytest.mark.parametrize("text", ["", "observer: momentum\n", "- 1\n", "/**:\n  ros__parameter: {}\n"])
def test_a_yaml_that_is_no_parameter_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="not a ROS parameter file"):
        load_robot(write(tmp_path / "arm.yaml", text))


def test_a_binary_file_is_refused_as_yaml_and_as_urdf(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a UTF-8 text"):
        load_robot(binary)
    with pytest.raises(RobotModelError, match="not a UTF-8 text"):
        load_robot(robot_yaml(tmp_path, f"    robot: {{urdf: {binary}}}\n"))


@pytest.mark.parametrize(
    ("urdf", "message"),
    [
        ('<robot name="arm">\n<link name="base">\n</robot>', "not valid XML, line 3"),
        ("<sdf/>", "its root element is <sdf>, expected <robot>"),
        ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include/></robot>', "is a xacro file"),
        ("<robot/>", "has no <link>"),
        ("", "not valid XML, line 1"),
    ],
)
def test_an_unreadable_urdf_is_named_with_its_file(tmp_path: Path, urdf: str, message: str) -> None:
    write(tmp_path / "arm.urdf", urdf)
    with pytest.raises(RobotModelError, match=message) as caught:
        load_robot(robot_yaml(tmp_path, "    robot: {urdf: arm.urdf}\n"))
    assert str(tmp_path / "arm.urdf") in str(caught.value)


def test_a_missing_urdf_is_refused_with_the_places_and_the_choices(tmp_path: Path) -> None:
    with pytest.raises(RobotModelError, match=r"no URDF 'toe.urdf'.*'suralp.urdf'") as caught:
        load_robot(robot_yaml(tmp_path, "    robot: {urdf: toe.urdf}\n"))
    assert str(tmp_path / "toe.urdf") in str(caught.value)


def test_sections_of_wildcard_and_node_are_merged_and_other_nodes_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "all.yaml",
        "/**:\n  ros__parameters: {observer: fbse, use_sim_time: true, momentum.gain: 1e1}\n"
        "robot1:\n  friction_estimator:\n    ros__parameters: {observer: momentum}\n"
        "controller:\n  ros__parameters: {rate: 3}\n",
    )
    assert read_robot_parameters(path) == {"observer": "momentum", "momentum.gain": 10.0}


def test_numbers_are_read_as_ros_reads_them() -> None:
    assert [parse_value(text) for text in ("1e-4", "-2E3", "1.5e+2", "3", "0.5")] == [1e-4, -2e3, 150.0, 3, 0.5]
    assert parse_value("1e") == "1e"


def test_what_the_nodes_declare_beside_the_configuration_is_passed_over(tmp_path: Path) -> None:
    own = {name: 1 for name in NODE_PARAMETERS}
    document = {"/**": {"ros__parameters": {**own, "use_sim_time": True, "observer": "fbse"}}}
    path = write(tmp_path / "all.yaml", yaml.safe_dump(document))
    assert read_robot_parameters(path) == {"observer": "fbse"}
    assert read_node_parameters(path) == {**own, "use_sim_time": True, "observer": "fbse"}


TORSO = """
joints: [torso_pitch, torso_roll, torso_yaw, neck_pitch, neck_roll]
motors: [0B3M0, 0B3M1, 0B4M0, 0B6M0, 0B6M1]
matrix: [0.5,   -0.5,   0.0,  0.0,  0.0,
         0.5,    0.5,   0.0,  0.0,  0.0,
         0.275,  0.275, 0.55, 0.0,  0.0,
         0.0,    0.0,   0.0,  0.5, -0.5,
         0.0,    0.0,   0.0,  0.5,  0.5]
"""
LEGS = ("l_knee", "torso_yaw", "torso_roll", "torso_pitch", "r_knee")


@pytest.fixture
def coupling_file(tmp_path):
    def _write(text: str):
        path = tmp_path / "coupling.yaml"
        coupling = {"robot": {"coupling": yaml.safe_load(text)}}
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": coupling}}))
        return path

    return _write


def test_a_file_gives_its_matrices(coupling_file):
    coupling = load_coupling(coupling_file(TORSO))
    assert coupling.joint_names == ("torso_pitch", "torso_roll", "torso_yaw", "neck_pitch", "neck_roll")
    assert [motors for _, motors in coupling.groups] == [("0B3M0", "0B3M1", "0B4M0"), ("0B6M0", "0B6M1")]
    np.testing.assert_array_equal(coupling.matrix[2], [0.275, 0.275, 0.55, 0.0, 0.0])


def test_other_joints_have_motors_of_their_own_and_other_groups_are_left_out(coupling_file):
    coupling = coupling_of_joints(load_coupling(coupling_file(TORSO)), LEGS)
    assert sorted(coupling.joint_names) == sorted(LEGS)
    assert coupling.motor_names == ("0B3M0", "0B3M1", "0B4M0", "l_knee", "r_knee")


def test_a_part_of_a_coupled_group_is_refused(coupling_file):
    with pytest.raises(ConfigError, match=r"'neck_roll' shares motors with joints"):
        coupling_of_joints(load_coupling(coupling_file(TORSO)), ("neck_pitch",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "has no robot.coupling"),
        ("{joints: [a], motors: [m]}", "robot.coupling.matrix has 0 numbers"),
        ("{joints: a, motors: [m], matrix: [1.0]}", "robot.coupling.joints = 'a' .* expected a list of names"),
        ("{joints: [a], motors: [m], matrix: [x]}", "robot.coupling.matrix = .* expected a list of numbers"),
        ("{joints: [a], motors: [m], matrix: [0.0]}", "robot.coupling: .*are zero"),
        ("{joints: [a], motors: [m], matrix: [1.0], groups: 1}", "coupling.groups"),
    ],
)
def test_what_is_no_coupling_is_refused_with_the_file_named(coupling_file, text, message):
    with pytest.raises(ConfigError, match=f"coupling.yaml.*{message}"):
        load_coupling(coupling_file(text))
