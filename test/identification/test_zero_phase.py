"""Velocities and accelerations have no phase, edges are cut, and nothing is computed across a gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.errors import InputError
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording import zero_phase as filters
from friction_estimator.identification.recording.motion import Treatment, to_motion
from test.identification.recordings import cutoff, exact_motion, recording


@pytest.mark.parametrize("measured", [False, True])
def test_derivatives_of_exact_samples_are_exact_within_the_pass_band(measured: bool) -> None:
    time = recording().time
    exact, period = exact_motion(time), float(time[1] - time[0])
    edge = filters.derivative_edge(period, 25.0)
    derived = filters.derive(exact[0], exact[1] if measured else None, period, 25.0)
    for found, wanted in zip(derived, exact, strict=True):
        assert np.abs(found - wanted)[edge:-edge].max() < 2e-3 * wanted.std()


def test_the_response_at_the_cutoff_is_half_of_the_power() -> None:
    time = np.arange(4000) / 1000.0
    line = np.sin(2.0 * np.pi * 20.0 * time)
    motion = to_motion(JointLog("line", ("joint",), time, line[:, None]), cutoff(20.0))
    assert np.mean(motion.position**2) / np.mean(line**2) == pytest.approx(0.5, abs=0.01)


def test_a_delayed_filter_would_be_seen_by_these_tests() -> None:
    log = recording(encoder=0.0)
    motion = to_motion(replace(log, velocity=None), cutoff(25.0))
    inner = np.searchsorted(log.time, motion.time)
    assert np.abs(motion.velocity[1:] - exact_motion(log.time)[1][inner][:-1]).max() > 2e-3 * motion.velocity.std()


def test_central_differences_are_exact_for_polynomials_and_to_a_percent_at_a_fifth_of_the_rate() -> None:
    time = np.arange(60) * 0.1
    inner = slice(filters.HALF_STENCIL, -filters.HALF_STENCIL)
    slope = filters.central_difference(time**7, 0.1)
    assert np.allclose(slope[inner], 7.0 * time[inner] ** 6, rtol=1e-8)
    wave = filters.central_difference(np.sin(2.0 * np.pi * 2.0 * time), 0.1)[inner]
    assert np.allclose(wave, 4.0 * np.pi * np.cos(4.0 * np.pi * time[inner]), atol=0.01 * 4.0 * np.pi)


def test_what_is_cut_off_at_the_edges_is_all_that_the_edges_disturb() -> None:
    long = replace(recording(encoder=0.0, duration=24.0), velocity=None)
    whole = to_motion(long, cutoff(10.0))
    part = to_motion(long.rows((long.time > 5.0) & (long.time < 15.0)), cutoff(10.0))
    same = np.isin(whole.time, part.time)
    assert part.time.size == same.sum() > 4000
    assert np.abs(whole.acceleration[same] - part.acceleration).max() < 0.02 * whole.acceleration.std()


def test_jittering_stamps_are_brought_to_an_even_grid_with_a_note() -> None:
    log = recording(encoder=0.0)
    jitter = 0.2 * 0.002 * np.random.default_rng(1).uniform(-1.0, 1.0, log.time.size)
    time = log.time + jitter
    position, velocity, _ = exact_motion(time)
    motion = to_motion(replace(log, time=time, position=position, velocity=velocity), cutoff(25.0))
    assert any("even grid" in text for text in motion.choices)
    assert np.allclose(np.diff(motion.time), motion.period)
    wanted = exact_motion(motion.time)
    assert np.abs(motion.acceleration - wanted[2]).max() < 5e-3 * wanted[2].std()
    assert not any("even grid" in text for text in to_motion(log, cutoff(25.0)).choices)


def test_lost_samples_that_hide_nothing_of_the_motion_are_bridged() -> None:
    log = recording(rate=50.0, encoder=0.0)
    holes = log.rows(np.arange(log.time.size) % 35 >= 7)  # seven samples are lost: 0.16 s from one to the next
    motion = to_motion(holes, cutoff(6.0))  # compared up to 3 Hz: samples may be 0.167 s apart
    assert np.allclose(np.diff(motion.time), motion.period)
    assert np.abs(motion.velocity - exact_motion(motion.time)[1]).max() < 0.03 * motion.velocity.std()
    assert not any("gap" in text for text in motion.choices)
    with pytest.raises(InputError, match="without a gap"):  # 0.16 s is more than half a period of 4 Hz
        to_motion(holes, cutoff(8.0))


def test_a_gap_is_not_crossed_and_divides_segments() -> None:
    log = recording(encoder=0.0)
    motion = to_motion(log.rows((log.time < 8.0) | (log.time > 8.1)), cutoff(25.0))
    assert np.abs(motion.acceleration - exact_motion(motion.time)[2]).max() < 5e-3 * motion.acceleration.std()
    gap = int(np.argmax(np.diff(motion.time)))
    assert motion.time[gap] < 8.0 and motion.time[gap + 1] > 8.1
    assert motion.segment[gap] + 1 == motion.segment[gap + 1]
    assert any("gap" in text for text in motion.choices)


def test_one_or_two_lost_samples_are_bridged() -> None:
    log = recording(encoder=0.0)
    rows = np.ones(log.time.size, dtype=bool)
    rows[1000::500] = False
    rows[1001::1000] = False
    motion = to_motion(log.rows(rows), cutoff(25.0))
    assert np.diff(motion.time).max() < 1.01 * motion.period
    assert np.abs(motion.acceleration - exact_motion(motion.time)[2]).max() < 5e-3 * motion.acceleration.std()
    assert any("lost samples are bridged" in text for text in motion.choices)


def test_segments_last_as_long_as_asked_and_count_up() -> None:
    motion = to_motion(recording(), cutoff(25.0), segment_duration=2.0)
    counts = np.bincount(motion.segment)
    assert np.all(np.diff(motion.segment) >= 0) and counts.size == 10
    assert counts.max() - counts.min() <= 1


def test_torque_and_inputs_stay_unfiltered_and_in_step_with_the_motion() -> None:
    log = recording()
    log = replace(log, inputs={"temperature": log.position + 20.0})
    motion = to_motion(log, cutoff(25.0))
    inner = np.searchsorted(log.time, motion.time)
    assert motion.effort is not None and log.effort is not None
    assert np.array_equal(motion.effort, log.effort[inner])
    assert np.array_equal(motion.inputs["temperature"], log.inputs["temperature"][inner])


def test_without_a_filter_every_sample_is_as_recorded_gaps_included() -> None:
    log = recording()
    log = log.rows((log.time < 8.0) | (log.time > 8.1))
    motion = to_motion(log, Treatment(np.inf, np.inf, measured=True))
    assert np.array_equal(motion.velocity, log.velocity)
    np.testing.assert_allclose(motion.time, log.time, atol=1e-12)
    with pytest.raises(InputError, match="velocity of every joint at every sample was not recorded"):
        to_motion(replace(log, velocity=None), Treatment(np.inf, np.inf))


def test_a_measured_velocity_is_the_one_that_is_filtered() -> None:
    log = recording()
    motion = to_motion(log, Treatment(25.0, 12.5, measured=True))
    assert log.velocity is not None
    wanted = filters.low_pass(log.velocity, motion.period, 25.0)[np.searchsorted(log.time, motion.time)]
    np.testing.assert_allclose(motion.velocity, wanted, atol=1e-12)
    with pytest.raises(InputError, match="velocity of every joint at every sample was not recorded"):
        to_motion(replace(log, velocity=None), Treatment(25.0, 12.5, measured=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"treatment": cutoff(400.0)}, "between 0 and 225 Hz"),
        ({"segment_duration": 0.0}, "longer than 0 s"),
        ({"treatment": cutoff(0.05)}, "the longest stretch has"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_choices(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        to_motion(recording(duration=5.0), **options)
