"""Random walks to train with: continued where they stopped; their files are refused for another robot."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.errors import LearningError
from friction_estimator.io.robot import load_robot
from friction_estimator.learning.network import RobotIdentity
from friction_estimator.learning.training_data import load_signals
from friction_estimator.robot.model import RobotModel

walks = pytest.importorskip("benchmarks.shared.random_walks", reason="MuJoCo is not installed")
SHORT = walks.RandomWalks(length=0.1)


def test_a_longer_run_keeps_its_walks_and_adds_the_missing_ones(tmp_path, suralp):
    assert [reason for _, reason in walks.write_walks(tmp_path, suralp, SHORT, 2)] == ["", ""]
    first, _ = sorted(tmp_path.glob("*.npz"))
    stamp = first.stat().st_mtime_ns
    ((added, _),) = walks.write_walks(tmp_path, suralp, SHORT, 3)
    assert first.stat().st_mtime_ns == stamp and added.name == "0000_0002.npz"
    read = load_signals(added, RobotIdentity.from_robot(suralp))
    np.testing.assert_array_equal(read.inputs, walks.record_walk(suralp, SHORT, 2).inputs)


def test_walks_differ_and_those_of_the_same_seed_and_number_do_not(suralp):
    one, same, other = (walks.record_walk(suralp, SHORT, number).inputs for number in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_damage_and_other_robots_are_named(tmp_path, suralp):
    identity, path = RobotIdentity.from_robot(suralp), tmp_path / "walk.npz"
    walks.record_walk(suralp, SHORT, 0).save(path, identity)
    heavier = dataclasses.replace(suralp, urdf_xml=suralp.urdf_xml.replace('mass value="', 'mass value="1', 1))
    with pytest.raises(LearningError, match="not for this robot .*urdf_sha256"):
        load_signals(path, RobotIdentity.from_robot(heavier))
    with pytest.raises(LearningError, match="not for this robot .*joint_names"):
        load_signals(path, dataclasses.replace(identity, joint_names=identity.joint_names[::-1]))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LearningError, match=r"walk\.npz is not a recording of signals, or it is damaged"):
        load_signals(path, identity)
    walks.record_walk(suralp, SHORT, 0).save(path, dataclasses.replace(identity, version=0))
    with pytest.raises(LearningError, match="has version 0, this program reads version 1"):
        load_signals(path, identity)


def test_a_walk_that_fails_is_left_out_with_the_reason(tmp_path, suralp, monkeypatch):
    monkeypatch.setattr(walks, "LARGEST_STEP", (2.0, 0.0, 0.0))  # no leg reaches so far
    ((path, reason),) = walks.write_walks(tmp_path, suralp, dataclasses.replace(SHORT, length=3.0), 1)
    assert "a foot is" in reason and not path.exists()


def test_random_torques_spare_the_standing_leg_only_and_go_on_and_off():
    limb = np.array([[True, True, False, False, False], [False, False, True, True, False]])
    exploration = walks.TorqueExploration(limb, np.array([50.0, 50.0, 50.0, 50.0, 5.0]), [0])
    torque = np.array([exploration.step(np.array([True, False])) for _ in range(5000)])
    assert np.all(torque[:, :2] == 0.0)
    assert 0.4 < np.mean(torque[:, 2:] != 0.0) < 0.6
    assert 30.0 < np.abs(torque[:, 2:4]).max() <= 50.0
    assert 3.0 < np.abs(torque[:, 4]).max() <= 5.0
    lengths = np.diff(np.flatnonzero(np.diff(torque[:, 2])))
    assert lengths.min() >= 99 and lengths.max() <= 501


def test_joints_outside_the_legs_move_in_every_other_walk_and_the_robot_stands_in_every_fourth():
    humanoid = load_robot("humanoid")
    gaits = [SHORT.scenario(humanoid, number).gait for number in range(4)]
    assert [(gait.random_posture is not None, gait.walks) for gait in gaits] == [
        (False, True), (True, True), (False, True), (True, False)
    ]  # fmt: skip
    (friction,) = SHORT.scenario(humanoid, 0).friction
    assert friction.others == walks.OTHER_FRICTION
    recording = walks.record_walk(humanoid, dataclasses.replace(SHORT, length=1.0), 3)
    distance = np.ptp(recording.inputs[:, :33], axis=0)
    assert distance[15:].max() > 5.0 * distance[:12].max()


def test_random_torques_of_a_humanoid_are_those_of_the_paper_for_legs_and_waist_and_smaller_ones_in_the_arms():
    humanoid = load_robot("humanoid")
    largest = walks.largest_torques(RobotModel(humanoid.config, humanoid.urdf_xml))
    np.testing.assert_allclose(largest[:15], 50.0)
    np.testing.assert_allclose(largest[15:23], [100 / 6] * 3 + [10, 10, 5, 5, 5])


def test_other_bipeds_walk_for_data_too():
    talos = load_robot("talos_legs")
    assert len(walks.record_walk(talos, SHORT, 0)) > 0
