"""Modules from the tree of the robot: inputs and sizes of Table 1."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.io.robot import load_robot
from friction_estimator.learning.network import Network, limb_modules
from friction_estimator.robot.model import RobotModel


def humanoid(*left_out):
    """The built-in humanoid, some of its joints locked."""
    robot = load_robot("humanoid")
    joints = [name for name in robot.config.robot.joints if name not in left_out]
    locked = dataclasses.replace(robot.config.robot, joints=tuple(joints), armature=())
    return RobotModel(dataclasses.replace(robot.config, robot=locked), robot.urdf_xml)


@pytest.fixture(scope="module")
def without_neck():
    return humanoid("neck_yaw", "head_pitch")


@pytest.mark.parametrize(
    ("limb", "outputs", "inputs", "hidden", "weights"),
    [
        ("r_hip_yaw to r_ankle_roll", 6, 30, 150, 83712),
        ("l_hip_yaw to l_ankle_roll", 6, 30, 150, 83712),
        ("r_collar to r_wrist_roll", 8, 34, 200, 144816),
        ("l_collar to l_wrist_roll", 8, 34, 200, 144816),
        ("waist_yaw to waist_roll", 3, 50, 200, 152406),
        ("virtual joints", 6, 74, 200, 168012),
    ],
)
def test_a_humanoid_has_the_modules_of_table_1(without_neck, limb, outputs, inputs, hidden, weights):
    module = next(one for one in limb_modules(without_neck) if one.name == limb)
    assert (module.outputs.size, module.inputs.size) == (outputs, inputs)
    shapes = {"w_input": (inputs, 3 * hidden), "w_hidden": (hidden, 3 * hidden), "w_output": (hidden, 2 * outputs)}
    biases = {"b_input": 3 * hidden, "b_hidden": 3 * hidden, "b_output": 2 * outputs}
    network = Network(module, {name: np.zeros(shape) for name, shape in (shapes | biases).items()})
    assert network.weight_count == weights


def test_modules_cover_every_row_once_and_take_no_joint_that_the_mass_matrix_does_not_couple():
    robot = humanoid()
    modules = limb_modules(robot)
    assert [module.name for module in modules][-2:] == ["r_collar to r_wrist_roll", "virtual joints"]
    assert len(modules) == 7  # the six of Table 1 and the neck
    assert sorted(np.concatenate([module.outputs for module in modules]).tolist()) == list(range(6 + 33))
    n = len(robot.joint_names)
    arm = next(module for module in modules if module.name.startswith("l_collar"))
    used = {robot.joint_names[column % n] for column in arm.inputs if column < 3 * n}
    assert used == {robot.joint_names[row - 6] for row in arm.outputs} | {"waist_yaw", "waist_pitch", "waist_roll"}
    assert not arm.has_torque


def test_torques_are_inputs_of_the_legs_only_and_the_base_has_a_module_only_if_it_moves():
    robot = load_robot("suralp")
    legs = limb_modules(RobotModel(robot.config, robot.urdf_xml))
    assert [(one.inputs.size, one.has_torque) for one in legs] == [(30, True), (30, True), (36, False)]
    held = dataclasses.replace(robot.config.robot, fixed_base=True)
    fixed = limb_modules(RobotModel(dataclasses.replace(robot.config, robot=held), robot.urdf_xml))
    assert [one.inputs.size for one in fixed] == [18, 18]
