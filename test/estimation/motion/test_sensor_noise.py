"""Claims about measured noise: found where it is larger than the datasheet gives, not found in motion."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.motion.sensor_monitor import SensorNoiseMonitor
from friction_estimator.types import SensorFrame

DATASHEET = SensorNoise(
    position_std=1e-5, velocity_std=1e-2, angular_velocity_std=5e-3, force_std=1.0, moment_std=0.1, velocity_cutoff=0.0
)
DT = 1e-3


def monitored(
    true: SensorNoise,
    seconds: float = 2.0,
    jitter: float = 0.0,
    delay: float = 0.0,
    every: int = 1,
    velocities: float = math.inf,
) -> tuple[SensorNoiseMonitor, int]:
    """A monitor with the noise DATASHEET after a walk-like motion with this noise; how often its noise changed.

    IMU and foot are read at one joint state of ``every``; between two readings their values are interpolated. The
    driver stops to publish velocities after some samples.
    """
    rng, monitor, changes = np.random.default_rng(0), SensorNoiseMonitor(DATASHEET, 3, 1), 0
    omega, shift = 2.0 * np.pi * np.array([1.0, 1.7, 2.3]), np.array([0.0, 1.0, 2.0])
    filtered = omega * 0.3 * np.cos(shift)
    reading, before = np.zeros((2, 6)), np.zeros((2, 6))
    for k in range(round(seconds / DT)):
        time = k * DT + rng.uniform(-jitter, jitter)
        angle = omega * time + shift
        position, velocity = 0.3 * np.sin(angle), 0.3 * omega * np.cos(angle)
        if delay:
            filtered = filtered + (1.0 - np.exp(-DT / delay)) * (velocity - filtered)
        wrench = np.array([10.0, 5.0, 500.0, 1.0, 2.0, 0.5]) * (1.0 + 0.2 * np.sin(angle[0]))
        if is_new := k % every == 0:
            noise = rng.normal(size=(2, 6)) * np.repeat(
                [[true.angular_velocity_std, 0.0], [true.force_std, true.moment_std]], 3, axis=1
            )
            reading, before = noise + [[*(0.2 * np.sin(angle)), *np.zeros(3)], wrench], reading
        imu, foot = before + (k % every + 1) / every * (reading - before)
        frame = SensorFrame(
            0, DT,
            position + rng.normal(size=3) * true.position_std,
            (filtered if delay else velocity) + rng.normal(size=3) * true.velocity_std,
            np.zeros(3), imu[:3], imu[3:], foot[None], True, np.array([True]), np.full(2, 1.0 / every),
            new_readings=reading if is_new else np.full((2, 6), np.nan), differentiated=k >= velocities,
        )  # fmt: skip
        changes += monitor.add(time, frame)
    return monitor, changes


def test_a_datasheet_that_is_right_stays_as_it_is():
    monitor, changes = monitored(DATASHEET)
    assert monitor.noise == DATASHEET and changes == 0 and monitor.ready


@pytest.mark.parametrize("field", ["position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std"])
def test_noise_beyond_the_datasheet_is_measured(field):
    true = 5.0 * getattr(DATASHEET, field)
    monitor, changes = monitored(dataclasses.replace(DATASHEET, **{field: true}))
    assert changes >= 1
    assert getattr(monitor.noise, field) == pytest.approx(true, rel=0.2)
    assert dataclasses.replace(monitor.noise, **{field: getattr(DATASHEET, field)}) == DATASHEET


@pytest.mark.parametrize("samples", [98, 99, 100, 198, 199, 200])
def test_noise_is_measured_whenever_the_driver_stops_to_publish_velocities(samples):
    """Blocks of readings have 100 and 200 samples; the velocities may end with the last one of a block."""
    true = 5.0 * DATASHEET.force_std
    monitor, _ = monitored(dataclasses.replace(DATASHEET, force_std=true), velocities=samples)
    assert monitor.noise.force_std == pytest.approx(true, rel=0.2)
    assert monitor.noise.velocity_cutoff > 0.0


@pytest.mark.parametrize("field", ["angular_velocity_std", "force_std", "moment_std"])
def test_noise_of_a_sensor_that_is_slower_than_the_joints_is_that_of_its_readings(field):
    true = 2.5 * getattr(DATASHEET, field)
    monitor, _ = monitored(dataclasses.replace(DATASHEET, **{field: true}), every=4)
    assert getattr(monitor.noise, field) == pytest.approx(true, rel=0.2)


def test_nothing_is_ready_before_the_noise_of_a_slow_sensor_is_known_unless_that_takes_long():
    assert not monitored(DATASHEET, seconds=0.35, every=4)[0].ready
    assert monitored(DATASHEET, seconds=0.65, every=4)[0].ready
    assert monitored(DATASHEET, seconds=1.05, every=100)[0].ready


def test_sensors_better_than_their_datasheet_are_not_trusted():
    better = SensorNoise(
        position_std=1e-7, velocity_std=1e-4, angular_velocity_std=1e-5, force_std=0.01, moment_std=1e-3
    )
    assert monitored(better)[0].noise == DATASHEET


@pytest.mark.parametrize("delay", [1.0 / (2.0 * np.pi * 60.0), 1.0 / (2.0 * np.pi * 25.0)])
def test_late_velocities_are_known_for_what_they_are(delay):
    monitor, _ = monitored(dataclasses.replace(DATASHEET, velocity_std=1e-3), delay=delay)
    assert monitor.noise.velocity_cutoff == pytest.approx(1.0 / (2.0 * np.pi * delay), rel=0.25)


def test_velocities_of_their_own_are_not_taken_for_late():
    assert monitored(DATASHEET)[0].noise.velocity_cutoff == 0.0


def test_uneven_stamps_spoil_differences_and_are_left_alone():
    monitor, changes = monitored(dataclasses.replace(DATASHEET, velocity_std=0.1), jitter=2e-4)
    assert changes == 0 and monitor.noise == DATASHEET and monitor.ready
