"""Claims about coarse encoders: their resolution is found, and their readings bound the position."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.motion.encoders import encoder_step
from friction_estimator.estimation.motion.joint_motion import JointMotionFilter
from friction_estimator.estimation.motion.sensor_monitor import SensorNoiseMonitor
from friction_estimator.types import FloatArray, SensorFrame

DT = 1e-3
STEP = 2.0 * np.pi / 2**14
TIME = DT * np.arange(4000)[:, None]
ANGLE = 0.4 * np.sin(TIME * [1.0, 1.7, 2.3]) + 0.1 * np.sin(3.0 * TIME * [1.0, 1.7, 2.3])


def rounded(angle: FloatArray, step: float = STEP) -> FloatArray:
    return step * np.round(angle / step)


@pytest.mark.parametrize(("step", "kind"), [(STEP, np.float64), (STEP, np.float32), (2.0 * np.pi / 2**19, np.float64)])
def test_the_resolution_of_an_encoder_is_found_whatever_its_zero(step, kind):
    for start in range(0, 4000, 500):
        block = (rounded(ANGLE[start : start + 200], step) + 0.1234).astype(kind).astype(float)
        assert encoder_step(block, 0) == pytest.approx(step, rel=1e-2)


def test_a_fast_joint_that_never_takes_a_single_step_has_the_greatest_common_divisor():
    block = STEP * np.cumsum(np.random.default_rng(0).choice([4.0, 6.0, 9.0], size=(200, 1)), axis=0)
    assert encoder_step(block, 0) == pytest.approx(STEP, rel=1e-9)


def test_positions_on_no_grid_have_no_resolution_and_joints_at_rest_do_not_show_theirs():
    noise = 1e-7 * np.random.default_rng(0).standard_normal((200, 3))
    assert encoder_step(ANGLE[:200] + noise, 0) == 0.0
    assert encoder_step(np.repeat(ANGLE[:200:2], 2, axis=0), 1) == 0.0  # each reading is published twice
    assert math.isnan(encoder_step(np.ones((200, 1)), 0))
    assert math.isnan(encoder_step(rounded(0.6 * STEP * TIME[:200]), 0))


def monitored(position: FloatArray, velocity: FloatArray) -> SensorNoiseMonitor:
    monitor = SensorNoiseMonitor(SensorNoise(), position.shape[1], 0)
    nothing = np.zeros(3), np.zeros(3), np.zeros((0, 6)), True, np.zeros(0, dtype=bool), np.ones(1)
    for k, (q, v) in enumerate(zip(position, velocity, strict=True)):
        monitor.add(k * DT, SensorFrame(0, DT, q, v, np.zeros(q.size), *nothing))
    return monitor


def test_resolution_and_rounding_noise_are_found_within_a_second_without_a_datasheet():
    velocity = np.gradient(ANGLE[:1000], DT, axis=0)
    monitor = monitored(rounded(ANGLE[:1000]), velocity + 2e-3 * np.random.default_rng(0).standard_normal((1000, 3)))
    np.testing.assert_allclose(monitor.encoder_step, STEP, rtol=1e-6)
    assert monitor.noise.position_std == pytest.approx(STEP / math.sqrt(12.0))
    assert monitor.noise.velocity_cutoff == 0.0  # these velocities are measured


@pytest.mark.parametrize("memory", [0, 4], ids=["bare", "filtered"])
def test_differentiated_positions_are_known_for_what_they_are(memory):
    position = rounded(ANGLE[:1000])
    velocity, smooth = np.diff(position, axis=0, prepend=position[:1]) / DT, np.zeros((1000, 3))
    for k in range(1, 1000):
        smooth[k] = smooth[k - 1] + (velocity[k] - smooth[k - 1]) / (1 + memory)
    assert monitored(position, smooth).noise.velocity_cutoff > 0.0


def test_bounds_make_slow_velocities_better_than_white_noise_does_and_their_sigma_is_honest():
    """Joints that creep and turn round, a few steps of the encoder at a time."""
    angle = 0.004 * np.sin(TIME * [2.0, 3.0, 4.5] + np.arange(3))
    velocity, position = np.gradient(angle, DT, axis=0), rounded(angle)
    noise = dataclasses.replace(SensorNoise(), position_std=STEP / math.sqrt(12.0), velocity_cutoff=60.0)
    errors = {}
    for step in (0.0, STEP):
        motion = JointMotionFilter(KalmanConfig(), noise, ())
        motion.retune(noise, np.full(3, step))
        found = [motion.step(q, np.zeros(3), DT if k else 0.0) for k, q in enumerate(position)]
        error = (np.array([one.velocity for one in found]) - velocity)[1000:]
        sigma = np.array([one.velocity_std for one in found])[1000:]
        assert np.mean(np.abs(error) < 1.96 * sigma) > 0.9
        errors[step] = math.sqrt(np.mean(error**2))
    assert errors[STEP] < 0.7 * errors[0.0]


def test_a_fine_encoder_beside_coarse_ones_keeps_its_precision():
    noise = dataclasses.replace(SensorNoise(), position_std=1e-6, velocity_cutoff=60.0)
    motion = JointMotionFilter(KalmanConfig(), noise, ())
    motion.retune(noise, np.array([STEP, 0.0, 0.0]))
    found = [motion.step(q, np.zeros(3), DT if k else 0.0) for k, q in enumerate(ANGLE)]
    errors = (np.array([one.velocity for one in found]) - np.gradient(ANGLE, DT, axis=0))[1000:]
    assert np.abs(errors[:, 1:]).max() < 0.01
