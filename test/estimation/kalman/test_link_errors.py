"""The torque of wrong inertial parameters, against inverse dynamics with perturbed ones."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.config import config_from_parameters
from friction_estimator.robot.model import RobotModel
from test.biped import suralp_config
from test.estimation.test_other_robots import joint, link

STEP = 1e-4
ARM = (
    '<robot name="arm"><link name="world"/>'
    + link("upper", 3.0)
    + link("fore", 2.0, "0.03 0.01 -0.2")
    + joint("shoulder", "world", "upper", "0 0 1", "0 1 0")
    + joint("elbow", "upper", "fore", "0 0 -0.4", "1 0 0")
    + "</robot>"
)


def perturbed(inertia: pin.Inertia, kind: int, size: float) -> pin.Inertia:
    """Mass and rotational inertia scaled by 1 + size (kind 0), or the centre of mass shifted along an axis."""
    if kind == 0:
        return pin.Inertia(inertia.mass * (1.0 + size), inertia.lever, inertia.inertia * (1.0 + size))
    return pin.Inertia(inertia.mass, inertia.lever + size * np.eye(3)[kind - 1], inertia.inertia)


@pytest.mark.parametrize("floating", [True, False], ids=["biped", "arm"])
def test_link_error_columns_are_the_derivatives_of_inverse_dynamics(floating, urdf_xml):
    rng, xml = np.random.default_rng(0), urdf_xml if floating else ARM
    config = suralp_config() if floating else config_from_parameters({"robot.fixed_base": True})
    robot, base = RobotModel(config, xml), 6 if floating else 0
    model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(xml)
    n = model.nv - base
    position, velocity, joint_acceleration = rng.normal(size=(3, n))
    rate, rate_dot = rng.normal(size=(2, 3)) * [[1.0], [5.0]]
    specific_force = np.array([0.0, 0.0, 9.81]) + rng.normal(size=3)
    dynamics = robot.dynamics(position, velocity, rate, specific_force)
    found = robot.link_error_columns(dynamics, np.concatenate((rate_dot, joint_acceleration)))

    q, acceleration = pin.neutral(model), np.zeros(model.nv)
    q[model.nq - n :] = position
    acceleration[base:] = joint_acceleration
    if floating:
        acceleration[:6] = np.r_[np.cross(robot.imu_position_in_base, rate_dot), rate_dot]
        model.gravity.linear = -specific_force
    first = model.njoints - n
    for link_index in range(n):
        inertia = model.inertias[first + link_index].copy()
        for kind in range(4):
            torques = []
            for size in (STEP, -STEP):
                model.inertias[first + link_index] = perturbed(inertia, kind, size)
                torques.append(pin.rnea(model, model.createData(), q, dynamics.velocity, acceleration)[base:])
            model.inertias[first + link_index] = inertia
            derivative = (torques[0] - torques[1]) / (2.0 * STEP)
            np.testing.assert_allclose(found[:, link_index, kind], derivative, atol=1e-6)
