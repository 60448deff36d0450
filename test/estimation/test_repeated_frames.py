"""Which repetitions of a joint sample are missed cycles, and which are joints at rest."""

from __future__ import annotations

import numpy as np

from friction_estimator.config import SynchronizerConfig
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.readings.synchronizer import Synchronizer
from friction_estimator.types import FloatArray, JointSample

PERIOD = 0.001


def time_steps(position: FloatArray) -> dict[int, float]:
    """Time steps of the samples that are not left out of positions (m, n), by their index."""
    synchronizer, steps = Synchronizer(SynchronizerConfig(), position.shape[1], 0, use_imu=False, health=Health()), {}
    for index, row in enumerate(position):
        sample = JointSample(index * round(1e9 * PERIOD), row, np.zeros_like(row), np.zeros_like(row))
        for frame in synchronizer.add_joints(sample):
            steps[index] = frame.dt
    return steps


def moving(count: int = 400, joints: int = 12) -> FloatArray:
    time = PERIOD * np.arange(count)[:, None]
    return np.sin(2.0 * time + np.arange(joints)) + 1e-6 * np.random.default_rng(0).standard_normal((count, joints))


def with_repeats(clean: FloatArray, where: list[int]) -> FloatArray:
    spoilt = clean.copy()
    for i in where:
        spoilt[i] = spoilt[i - 1]
    return spoilt


def test_repetitions_in_motion_are_left_out_and_no_time_is_lost() -> None:
    where = [100, 200, 201, 399]
    left = time_steps(with_repeats(moving(), where))
    kept = [i for i in range(400) if i not in where]
    assert list(left) == kept
    np.testing.assert_allclose(list(left.values()), PERIOD * np.diff(kept, prepend=0), atol=1e-12)


def test_a_driver_at_half_the_rate_gives_half_the_frames() -> None:
    assert len(time_steps(with_repeats(moving(1000), list(range(101, 1000, 2))))) == 100 + 450


def test_one_joint_that_moves_makes_a_sample_new() -> None:
    position = moving()
    position[100:110, :11] = position[99, :11]
    assert len(time_steps(position)) == 400


def test_joints_at_rest_are_accepted_after_a_moment() -> None:
    moved, rest = moving(), 600
    position = np.concatenate((moved, np.repeat(moved[-1:], rest, axis=0)))
    left = time_steps(position)
    assert len(position) - len(left) == 5
    assert max(left) == 999
    np.testing.assert_allclose(sum(left.values()), 0.999, atol=1e-12)


def test_joints_at_rest_from_the_start_are_accepted_at_once() -> None:
    assert len(time_steps(np.ones((300, 12)))) == 300


def test_a_coarse_encoder_on_a_slow_joint_may_repeat_itself() -> None:
    slow = np.round(0.3 * PERIOD * np.arange(2000.0)[:, None], 3)  # changes in three samples of ten
    assert len(time_steps(slow)) == 2000


def test_coarse_encoders_of_joints_that_slow_down_together_may_repeat_themselves() -> None:
    time, step = PERIOD * np.arange(3000.0)[:, None], 4e-4
    position = step * np.round(np.sin(time + 0.01 * np.arange(12)) / step)
    assert len(time_steps(position)) == 3000
