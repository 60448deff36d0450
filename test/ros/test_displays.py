"""Claims about the files for RViz and PlotJuggler, and the URDF with effort limits for display."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from friction_estimator.errors import RobotModelError
from friction_estimator.messages import topics
from friction_estimator.ros.diagnostics import RecentValues
from friction_estimator.ros.parameters import friction_urdf

ROOT = Path(__file__).parents[2]


def _limits(urdf_xml: str) -> dict[str, float]:
    joints = ElementTree.fromstring(urdf_xml).iterfind("joint")
    return {joint.get("name"): float(limit.get("effort")) for joint in joints for limit in joint.iterfind("limit")}


def test_the_friction_urdf_differs_only_in_its_effort_limits(robot):
    scaled = friction_urdf(robot.urdf_xml, 0.01)
    before, after = _limits(robot.urdf_xml), _limits(scaled)
    assert after == pytest.approx({name: 0.01 * limit for name, limit in before.items()}) and len(after) == 12
    again = friction_urdf(scaled, 100.0)
    assert _limits(again) == pytest.approx(before)
    assert ElementTree.fromstring(again).find("link") is not None


def test_a_broken_urdf_cannot_be_scaled():
    with pytest.raises(RobotModelError, match="not valid XML"):
        friction_urdf("<robot>", 0.01)


def test_rviz_shows_topics_that_the_nodes_publish():
    view = yaml.safe_load((ROOT / "config" / "rviz" / "friction.rviz").read_text())
    displays = {item["Class"].split("/")[1]: item for item in view["Visualization Manager"]["Displays"]}
    assert displays["Effort"]["Topic"]["Value"] == topics.FRICTION.name
    assert displays["Effort"]["Robot Description"] == "robot_description_friction"
    assert displays["MarkerArray"]["Topic"]["Value"] == topics.FRICTION_MARKERS.name
    assert displays["Odometry"]["Topic"]["Value"] == topics.BASE_STATE.name
    assert displays["Wrench"]["Topic"]["Value"] == topics.COLLISION_WRENCH.name
    assert displays["PoseArray"]["Topic"]["Value"] == topics.FOOTSTEPS.name
    assert displays["RobotModel"]["Description Topic"]["Durability Policy"] == "Transient Local"


def test_the_plotjuggler_layout_draws_topics_and_joints_that_exist(robot):
    root = ElementTree.parse(ROOT / "config" / "plotjuggler" / "friction.xml").getroot()
    known = {topic.name for topic in (*topics.OUTPUTS, *topics.truth_topics(robot.config))}
    joints = set(_limits(robot.urdf_xml))
    drawn = [curve.get("name") for curve in root.iter("curve")]
    for name in drawn:
        topic, joint = re.fullmatch(r"/(.+)/([^/]+)/effort", name).groups()
        assert topic in known and joint in joints, name
    assert {name.split("/")[-2] for name in drawn} == joints
    assert set(root.find(".//selected_topics").get("value").split(";")) <= {f"/{name}" for name in known}


def test_statistics_are_of_the_values_since_the_call_before():
    recent = RecentValues(size=100)
    assert all(np.isnan(recent.take()))
    for value in range(150):
        recent.add(float(value))
    taken = recent.take()
    assert (taken.min, taken.mean, taken.p50, taken.max) == (50.0, 99.5, 99.5, 149.0) and 147.0 < taken.p99 < 149.0
    recent.add(7.0)
    assert recent.take() == (7.0, 7.0, 7.0, 7.0, 7.0)
