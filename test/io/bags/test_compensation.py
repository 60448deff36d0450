"""Friction compensation in a replay: the torques of a live run, with the commands of the bag, ended by zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from friction_estimator.config import Config
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.bags.reader import BagReader, jazzy_typestore
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.messages import topics
from friction_estimator.messages.sensors import SensorMessages
from friction_estimator.types import JointSample
from test.io.bags.live import by_hand

Recorded = list[tuple[str, int, Any]]
GAIN = 0.05


@pytest.fixture
def config() -> Config:
    """With a small gain: the robot does not move as it is commanded, so that more torque would not be passive."""
    changes = {"enabled": True, "velocity": "desired", "gain": GAIN}
    return load_robot("suralp", {"observer": "momentum", **{f"compensation.{k}": v for k, v in changes.items()}}).config


@pytest.fixture
def law(joint_names: tuple[str, ...]) -> IdentifiedParameters:
    """0.5 N m and 1 N m s/rad in every joint, known for sure."""
    n = len(joint_names)
    return IdentifiedParameters(
        joint_names, ("coulomb_viscous",) * n, np.tile([0.5, 1.0], (n, 1)), np.tile(1e-8 * np.eye(2), (n, 1, 1)),
        np.full(n, 1e-6), np.full(n, 1e-4), np.full(n, 1e6),
    )  # fmt: skip


@pytest.fixture
def commanded(messages: Recorded, robot: Robot, joint_names: tuple[str, ...]) -> Recorded:
    """The same recording, with a command of 0.5 rad/s for every joint every 10 ms."""
    sensors, recorded, decode = SensorMessages(robot.config, joint_names), [], jazzy_typestore().deserialize_cdr
    for topic, time_ns, message in messages:
        if topic == "joint_states" and time_ns % 10_000_000 == 0:
            wanted = JointSample(time_ns, np.zeros(12), np.full(12, 0.5), np.zeros(12))
            _, raw = sensors.message(wanted)
            recorded.append(("joint_commands", time_ns, decode(raw, topics.JOINT_STATE)))
        recorded.append((topic, time_ns, message))
    return recorded


def torques(bag: Path) -> np.ndarray:
    reader = BagReader(bag)
    return np.array([reader.decode(item).effort for item in reader.messages({"/friction_compensation"})])


def test_a_replay_has_the_torques_of_a_live_run_and_ends_with_zero(
    config: Config,
    robot: Robot,
    commanded: Recorded,
    law: IdentifiedParameters,
    write_bag: Callable[..., Path],
    tmp_path: Path,
) -> None:
    result = replay_bag(write_bag("bag", commanded), tmp_path / "out", config, robot.urdf_xml, start=law)
    estimator = Estimator(config, robot.urdf_xml)
    estimator.restore(law)
    replayed, live = torques(tmp_path / "out"), [one.compensation for one in by_hand(estimator, commanded)]
    np.testing.assert_array_equal(replayed[:-1], live)
    # where the joint moves as commanded, whole or reduced by the test of its drive; elsewhere it fades out
    drives = np.isclose(live[60][:, None], [GAIN, 0.25 * GAIN], rtol=0.05).any(axis=1)
    assert drives.sum() > 3 and (live[60] >= 0.0).all() and (live[60] <= 1.05 * GAIN).all()
    assert (replayed[-1] == 0.0).all() and result.missing == ()


def test_a_bag_without_commands_is_replayed_without_torque_and_with_a_warning(
    config: Config, robot: Robot, messages: Recorded, write_bag: Callable[..., Path], tmp_path: Path
) -> None:
    result = replay_bag(write_bag("bag", messages), tmp_path / "out", config, robot.urdf_xml)
    assert (torques(tmp_path / "out") == 0.0).all()
    assert "'joint_commands' (parameter compensation.desired_topic): friction is not compensated" in result.missing[0]


def test_a_replay_that_does_not_compensate_has_no_such_topic(
    robot: Robot, messages: Recorded, write_bag: Callable[..., Path], tmp_path: Path
) -> None:
    replay_bag(write_bag("bag", messages[:200]), tmp_path / "out", robot.config, robot.urdf_xml)
    assert "/friction_compensation" not in BagReader(tmp_path / "out").topics
