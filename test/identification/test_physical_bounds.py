import numpy as np
import pinocchio as pin
import pytest

from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.identification.rigid_body.physical_bounds import nearest_physical
from friction_estimator.identification.rigid_body.rigid_body_columns import RigidBody, RigidBodyOptions

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
