"""Noise levels: exact when clean, with the promised statistics otherwise."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from friction_estimator.errors import SimulationError
from friction_estimator.simulation import make_noise, noise_names
from friction_estimator.simulation.sensors import SensorModel
from friction_estimator.types import ImuSample, JointSample, WrenchSample

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


def delivered(level, count=1000):
    """Samples that the sensors deliver, by their type."""
    model, found = (
        SensorModel(make_noise(level), N, K, PERIOD, seed=1),
        {JointSample: [], ImuSample: [], WrenchSample: []},
    )
    for k in range(count):
        joints, imu, wrenches, due = model.samples(k, k * 1_000_000, model.measure(exact(position=k)))
        for samples, is_due in zip(((joints,), (imu,), wrenches), due, strict=True):
            if is_due:
                found[type(samples[0])] += samples
    return found


@pytest.mark.parametrize(
    ("level", "joints", "imu", "feet"),
    [("paper_std", 1000, 1000, 1000), ("mixed_rates", 1000, 400, 100), ("mixed_rates_200", 200, 400, 100)],
)
def test_every_sensor_has_its_rate(level, joints, imu, feet):
    readings = delivered(level)
    assert [len(readings[kind]) for kind in (JointSample, ImuSample, WrenchSample)] == [joints, imu, K * feet]


def test_jittered_stamps_stay_in_order_and_near_the_time_of_the_reading():
    joints = delivered("mixed_rates")[JointSample]
    errors = np.array([sample.stamp_ns - 1e6 * round(sample.position[0]) for sample in joints])
    assert np.all(np.diff([sample.stamp_ns for sample in joints]) > 0)
    assert np.std(errors) == pytest.approx(3e5, rel=0.15)  # cut at 1.5 standard deviations


def test_a_delayed_torque_is_that_of_its_delay_ago():
    model = SensorModel(make_noise("late_effort"), N, K, PERIOD, 0)
    measured = []
    for k in range(5):
        signals = exact()
        signals[2 * N : 3 * N] = k
        measured.append(model.measure(signals)[2 * N])
    assert measured == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_a_tilted_imu_sees_gravity_at_its_angle():
    model = SensorModel(make_noise("tilted_imu"), N, K, PERIOD, seed=3)
    gravity = np.mean([split(model.measure(exact())[None]).specific_force[0] for _ in range(50)], axis=0)
    assert np.linalg.norm(gravity) == pytest.approx(9.81, abs=1e-3)
    assert 0.0 < math.degrees(math.acos(gravity[2] / 9.81)) <= 3.001


def test_unknown_level_is_refused_and_the_levels_are_named():
    with pytest.raises(SimulationError, match="'paper', 'paper_std', 'realistic'"):
        make_noise("loud")
    assert {"clean", "paper", "paper_std", "realistic"} < set(noise_names())
