"""Claims about fits to a few readings: exact for parabolas, and their variance is the true one."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.kalman.local_motion import LocalMotion, fit_acceleration, fit_middle, reading_stds

TIMES = 5.0 + np.arange(-4, 5) * 1e-3
UNEVEN = 5.0 + np.array([-4.1, -3.0, -1.8, -1.1, 0.0, 0.9, 2.2, 3.0, 4.0]) * 1e-3


def at_middle(readings, noise, joints):
    out = LocalMotion(*np.zeros((3, joints)), *np.zeros((2, 3)))
    fit_middle(readings, reading_stds(noise), out)
    return out


def mean_acceleration(readings, noise, joints):
    mean, std = np.zeros((2, 3 + joints))
    fit_acceleration(readings, reading_stds(noise), mean, std)
    return mean, std


@pytest.mark.parametrize("times", [TIMES, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("cutoff", [0.0, 60.0])
def test_parabolas_are_met_exactly(times, cutoff):
    noise = SensorNoise(position_std=1e-4, velocity_std=1e-2, velocity_cutoff=cutoff)
    q, dq, ddq = np.array([0.3, -1.0]), np.array([2.0, -0.1]), np.array([20.0, -300.0])
    t = (times - 5.0)[:, None]
    rate = np.array([0.1, 0.2, -0.3])
    turning = rate + 7.0 * (t - t.mean()) * [1.0, 0.0, -1.0]
    readings = np.column_stack((times, q + dq * t + 0.5 * ddq * t**2, dq + ddq * t, turning))
    found = at_middle(readings, noise, 2)
    np.testing.assert_allclose(found.position, q, atol=1e-10)
    np.testing.assert_allclose(found.velocity, dq, atol=1e-8)
    np.testing.assert_allclose(found.angular_velocity, rate, atol=1e-12)
    np.testing.assert_allclose(mean_acceleration(readings, noise, 2)[0], [7.0, 0.0, -7.0, *ddq], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("times", [TIMES, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(
    ("position_std", "velocity_std", "cutoff"),
    [(1e-7, 2e-3, 0.0), (3e-4, 4.5e-2, 0.0), (1e-3, 1e-3, 0.0), (1e-4, 1e-4, 60.0)],
)
def test_standard_deviations_are_those_of_the_errors(times, position_std, velocity_std, cutoff):
    noise = SensorNoise(
        position_std=position_std, velocity_std=velocity_std, velocity_cutoff=cutoff, angular_velocity_std=5e-3
    )
    rng, draws = np.random.default_rng(0), 20_000
    position, velocity = rng.normal(size=(9, draws)) * position_std, rng.normal(size=(9, draws)) * velocity_std
    turning = rng.normal(size=(1000, 9, 3)) * 5e-3
    readings = np.column_stack((times, position, velocity, turning[0]))
    found, (acceleration, std) = at_middle(readings, noise, draws), mean_acceleration(readings, noise, draws)
    assert found.velocity.std() == pytest.approx(np.median(found.velocity_std), rel=0.03)
    assert acceleration[3:].std() == pytest.approx(std[-1], rel=0.03)
    at_rest = np.column_stack((times, np.zeros((9, 2))))
    turns = [at_middle(np.hstack((at_rest, turned)), noise, 1) for turned in turning]
    stds = [turn.angular_velocity_std for turn in turns]
    assert np.std([turn.angular_velocity for turn in turns]) == pytest.approx(np.median(stds), rel=0.05)
    rates = [mean_acceleration(np.hstack((at_rest, turned)), noise, 1)[0][:3] for turned in turning]
    assert np.std(rates) == pytest.approx(std[0], rel=0.05)


def test_what_bends_or_shakes_within_a_fit_makes_its_velocity_unsure():
    """A jerk of 1e4 rad/s^3, and readings that alternate, both far above the noise of the sensor."""
    noise, t = SensorNoise(position_std=1e-9, velocity_std=1e-6), (TIMES - 5.0)[:, None]
    bent = np.hstack((np.zeros_like(t), 1e4 * t**3 / 6.0)), np.hstack((np.zeros_like(t), 1e4 * t**2 / 2.0))
    found = at_middle(np.column_stack((TIMES, *bent, np.zeros((9, 3)))), noise, 2)
    assert found.velocity_std[0] < 1e-6 and found.velocity_std[1] > abs(found.velocity[1]) > 0.01
    shaking = np.where(np.arange(9) % 2, 0.1, -0.1)[:, None] * np.ones(3)
    found = at_middle(np.column_stack((TIMES, np.zeros((9, 2)), shaking)), noise, 1)
    assert found.angular_velocity_std == pytest.approx(0.1, rel=0.2)


def test_no_other_weights_of_the_same_readings_are_better():
    """Gauss-Markov: leaving out either kind of reading makes the velocity worse."""
    both = SensorNoise(position_std=1e-5, velocity_std=1e-2)
    readings = np.column_stack((TIMES, np.zeros((9, 5))))
    std = at_middle(readings, both, 1).velocity_std[0]
    positions_only = SensorNoise(position_std=1e-5, velocity_std=1e-2, velocity_cutoff=60.0)
    velocities_only = SensorNoise(position_std=1.0, velocity_std=1e-2)
    assert std < at_middle(readings, positions_only, 1).velocity_std[0]
    assert std < at_middle(readings, velocities_only, 1).velocity_std[0]
