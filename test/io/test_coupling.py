"""Couplings from YAML."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.errors import ConfigError
from friction_estimator.io.robot import load_coupling

TORSO = """\
couplings:
  torso:
    joints: [torso_pitch, torso_roll, torso_yaw]
    motors: [0B3M0, 0B3M1, 0B4M0]
    matrix:
      - [0.5, -0.5, 0.0]
      - [0.5, 0.5, 0.0]
      - [0.275, 0.275, 0.55]
  neck:
    joints: [neck_pitch, neck_roll]
    motors: [0B6M0, 0B6M1]
    matrix: [[0.5, -0.5], [0.5, 0.5]]
"""
LEGS = ("l_knee", "torso_yaw", "torso_roll", "torso_pitch", "r_knee")


@pytest.fixture
def write(tmp_path):
    def _write(text: str):
        path = tmp_path / "coupling.yaml"
        path.write_text(text)
        return path

    return _write


def test_a_file_gives_its_matrices(write):
    coupling = load_coupling(write(TORSO))
    assert coupling.joint_names == ("torso_pitch", "torso_roll", "torso_yaw", "neck_pitch", "neck_roll")
    assert [motors for _, motors in coupling.groups] == [("0B3M0", "0B3M1", "0B4M0"), ("0B6M0", "0B6M1")]
    np.testing.assert_array_equal(coupling.matrix[2], [0.275, 0.275, 0.55, 0.0, 0.0])


def test_other_joints_have_motors_of_their_own_and_other_groups_are_left_out(write):
    coupling = load_coupling(write(TORSO), LEGS)
    assert sorted(coupling.joint_names) == sorted(LEGS)
    assert coupling.motor_names == ("0B3M0", "0B3M1", "0B4M0", "l_knee", "r_knee")


def test_a_part_of_a_coupled_group_is_refused(write):
    with pytest.raises(ConfigError, match=r"coupling.yaml: 'neck_roll' shares motors with joints"):
        load_coupling(write(TORSO), ("neck_pitch",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("joints: [a]", "expected 'couplings:'"),
        ("couplings: {}", "expected 'couplings:'"),
        ("couplings: {torso: {joints: [a], motors: [m]}}", "'torso' must hold 'joints', 'matrix', 'motors'"),
        ("couplings: {torso: {joints: a, motors: [m], matrix: [[1]]}}", "'joints' .* must be a list of names"),
        ("couplings: {torso: {joints: [a], motors: [m], matrix: [[x]]}}", "coupling 'torso': 'matrix' must be a list"),
        ("couplings: {torso: {joints: [a], motors: [m], matrix: [[0]]}}", "coupling 'torso': .*are zero"),
    ],
)
def test_what_is_no_coupling_is_refused_with_the_file_named(write, text, message):
    with pytest.raises(ConfigError, match=f"coupling.yaml.*{message}"):
        load_coupling(write(text))
