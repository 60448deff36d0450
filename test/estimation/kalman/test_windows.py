"""Claims about windows: they tile the time, their means are impulses, and they know what they are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.windows import Window, WindowBuffer
from friction_estimator.types import Attitude, SensorFrame
from test.estimation.kalman import sampling


@dataclasses.dataclass(frozen=True)
class Sample:
    """The arguments of :func:`add` after the buffer."""

    time: float
    frame: SensorFrame
    attitude: Attitude
    acceleration: np.ndarray
    regressor: np.ndarray
    motor_friction_variance: np.ndarray
    disturbed: np.ndarray


EVEN = np.arange(400) * 1e-3
JITTER = EVEN + np.random.default_rng(7).uniform(-3e-4, 3e-4, EVEN.size)


def sample(time: float, rng: np.random.Generator, **changes: Any) -> Sample:
    """Random readings of two joints and one foot."""
    frame = SensorFrame(
        0, 1e-3, rng.normal(size=2), rng.normal(size=2), rng.normal(size=2), rng.normal(size=3), rng.normal(size=3),
        rng.normal(size=(1, 6)), changes.get("imu_fresh", True), np.array([changes.get("foot_fresh", True)]),
        np.ones(2),
    )  # fmt: skip
    attitude = Attitude(
        np.eye(3), frame.angular_velocity, rng.normal(size=3), frame.specific_force, np.zeros((3, 3)), np.zeros((3, 3))
    )
    return Sample(
        time, frame, attitude, rng.normal(size=2),
        rng.normal(size=(2, 3)), rng.uniform(size=2), np.array([changes.get("disturbed", False), False]),
    )  # fmt: skip


def samples(times: np.ndarray, **changes: dict[int, Any]) -> list[Sample]:
    rng = np.random.default_rng(0)
    return [
        sample(time, rng, **{name: at[k] for name, at in changes.items() if k in at}) for k, time in enumerate(times)
    ]


def add(buffer: WindowBuffer, item: Sample) -> Window | None:
    return sampling.add(buffer, *(getattr(item, field.name) for field in dataclasses.fields(item)))


def windows(collected: Sequence[Sample], held: bool = True, length: float = 0.01) -> list[Window]:
    buffer = WindowBuffer(KalmanConfig(window=length), SensorNoise(), held)
    closed = [add(buffer, item) for item in collected]
    return [window for window in closed if window is not None]


@pytest.mark.parametrize("times", [EVEN, JITTER], ids=["even", "jitter"])
def test_windows_tile_the_time(times):
    found = windows(samples(times))
    assert found[0].duration == 0.0 and len(found) == 40
    for before, now in zip(found[:-1], found[1:], strict=True):
        assert now.time - now.duration == pytest.approx(before.time, abs=1e-12)
        assert now.duration == pytest.approx(0.01, abs=1e-3)
        assert now.samples == 10 and now.complete


def test_the_length_in_samples_follows_the_period():
    found = windows(samples(np.arange(100) * 5e-3), length=0.03)
    assert {window.samples for window in found[1:]} == {6}
    shortest = windows(samples(np.arange(100) * 20e-3), length=0.01)  # slower sensors than windows
    assert {window.samples for window in shortest[1:]} == {3}


@pytest.mark.parametrize("times", [EVEN, JITTER], ids=["even", "jitter"])
def test_means_of_held_inputs_are_impulses(times):
    """Each reading acts until the next one."""
    collected = samples(times)
    for window in windows(collected)[1:]:
        first = int(np.argmin(np.abs(times - (window.time - window.duration))))
        inside, steps = collected[first : first + window.samples], np.diff(times[first : first + window.samples + 1])
        effort = steps @ np.array([item.frame.effort for item in inside])
        np.testing.assert_allclose(window.effort * window.duration, effort, atol=1e-12)
        force = steps @ np.array([item.attitude.specific_force for item in inside])
        np.testing.assert_allclose(window.specific_force * window.duration, force, atol=1e-12)
        wrench = steps @ np.array([item.frame.wrenches[0] for item in inside])
        np.testing.assert_allclose(window.wrenches[0] * window.duration, wrench, atol=1e-12)


@pytest.mark.parametrize("times", [EVEN, JITTER], ids=["even", "jitter"])
def test_means_of_continuous_signals_are_integrals(times):
    """The trapezoid rule: for all inputs if they are told to be continuous, for the regressor always."""
    collected = samples(times)
    for window in windows(collected, held=False)[1:]:
        first = int(np.argmin(np.abs(times - (window.time - window.duration))))
        part = slice(first, first + window.samples + 1)
        inside = collected[part]
        effort = trapezoid(np.array([item.frame.effort for item in inside]), times[part], axis=0)
        np.testing.assert_allclose(window.effort * window.duration, effort, atol=1e-12)
        regressor = trapezoid(np.array([item.regressor for item in inside]), times[part], axis=0)
        np.testing.assert_allclose(window.regressor * window.duration, regressor, atol=1e-12)
    for held, other in zip(windows(collected)[1:], windows(collected, held=False)[1:], strict=True):
        np.testing.assert_array_equal(held.regressor, other.regressor)


def test_no_reading_of_the_motion_counts_at_two_ends():
    collected = samples(EVEN)
    reference = [window.end_motion.velocity for window in windows(collected)]
    touched = []
    for k in range(100, 120):
        frame = collected[k].frame
        moved = dataclasses.replace(frame, position=frame.position + 1.0, velocity=frame.velocity + 1.0)
        changed = [*collected[:k], dataclasses.replace(collected[k], frame=moved), *collected[k + 1 :]]
        ends = [window.end_motion.velocity for window in windows(changed)]
        touched.append(sum(not np.array_equal(a, b) for a, b in zip(ends, reference, strict=True)))
    assert max(touched) == 1 and sum(touched) >= 16


@pytest.mark.parametrize(
    ("what", "value", "flag", "expected"),
    [
        ("imu_fresh", False, lambda window: window.imu_fresh, False),
        ("foot_fresh", False, lambda window: bool(window.wrench_fresh[0]), False),
        ("disturbed", True, lambda window: bool(window.disturbed[0]), True),
    ],
)
def test_one_sample_marks_every_window_that_it_is_used_in(what, value, flag, expected):
    """Sample 204 lies between the ends 194, 204 and 214, and in the fits around them reach four more."""
    found = windows(samples(EVEN, **{what: {200: value}}))
    marked = [round(window.time * 1e3) for window in found if flag(window) is expected]
    assert marked == [204, 214]
    assert not any(window.disturbed[1] for window in found)


def test_a_gap_makes_its_window_incomplete_and_no_other():
    times = np.r_[EVEN[:200], EVEN[200:] + 0.005]
    found = windows(samples(times))
    broken = [window for window in found if not window.complete]
    assert 1 <= len(broken) <= 2 and all(abs(window.time - 0.2) < 0.02 for window in broken)
    assert sum(window.duration for window in found) == pytest.approx(found[-1].time - found[0].time)


def test_extremes_of_the_normal_force_are_those_inside():
    found = windows(samples(EVEN))
    for window in found[1:]:
        assert window.normal_force[0, 0] <= window.wrenches[0, 2] <= window.normal_force[1, 0]


def test_reset_begins_anew():
    buffer = WindowBuffer(KalmanConfig(), SensorNoise(), True)
    collected = samples(EVEN)
    first = [add(buffer, item) for item in collected[:137]]
    buffer.reset()
    second = [add(buffer, item) for item in collected[:137]]
    times = [[window.time for window in part if window is not None] for part in (first, second)]
    assert times[0] == times[1] and len(times[0]) == 13


def test_roughness_is_the_variance_of_white_noise_and_nothing_of_a_smooth_course():
    rng = np.random.default_rng(3)
    found = windows([sample(time, rng) for time in np.arange(4000) * 1e-3])[1:]
    assert np.mean([window.specific_force_roughness for window in found]) == pytest.approx(1.0, rel=0.05)
    assert np.mean([window.wrench_roughness for window in found]) == pytest.approx(1.0, rel=0.05)
    slope = [
        dataclasses.replace(item, attitude=item.attitude._replace(specific_force=40.0 * item.time * np.ones(3)))
        for item in samples(EVEN)
    ]
    np.testing.assert_allclose([window.specific_force_roughness for window in windows(slope)[1:]], 0.0, atol=1e-20)
