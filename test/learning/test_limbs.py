"""Modules from the tree of the robot: inputs and sizes of Table 1."""

import dataclasses

import numpy as np
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.io.robot import load_robot
from friction_estimator.learning.limbs import limb_modules
from friction_estimator.learning.network import Network
from friction_estimator.robot.model import RobotModel

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def chain(name, parent, count):
    return [(f"{name}{k}", f"{name}{k - 1}" if k else parent) for k in range(count)]


def tocabi_like():
    """Pelvis, legs of six joints, a waist of three, and on it arms of eight, as in Table 1; joints in odd order."""
    joints = chain("right_leg", "pelvis", 6) + chain("left_leg", "pelvis", 6) + chain("waist", "pelvis", 3)
    joints += chain("right_arm", "waist2", 8) + chain("left_arm", "waist2", 8)
    links = "".join(f'<link name="{name}_link">{BODY}</link>' for name in ("pelvis", *(child for child, _ in joints)))
    limit = '<limit lower="-1" upper="1" effort="100" velocity="10"/>'
    moved = "".join(
        f'<joint name="{child}" type="revolute"><parent link="{parent}_link"/><child link="{child}_link"/>'
        f'<axis xyz="0 1 0"/>{limit}</joint>'
        for child, parent in reversed(joints)
    )
    config = config_from_parameters(
        {
            "feet.names": ["l", "r"],
            "feet.l.frame": "left_leg5_link",
            "feet.r.frame": "right_leg5_link",
            "imu.frame": "pelvis_link",
        }
    )
    return RobotModel(config, f'<robot name="tocabi">{links}{moved}</robot>')


@pytest.mark.parametrize(
    ("limb", "outputs", "inputs", "hidden", "weights"),
    [
        ("right_leg0 to right_leg5", 6, 30, 150, 83712),
        ("left_leg0 to left_leg5", 6, 30, 150, 83712),
        ("right_arm0 to right_arm7", 8, 34, 200, 144816),
        ("left_arm0 to left_arm7", 8, 34, 200, 144816),
        ("waist0 to waist2", 3, 50, 200, 152406),
        ("virtual joints", 6, 74, 200, 168012),
    ],
)
def test_a_humanoid_has_the_modules_of_table_1(limb, outputs, inputs, hidden, weights):
    module = next(one for one in limb_modules(tocabi_like()) if one.name == limb)
    assert (module.outputs.size, module.inputs.size) == (outputs, inputs)
    shapes = {"w_input": (inputs, 3 * hidden), "w_hidden": (hidden, 3 * hidden), "w_output": (hidden, 2 * outputs)}
    biases = {"b_input": 3 * hidden, "b_hidden": 3 * hidden, "b_output": 2 * outputs}
    network = Network(module, {name: np.zeros(shape) for name, shape in (shapes | biases).items()})
    assert network.weight_count == weights


def test_modules_cover_every_row_once_and_take_no_joint_that_the_mass_matrix_does_not_couple():
    robot = tocabi_like()
    modules = limb_modules(robot)
    assert sorted(np.concatenate([module.outputs for module in modules]).tolist()) == list(range(6 + 31))
    n = len(robot.joint_names)
    arm = next(module for module in modules if module.name.startswith("left_arm"))
    used = {robot.joint_names[column % n].rstrip("0123456789") for column in arm.inputs if column < 3 * n}
    assert used == {"left_arm", "waist"}
    assert not arm.has_torque


def test_torques_are_inputs_of_the_legs_only_and_the_base_has_a_module_only_if_it_moves():
    robot = load_robot("suralp")
    legs = limb_modules(RobotModel(robot.config, robot.urdf_xml))
    assert [(one.inputs.size, one.has_torque) for one in legs] == [(30, True), (30, True), (36, False)]
    held = dataclasses.replace(robot.config.robot, fixed_base=True)
    fixed = limb_modules(RobotModel(dataclasses.replace(robot.config, robot=held), robot.urdf_xml))
    assert [one.inputs.size for one in fixed] == [18, 18]
