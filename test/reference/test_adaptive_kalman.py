"""Claims about the adaptive Kalman filter (Hashlamon & Erbatur 2014, eqs. 17-31)."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.reference.adaptive_kalman import AdaptiveKalmanFilter

A = np.array([[1.0, 0.01], [0.0, 1.0]])
C = np.array([[1.0, 0.0]])
Q_TRUE, R_TRUE = np.array([0.0, 1e-4]), np.array([0.04])


def run(process_window, measurement_window, q0, r0, steps=20_000, seed=0):
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


def test_adaptation_beats_a_filter_that_believes_its_wrong_noise():
    _, adapted = run(5000, 1000, [1e-3, 1e-3], [1e-4])
    _, fixed = run(1e12, 1e12, [1e-3, 1e-3], [1e-4])
    assert np.std(adapted[5000:, 0]) < 0.8 * np.std(fixed[5000:, 0])


def test_covariances_stay_positive():
    kalman, _ = run(5000, 1000, [1.0, 1.0], [1e-4], steps=5000)
    assert (np.linalg.eigvalsh(kalman.covariance) > 0).all() and (kalman.process_noise >= 0).all()
