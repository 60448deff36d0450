"""Claims about SROS 2: the policy file fits the real nodes, and a missing keystore is one clear error."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rclpy.node import Node, NodeNameNonExistentError

import friction_estimator as fe
from benchmarks.faults.live import TIME_OUT, NodeProcess
from friction_estimator.io.robot import share_directory

POLICY = ElementTree.parse(share_directory() / "config" / "security" / "policy.xml")
Names = dict[str, set[str]]
"""Full names of topics and services of one node, by ``publish``, ``subscribe`` and ``reply``."""

NOT_HERE = {
    "publish": {"/tf", "/collision", "/collision/wrench", "/collision/limb_wrench", "/collision/footsteps"},
    "subscribe": {"/tf", "/robot_description"},
}
"""Topics that the policy allows, and that nodes need only where tf2_msgs is installed, collisions are detected, or
there is no URDF file."""


def allowed(node: str) -> Names:
    """Names that the policy allows."""
    profile = POLICY.find(f".//profile[@node='{node}']")
    assert profile is not None and profile.get("ns") == "/"
    names: Names = {}
    for group in profile:
        for kind, rule in group.attrib.items():
            assert rule == "ALLOW"
            texts = [item.text or "" for item in group]
            assert len(set(texts)) == len(texts)
            names[kind] = {text if text[0] == "/" else f"/{text.replace('~', node, 1)}" for text in texts}
    return names


@pytest.fixture
def observer() -> Iterator[Node]:
    node = Node("observer")
    yield node
    node.destroy_node()


def used(observer: Node, node: str) -> Names:
    """Names that the node has now; empty while it is unknown."""
    kinds = {
        "publish": observer.get_publisher_names_and_types_by_node,
        "subscribe": observer.get_subscriber_names_and_types_by_node,
        "reply": observer.get_service_names_and_types_by_node,
        "request": observer.get_client_names_and_types_by_node,
    }
    try:
        return {kind: {name for name, _ in list_names(node, "/")} for kind, list_names in kinds.items()}
    except NodeNameNonExistentError:
        return {}


def differences(observer: Node, node: str) -> Names:
    """What only the node or only the policy has."""
    found, policy = used(observer, node), allowed(node)
    different = {kind: found.get(kind, set()) ^ policy.get(kind, set()) for kind in {*found, *policy}}
    rest = {kind: names - NOT_HERE.get(kind, set()) for kind, names in different.items()}
    return {kind: names for kind, names in rest.items() if names}


def test_the_policy_allows_every_node_what_it_has_and_no_more(observer: Node, workplace: Path) -> None:
    fe.simulate("suralp", duration=0.02).save(workplace / "walk")
    playing = "publish_clock:=true", "max_lead:=0.5", "wait_for_subscribers:=50"
    starts = {
        "friction_estimator": ("estimator_node", "compensation.enabled:=true", "compensation.velocity:=desired"),
        "base_state": ("estimator_node", "stages:=base_state"),
        "recorder": ("recorder_node", f"record_to:={workplace / 'recorded'}", "compensation.enabled:=true"),
        "simulation": ("simulation_node", *playing),
        "replay": ("replay_node", f"bag:={workplace / 'walk'}", *playing),
    }
    processes = [
        NodeProcess(workplace, *parameters, "use_sim_time:=true", executable=executable, name=name)
        for name, (executable, *parameters) in starts.items()
    ]
    try:
        ends = time.monotonic() + 2 * TIME_OUT
        while (found := {node: differences(observer, node) for node in starts}) != dict.fromkeys(starts, {}):
            assert time.monotonic() < ends, found
            time.sleep(0.2)
    finally:
        for process in processes:
            process.close()


@pytest.mark.parametrize("keystore", [None, "/no/keystore"])
def test_a_missing_keystore_is_one_line_that_names_it(keystore: str | None) -> None:
    environment = {**os.environ, "ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Enforce"}
    environment |= {"ROS_SECURITY_KEYSTORE": keystore} if keystore else {}
    command = [sys.executable, "-m", "friction_estimator.ros.executables", "estimator_node"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIME_OUT)
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert f"ROS_SECURITY_KEYSTORE is {keystore or 'not set'}" in line
    assert "Traceback" not in ended.stderr
