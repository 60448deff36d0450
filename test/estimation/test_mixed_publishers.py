"""Claims about two publishers on one topic: readings in turns are found on every input, noise of one sensor is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.readings.publishers import (
    MixedStreams,
    add_repeated,
    add_to_streams,
    are_mixed,
)
from friction_estimator.io.robot import load_robot
from friction_estimator.types import ImuSample, JointSample, WrenchSample

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from friction_estimator.simulation import Simulator, make_noise, make_scenario

SECOND = 1_000_000_000
SCALE = np.array([0.1, 0.1, 0.1, 0.3, 0.3, 0.3])
"""Differences that matter, of an IMU."""


def walk(hertz: float, seconds: float, seed: int, phase: float = 0.0) -> list[tuple[int, np.ndarray]]:
    """Stamps and readings of an IMU on a walking robot, with impacts and noise."""
    rng = np.random.default_rng(seed)
    time = (np.arange(round(seconds * hertz)) + phase) / hertz
    size = np.array([0.3, 0.4, 0.2, 1.0, 1.5, 1.0])
    waves = size * np.sin(2.0 * np.pi * rng.uniform(0.7, 3.0, 6) * time[:, None] + rng.uniform(0.0, 6.0, 6))
    impacts = 8.0 * np.exp(-40.0 * (time % 0.6)) * np.sin(300.0 * time)
    values = waves + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.81]) + 0.02 * rng.normal(size=waves.shape)
    values[:, 5] += impacts
    return list(zip(np.round(time * SECOND).astype(np.int64).tolist(), values, strict=True))


def mixed_at(readings: list[tuple[int, np.ndarray]]) -> float:
    """Time at which two publishers are found [s]; infinite: at none."""
    streams = MixedStreams.initial(SCALE.reshape(1, 2, 3))
    for stamp, reading in readings:
        add_to_streams(streams, 0, stamp, reading)
        if are_mixed(streams, 0, stamp):
            return stamp / SECOND
    return np.inf


TURNED = {
    "axes": lambda reading: reading[[1, 2, 0, 4, 5, 3]],
    "zeros": lambda reading: 0.0 * reading,
    "upside down": lambda reading: -reading,
    "degrees and g": lambda reading: reading * np.repeat((57.3, 1.0 / 9.81), 3),
}


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(TURNED)), rates=st.tuples(*[st.sampled_from((50.0, 100.0, 333.0, 1000.0))] * 2),
    phase=st.floats(0.05, 0.95), seed=st.integers(0, 1000),
)  # fmt: skip
def test_two_imus_in_turns_are_found_within_a_second_whatever_their_rates(kind, rates, phase, seed):
    first = walk(rates[0], 4.0, seed)
    second = [(stamp, TURNED[kind](reading)) for stamp, reading in walk(rates[1], 4.0, seed, phase) if stamp > SECOND]
    assert 1.0 < mixed_at(sorted([*first, *second], key=lambda one: one[0])) < 2.0
    assert mixed_at(first) == np.inf


def test_white_noise_ringing_steps_and_glitches_of_one_sensor_are_no_second_publisher():
    rng, n = np.random.default_rng(1), 20_000
    one_axis, all_axes = np.zeros((n, 6)), 3.0 * rng.normal(size=(n, 6))
    one_axis[:, 3] = 3.0 * rng.normal(size=n)
    ringing = 5.0 * np.sin(2.0 * np.pi * np.outer(np.arange(n), (0.17, 0.19, 0.21, 0.33, 0.39, 0.41)))
    coarse = np.round(0.5 * rng.normal(size=(n, 6)))
    steps = np.cumsum(rng.random(n) < 0.02)[:, None] % 2 * np.full(6, 50.0)
    glitches = np.where(np.arange(n)[:, None] % 500 == 0, 1e3, 0.01 * all_axes)
    for values in (one_axis, all_axes, ringing, coarse, steps[: n // 10], glitches):
        assert mixed_at([(1_000_000 * k, row) for k, row in enumerate(values)]) == np.inf


def test_readings_of_one_stamp_that_differ_are_of_two_publishers_unless_the_stamps_stand_still():
    streams, stuck = (MixedStreams.initial(SCALE.reshape(1, 2, 3)) for _ in range(2))
    for k in range(60):
        add_repeated(streams, 0, k * 1_000_000, np.zeros(6), np.full(6, 5.0))
        add_repeated(stuck, 0, 0, np.full(6, float(k)), np.zeros(6))
    assert are_mixed(streams, 0, 59_000_000) and not are_mixed(stuck, 0, 0)


def _other_axes(reading):
    if isinstance(reading, ImuSample):
        yield replace(
            reading, stamp_ns=reading.stamp_ns + 300_000, angular_velocity=reading.angular_velocity[[1, 2, 0]],
            specific_force=reading.specific_force[[1, 2, 0]],
        )  # fmt: skip


def _zero_wrench(reading):
    if isinstance(reading, WrenchSample) and reading.foot == 0:
        yield replace(reading, stamp_ns=reading.stamp_ns + 300_000, wrench=np.zeros(6))


def _without_torque(reading):
    if isinstance(reading, JointSample):
        moved = reading.position + 1e-4 * reading.velocity
        yield JointSample(reading.stamp_ns + 100_000, moved, reading.velocity, 0.0 * reading.effort)


@pytest.fixture(scope="module")
def noisy():
    """A robot, and samples of its walk."""
    robot = load_robot("suralp")
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", 2.3), make_noise("realistic"))
    return robot, [simulator.step() for _ in range(2300)]


@pytest.mark.parametrize(
    ("second", "topic", "joints"),
    [(_other_axes, "imu/data", 12), (_zero_wrench, "l_foot/wrench", 6), (_without_torque, "joint_states", 12)],
)
def test_a_second_publisher_is_named_first_and_the_joints_that_need_the_topic_are_invalid(noisy, second, topic, joints):
    """From 1 s on; the first finding names the topic, within a second."""
    robot, samples = noisy
    estimator, start = Estimator(robot.config, robot.urdf_xml), samples[0].joints.stamp_ns
    found, errors, named = "", [], np.nan
    for sample in samples:
        time = 1e-9 * (sample.joints.stamp_ns - start)
        for reading in sample.readings:
            estimates = estimator.add(reading)
            if time > 1.0:
                estimates += [estimate for other in second(reading) for estimate in estimator.add(other)]
            errors += [np.isfinite(estimate.friction).all() for estimate in estimates]
        if not found and estimator.health.findings:
            found, named = estimator.health.findings[0], time
    assert found.startswith(f"{topic}: second publisher on {topic}") and 1.0 < named < 2.0
    assert "Which of them are right is not known" in found and all(errors)
    assert len([text for text in estimator.invalid_reasons() if topic in text]) == joints
    assert not any("set imu.frame" in text for text in estimator.health.findings)
