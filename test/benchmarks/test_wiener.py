"""The Wiener bound against signals whose best filter is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from benchmarks.accuracy.wiener import bound, momentum_residual, power_spectrum, wiener_errors

POLE, DRIVE, NOISE = 0.99, 0.1, 1.0


@pytest.fixture(scope="module")
def first_order():
    """First-order Gauss-Markov friction, and white noise, two signals of each."""
    rng = np.random.default_rng(0)
    white = rng.standard_normal((2, 100_000, 2))
    return lfilter([1.0], [1.0, -POLE], DRIVE * white[0], axis=0), NOISE * white[1]


def look_ahead_error():
    """Integral of S_f S_n / (S_f + S_n) of the exact spectra."""
    angle = np.linspace(-np.pi, np.pi, 20_001)
    friction = DRIVE**2 / np.abs(1.0 - POLE * np.exp(-1j * angle)) ** 2
    return np.sqrt(np.mean(friction * NOISE**2 / (friction + NOISE**2)))


def kalman_error():
    """Steady error of the Kalman filter, which for this signal is the causal Wiener filter."""
    variance = 1.0
    for _ in range(10_000):
        predicted = POLE**2 * variance + DRIVE**2
        variance = predicted * NOISE**2 / (predicted + NOISE**2)
    return np.sqrt(variance)


def test_bound_and_filters_reach_the_known_optimum(first_order):
    friction, noise = first_order
    errors = wiener_errors(friction, noise, np.ones(friction.shape, dtype=bool))
    assert errors.bound == pytest.approx(look_ahead_error(), rel=0.02)
    assert errors.applied == pytest.approx(look_ahead_error(), rel=0.03)
    assert errors.causal == pytest.approx(kalman_error(), rel=0.03)


def test_spectrum_keeps_the_mean_square_of_a_signal_and_of_a_constant(first_order):
    everywhere = np.ones(first_order[1].shape, dtype=bool)
    assert np.fft.irfft(power_spectrum(first_order[1], everywhere))[0] == pytest.approx(NOISE**2, rel=0.02)
    constant = np.full(first_order[1].shape, 3.0)
    assert np.fft.irfft(power_spectrum(constant, everywhere))[0] == pytest.approx(9.0, rel=1e-9)


def test_exact_sensors_leave_no_error_and_a_silent_signal_its_own_size(first_order):
    friction, noise = first_order
    everywhere = np.ones(friction.shape, dtype=bool)
    exact = wiener_errors(friction, np.zeros_like(noise), everywhere)
    assert max(exact.bound, exact.applied, exact.causal) < 1e-6
    drowned = wiener_errors(friction, 1e6 * noise, everywhere)
    assert drowned.applied == pytest.approx(np.sqrt(np.mean(friction**2)), rel=1e-3)


def test_each_phase_is_judged_by_its_own_spectrum(first_order):
    """Quiet sensors in one half of every other block: the error there is smaller, and no phase means no number."""
    friction, noise = first_order
    quiet = (np.arange(len(friction)) // 8192 % 2 == 0)[:, None] & np.ones(friction.shape, dtype=bool)
    mixed = np.where(quiet, 0.1 * noise, noise)
    assert wiener_errors(friction, mixed, quiet).applied < 0.6 * wiener_errors(friction, mixed, ~quiet).applied
    assert np.isnan(wiener_errors(friction, noise, np.zeros(friction.shape, dtype=bool)).applied)


def test_short_recordings_get_a_number_or_none(first_order):
    friction, noise = (signal[:6000] for signal in first_order)
    everywhere = np.ones(friction.shape, dtype=bool)
    assert wiener_errors(friction, noise, everywhere).applied == pytest.approx(look_ahead_error(), rel=0.25)
    too_short = wiener_errors(friction[:1500], noise[:1500], everywhere[:1500])
    assert np.isnan([too_short.applied, too_short.causal]).all()
    assert too_short.bound > 0.0


def test_bound_is_symmetric_in_signal_and_noise():
    spectra = np.random.default_rng(1).uniform(0.1, 1.0, (2, 33))
    assert bound(*spectra) == pytest.approx(bound(*spectra[::-1]))


def test_residual_of_exact_sensors_is_the_friction_with_both_feet_on_the_ground(clean_walk, model):
    """Without a low-pass nothing but the change within a period is left: landings, for a few samples."""
    both = np.array([phase.contact.all() for phase in clean_walk.phases])
    error = np.abs(momentum_residual("suralp", clean_walk, model) - clean_walk.friction)[both]
    assert len(error) > 2000
    assert np.quantile(error, 0.9, axis=0).max() < 0.02
