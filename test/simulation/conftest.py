"""Recorded runs for all tests of the simulation, each simulated once."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import Config
from friction_estimator.io.robot import Robot, load_robot
from friction_estimator.simulation import Scenario, SimulationSample, Simulator, make_noise, make_scenario
from friction_estimator.simulation.biped import Biped

Make = Callable[..., Simulator]
Record = Callable[[str, float], list[SimulationSample]]


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
def recorded(make_simulator: Make) -> Record:
    """Every sample of a scenario with clean sensors; makes it fail here when the robot falls."""

    @cache
    def record(scenario: str, duration: float) -> list[SimulationSample]:
        simulator = make_simulator(scenario, duration)
        return [simulator.step() for _ in range(round(1000 * duration))]

    return record


@pytest.fixture(scope="session")
def walk(recorded: Record) -> list[SimulationSample]:
    return recorded("walk", 6.0)


@pytest.fixture(scope="session")
def walk_contact(walk: list[SimulationSample]) -> np.ndarray:
    """(N, 2) which foot touches the ground."""
    return np.array([sample.truth.contact for sample in walk])


@pytest.fixture(scope="session")
def imu_of_pinocchio() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """What the IMU must read by Newton and Euler, from the forces of a clean sample: specific force and rate."""

    def read(biped: Biped, config: Config, sample: SimulationSample) -> tuple[np.ndarray, np.ndarray]:
        model, data, truth = biped.model, biped.model.createData(), sample.truth
        imu, rotation = model.getFrameId(config.imu.frame), truth.rotation_base_to_world
        q = np.concatenate([truth.position_base_in_world, pin.Quaternion(rotation).coeffs(), sample.joints.position])
        v = np.concatenate([rotation.T @ truth.linear_velocity, truth.angular_velocity, sample.joints.velocity])
        forces = np.zeros(model.nv)
        forces[6:] = sample.joints.effort - truth.friction
        for foot, wrench in zip(config.feet, truth.wrenches, strict=True):
            forces += pin.computeFrameJacobian(model, data, q, model.getFrameId(foot.frame), pin.LOCAL).T @ wrench
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        a = np.linalg.solve(M, forces - pin.nle(model, data, q, v))
        pin.forwardKinematics(model, data, q, v, a)
        pin.updateFramePlacements(model, data)
        acceleration = pin.getFrameClassicalAcceleration(model, data, imu, pin.LOCAL).linear
        specific_force = acceleration - data.oMf[imu].rotation.T @ model.gravity.linear
        return specific_force, pin.getFrameVelocity(model, data, imu, pin.LOCAL).angular

    return read
