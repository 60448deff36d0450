"""Walks that several tests of MOB-Net look at, each simulated once."""

import pytest

from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.learning.training_data import SignalRecording


@pytest.fixture(scope="session")
def suralp() -> Robot:
    return load_robot("suralp")


@pytest.fixture(scope="session")
def ideal_walk(suralp: Robot) -> SignalRecording:
    return recorded(suralp, "ideal")


def recorded(robot: Robot, uncertainty: str, length: float = 1.5) -> SignalRecording:
    walks = pytest.importorskip("benchmarks.shared.random_walks", reason="MuJoCo is not installed")
    return walks.record_walk(robot, walks.RandomWalks(uncertainty, length=length, exploration=False), 0)
