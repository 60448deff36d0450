"""Claims about the base state (Hashlamon & Erbatur 2014, section 4)."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.reference.base_state import com_acceleration, zero_moment_point
from friction_estimator.rotations import matrix_from_quaternion, quaternion_exp
from friction_estimator.types import Attitude
from test.biped import suralp_config
from test.sway import sway


def test_zero_moment_point_is_where_the_wrenches_have_no_horizontal_moment():
    """Eqs. 8 and 9 against the definition."""
    rng = np.random.default_rng(0)
    feet = np.array([[0.1, 0.1, 0.0], [-0.05, -0.1, 0.0]])
    wrenches = rng.normal(size=(2, 6)) * [0, 0, 50, 10, 10, 5] + [0, 0, 500, 0, 0, 0]
    point = zero_moment_point(feet, wrenches)
    moment = sum(w[3:] + np.cross(foot - point, w[:3]) for foot, w in zip(feet, wrenches, strict=True))
    np.testing.assert_allclose(moment[:2], 0.0, atol=1e-9)


def test_com_acceleration_is_that_of_a_rigidly_carried_point():
    """Eq. 16 against differentiating the point's position twice."""
    rate, spin, arm = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -1.5]), np.array([0.05, -0.02, -0.3])
    linear = np.array([0.4, -0.1, 0.2])

    def point(t):
        # rotation that has rate and spin at t = 0 to second order: exp(rate t + spin t^2 / 2)
        rotation = matrix_from_quaternion(quaternion_exp(rate * t + 0.5 * spin * t**2))
        return 0.5 * linear * t**2 + rotation @ arm

    step = 1e-4
    expected = (point(step) - 2 * point(0.0) + point(-step)) / step**2
    attitude = Attitude(np.eye(3), rate, spin, linear + [0.0, 0.0, 9.81], np.zeros((3, 3)), np.zeros((3, 3)))
    np.testing.assert_allclose(com_acceleration(attitude, arm), expected, atol=1e-6)


@pytest.fixture(scope="module")
def swaying(urdf_xml):
    return list(sway(urdf_xml, 3.0, amplitude=0.02))


def velocity_errors(urdf_xml, swaying, method):
    estimator = Estimator(suralp_config(base_state__method=method), urdf_xml)
    errors = []
    for instant in swaying:
        estimates = estimator.add_joints(instant.joints) + estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            estimates += estimator.add_wrench(wrench)
        errors += [estimate.base.linear_velocity - instant.velocity for estimate in estimates]
    return np.array(errors[1500:])


def test_printed_filter_follows_and_the_standing_feet_make_it_ten_times_better(urdf_xml, swaying):
    printed, odometry = (
        np.sqrt((velocity_errors(urdf_xml, swaying, method)[:, :2] ** 2).mean()) for method in ("lipm", "odometry")
    )
    assert printed < 0.05
    assert odometry < 0.1 * printed
