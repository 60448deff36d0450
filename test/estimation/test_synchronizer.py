"""Claims about the synchronizer: header stamps decide, arrival does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.config import SynchronizerConfig
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.readings.sensor_tracks import MAX_QUEUE_LENGTH
from friction_estimator.estimation.readings.synchronizer import Synchronizer
from friction_estimator.types import ImuSample, JointSample, WrenchSample

MS = 1_000_000


def joints(ms: float) -> JointSample:
    return JointSample(int(ms * MS), np.full(2, float(ms)), np.zeros(2), np.zeros(2))


def imu(ms: float) -> ImuSample:
    return ImuSample(int(ms * MS), np.full(3, float(ms)), np.full(3, 10.0 * ms))


def wrench(ms: float, foot: int = 0) -> WrenchSample:
    return WrenchSample(int(ms * MS), foot, np.full(6, 100.0 * foot + ms))


def synchronizer(feet: int = 1) -> Synchronizer:
    return Synchronizer(SynchronizerConfig(), 2, feet, use_imu=True, health=Health())


def feed(target: Synchronizer, samples) -> list:
    frames = []
    for sample in samples:
        if isinstance(sample, JointSample):
            frames += target.add_joints(sample)
        elif isinstance(sample, ImuSample):
            reading = np.concatenate((sample.angular_velocity, sample.specific_force))
            frames += target.add(0, sample.stamp_ns, reading)
        else:
            frames += target.add(1 + sample.foot, sample.stamp_ns, sample.wrench)
    return frames


def test_a_frame_leaves_as_soon_as_all_sensors_have_delivered():
    s = synchronizer()
    assert feed(s, [joints(1), imu(1)]) == []
    (frame,) = feed(s, [wrench(1)])
    assert frame.stamp_ns == MS and frame.imu_fresh and frame.wrench_fresh.all()
    np.testing.assert_array_equal(frame.specific_force, [10.0] * 3)


def test_the_oldest_joint_sample_of_a_full_queue_waits_no_longer():
    samples = [joints(1e-4 * k) for k in range(MAX_QUEUE_LENGTH + 1)]
    s = synchronizer()
    assert feed(s, samples[:-1]) == []
    (frame,) = feed(s, samples[-1:])
    assert frame.stamp_ns == 0


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 4))
def test_order_of_arrival_within_the_wait_does_not_matter(random, delay):
    samples = [make(t) for t in range(1, 40) for make in (joints, imu, wrench)]
    # each message of IMU and foot is late by up to `delay` ms, but one sensor's messages do not overtake each other
    arrival = {JointSample: 0, ImuSample: 0, WrenchSample: 0}
    order = {}
    for sample in samples:
        late = 0 if isinstance(sample, JointSample) else random.randint(0, delay) * MS
        order[id(sample)] = arrival[type(sample)] = max(arrival[type(sample)], sample.stamp_ns + late)
    shuffled = sorted(samples, key=lambda sample: order[id(sample)])
    expected, got = synchronizer(), synchronizer()
    reference = feed(expected, samples) + expected.flush()
    frames = feed(got, shuffled) + got.flush()
    assert [f.stamp_ns for f in frames] == [f.stamp_ns for f in reference]
    for a, b in zip(frames, reference, strict=True):
        np.testing.assert_array_equal(a.wrenches, b.wrenches)
        np.testing.assert_array_equal(a.specific_force, b.specific_force)
        assert a.dt == b.dt


def test_sensors_between_two_samples_are_interpolated():
    s = synchronizer()
    (frame,) = feed(s, [imu(0.5), wrench(0), joints(1), imu(1.5), wrench(2)])
    np.testing.assert_allclose(frame.angular_velocity, 1.0)
    np.testing.assert_allclose(frame.wrenches, 1.0)


def test_every_joint_sample_leaves_even_when_a_sensor_never_sends():
    s = synchronizer()
    frames = feed(s, [sample for t in range(1, 21) for sample in (joints(t), imu(t))]) + s.flush()
    assert [f.stamp_ns for f in frames] == [t * MS for t in range(1, 21)]
    assert not any(f.wrench_fresh.any() for f in frames)


def test_a_sensor_is_stale_after_the_configured_silence_and_fresh_again_when_it_returns():
    s = synchronizer()
    samples = [
        item
        for t in range(1, 401)
        for item in ((joints(t), imu(t), wrench(t)) if t <= 100 or t > 300 else (joints(t), imu(t)))
    ]
    fresh = [bool(f.wrench_fresh[0]) for f in feed(s, samples) + s.flush()]
    assert all(fresh[:100]) and not any(fresh[106:299]) and all(fresh[301:])


def test_stamps_that_stand_still_are_dropped_and_counted():
    s = synchronizer()
    feed(s, [joints(1), imu(1), wrench(1), joints(1), joints(1)])
    assert s._health.repeated == 2 and s._health.frames == 1


def test_a_jump_back_restarts_and_goes_on():
    s = synchronizer()
    before = feed(s, [m(t) for t in range(2000, 2010) for m in (joints, imu, wrench)])
    after = feed(s, [m(t) for t in range(1, 11) for m in (joints, imu, wrench)])
    assert len(before) == len(after) == 10
    assert after[0].dt == 0.0 and after[1].dt == pytest.approx(1e-3)
    assert s._health.time_jumps == 1 and "jumped back" in s._health.events[-1].text


def test_a_gap_of_a_second_restarts_and_goes_on():
    s = synchronizer()
    frames = feed(s, [m(t) for t in (1, 2, 1002, 1003) for m in (joints, imu, wrench)])
    assert [f.dt for f in frames] == pytest.approx([0.0, 1e-3, 0.0, 1e-3])
    assert s._health.gaps == 1 and s._health.events[-1].code == "gap"


def test_an_old_joint_sample_is_dropped_and_counted():
    s = synchronizer()
    feed(s, [m(t) for t in (1, 2, 3) for m in (joints, imu, wrench)])
    assert feed(s, [joints(1.5)]) == [] and s._health.late == 1


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_joint_samples_that_overtake_each_other_leave_in_order_and_none_is_lost(random):
    samples = [make(t) for t in range(1, 61) for make in (joints, imu, wrench)]
    order = {id(s): s.stamp_ns + (random.randint(0, 3) * MS if s.stamp_ns > 3 * MS else 0) for s in samples}
    s = synchronizer()
    frames = feed(s, sorted(samples, key=lambda sample: order[id(sample)])) + s.flush()
    assert [f.stamp_ns for f in frames] == [t * MS for t in range(1, 61)]


def test_samples_that_no_joint_state_wants_are_not_kept():
    s = synchronizer()
    feed(s, [imu(t) for t in range(20_000)])
    assert s._tracks.length[0] < 1000


def test_stamps_in_any_order_neither_fill_the_memory_nor_lose_the_joint_states():
    """A driver whose stamps differ by nanoseconds, out of order, while no joint state comes, or no IMU."""
    rng = np.random.default_rng(0)
    stamps = (100.0 + 0.4 * rng.random(20_000)).tolist()
    s = synchronizer()
    feed(s, [imu(1000.0 * t) for t in stamps])
    kept = s._tracks.stamps[0, : s._tracks.length[0]]
    assert kept.size < 6000 and (np.diff(kept) > 0).all()
    s = synchronizer()
    frames = feed(s, [joints(1000.0 + 1e-3 * rng.random()) for _ in range(12_000)]) + s.flush()
    assert len(s._waiting_joints) < 6000 and len(frames) + s._health.repeated + s._health.late == 12_000


def test_a_lost_joint_sample_delays_the_next_ones_by_the_wait_and_no_more():
    s = synchronizer()
    frames = feed(s, [m(t) for t in range(1, 10) if t != 5 for m in (joints, imu, wrench)])
    assert [f.stamp_ns // MS for f in frames] == [1, 2, 3, 4]
    frames = feed(s, [m(t) for t in range(10, 13) for m in (joints, imu, wrench)])
    assert [f.stamp_ns // MS for f in frames] == [6, 7, 8, 9, 10, 11, 12]


def test_a_missed_cycle_of_the_driver_is_dropped_counted_and_keeps_nobody_waiting():
    health = Health()
    s = Synchronizer(SynchronizerConfig(), 2, 0, use_imu=False, health=health)
    moving = [JointSample(k * MS, np.full(2, k + 0.01 * np.sin(k)), np.zeros(2), np.zeros(2)) for k in range(1, 101)]
    feed(s, moving)
    assert s.add_joints(JointSample(101 * MS, moving[-1].position, np.zeros(2), np.zeros(2))) == []
    (frame,) = s.add_joints(joints(102))
    assert (frame.stamp_ns, frame.dt) == (102 * MS, 2e-3)
    assert (health.frames, health.repeated) == (101, 1)
    assert "missed" in health.events[-1].text and health.event_count == 1


@pytest.mark.parametrize("every", [1, 4, 10])
def test_readings_of_a_slow_sensor_are_counted_and_not_the_frames_between_them(every):
    """The IMU is read with the joints, the foot sensor every few milliseconds."""
    target = synchronizer()
    samples = [s for ms in range(400) for s in (joints(ms), imu(ms), *([wrench(ms)] if ms % every == 0 else []))]
    frames = feed(target, samples)
    readings = np.array([frame.readings_per_sample for frame in frames])
    np.testing.assert_array_equal(readings[:, 0], 1.0)
    assert readings[100:, 1].mean() == pytest.approx(1.0 / every, rel=0.02)
    assert np.abs(readings[100:, 1] * every - 1.0).max() < 0.1


@pytest.mark.parametrize("old", [1.0, 5000.0], ids=["old", "ahead"])
def test_a_single_joint_sample_of_another_time_is_dropped_and_restarts_nothing(old):
    s = synchronizer()
    samples = [m(t) for t in range(2000, 2010) for m in (joints, imu, wrench)]
    samples.insert(15, joints(old))
    assert [frame.stamp_ns // MS for frame in feed(s, samples)] == list(range(2000, 2010))
    assert s._health.restarts == 0 and [event.code for event in s._health.events] == ["stray_joint_state"]


def test_a_looped_recording_with_one_old_message_after_the_jump_restarts_once():
    s = synchronizer()
    loop = [m(t) for t in range(2000, 2010) for m in (joints, imu, wrench)]
    again = [m(t) for t in range(1, 11) for m in (joints, imu, wrench)]
    again.insert(9, joints(2010))
    assert [frame.stamp_ns // MS for frame in feed(s, loop + again)] == [*range(2000, 2010), *range(1, 11)]
    assert s._health.restarts == s._health.time_jumps == 1


def test_joint_samples_that_are_far_apart_are_all_used():
    s = synchronizer()
    frames = feed(s, [m(t) for t in range(0, 20_000, 1000) for m in (imu, wrench, joints)]) + s.flush()
    assert [frame.stamp_ns // MS for frame in frames] == list(range(0, 20_000, 1000))


def test_efforts_in_a_second_message_of_the_same_stamp_complete_the_sample():
    s = Synchronizer(SynchronizerConfig(), 2, 0, use_imu=False, health=Health())
    frames = []
    for ms in range(100):
        empty, whole = (JointSample(ms * MS, np.full(2, 0.1 * ms), np.zeros(2), np.full(2, e)) for e in (np.nan, 1.0))
        frames += s.add_joints(empty) + s.add_joints(whole)
    assert len(frames) == 100 and all(frame.effort[0] == 1.0 for frame in frames[1:])
    later = [
        frame for ms in range(100, 3000) for frame in s.add_joints(JointSample(ms * MS, *[np.full(2, np.nan)] * 3))
    ]
    assert later[-1].stamp_ns == 2999 * MS  # nobody waits for them for ever
