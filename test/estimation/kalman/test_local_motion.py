"""Claims about fits to a few readings: exact for parabolas, and their variance is the true one."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.config import SensorNoise
from friction_estimator.estimation.kalman.local_motion import LocalMotionFit

TIMES = 5.0 + np.arange(-4, 5) * 1e-3
UNEVEN = 5.0 + np.array([-4.1, -3.0, -1.8, -1.1, 0.0, 0.9, 2.2, 3.0, 4.0]) * 1e-3


@pytest.mark.parametrize("times", [TIMES, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("cutoff", [0.0, 60.0])
def test_parabolas_are_met_exactly(times, cutoff):
    fit = LocalMotionFit(SensorNoise(position_std=1e-4, velocity_std=1e-2, velocity_cutoff=cutoff))
    q, dq, ddq = np.array([0.3, -1.0]), np.array([2.0, -0.1]), np.array([20.0, -300.0])
    t = (times - 5.0)[:, None]
    rate = np.array([0.1, 0.2, -0.3])
    turning = rate + 7.0 * (t - t.mean()) * [1.0, 0.0, -1.0]
    readings = np.column_stack((times, q + dq * t + 0.5 * ddq * t**2, dq + ddq * t, turning))
    found = fit.at_middle(readings, 2)
    np.testing.assert_allclose(found.position, q, atol=1e-10)
    np.testing.assert_allclose(found.velocity, dq, atol=1e-8)
    np.testing.assert_allclose(found.angular_velocity, rate, atol=1e-12)
    np.testing.assert_allclose(fit.acceleration(readings, 2)[0], [7.0, 0.0, -7.0, *ddq], rtol=1e-6, atol=1e-8)


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
    fit = LocalMotionFit(noise)
    readings = np.column_stack((times, position, velocity, turning[0]))
    found, (acceleration, std) = fit.at_middle(readings, draws), fit.acceleration(readings, draws)
    assert found.velocity.std() == pytest.approx(np.median(found.velocity_std), rel=0.03)
    assert acceleration[3:].std() == pytest.approx(std[-1], rel=0.03)
    at_rest = np.column_stack((times, np.zeros((9, 2))))
    turns = [fit.at_middle(np.hstack((at_rest, turned)), 1) for turned in turning]
    stds = [turn.angular_velocity_std for turn in turns]
    assert np.std([turn.angular_velocity for turn in turns]) == pytest.approx(np.median(stds), rel=0.05)
    rates = [fit.acceleration(np.hstack((at_rest, turned)), 1)[0][:3] for turned in turning]
    assert np.std(rates) == pytest.approx(std[0], rel=0.05)


def test_what_bends_or_shakes_within_a_fit_makes_its_velocity_unsure():
    """A jerk of 1e4 rad/s^3, and readings that alternate, both far above the noise of the sensor."""
    fit, t = LocalMotionFit(SensorNoise(position_std=1e-9, velocity_std=1e-6)), (TIMES - 5.0)[:, None]
    bent = np.hstack((np.zeros_like(t), 1e4 * t**3 / 6.0)), np.hstack((np.zeros_like(t), 1e4 * t**2 / 2.0))
    found = fit.at_middle(np.column_stack((TIMES, *bent, np.zeros((9, 3)))), 2)
    assert found.velocity_std[0] < 1e-6 and found.velocity_std[1] > abs(found.velocity[1]) > 0.01
    shaking = np.where(np.arange(9) % 2, 0.1, -0.1)[:, None] * np.ones(3)
    found = fit.at_middle(np.column_stack((TIMES, np.zeros((9, 2)), shaking)), 1)
    assert found.angular_velocity_std == pytest.approx(0.1, rel=0.2)


def test_no_other_weights_of_the_same_readings_are_better():
    """Gauss-Markov: leaving out either kind of reading makes the velocity worse."""
    both = SensorNoise(position_std=1e-5, velocity_std=1e-2)
    readings = np.column_stack((TIMES, np.zeros((9, 5))))
    std = LocalMotionFit(both).at_middle(readings, 1).velocity_std[0]
    positions_only = SensorNoise(position_std=1e-5, velocity_std=1e-2, velocity_cutoff=60.0)
    velocities_only = SensorNoise(position_std=1.0, velocity_std=1e-2)
    assert std < LocalMotionFit(positions_only).at_middle(readings, 1).velocity_std[0]
    assert std < LocalMotionFit(velocities_only).at_middle(readings, 1).velocity_std[0]
