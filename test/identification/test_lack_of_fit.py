"""Claims about the measure of friction that a law does not describe, as a curve over the velocity."""

import numpy as np
import pytest

from friction_estimator.identification.uncertainty import velocity_dependent_rms


def motion(samples=4000):
    time = np.linspace(0.0, 40.0, samples)
    return np.sin(time) + 0.5 * np.sin(2.3 * time), np.random.default_rng(0).normal(size=samples)


def test_a_curve_over_the_velocity_is_measured_under_noise():
    velocity, noise = motion()
    curve = 0.5 * np.sin(3.0 * velocity)
    assert velocity_dependent_rms(velocity, curve + noise) == pytest.approx(np.sqrt(np.mean(curve**2)), rel=0.1)


def test_noise_alone_is_no_curve():
    velocity, noise = motion()
    assert velocity_dependent_rms(velocity, noise) < 0.1


def test_an_error_that_comes_once_is_no_curve():
    velocity, noise = motion()
    noise[1000:1150] += 5.0
    assert velocity_dependent_rms(velocity, noise) < 0.25


@pytest.mark.parametrize("samples", [0, 3, 20])
def test_few_samples_show_nothing(samples):
    assert velocity_dependent_rms(*motion(samples)) == 0.0
