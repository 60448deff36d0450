"""One recorded walk for all tests of the simulation."""

from collections.abc import Callable

import numpy as np
import pytest

from friction_estimator.core.config import Config
from friction_estimator.files.robot import Robot, load_robot
from friction_estimator.simulation import Scenario, SimulationSample, Simulator, make_noise, make_scenario

Make = Callable[..., Simulator]


@pytest.fixture(scope="session")
def robot() -> Robot:
    return load_robot("suralp")


@pytest.fixture(scope="session")
def config(robot: Robot) -> Config:
    return robot.config


@pytest.fixture(scope="session")
def make_simulator(robot: Robot) -> Make:
    def make(
        scenario: str | Scenario = "walk", duration: float = 6.0, noise: str = "clean", seed: int = 0
    ) -> Simulator:
        chosen = make_scenario(scenario, duration) if isinstance(scenario, str) else scenario
        return Simulator(robot.config, robot.urdf_xml, chosen, make_noise(noise), seed)

    return make


@pytest.fixture(scope="session")
def walk(make_simulator: Make) -> list[SimulationSample]:
    """Every sample of a clean walk of 6 s; makes it fail here when the robot falls."""
    simulator = make_simulator()
    return [simulator.step() for _ in range(6000)]


@pytest.fixture(scope="session")
def walk_contact(walk: list[SimulationSample]) -> np.ndarray:
    """(N, 2) which foot touches the ground."""
    return np.array([sample.truth.contact for sample in walk])
