"""Which repetitions of a joint sample are missed cycles, and which are joints at rest."""

from __future__ import annotations

import dataclasses

import numpy as np

from friction_estimator.estimation.synchronizer import RepeatedFrames
from friction_estimator.types import FloatArray, SensorFrame

PERIOD = 0.001


def frames(position: FloatArray) -> list[SensorFrame]:
    """Frames of positions (m, n), with velocities by differences."""
    count, joints = position.shape
    velocity = np.gradient(position, PERIOD, axis=0)
    return [
        SensorFrame(
            stamp_ns=int(i * 1e9 * PERIOD),
            dt=PERIOD if i else 0.0,
            position=position[i],
            velocity=velocity[i],
            effort=3.0 * velocity[i],
            angular_velocity=np.zeros(3),
            specific_force=np.zeros(3),
            wrenches=np.zeros((2, 6)),
            imu_fresh=True,
            wrench_fresh=np.ones(2, dtype=bool),
            readings=np.ones(3),
        )
        for i in range(count)
    ]


def moving(count: int = 400, joints: int = 12) -> FloatArray:
    time = PERIOD * np.arange(count)[:, None]
    return np.sin(2.0 * time + np.arange(joints)) + 1e-6 * np.random.default_rng(0).standard_normal((count, joints))


def with_repeats(clean: list[SensorFrame], where: list[int]) -> list[SensorFrame]:
    spoilt = list(clean)
    for i in where:
        values = {name: getattr(spoilt[i - 1], name) for name in ("position", "velocity", "effort")}
        spoilt[i] = dataclasses.replace(spoilt[i], **values)
    return spoilt


def test_repetitions_in_motion_are_left_out_and_no_time_is_lost() -> None:
    clean, where = frames(moving()), [100, 200, 201, 399]
    left = RepeatedFrames().leave_out(with_repeats(clean, where))
    kept = [i for i in range(400) if i not in where]
    assert [frame.stamp_ns for frame in left] == [clean[i].stamp_ns for i in kept]
    expected = np.diff([clean[i].stamp_ns for i in kept], prepend=0) * 1e-9
    np.testing.assert_allclose([frame.dt for frame in left], expected, atol=1e-12)


def test_a_driver_at_half_the_rate_gives_half_the_frames() -> None:
    spoilt = with_repeats(frames(moving(1000)), list(range(101, 1000, 2)))
    assert len(RepeatedFrames().leave_out(spoilt)) == 100 + 450


def test_one_joint_that_moves_makes_a_sample_new() -> None:
    position = moving()
    position[100:110, :11] = position[99, :11]
    assert len(RepeatedFrames().leave_out(frames(position))) == 400


def test_new_efforts_and_velocities_do_not_hide_that_the_positions_are_old() -> None:
    position = moving()
    position[100] = position[99]
    assert len(RepeatedFrames().leave_out(frames(position))) == 399


def test_joints_at_rest_are_believed_after_a_moment() -> None:
    moved, rest = moving(), 600
    position = np.concatenate((moved, np.repeat(moved[-1:], rest, axis=0)))
    left = RepeatedFrames().leave_out(frames(position))
    assert len(position) - len(left) == 5
    assert left[-1].stamp_ns == 999_000_000
    np.testing.assert_allclose(sum(frame.dt for frame in left), 0.999, atol=1e-12)


def test_joints_at_rest_from_the_start_are_believed_at_once() -> None:
    assert len(RepeatedFrames().leave_out(frames(np.ones((300, 12))))) == 300


def test_a_coarse_encoder_on_a_slow_joint_repeats_itself_and_is_believed() -> None:
    slow = np.round(0.3 * PERIOD * np.arange(2000.0)[:, None], 3)  # changes in three samples of ten
    assert len(RepeatedFrames().leave_out(frames(slow))) == 2000


def test_coarse_encoders_of_joints_that_slow_down_together_repeat_themselves_and_are_believed() -> None:
    time, step = PERIOD * np.arange(3000.0)[:, None], 4e-4
    position = step * np.round(np.sin(time + 0.01 * np.arange(12)) / step)
    assert len(RepeatedFrames().leave_out(frames(position))) == 3000
