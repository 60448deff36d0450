"""Claims about the attitude stage (Hashlamon & Erbatur 2014, section 3) and its rotation helpers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from friction_estimator import linear_algebra
from friction_estimator.base.attitude import AttitudeEstimator, AttitudeTuning, predict_gravity
from friction_estimator.config import AttitudeConfig, SensorNoise

GRAVITY = np.array([0.0, 0.0, -9.81])
QUIET = SensorNoise(specific_force_std=1e-4, angular_velocity_std=1e-5)
DT = 1e-3
angles = st.floats(-1.4, 1.4)


def xyzw(q):
    return np.roll(q, -1)


@given(angles, angles, angles)
def test_rotation_helpers_agree_with_scipy(a, b, c):
    q = np.array(linear_algebra.quaternion_from_rpy(a, b, c))
    reference = Rotation.from_euler("ZYX", [c, b, a])
    np.testing.assert_allclose(linear_algebra.matrix_from_quaternion(q), reference.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(
        linear_algebra.matrix_from_quaternion(linear_algebra.quaternion_from_matrix(reference.as_matrix())),
        reference.as_matrix(),
        atol=1e-9,
    )
    assert linear_algebra.yaw_from_quaternion(q) == pytest.approx(c, abs=1e-9)
    vector = np.array([a, b, c])
    np.testing.assert_allclose(
        linear_algebra.matrix_from_quaternion(linear_algebra.quaternion_exp(vector)),
        Rotation.from_rotvec(vector).as_matrix(),
        atol=1e-12,
    )
    p = linear_algebra.quaternion_exp(vector[::-1])
    product = Rotation.from_quat(xyzw(p)) * Rotation.from_quat(xyzw(q))
    np.testing.assert_allclose(
        linear_algebra.matrix_from_quaternion(linear_algebra.quaternion_product(p, q)), product.as_matrix(), atol=1e-12
    )
    np.testing.assert_allclose(linear_algebra.cross(vector, vector[::-1]), np.cross(vector, vector[::-1]), atol=1e-15)
    np.testing.assert_allclose(linear_algebra.skew(vector) @ vector[::-1], np.cross(vector, vector[::-1]), atol=1e-15)


@settings(max_examples=20, deadline=None)
@given(angles, angles)
def test_tilt_at_rest_is_exact(roll, pitch):
    R = Rotation.from_euler("ZYX", [0.0, pitch, roll]).as_matrix()
    estimator = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    for _ in range(3):
        attitude = estimator.step(np.zeros(3), -R.T @ GRAVITY, DT)
    np.testing.assert_allclose(attitude.rotation_base_to_world, R, atol=1e-6)


def motion(seed: int, seconds: float, acceleration_std: float):
    """Swaying trunk: exact rotation, body rates, and specific force with Gauss-Markov linear acceleration."""
    rng = np.random.default_rng(seed)
    amplitude, frequency, shift = rng.uniform(0.02, 0.1, 3), rng.uniform(0.3, 1.0, 3), rng.uniform(0, 6, 3)
    acceleration, decay = np.zeros(3), np.exp(-DT / 0.2)

    def poses(t):
        return Rotation.from_euler("ZYX", amplitude * np.sin(2 * np.pi * frequency * t[:, None] + shift))

    time = DT * np.arange(round(seconds / DT))
    rates = (poses(time - 1e-5).inv() * poses(time + 1e-5)).as_rotvec() / 2e-5
    for here, rate in zip(poses(time).as_matrix(), rates, strict=True):
        acceleration = decay * acceleration + acceleration_std * np.sqrt(1 - decay**2) * rng.normal(size=3)
        yield here, rate, here.T @ (acceleration - GRAVITY)


def test_noiseless_sway_is_followed_to_the_integration_error():
    estimator = AttitudeEstimator(AttitudeConfig(acceleration_std=1e-3), QUIET, np.eye(3))
    start_yaw = None
    for R, rate, force in motion(0, 4.0, 0.0):
        if start_yaw is None:
            yaw = Rotation.from_matrix(R).as_euler("ZYX")[0]
            start_yaw = Rotation.from_euler("z", yaw).as_matrix()
        attitude = estimator.step(rate, force, DT)
    error = Rotation.from_matrix(start_yaw @ attitude.rotation_base_to_world @ R.T).magnitude()
    assert error < 2e-4


def test_tilt_stays_small_and_inside_its_sigma_under_walking_accelerations_and_noise():
    noise = SensorNoise(specific_force_std=0.02, angular_velocity_std=5e-3)
    rng = np.random.default_rng(5)
    squares, tilts = [], []
    for seed in range(3):
        estimator = AttitudeEstimator(AttitudeConfig(), noise, np.eye(3))
        for k, (R, rate, force) in enumerate(motion(seed, 4.0, 0.5)):
            attitude = estimator.step(
                rate + noise.angular_velocity_std * rng.normal(size=3),
                force + noise.specific_force_std * rng.normal(size=3),
                DT,
            )
            if k > 1000 and k % 200 == 0:
                up, true_up = attitude.rotation_base_to_world[2], R[2]
                tilt = (R @ np.cross(up, true_up))[:2]
                tilts.append(tilt)
                squares.append(tilt @ np.linalg.solve(attitude.covariance[:2, :2], tilt) / 2)
    assert np.sqrt(np.mean(np.square(tilts))) < 0.03
    assert 0.2 < np.mean(squares) < 3.0


@pytest.mark.parametrize("rate_error", [-15.0, 5.0, 10.0])
def test_a_gyroscope_that_is_wrong_for_a_moment_spoils_the_tilt_for_less_than_a_second(rate_error):
    """Until the accelerometer has contradicted it; the yaw may then be wrong by as much as the tilt was."""
    estimator = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    contradictions = 0
    for k, (R, rate, force) in enumerate(motion(1, 4.0, 0.1)):
        wrong = 2000 <= k < 2150
        attitude = estimator.step(rate + wrong * np.array([rate_error, 0.0, 0.0]), force, DT)
        contradictions += estimator.contradicted
        tilt = (R @ np.cross(attitude.rotation_base_to_world[2], R[2]))[:2]
        sigma = np.sqrt(np.diag(attitude.covariance))
        if k == 2149:
            assert np.linalg.norm(tilt) > 0.5
        if k == 1999 or k > 3000:
            assert (np.abs(tilt) < 3.0 * sigma[:2]).all() and np.linalg.norm(tilt) < 0.1
    assert 1 <= contradictions <= 2 and sigma[2] > 0.5


def test_an_accelerometer_that_is_wrong_for_a_moment_does_not_set_the_tilt():
    """50 m/s^2 forward for 0.1 s: the tilt is never found anew from these readings."""
    estimator = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    tilts = []
    for k, (R, rate, force) in enumerate(motion(1, 4.0, 0.1)):
        force = force + (2000 <= k < 2100) * np.array([50.0, 0.0, 0.0])
        attitude = estimator.step(rate, force, DT)
        tilts.append(np.linalg.norm(np.cross(attitude.rotation_base_to_world[2], R[2])))
    assert max(tilts) < 0.3 and max(tilts[3000:]) < 0.1


def test_gyro_bias_is_learned_about_the_horizontal_axes():
    bias = np.array([0.008, -0.006, 0.0])
    estimator = AttitudeEstimator(AttitudeConfig(acceleration_std=0.05), QUIET, np.eye(3))
    for _, rate, force in motion(3, 8.0, 0.02):
        estimator.step(rate + bias, force, DT)
    np.testing.assert_allclose(estimator.gyro_bias[:2], bias[:2], atol=3e-3)


def test_predicted_covariance_of_the_gravity_filter_is_that_of_the_jacobian_by_finite_differences():
    rng = np.random.default_rng(1)
    state, gyro = rng.normal(size=12) * ([5.0] * 3 + [1.0] * 6 + [0.1] * 3), rng.normal(size=3)
    root, tuning = rng.normal(size=(12, 12)), AttitudeTuning(np.eye(3), 0.0, 0.0, 0.0, 0.0, 0.0)

    def predicted(state, covariance):
        predict_gravity(state, covariance, tuning, gyro, DT)
        return state

    eps, zero = 1e-4, np.zeros((12, 12))
    F = np.array(
        [(predicted(state + eps * e, zero) - predicted(state - eps * e, zero)) / (2 * eps) for e in np.eye(12)]
    ).T
    F[3:6, 9:] = 0.0  # the filter leaves out what the bias turns of the small linear acceleration
    covariance = root @ root.T
    expected = F @ covariance @ F.T
    predicted(state.copy(), covariance)
    np.testing.assert_allclose(covariance, expected, atol=1e-4)


def test_error_of_the_quaternion_does_not_change_between_samples():
    """The transition of the error in world axes is the identity, which is why the prediction only adds covariance."""
    rng = np.random.default_rng(1)
    q, rate, error = linear_algebra.quaternion_exp(rng.normal(size=3)), rng.normal(size=3), rng.normal(size=3) * 1e-3
    turn = linear_algebra.quaternion_exp(DT * rate)
    wrong = linear_algebra.quaternion_product(linear_algebra.quaternion_exp(error), q)
    ends = (linear_algebra.quaternion_product(start, turn) for start in (q, wrong))
    np.testing.assert_allclose(linear_algebra.rotation_between(*ends), error, atol=1e-9)


def test_yaw_is_only_integrated_and_its_sigma_grows_with_the_unknown_bias():
    """The measured quaternion borrows its yaw, so it must neither move it nor make it better known."""
    config = AttitudeConfig(gyro_bias_std=0.01)
    estimator = AttitudeEstimator(config, QUIET, np.eye(3))
    for _, rate, force in motion(4, 2.0, 0.3):
        attitude = estimator.step(rate, force, DT)
    assert np.sqrt(attitude.covariance[2, 2]) == pytest.approx(0.01 * 2.0, rel=0.1)


@pytest.mark.parametrize("first_error", [0.5, 2.0])
def test_a_wrong_first_reading_is_forgotten_and_does_not_become_a_bias(first_error):
    estimator = AttitudeEstimator(AttitudeConfig(), SensorNoise(), np.eye(3))
    estimator.step(np.zeros(3), np.array([first_error, 0.0, 9.81]), DT)
    tilts = []
    for _ in range(20_000):
        attitude = estimator.step(np.zeros(3), np.array([0.0, 0.0, 9.81]), DT)
        tilts.append(np.arccos(min(1.0, attitude.rotation_base_to_world[2, 2])))
    assert tilts[6000] < np.radians(0.6) and max(tilts[10_000:]) < np.radians(0.5)
    assert np.abs(estimator.gyro_bias).max() < 2e-3


def test_after_a_silence_the_tilt_is_found_anew_and_the_yaw_is_kept_with_a_wider_sigma():
    estimator = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    upright = -GRAVITY
    for _ in range(500):
        estimator.step(np.array([0.0, 0.0, 0.4]), upright, DT)
    for _ in range(1000):
        silent = estimator.step(np.zeros(3), upright, DT, fresh=False)
    assert np.sqrt(silent.covariance[0, 0]) > 0.4
    tilted = Rotation.from_euler("ZYX", [0.0, 0.3, 0.0]).as_matrix()
    attitude = estimator.step(np.array([1.0, 0.0, 0.0]), tilted.T @ upright, DT)
    np.testing.assert_allclose(attitude.rotation_base_to_world[2], tilted[2], atol=0.02)
    yaw = Rotation.from_matrix(attitude.rotation_base_to_world).as_euler("ZYX")[0]
    assert yaw == pytest.approx(0.2, abs=0.01)
    assert np.sqrt(attitude.covariance[2, 2]) > 0.4
    np.testing.assert_array_equal(attitude.angular_acceleration, 0.0)


@pytest.mark.parametrize("angles_of_mounting", [[0.5, 0.3, -0.4], [np.pi / 2, 0.0, 0.0], [0.0, np.pi / 2, 0.0]])
def test_mounting_of_the_imu_is_taken_out(angles_of_mounting):
    """Eq. 6: the same motion seen by a turned IMU gives the same base attitude, yaw included."""
    mounting = Rotation.from_euler("ZYX", angles_of_mounting).as_matrix()
    straight = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    turned = AttitudeEstimator(AttitudeConfig(), QUIET, mounting)
    for _, rate, force in motion(2, 0.5, 0.1):
        a = straight.step(rate, force, DT)
        b = turned.step(mounting.T @ rate, mounting.T @ force, DT)
    np.testing.assert_allclose(b.rotation_base_to_world, a.rotation_base_to_world, atol=1e-12)
    np.testing.assert_allclose(b.specific_force, a.specific_force, atol=1e-9)


def test_a_silent_imu_keeps_the_attitude():
    estimator = AttitudeEstimator(AttitudeConfig(), QUIET, np.eye(3))
    before = estimator.step(np.zeros(3), -GRAVITY, DT)
    after = estimator.step(np.ones(3), np.array([5.0, 0, 0]), DT, fresh=False)
    np.testing.assert_array_equal(before.rotation_base_to_world, after.rotation_base_to_world)
