"""Claims about the bank of joint-motion filters: exact, honest, quick where it must be and quiet where it may be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.motion.joint_motion import JointMotion, JointMotionFilter
from friction_estimator.estimation.motion.stationary_filters import (
    TRANSITION,
    WHITE_ACCELERATION,
    WHITE_JERK,
    MotionModels,
    reading_noise,
    stationary_covariance,
    stationary_filters,
)

DT = 1e-3
NOISE = SensorNoise(position_std=1e-4, velocity_std=1e-2)
CONFIG = KalmanConfig()


def run(
    noise: SensorNoise, position: np.ndarray, velocity: np.ndarray, config: KalmanConfig = CONFIG
) -> list[JointMotion]:
    """Feed readings (t, n)."""
    motion = JointMotionFilter(config, noise, ())
    steps = np.r_[0.0, np.full(len(position) - 1, DT)]
    return [motion.step(q, dq, step) for q, dq, step in zip(position, velocity, steps, strict=True)]


def white_jerk(density: float, samples: int, joints: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities (t, n) whose jerk is white: the model of one filter of the bank."""
    cells = rng.normal(size=(samples, joints)) * np.sqrt(density / DT)  # constant over a period
    velocity, acceleration, position = (np.zeros((samples, joints)) for _ in range(3))
    for k in range(1, samples):
        jerk = cells[k]
        acceleration[k] = acceleration[k - 1] + jerk * DT
        velocity[k] = velocity[k - 1] + acceleration[k - 1] * DT + jerk * DT**2 / 2
        position[k] = position[k - 1] + velocity[k - 1] * DT + acceleration[k - 1] * DT**2 / 2 + jerk * DT**3 / 6
    return position, velocity


@pytest.mark.parametrize("position_std", [1e-7, 1e-4, 1e-3])
@pytest.mark.parametrize("velocity_std", [1e-4, 2e-3, 0.05, np.inf])
def test_stationary_filters_solve_the_riccati_equation_as_scipy_does(position_std, velocity_std):
    """For all densities and periods of 0.2 ms to 0.5 s. Where scipy leaves a larger residual, that is its error."""
    models = MotionModels(np.array(CONFIG.jerk_densities), np.array(CONFIG.acceleration_densities))
    for dt in np.geomspace(2e-4, 0.5, 9):
        found = stationary_filters(models, position_std, velocity_std, dt)
        R = np.diag(reading_noise(position_std, velocity_std, dt))
        noises = [density * dt**5 / position_std**2 * WHITE_JERK for density in CONFIG.jerk_densities]
        noises += [density * dt**3 / position_std**2 * WHITE_ACCELERATION for density in CONFIG.acceleration_densities]
        for model, Q in enumerate(noises):
            size = len(Q)
            A, C = TRANSITION[:size, :size], np.eye(2, size)

            def gain(P, C=C, R=R):
                return np.linalg.solve(C @ P @ C.T + R, C @ P).T

            def residual(P, A=A, C=C, Q=Q, gain=gain):
                return np.abs(A @ (P - gain(P) @ C @ P) @ A.T + Q - P).max() / np.abs(P).max()

            padded = np.zeros((2, 3, 3))
            padded[:, :size, :size] = A, Q
            own = stationary_covariance(*padded, np.diag(R).copy())[:size, :size]
            scipys = solve_discrete_are(A.T, C.T, Q, R)
            assert residual(own) < 1e-13
            scale, allowed = np.sqrt(np.outer(np.diag(scipys), np.diag(scipys))), 1e-9 + 1e3 * residual(scipys)
            assert np.abs((own - scipys) / scale).max() < allowed
            np.testing.assert_allclose(found.gain[model, :size], gain(scipys), atol=allowed)
            S = (C @ own @ C.T + R) * position_std**2
            np.testing.assert_allclose(found.information[model] @ S, np.eye(2), atol=1e-7)
            assert found.log_determinant[model] == pytest.approx(np.linalg.slogdet(S)[1], abs=1e-9)
            variance = (own - gain(own) @ C @ own)[1, 1] * position_std**2
            assert found.velocity_variance[model] == pytest.approx(variance, rel=1e-9, abs=1e-12 * S[1, 1])


def test_exact_velocities_are_taken_as_they_are():
    models = MotionModels(np.array(CONFIG.jerk_densities), np.array(CONFIG.acceleration_densities))
    filters = stationary_filters(models, 1e-7, 0.0, DT)
    np.testing.assert_allclose(filters.gain[:, 1, 1], 1.0, atol=1e-6)
    assert (filters.velocity_variance > 0.0).all() and (filters.velocity_variance < (1e-12) ** 2).all()


def test_constant_acceleration_is_followed_once_found():
    """Without noise; what is left are the models that keep the velocity, of which none is ever ruled out."""
    time, acceleration = np.arange(2000)[:, None] * DT, np.array([0.0, 2.0, -15.0])
    position, velocity = 0.3 + 0.5 * acceleration * time**2, acceleration * time
    last = run(NOISE, position, velocity)[-1]
    np.testing.assert_allclose(last.position, position[-1], atol=1e-8)
    np.testing.assert_allclose(last.velocity, velocity[-1], atol=1e-3 * NOISE.velocity_std)
    np.testing.assert_allclose(last.acceleration, acceleration, rtol=0.01, atol=1e-6)


@pytest.mark.parametrize("density", [1.0, 1e3, 1e5])
@pytest.mark.parametrize(
    ("position_std", "velocity_std", "cutoff", "least"),
    [(1e-7, 2e-3, 0.0, 0.7), (1e-4, 4.5e-2, 0.0, 0.7), (3e-4, 1.0, 60.0, 0.3)],
    ids=["paper_std", "paper", "differentiated"],
)
def test_velocity_errors_are_as_large_as_their_covariance(density, position_std, velocity_std, cutoff, least):
    """Or smaller by half, where only positions tell whether a joint has begun to move in another way."""
    rng = np.random.default_rng(2)
    position, velocity = white_jerk(density, 1500, 40, rng)
    noise = SensorNoise(position_std=position_std, velocity_std=velocity_std, velocity_cutoff=cutoff)
    readings = (
        position + rng.normal(size=position.shape) * position_std,
        velocity + rng.normal(size=velocity.shape) * velocity_std,
    )
    motion = run(noise, *readings)[500:]
    errors = np.array([step.velocity for step in motion]) - velocity[500:]
    sigmas = np.array([step.velocity_std for step in motion])
    assert least < np.mean((errors / sigmas) ** 2) < 1.4


def test_a_resting_joint_is_quiet_and_a_swinging_one_is_followed():
    """A second at rest, then 20 rad/s^2 at once: quieter than an agile filter before, no slower after."""
    rng, time = np.random.default_rng(0), np.arange(2000) * DT
    since = np.maximum(time - 1.0, 0.0)[:, None]
    position, velocity = np.tile(1.0 - np.cos(4.5 * since), 20), np.tile(4.5 * np.sin(4.5 * since), 20)
    noisy = position + rng.normal(size=position.shape) * 1e-4, velocity + rng.normal(size=velocity.shape) * 1e-2
    both = run(NOISE, *noisy)

    def error(motion: list[JointMotion], part: slice) -> float:
        return float(np.sqrt(np.mean((np.array([m.velocity for m in motion]) - velocity)[part] ** 2)))

    agile = dataclasses.replace(CONFIG, jerk_densities=(1e5,), acceleration_densities=())
    alone = run(NOISE, *noisy, agile)
    resting, swinging = slice(500, 1000), slice(1100, 2000)
    assert error(both, resting) < 0.5 * error(alone, resting)
    assert error(both, swinging) < 1.1 * error(alone, swinging)
    assert np.mean([m.velocity_std for m in both[500:1000]]) < 0.5 * np.mean([m.velocity_std for m in both[1100:]])


def test_a_joint_that_keeps_its_velocity_is_known_better_with_models_that_do():
    """Pieces of constant velocity, 0.2 s each, as of a joint that dry friction holds back."""
    rng = np.random.default_rng(4)
    velocity = np.repeat(rng.normal(size=(20, 30)) * 0.01, 200, axis=0)
    position = np.cumsum(velocity, axis=0) * DT
    noisy = position + rng.normal(size=position.shape) * 3e-4, velocity + rng.normal(size=velocity.shape) * 0.045
    noise = SensorNoise(position_std=3e-4, velocity_std=0.045)

    def error(config: KalmanConfig) -> float:
        return float(np.sqrt(np.mean((np.array([m.velocity for m in run(noise, *noisy, config)]) - velocity) ** 2)))

    assert error(CONFIG) < 0.95 * error(dataclasses.replace(CONFIG, acceleration_densities=()))


def test_another_period_needs_no_restart():
    acceleration, stamps = 3.0, np.cumsum(np.r_[0.0, np.full(800, DT), np.full(400, 2 * DT), np.full(800, DT)])
    motion = JointMotionFilter(CONFIG, NOISE, ())
    for before, now in zip(np.r_[stamps[0], stamps[:-1]], stamps, strict=True):
        found = motion.step(np.array([0.5 * acceleration * now**2]), np.array([acceleration * now]), now - before)
        if now > 0.5:
            assert found.velocity[0] == pytest.approx(acceleration * now, abs=1e-3 * NOISE.velocity_std)


def test_velocities_behind_a_low_pass_are_ignored():
    rng = np.random.default_rng(1)
    noise = SensorNoise(position_std=1e-4, velocity_std=1e-2, velocity_cutoff=60.0)
    position = np.cumsum(rng.normal(size=(300, 2)), axis=0) * 1e-4
    one, other = run(noise, position, np.zeros((300, 2))), run(noise, position, rng.normal(size=(300, 2)))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.velocity, b.velocity, atol=1e-5)
        np.testing.assert_allclose(a.velocity_std, b.velocity_std, rtol=1e-6)


def test_retuning_changes_the_gains_and_keeps_the_motion():
    motion = JointMotionFilter(CONFIG, NOISE, ())
    for k in range(300):
        motion.step(np.array([k * DT]), np.ones(1), DT if k else 0.0)
    motion.retune(SensorNoise(position_std=1e-2, velocity_std=1.0), np.zeros(1))
    found = motion.step(np.array([0.3 + 0.01]), np.array([2.0]), DT)
    assert found.velocity[0] == pytest.approx(1.0, abs=0.02)
    assert found.velocity_std[0] > 1e-3


def test_an_encoder_that_repeats_its_reading_bounds_the_velocity():
    """Rounded positions of a joint that slides to rest at 0.5 s: what is left of the velocity is one step in 0.1 s."""
    step, time = 1e-5, 1e-3 * np.arange(1000.0)
    true = np.where(time < 0.5, 0.05 - 0.1 * time, 0.0)
    position = np.round(1e-3 * np.cumsum(true) / step) * step
    noise = SensorNoise(position_std=step / 12**0.5, velocity_cutoff=1000.0)
    bounded, free = (JointMotionFilter(KalmanConfig(), noise, ()) for _ in range(2))
    bounded.retune(noise, np.array([step]))
    motions = [[one.step(np.array([q]), np.zeros(1), 1e-3) for one in (bounded, free)] for q in position]
    velocity, std = (
        np.array([[getattr(m, name)[0] for m in row] for row in motions]) for name in ("velocity", "velocity_std")
    )
    np.testing.assert_array_equal(velocity[100:350, 0], velocity[100:350, 1])
    assert (std[650:, 0] <= 1.001 * step / 0.1).all() and (std[650:, 1] > 2.0 * step / 0.1).all()
    assert (np.abs(velocity - true[:, None])[50:] < 4.0 * std[50:]).mean() > 0.99
