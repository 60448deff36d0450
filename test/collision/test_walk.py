"""Collisions of the simulated biped with an exact model: the external torque is that of the momentum observer."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.collision.detector import CollisionDetector
from friction_estimator.collision.thresholds import ThresholdLearner
from friction_estimator.io.robot import load_robot
from friction_estimator.learning.external_torque import MobNetEstimator
from friction_estimator.learning.identity import RobotIdentity
from friction_estimator.learning.limbs import limb_modules
from friction_estimator.learning.network import Model
from friction_estimator.robot.model import RobotModel
from test.learning.golden import random_network

NORMAL, LENGTH = 3.4, 5.5
"""Time without a push, whole time [s]."""


def without_uncertainty(robot):
    """Networks that know no uncertainty torque, and a sigma of 0.8 N m."""
    model, networks = RobotModel(robot.config, robot.urdf_xml), []
    for module in limb_modules(model):
        network = random_network(0, module)
        tensors = {name: np.zeros_like(values) for name, values in network.tensors.items()}
        networks.append(
            dataclasses.replace(
                network, tensors=tensors | {name: np.ones_like(tensors[name]) for name in ("input_std", "output_std")}
            )
        )
    n = len(model.joint_names)
    limits = np.full((2, 3 * n + 12), 1e6) * [[-1.0], [1.0]]
    return Model(RobotIdentity.of(robot), 1e-3, tuple(networks), limits, np.zeros((n, 5)), {})


def test_kicks_of_swinging_feet_are_detected_within_hundredths_of_a_second_in_that_leg_and_nothing_before():
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
    model = RobotModel(robot.config, robot.urdf_xml)
    estimates, learner = [], ThresholdLearner(model)
    while simulator.time < simulator.duration:
        estimates += [one for reading in simulator.step().readings for one in estimator.add(reading)]
    for estimate in estimates[: round(1e3 * NORMAL)]:
        learner.step(estimate)
    detector = CollisionDetector(model, learner.thresholds())
    found = [one for estimate in estimates for one in detector.step(estimate)]
    for kick, leg in zip(kicks, "rl", strict=True):
        first = next(one for one in found if one.stamp_ns > 1e9 * kick.start)
        assert first.limb.startswith(f"{leg}_hip") and not first.in_contact
        assert 0.0 < 1e-9 * first.stamp_ns - kick.start < 0.03
    assert found[0].stamp_ns > 1e9 * kicks[0].start
