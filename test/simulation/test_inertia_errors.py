"""Wrong inertial parameters: of the promised size, repeatable, and still those of a possible robot."""

import numpy as np
import pinocchio as pin
import pytest

from benchmarks.shared.wrong_bodies import perturbed_urdf
from friction_estimator.errors import SimulationError

SEEDS = range(40)


def inertias(urdf_xml):
    return pin.buildModelFromXML(urdf_xml, pin.JointModelFreeFlyer()).inertias[1:]


def chain(links):
    """Links in a row; mass and centre of mass of a link are those of one pinocchio body, nothing is lumped."""
    parts = [
        f'<link name="link{k}"><inertial><origin xyz="0.1 0 {0.02 * k}" rpy="0.3 0 0"/><mass value="{1 + k}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
        for k in range(links)
    ]
    parts += [
        f'<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/><child link="link{k}"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in range(1, links)
    ]
    return f'<robot name="chain">{"".join(parts)}</robot>'


def test_errors_have_the_promised_size_and_inertia_follows_the_mass():
    true = inertias(chain(6))
    ratios, shifts = [], []
    for seed in SEEDS:
        for wrong, right in zip(inertias(perturbed_urdf(chain(6), 0.1, 0.005, seed)), true, strict=True):
            ratios.append(wrong.mass / right.mass)
            shifts.append(wrong.lever - right.lever)
            np.testing.assert_allclose(wrong.inertia, ratios[-1] * right.inertia, rtol=1e-9)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)
    assert np.std(ratios) == pytest.approx(0.1, rel=0.1)
    assert np.std(shifts) == pytest.approx(0.005, rel=0.1)
    assert np.max(np.abs(np.array(ratios) - 1.0)) <= 0.3


def test_the_same_seed_makes_the_same_robot_and_another_seed_another(robot):
    assert perturbed_urdf(robot.urdf_xml, seed=3) == perturbed_urdf(robot.urdf_xml, seed=3)
    assert perturbed_urdf(robot.urdf_xml, seed=3) != perturbed_urdf(robot.urdf_xml, seed=4)


def test_no_error_leaves_the_robot_as_it_is(robot):
    for same, right in zip(inertias(perturbed_urdf(robot.urdf_xml, 0.0, 0.0)), inertias(robot.urdf_xml), strict=True):
        np.testing.assert_array_equal(same.toDynamicParameters(), right.toDynamicParameters())


def test_impossible_errors_are_refused(robot):
    with pytest.raises(SimulationError, match="between 0 and 0.3"):
        perturbed_urdf(robot.urdf_xml, mass_std=0.5)
    with pytest.raises(SimulationError, match="not valid XML"):
        perturbed_urdf("<robot>")
