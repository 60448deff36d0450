"""Collisions of the simulated biped with an exact model: the external torque is that of the momentum observer."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.collision.detector import CollisionDetector, ThresholdLearner
from friction_estimator.io.robot import load_robot
from friction_estimator.learning.external_torque import MobNetEstimator, base_wrench, wrench_at_foot
from friction_estimator.learning.network import Model, RobotIdentity, limb_modules
from friction_estimator.learning.signals import GAIN
from friction_estimator.metrics import root_mean_square
from friction_estimator.robot.model import RobotModel
from test.learning.golden import random_network

NORMAL, LENGTH = 3.4, 5.5
"""Time without a push, whole time [s]."""


def without_uncertainty(robot):
    """Networks that know no uncertainty torque, and a sigma of 4 N m."""
    model, networks = RobotModel(robot.config, robot.urdf_xml), []
    for module in limb_modules(model):
        network = random_network(0, module)
        tensors = {name: np.zeros_like(values) for name, values in network.tensors.items()}
        tensors["input_std"][:], tensors["output_std"][:] = 1.0, 5.0
        networks.append(dataclasses.replace(network, tensors=tensors))
    n = len(model.joint_names)
    limits = np.full((2, 3 * n + 12), 1e6) * [[-1.0], [1.0]]
    return Model(RobotIdentity.from_robot(robot), 1e-3, tuple(networks), limits, np.zeros((n, 5)), {})


@dataclasses.dataclass
class Kicked:
    """A walk with two kicks: estimates, and true rotations of the base by stamp."""

    robot: RobotModel
    kicks: tuple
    estimates: list
    rotations: dict


@pytest.fixture(scope="module")
def kicked():
    simulation = pytest.importorskip("friction_estimator.simulation", reason="MuJoCo is not installed")
    robot = load_robot("suralp")
    kicks = (
        simulation.Push(3.7, 0.08, (-150.0, 0.0, 0.0), "right_foot", impact=True),
        simulation.Push(5.2, 0.08, (0.0, -150.0, 0.0), "left_ankle", impact=True),
    )
    scenario = dataclasses.replace(simulation.make_scenario("no_friction", LENGTH), pushes=kicks)
    simulator = simulation.Simulator(robot.config, robot.urdf_xml, scenario, simulation.make_noise("paper_std"), 0)
    config = dataclasses.replace(robot.config, stages="base_state")
    estimator = MobNetEstimator(config, robot.urdf_xml, without_uncertainty(robot))
    estimates, rotations = [], {}
    while simulator.time < simulator.duration:
        sample = simulator.step()
        rotations[sample.truth.stamp_ns] = sample.truth.rotation_base_to_world
        estimates += [one for reading in sample.readings for one in estimator.add(reading)]
    return Kicked(RobotModel(robot.config, robot.urdf_xml), kicks, estimates, rotations)


@pytest.fixture(scope="module")
def thresholds(kicked):
    learner = ThresholdLearner(kicked.robot)
    for estimate in kicked.estimates[: round(1e3 * NORMAL)]:
        learner.step(estimate)
    return learner.thresholds()


def test_kicks_of_swinging_feet_are_detected_within_hundredths_of_a_second_in_that_leg_and_nothing_before(
    kicked, thresholds
):
    detector = CollisionDetector(kicked.robot, thresholds)
    found = [one for estimate in kicked.estimates for one in detector.step(estimate)]
    for kick, leg in zip(kicked.kicks, "rl", strict=True):
        first = next(one for one in found if one.stamp_ns > 1e9 * kick.start)
        assert first.limb.startswith(f"{leg}_hip") and not first.in_contact
        assert 0.0 < 1e-9 * first.stamp_ns - kick.start < 0.03
    assert found[0].stamp_ns > 1e9 * kicked.kicks[0].start


def test_the_identified_wrench_is_the_force_of_the_kick_behind_the_low_pass_of_the_residual(kicked, thresholds):
    detector, keep = CollisionDetector(kicked.robot, thresholds), np.exp(-1e-3 * GAIN)
    force, errors, at_sole = np.zeros(3), [], []
    for estimate in kicked.estimates:
        detector.step(estimate)
        if detector.hit and np.linalg.norm(force) > 30.0:
            wrench, dynamics = base_wrench(estimate.whole_body), estimate.whole_body.dynamics
            errors.append(wrench[:3] - force)
            if detector.hit == (1,):  # its kick acts at the origin of the sole frame: a force without a moment there
                in_sole = dynamics.foot_rotation_to_base[1].T @ force
                at_sole.append(wrench_at_foot(wrench, dynamics, 1) - [*in_sole, 0.0, 0.0, 0.0])
        time, rotation, acting = 1e-9 * estimate.stamp_ns, kicked.rotations[estimate.stamp_ns], np.zeros(3)
        for kick in kicked.kicks:
            inside = kick.start <= time < kick.start + kick.duration
            acting = acting + rotation.T @ kick.force_at(time) * inside
        force = keep * force + (1.0 - keep) * acting
    assert len(errors) > 100 and len(at_sole) > 50
    assert root_mean_square(np.array(errors)).max() < 4.0  # of 134 N; without a push 2.5 N of sensor noise
    assert root_mean_square(np.array(at_sole)).max() < 9.0
