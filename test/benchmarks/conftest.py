"""One walk with exact and one with noisy sensors, for all tests of this folder."""

import pytest

pytest.importorskip("mujoco", reason="the walk is simulated with MuJoCo")

from benchmarks.shared.estimates import joint_groups
from benchmarks.shared.walks import simulate
from friction_estimator.io.robot import load_robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.simulation import make_scenario


@pytest.fixture(scope="session")
def robot():
    return load_robot("suralp")


@pytest.fixture(scope="session")
def model(robot):
    return RobotModel(robot.config, robot.urdf_xml)


@pytest.fixture(scope="session")
def groups(model):
    return joint_groups(model.joint_names, model.limb)


@pytest.fixture(scope="session")
def clean_walk(robot, model):
    return simulate(robot, model, make_scenario("walk", 6.0), "clean", seed=0)


@pytest.fixture(scope="session")
def noisy_walk(robot, model):
    return simulate(robot, model, make_scenario("walk", 9.0), "paper_std", seed=0)
