"""The controller's YAML, read back by the parameter parser of ROS 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from friction_estimator.errors import ConfigError
from friction_estimator.io.export import ExportRequest, export_friction, joint_frictions
from test.known_identification import make_identification

ODD = ("hip", "l_knee.pitch", "é joint: #1")


@pytest.mark.parametrize("joints", [("hip", "knee", "ankle"), ODD])
def test_a_node_of_that_name_gets_the_parameters(tmp_path: Path, joints: tuple[str, ...]) -> None:
    rclpy = pytest.importorskip("rclpy")
    os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    friction = joint_frictions(make_identification(joints))
    made = export_friction("ros2_control", ExportRequest(friction, ("two\nlines",)), controller="arm_controller")
    (tmp_path / "controller.yaml").write_text(made.text, encoding="utf-8")
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(tmp_path / "controller.yaml")], context=context)
    try:
        node = rclpy.create_node(
            "arm_controller", context=context, automatically_declare_parameters_from_overrides=True
        )
        read = {name: parameter.value for name, parameter in node.get_parameters_by_prefix("").items()}
        node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)
    assert read["joints"] == list(joints)
    for joint in friction:
        group = f"friction.{joint.joint}"
        assert read[f"gains.{joint.joint}.ff_velocity_scale"] == joint.coulomb_viscous.viscous
        for name in ("coulomb", "viscous", "offset"):
            assert read[f"{group}.{name}"] == getattr(joint.coulomb_viscous, name)
        assert read[f"{group}.law"] == joint.law.name
        assert read[f"{group}.parameter_names"] == list(joint.law.parameter_names)
        assert list(read[f"{group}.parameters"]) == joint.values.tolist()


def test_what_was_reduced_stands_in_the_comment() -> None:
    made = export_friction("ros2_control", ExportRequest(joint_frictions(make_identification())))
    comments = " ".join(line.lstrip("# ") for line in made.text.splitlines() if line.startswith("#"))
    assert "joint 'hip': the law 'load_quadrants' became Coulomb and viscous friction" in comments
    assert any("the dependence on load" in text for text in made.warnings)
    assert not any("'ankle'" in text for text in made.warnings)


def test_an_option_belongs_to_its_format() -> None:
    request = ExportRequest(joint_frictions(make_identification()))
    assert export_friction("ros2_control", request).text.count("\njoint_trajectory_controller:\n") == 1
    with pytest.raises(ConfigError, match="the format 'c_header' has no option 'controller'; its options are"):
        export_friction("c_header", request, controller="arm_controller")
