"""Claims about the filtered rotation of the base."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.motion.joint_motion import RotationFilter

DT, SECONDS, SETTLED = 1e-3, 4.0, 500


@pytest.mark.parametrize(("std", "share"), [(2e-3, 0.6), (0.07, 0.35)])
def test_a_swaying_trunk_turns_with_a_fraction_of_the_noise_and_sigma_tells_it(std, share):
    time = np.arange(0.0, SECONDS, DT)
    true = np.stack([a * np.sin(2.0 * np.pi * f * time) for a, f in ((0.3, 0.8), (0.5, 1.6), (0.1, 4.0))], axis=1)
    readings = true + np.random.default_rng(1).normal(0.0, std, true.shape)
    rotation = RotationFilter(KalmanConfig(), SensorNoise(angular_velocity_std=std))
    motions = [rotation.step(reading, DT if k else 0.0) for k, reading in enumerate(readings)]
    error = (np.array([motion.velocity for motion in motions]) - true)[SETTLED:]
    sigma = np.array([motion.velocity_std for motion in motions])[SETTLED:]
    assert np.sqrt((error**2).mean()) < share * std
    assert 0.5 < ((error / sigma) ** 2).mean() < 1.5


def test_a_new_noise_changes_how_much_a_reading_counts():
    rotation = RotationFilter(KalmanConfig(), SensorNoise(angular_velocity_std=0.1))
    rotation.retune(SensorNoise(angular_velocity_std=1e-3))
    rotation.step(np.zeros(3), 0.0)
    motion = [rotation.step(np.ones(3), DT) for _ in range(20)][-1]
    np.testing.assert_allclose(motion.velocity, 1.0, atol=0.01)
