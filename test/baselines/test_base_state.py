"""Claims about the published LIPM base state and its adaptive Kalman filter (Hashlamon & Erbatur 2014, section 4)."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.baselines.base_state import AdaptiveKalmanFilter, com_acceleration, zero_moment_point
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.linear_algebra import matrix_from_quaternion, quaternion_exp
from friction_estimator.types import Attitude
from test.biped import suralp_config
from test.feeding import feed
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
    pairs = zip(feed(estimator, swaying), swaying, strict=False)
    return np.array([estimate.base.linear_velocity - instant.velocity for estimate, instant in pairs][1500:])


def test_printed_filter_follows_and_the_standing_feet_make_it_ten_times_better(urdf_xml, swaying):
    printed, odometry = (
        np.sqrt((velocity_errors(urdf_xml, swaying, method)[:, :2] ** 2).mean()) for method in ("lipm", "odometry")
    )
    assert printed < 0.05
    assert odometry < 0.1 * printed


A = np.array([[1.0, 0.01], [0.0, 1.0]])
C = np.array([[1.0, 0.0]])
Q_TRUE, R_TRUE = np.array([0.0, 1e-4]), np.array([0.04])


def run(process_window, measurement_window, q0, r0, steps=12_000, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(2)
    kalman = AdaptiveKalmanFilter(
        np.zeros(2), np.eye(2), np.array(q0), np.array(r0), process_window, measurement_window
    )
    errors = []
    for _ in range(steps):
        x = A @ x + np.sqrt(Q_TRUE) * rng.normal(size=2)
        kalman.predict(A, np.zeros(2))
        kalman.correct(C, C @ x + np.sqrt(R_TRUE) * rng.normal(size=1))
        errors.append(x - kalman.state)
    return kalman, np.array(errors)


def test_one_step_is_the_textbook_filter_when_nothing_adapts():
    kalman = AdaptiveKalmanFilter(np.array([1.0, 2.0]), np.eye(2), np.array([0.1, 0.2]), np.array([0.5]), 1e12, 1e12)
    kalman.predict(A, np.array([0.0, 0.3]))
    kalman.correct(C, np.array([1.5]))
    x, P = A @ [1.0, 2.0] + [0.0, 0.3], A @ A.T + np.diag([0.1, 0.2])
    K = P @ C.T / (C @ P @ C.T + 0.5)
    np.testing.assert_allclose(kalman.state, x + (K * (1.5 - x[0])).ravel(), atol=1e-9)
    np.testing.assert_allclose(kalman.covariance, (np.eye(2) - K @ C) @ P, atol=1e-9)


def test_measurement_noise_is_found_from_a_wrong_start():
    kalman, _ = run(1e12, 1000, Q_TRUE, [1e-4])
    assert kalman.measurement_noise[0] == pytest.approx(R_TRUE[0], rel=0.25)


def test_adaptation_beats_a_filter_that_trusts_its_wrong_noise():
    _, adapted = run(5000, 1000, [1e-3, 1e-3], [1e-4])
    _, fixed = run(1e12, 1e12, [1e-3, 1e-3], [1e-4])
    assert np.std(adapted[5000:, 0]) < 0.8 * np.std(fixed[5000:, 0])


def test_covariances_stay_positive():
    kalman, _ = run(5000, 1000, [1.0, 1.0], [1e-4], steps=5000)
    assert (np.linalg.eigvalsh(kalman.covariance) > 0).all() and (kalman.process_noise >= 0).all()
