"""The torques of two sources in one: as good as the better source, with an honest sigma, whatever their correlation."""

import numpy as np
import pytest

from friction_estimator.learning.external_torque import Fusion

DT, SAMPLES, LEARNED = 1e-3, 12_000, 6000
CORRELATIONS = np.array([-0.5, 0.0, 0.5, 0.9])
SIZES = np.array([2.0, 0.5]), np.array([1.0, 3.0])
"""Standard deviations of the errors of observer and network, of one joint and of another one [N m]."""


def errors(seed):
    """Errors (2, samples, joints) of both sources, and their sizes (joints,); a joint for each correlation and size."""
    observer, network = (np.repeat(size, CORRELATIONS.size) for size in SIZES)
    correlation = np.tile(CORRELATIONS, 2)
    first, second = np.random.default_rng(seed).standard_normal((2, SAMPLES, correlation.size))
    both = np.stack((first, correlation * first + np.sqrt(1.0 - correlation**2) * second))
    return both * np.stack((observer, network))[:, None], observer, network


def fused(observer, network, observer_sigma, network_sigma):
    fusion = Fusion(observer.shape[1])
    steps = [
        fusion.step((k, observer_sigma), (n, network_sigma), DT)
        for k, n in zip(np.ascontiguousarray(observer), np.ascontiguousarray(network), strict=True)
    ]
    return np.array(steps).swapaxes(0, 1)


@pytest.mark.parametrize(("claimed", "least"), [((1.0, 1.0), 0.94), ((3.0, 1.0), 0.94), ((0.8, 0.8), 0.88)])
def test_it_is_as_good_as_the_better_source_with_a_sigma_that_is_not_too_small(claimed, least):
    (k, n), k_std, n_std = errors(1)
    torque, sigma = fused(k, n, claimed[0] * k_std, claimed[1] * n_std)
    late = slice(LEARNED, None)
    error = torque[late].std(axis=0)
    assert (error < 1.02 * np.minimum(k_std, n_std)).all()
    covariance = np.tile(CORRELATIONS, 2) * k_std * n_std
    w = np.clip((n_std**2 - covariance) / (k_std**2 + n_std**2 - 2.0 * covariance), 0.0, 1.0)
    best = np.sqrt((w * k_std) ** 2 + ((1.0 - w) * n_std) ** 2 + 2.0 * w * (1.0 - w) * covariance)
    np.testing.assert_allclose(error, best, rtol=0.03)
    assert (np.mean(np.abs(torque[late]) < 1.96 * sigma[late], axis=0) > least).all()


def test_an_external_torque_stays_in_full():
    (k, n), k_std, n_std = errors(2)
    external = 20.0 * np.sin(np.arange(SAMPLES) * DT * 7.0)[:, None]
    torque, _ = fused(k + external, n + external, k_std, n_std)
    gain = np.sum((torque * external)[LEARNED:], axis=0) / np.sum(external[LEARNED:] ** 2)
    np.testing.assert_allclose(gain, 1.0, atol=0.005)
    error = (torque - external)[LEARNED:].std(axis=0)
    assert (error < 1.05 * np.minimum(k_std, n_std)).all()


def test_while_the_sources_contradict_each_other_sigma_holds_both():
    (k, n), k_std, n_std = errors(3)
    held = slice(LEARNED, LEARNED + 3000)
    n[held] += 30.0
    torque, sigma = fused(k, n, k_std, n_std)
    assert (np.abs(torque - k) < 2.0 * sigma)[held].all() and (np.abs(torque - n) < 2.0 * sigma)[held].all()


def test_one_source_alone_is_passed_on():
    k, n = np.tile([1.0, np.nan, 3.0], (200, 1)), np.tile([np.nan, 2.0, np.nan], (200, 1))
    torque, sigma = fused(k, n, np.full(3, 0.1), np.full(3, 0.2))
    np.testing.assert_array_equal(torque[-1], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sigma[-1], [0.1, 0.2, 0.1])
