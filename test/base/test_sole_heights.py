"""Claims about the height of the base above soles that settle."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.base.soles import new_heights, step_heights

DT = 0.005
SPEED = 0.15
HEIGHT = 0.6


def use(filter_, soles, standing, load, distance, moved, spread):
    """Advance the filter by one sample."""
    step_heights(filter_, soles, standing, load, distance, moved, spread)


def walk(steps, rise=0.0, early=0.0, wander=0.0, seed=0):
    """Two soles take turns; returns the error of the height of the base and its standard deviation after each step.

    ``rise`` is that of each step of the stairs; a sole seems ``early`` too high before it carries, less as it takes
    over; ``wander`` is white noise of the joints [m].
    """
    rng = np.random.default_rng(seed)
    filter_ = new_heights(2)
    truth, base, both = np.zeros(2), HEIGHT, np.array([True, True])
    errors, sigmas = [], []
    for step in range(steps):
        new = step % 2
        if step:
            truth[new] = truth[1 - new] + rise
        for taken in np.concatenate((np.full(30, -1.0), np.linspace(0.0, 1.0, 30))):
            standing = both if taken >= 0.0 or not step else np.arange(2) != new
            load = np.full(2, 2.0 * (1.0 - max(taken, 0.0))) if step else np.ones(2)
            load[new] = 2.0 - load[1 - new]
            last, base = base, HEIGHT + truth @ load / 2.0
            seen = truth - base + early * (1.0 - np.minimum(load, 1.0)) + wander * rng.normal(size=2)
            use(filter_, seen, standing, load, SPEED * DT, base - last, 1e-4 * DT)
        errors.append(filter_.mean[0] - base)
        sigmas.append(np.sqrt(filter_.covariance[0, 0]))
    return np.array(errors), np.array(sigmas)


def test_height_is_exact_over_exact_soles_on_the_level_and_on_stairs():
    for rise in (0.0, 0.15, -0.15):
        np.testing.assert_allclose(walk(10, rise)[0], 0.0, atol=1e-8)


def test_soles_that_land_high_and_settle_do_not_lift_the_base():
    """Taken at the first touch, each of them would add what it settles by."""
    early, steps = 0.004, 20
    errors, _ = walk(steps, early=early)
    assert abs(errors[-1]) < 0.1 * early * steps


def test_sigma_covers_the_error_and_grows_with_the_distance_travelled():
    ends = []
    for seed in range(20):
        errors, sigmas = walk(20, early=0.002, wander=0.002, seed=seed)
        ends.append(errors[-1] / sigmas[-1])
        assert sigmas[-1] > 2.0 * sigmas[1]
    assert np.mean(np.abs(ends) < 2.0) > 0.9


def test_a_robot_that_only_stands_keeps_its_height_though_the_joints_are_noisy():
    rng = np.random.default_rng(1)
    filter_ = new_heights(2)
    for _ in range(2000):
        use(filter_, -HEIGHT + 1e-3 * rng.normal(size=2), np.array([True, True]), np.ones(2), 0.0, 0.0, 1e-6)
    assert filter_.mean[0] == pytest.approx(HEIGHT, abs=3e-3)
