"""Claims about inertias of real bodies: the nearest ones to identified base parameters."""

import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.physical_bounds import nearest_physical
from friction_estimator.identification.rigid_body import RigidBody, RigidBodyOptions

from .arm import DRIVE_INERTIA, JOINTS, URDF


def base_of_arm():
    model = FixedBaseModel(URDF, JOINTS)
    body = RigidBody(model, RigidBodyOptions())
    values = body.base.grouping @ np.append(model.urdf_parameters, DRIVE_INERTIA)
    return body.base.grouping, values, model, body.names


def exists(standard):
    links = standard[:20].reshape(2, 10)
    pseudo = [pin.PseudoInertia.FromDynamicParameters(link).toMatrix() for link in links]
    return all(np.linalg.eigvalsh(matrix)[0] > 0.0 for matrix in pseudo) and (standard[20:] > 0.0).all()


def test_bodies_that_exist_are_found():
    grouping, values, model, _ = base_of_arm()
    found = nearest_physical(grouping, values, 1e-4 * np.eye(values.size), model.urdf_parameters)
    assert exists(found.standard) and found.plausible
    np.testing.assert_allclose(found.base, values, atol=0.02)
    np.testing.assert_allclose(grouping @ found.standard, found.base)


@pytest.mark.parametrize("joint", JOINTS)
def test_impossible_parameters_get_the_nearest_possible_ones(joint):
    grouping, values, model, names = base_of_arm()
    inertia = next(k for k, name in enumerate(names) if name.startswith(f"Iyy {joint}"))
    values[inertia] *= -1.0
    found = nearest_physical(grouping, values, 1e-4 * np.eye(values.size), model.urdf_parameters)
    assert exists(found.standard) and not found.plausible
    assert found.base[inertia] > -1e-3


def test_a_urdf_without_inertia_is_no_obstacle():
    grouping, values, model, _ = base_of_arm()
    found = nearest_physical(grouping, values, 1e-4 * np.eye(values.size), np.zeros_like(model.urdf_parameters))
    assert exists(found.standard) and found.plausible


def chain_of_rods(links):
    """URDF of rods that hardly have any width: their inertias are at the edge of what exists."""
    link = (
        '<link name="l{0}"><inertial><origin xyz="0.01 0.02 -0.1"/><mass value="{1}"/>'
        '<inertia ixx="{2}" ixy="0" ixz="0" iyy="{2}" iyz="0" izz="{3}"/></inertial></link>'
    )
    joint = (
        '<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/>'
        '<origin xyz="0 0 0.2" rpy="{2} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" effort="99" velocity="9"/></joint>'
    )
    rods = [link.format(k, 5.0 / k, 0.02 / k, 0.0004 / k) + joint.format(k, k - 1, 1.57 * (-1) ** k) for k in links]
    return '<robot name="chain"><link name="l0"/>' + "".join(rods) + "</robot>"


@pytest.mark.parametrize("sigma", [1e-3, 1e-4, 1e-5])
def test_estimates_of_bodies_at_the_edge_of_what_exists_are_plausible(sigma):
    """A search that ended near the minimum called real arms impossible."""
    links = range(1, 7)
    model = FixedBaseModel(chain_of_rods(links), [f"j{k}" for k in links])
    grouping = RigidBody(model, RigidBodyOptions()).base.grouping
    truth = grouping @ np.append(model.urdf_parameters, np.full(6, 0.1))
    rng = np.random.default_rng(0)
    W = rng.normal(size=(2 * truth.size, truth.size)) * rng.uniform(0.1, 10.0, truth.size)
    covariance = sigma**2 * np.linalg.inv(W.T @ W)
    values = rng.multivariate_normal(truth, covariance)
    found = nearest_physical(grouping, values, covariance, model.urdf_parameters)
    error = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(covariance), truth - values))
    assert found.plausible and found.distance < error
    assert not found.impossible.any()


def test_drives_alone_need_no_links():
    found = nearest_physical(np.eye(2), np.array([0.3, -0.1]), 1e-4 * np.eye(2), np.zeros(0))
    assert (found.standard > 0.0).all() and not found.plausible
    np.testing.assert_array_equal(found.impossible, [False, True])


def test_one_impossible_drive_among_many_parameters_is_named():
    values = np.append(np.full(39, 0.3), -0.05)
    found = nearest_physical(np.eye(40), values, 1e-4 * np.eye(40), np.zeros(0))
    assert found.plausible
    np.testing.assert_array_equal(np.flatnonzero(found.impossible), [39])
