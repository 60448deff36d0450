"""A bag of the standing biped whose joints sway a little: valid input for a replay, made without a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.shared.bag_messages import write_message
from friction_estimator.io.bags.reader import jazzy_typestore
from friction_estimator.io.bags.writer import BagWriter
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.messages.sensors import SensorMessages, TruthMessages
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import GroundTruth, ImuSample, JointSample, WrenchSample

Recorded = list[tuple[str, int, Any]]
MS = 1_000_000
START = 5_000_000_000


@pytest.fixture(scope="session")
def robot() -> Robot:
    return load_robot("suralp")


@pytest.fixture(scope="session")
def joint_names(robot: Robot) -> tuple[str, ...]:
    return RobotModel(robot.config, robot.urdf_xml).joint_names


def recorded_messages(robot: Robot, joint_names: tuple[str, ...], steps: int) -> Recorded:
    """(topic, time of recording [ns], message) at 1 kHz: sensors and ground truth, in the order of their stamps."""
    decode = jazzy_typestore().deserialize_cdr
    sensors, truths = SensorMessages(robot.config, joint_names), TruthMessages(robot.config, joint_names)
    rng = np.random.default_rng(3)
    phase, n = rng.uniform(0.0, 2.0 * np.pi, len(joint_names)), len(joint_names)
    recorded: Recorded = []
    for step in range(steps):
        stamp, angle = START + step * MS, 6.0 * step * 1e-3 + phase
        joints = JointSample(stamp, 0.1 * np.sin(angle), 0.6 * np.cos(angle), rng.normal(size=n))
        imu = ImuSample(stamp, 0.01 * rng.normal(size=3), np.array([0.0, 0.0, 9.81]))
        wrenches = (np.array([0.0, 0.0, 540.0 + rng.normal(), 0.0, 0.0, 0.0]) for _ in range(2))
        feet = (WrenchSample(stamp, foot, wrench) for foot, wrench in enumerate(wrenches))
        built = sensors.build([joints, imu, *feet])
        recorded += [(topic.name, stamp, decode(raw, topic.type)) for topic, raw in built]
        truth = GroundTruth(
            stamp, 0.5 * joints.velocity, np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3),
            np.zeros((2, 6)), np.array([True, True]), np.zeros(n), np.zeros(3),
        )  # fmt: skip
        recorded += [(topic.name, stamp, decode(raw, topic.type)) for topic, raw in truths.build(truth)]
    return recorded


@pytest.fixture(scope="session")
def messages(robot: Robot, joint_names: tuple[str, ...]) -> Recorded:
    """Messages of 0.12 s."""
    return recorded_messages(robot, joint_names, 120)


@pytest.fixture(scope="session")
def long_messages(robot: Robot, joint_names: tuple[str, ...]) -> Recorded:
    """Messages of 0.4 s, in which an observer settles."""
    return recorded_messages(robot, joint_names, 400)


@pytest.fixture
def write_bag(tmp_path: Path) -> Callable[..., Path]:
    """Write messages to a bag and return its path."""

    def write(name: str, messages: Iterable[tuple[str, int, Any]], storage: str = "mcap") -> Path:
        with BagWriter(tmp_path / name, storage) as writer:
            for topic, time_ns, message in messages:
                write_message(writer, topic, time_ns, message)
        return tmp_path / name

    return write
