"""Noise levels: exact when clean, with the promised statistics otherwise."""

import math

import numpy as np
import pytest

from friction_estimator.core.exceptions import SimulationError
from friction_estimator.simulation import make_noise, noise_names
from friction_estimator.simulation.sensors import Reading, SensorModel

N, K, PERIOD, COUNT = 4, 2, 1e-3, 4000


def reading(position=0.3, velocity=0.0):
    return Reading(
        np.full(N, position), np.full(N, velocity), np.full(N, 50.0), np.array([0.0, 0.0, 9.81]), np.zeros(3),
        np.tile([0.0, 0.0, 500.0, 0.0, 0.0, 0.0], (K, 1)),
    )  # fmt: skip


def measure(level, seed=0, count=COUNT):
    model = SensorModel(make_noise(level), N, K, PERIOD, seed)
    return [model.measure(reading()) for _ in range(count)]


def test_clean_sensors_tell_the_truth():
    measured = measure("clean", count=1)[0]
    for name in Reading.__slots__:
        np.testing.assert_array_equal(getattr(measured, name), getattr(reading(), name))


@pytest.mark.parametrize(
    ("level", "velocity", "gyro"), [("paper", math.sqrt(2e-3), math.sqrt(5e-3)), ("paper_std", 2e-3, 5e-3)]
)
def test_paper_levels_have_the_standard_deviations_of_lim_table_3(level, velocity, gyro):
    samples = measure(level)
    assert np.std([s.velocity for s in samples]) == pytest.approx(velocity, rel=0.03)
    assert np.std([s.angular_velocity for s in samples]) == pytest.approx(gyro, rel=0.03)
    assert np.std([s.wrenches[:, :3] for s in samples], axis=0) == pytest.approx(1.0, rel=0.06)
    assert np.std([s.wrenches[:, 3:] for s in samples], axis=0) == pytest.approx(0.1, rel=0.06)


def test_realistic_errors_are_constant_within_a_run_and_differ_between_runs():
    bias = [np.mean([s.wrenches[0, :3] for s in measure("realistic", seed, 500)], axis=0) for seed in range(60)]
    sides = np.array(bias)[:, :2]
    assert np.std(sides) == pytest.approx(2.0, rel=0.25)
    gain = [np.mean([s.effort for s in measure("realistic", seed, 100)], axis=0) / 50.0 for seed in range(60)]
    assert np.std(gain) == pytest.approx(0.005, rel=0.25)


def test_realistic_positions_sit_on_the_encoder_grid_and_velocity_lags_behind_them():
    level = make_noise("realistic")
    model = SensorModel(level, N, K, PERIOD, 0)
    speed = 0.5
    measured = [model.measure(reading(speed * k * PERIOD, speed)) for k in range(200)]
    steps = measured[137].position / level.encoder_step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    lag = 1.0 / (2.0 * math.pi * level.velocity_cutoff)
    assert measured[round(lag / PERIOD)].velocity == pytest.approx(speed * (1.0 - math.exp(-1.0)), rel=0.1)
    assert measured[-1].velocity == pytest.approx(speed, rel=0.02)


def test_unknown_level_is_refused_and_the_levels_are_named():
    with pytest.raises(SimulationError, match="'clean', 'paper', 'paper_std', 'realistic'"):
        make_noise("loud")
    assert noise_names() == ("clean", "paper", "paper_std", "realistic")
