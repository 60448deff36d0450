"""Stamps that are noisier than the sampling."""

import numpy as np
import pytest

from friction_estimator.estimation.motion.sensor_monitor import StampClock

PERIOD = 1e-3
SAMPLES = 1000


def intervals(stamps: np.ndarray, sampled: np.ndarray, resolution: float = 0.0) -> np.ndarray:
    """Intervals that the clock trusts, for joints that swing and are read at ``sampled`` with this resolution."""
    clock = StampClock(2)
    positions = np.stack((0.5 * np.sin(6.0 * sampled), 0.1 * np.cos(3.0 * sampled)), axis=1)
    if resolution > 0.0:
        positions = resolution * np.round(positions / resolution)
    steps = np.diff(stamps)
    return np.array([clock.interval(float(dt), q) for dt, q in zip(steps, positions[1:], strict=True)])


@pytest.fixture
def jitter():
    return np.random.default_rng(3).uniform(-0.3, 0.3, SAMPLES) * PERIOD


def test_noisy_stamps_of_even_sampling_become_whole_periods(jitter):
    even = PERIOD * np.arange(SAMPLES)
    trusted = intervals(even + jitter, even)[200:]
    assert np.ptp(trusted[:700]) < 0.05 * PERIOD
    assert trusted.mean() == pytest.approx(PERIOD, rel=0.02)


@pytest.mark.parametrize("bits", [13, 16])
def test_coarse_encoders_decide_as_fine_ones_do(bits):
    """Steps of the encoder are larger than what uneven sampling moves the joints by."""
    even, rng, resolution = PERIOD * np.arange(6 * SAMPLES), np.random.default_rng(1), 2.0 * np.pi / 2**bits
    stamps = even + rng.uniform(-0.3, 0.3, even.size) * PERIOD
    assert np.ptp(intervals(stamps, even, resolution)[3000:]) < 0.1 * PERIOD
    np.testing.assert_array_equal(intervals(stamps, stamps, resolution)[3000:], np.diff(stamps)[3000:])


def test_the_period_of_very_noisy_stamps_is_that_of_the_sampling():
    """Errors of up to 0.45 periods: intervals longer than 1.8 periods are noise and no missing samples."""
    even, rng = PERIOD * np.arange(4 * SAMPLES), np.random.default_rng(0)
    noise = np.clip(0.3 * rng.standard_normal(even.size), -0.45, 0.45) * PERIOD
    trusted = intervals(even + noise, even)[400:]
    assert np.mean(trusted > 1.5 * PERIOD) < 1e-3
    assert np.median(trusted) == pytest.approx(PERIOD, rel=2e-3)


def test_true_stamps_of_uneven_sampling_are_trusted(jitter):
    uneven = PERIOD * np.arange(SAMPLES) + jitter
    np.testing.assert_array_equal(intervals(uneven, uneven)[200:], np.diff(uneven)[200:])


def test_even_stamps_are_trusted_to_the_last_bit():
    even = PERIOD * np.arange(SAMPLES)
    np.testing.assert_array_equal(intervals(even, even), np.diff(even))


def test_a_missing_sample_counts_as_two_periods(jitter):
    even = PERIOD * np.arange(SAMPLES)
    keep = np.arange(SAMPLES) != 600
    trusted = intervals((even + jitter)[keep], even[keep])
    assert trusted[599] == pytest.approx(2.0 * PERIOD, rel=0.05)


def test_a_tenth_of_the_samples_missing_does_not_lengthen_the_period(jitter):
    even = PERIOD * np.arange(SAMPLES)
    keep = np.random.default_rng(5).random(SAMPLES) >= 0.1
    periods = np.diff(np.flatnonzero(keep))
    for noise in (0.0 * jitter, 0.3 * jitter, jitter):
        trusted = intervals((even + noise)[keep], even[keep])[200:]
        assert np.median(trusted[periods[200:] == 1]) == pytest.approx(PERIOD, rel=0.03)


def test_a_sample_that_restarts_the_filters_has_no_interval():
    assert StampClock(1).interval(0.0, np.zeros(1)) == 0.0
