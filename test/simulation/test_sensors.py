"""Noise levels: exact when clean, with the promised statistics otherwise."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.simulation import make_noise, noise_names
from friction_estimator.simulation.sensors import SensorModel

N, K, PERIOD, COUNT = 4, 2, 1e-3, 4000


def exact(position=0.3, velocity=0.0):
    joints = [position] * N + [velocity] * N + [50.0] * N
    return np.array(joints + [0.0, 0.0, 9.81] + [0.0] * 3 + [0.0, 0.0, 500.0, 0.0, 0.0, 0.0] * K)


def measure(level, seed=0, count=COUNT):
    """Signals (count, 3 N + 6 + 6 K) by name."""
    model = SensorModel(make_noise(level), N, K, PERIOD, seed)
    return split(np.array([model.measure(exact()) for _ in range(count)]))


def split(signals):
    names = ("position", "velocity", "effort", "specific_force", "angular_velocity", "wrenches")
    parts = dict(zip(names, np.split(signals, np.cumsum([N, N, N, 3, 3]), axis=1), strict=True))
    parts["wrenches"] = parts["wrenches"].reshape(-1, K, 6)
    return SimpleNamespace(**parts)


def test_clean_sensors_give_the_truth():
    np.testing.assert_array_equal(SensorModel(make_noise("clean"), N, K, PERIOD, 0).measure(exact()), exact())


@pytest.mark.parametrize(
    ("level", "velocity", "gyro"), [("paper", math.sqrt(2e-3), math.sqrt(5e-3)), ("paper_std", 2e-3, 5e-3)]
)
def test_paper_levels_have_the_standard_deviations_of_lim_table_3(level, velocity, gyro):
    measured = measure(level)
    assert np.std(measured.velocity) == pytest.approx(velocity, rel=0.03)
    assert np.std(measured.angular_velocity) == pytest.approx(gyro, rel=0.03)
    assert np.std(measured.wrenches[:, :, :3], axis=0) == pytest.approx(1.0, rel=0.06)
    assert np.std(measured.wrenches[:, :, 3:], axis=0) == pytest.approx(0.1, rel=0.06)


def test_realistic_errors_are_constant_within_a_run_and_differ_between_runs():
    bias = [np.mean(measure("realistic", seed, 500).wrenches[:, 0, :3], axis=0) for seed in range(60)]
    sides = np.array(bias)[:, :2]
    assert np.std(sides) == pytest.approx(2.0, rel=0.25)
    gain = [np.mean(measure("realistic", seed, 100).effort, axis=0) / 50.0 for seed in range(60)]
    assert np.std(gain) == pytest.approx(0.005, rel=0.25)


def test_realistic_positions_sit_on_the_encoder_grid_and_velocity_lags_behind_them():
    level = make_noise("realistic")
    model = SensorModel(level, N, K, PERIOD, 0)
    speed = 0.5
    measured = split(np.array([model.measure(exact(speed * k * PERIOD, speed)) for k in range(200)]))
    steps = measured.position[137] / level.encoder_step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    lag = 1.0 / (2.0 * math.pi * level.velocity_cutoff)
    assert measured.velocity[round(lag / PERIOD)] == pytest.approx(speed * (1.0 - math.exp(-1.0)), rel=0.1)
    assert measured.velocity[-1] == pytest.approx(speed, rel=0.02)


def test_unknown_level_is_refused_and_the_levels_are_named():
    with pytest.raises(SimulationError, match="'clean', 'paper', 'paper_std', 'realistic'"):
        make_noise("loud")
    assert noise_names() == ("clean", "paper", "paper_std", "realistic")
