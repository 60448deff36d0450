"""Friction of a motor that is not driven, in the form in which it is fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from friction_estimator.errors import ConfigError
from friction_estimator.identification.curves.decision import FrictionCurveOptions
from friction_estimator.identification.curves.drive import FREE_OFFSET, INERTIA
from friction_estimator.identification.curves.fit import CurveFit, CurveOptions, fit_curve
from friction_estimator.identification.curves.friction_curve import identify_friction_curve
from friction_estimator.identification.curves.motor import MotorOptions, motor_law, offset_shows
from friction_estimator.laws import make_law
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.laws.published import STRIBECK_VELOCITY
from test.identification.hand_motion import STRIBECK, as_motion, motor_samples

PARAMETERS = {
    "coulomb_viscous": np.array([0.6, 12.0]),
    "asymmetric": np.array([0.6, 12.0, 0.9, 10.0]),
    "asymmetric_stribeck": STRIBECK,
}
DRIVE_INERTIA, OFFSET = 0.4, 0.15
PLAIN = CurveOptions(robust=False, starts=16)


def fitted(law: str, samples, **options) -> CurveFit:
    return fit_curve(make_law(law), samples, CurveOptions(**options))


def identified(samples, law: str = "asymmetric_stribeck") -> IdentifiedParameters:
    options = FrictionCurveOptions(law, delay=0.0, offset=False)
    return identify_friction_curve([as_motion(samples)], options).friction


@pytest.mark.parametrize("law", PARAMETERS)
def test_noiseless_data_give_what_went_in(law):
    shows = offset_shows(make_law(law))
    columns = (INERTIA, FREE_OFFSET) if shows else (INERTIA,)
    samples = motor_samples(law, PARAMETERS[law], DRIVE_INERTIA, OFFSET if shows else 0.0, columns=columns)
    found = fit_curve(make_law(law), samples, PLAIN)
    np.testing.assert_allclose(found.friction.values, PARAMETERS[law], atol=1e-8)
    np.testing.assert_allclose(
        list(found.extra_parameters.values()), [DRIVE_INERTIA, OFFSET][: len(columns)], atol=1e-8
    )


def test_an_offset_cannot_be_separated_from_dry_friction_of_each_direction():
    assert [name for name in PARAMETERS if not offset_shows(make_law(name))] == ["asymmetric"]


def test_the_stribeck_velocity_is_found():
    truth = np.array([*STRIBECK, 0.04])
    law = "asymmetric_stribeck_scaled"
    found = fitted(law, motor_samples(law, truth, DRIVE_INERTIA, columns=(INERTIA,)))
    np.testing.assert_allclose(found.values, [*truth, DRIVE_INERTIA], rtol=1e-3)


@pytest.mark.parametrize(("slowest", "unseen"), [((0.09, 0.001), 2), ((0.001, 0.09), 3)])
def test_a_searched_stribeck_velocity_extrapolates_no_static_friction_either(slowest, unseen):
    """What moves slowly in one direction only shows the static friction of that direction only."""
    truth = np.array([*STRIBECK, 0.02])
    samples = motor_samples("asymmetric_stribeck_scaled", truth, noise=0.05)
    least = np.where(samples.velocity > 0.0, *slowest)
    samples = replace(samples, friction=np.where(np.abs(samples.velocity) > least, samples.friction, np.nan))
    found = identified(samples, "asymmetric_stribeck_scaled")
    values, sigma = found.values[0], np.sqrt(np.diagonal(found.covariance[0]))
    assert 0.0 <= values[unseen] < 2.0 * STRIBECK.max() and values[0] == pytest.approx(STRIBECK[0], abs=0.05)
    assert (np.abs(values - truth) < 3.0 * sigma).all() and sigma[unseen] > 0.2


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_where_no_static_friction_shows_the_stribeck_velocity_is_uncertain_and_the_rest_within_its_sigma(seed):
    samples = motor_samples("coulomb_viscous", PARAMETERS["coulomb_viscous"], noise=0.1, seed=seed)
    found = identified(samples, "asymmetric_stribeck_scaled")
    sigma = np.sqrt(np.diagonal(found.covariance[0]))
    assert (np.abs(found.values[0, :4] - [0.6, 12.0, 0.6, 0.6]) < 3.0 * sigma[:4]).all()
    assert sigma[4] > 0.5 * found.values[0, 4]


def test_a_given_stribeck_velocity_is_written_down_without_error():
    truth = np.array([*STRIBECK, 0.04])
    law = "asymmetric_stribeck_scaled"
    found = fitted(law, motor_samples(law, truth), stribeck_velocity=0.04).friction
    np.testing.assert_allclose(found.values, truth, atol=1e-6)
    assert found.covariance[4, 4] == 0.0


@pytest.mark.parametrize("velocity", [0.0175, None])
@pytest.mark.parametrize(("side", "directions"), [("positive", [1]), ("negative", [-1]), ("both", [1, -1])])
def test_constrained_friction_leaves_standstill_with_zero_slope(side, directions, velocity):
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    law = "asymmetric_stribeck_scaled" if velocity is None else "asymmetric_stribeck"
    found = fitted(law, samples, zero_slope=side).friction
    for direction in (1, -1):
        near, far = found.torque(direction * np.array([1e-7, 2e-7]))
        slope = direction * (far - near) / 1e-7
        assert (abs(slope) < 1e-3 * found.values[1]) == (direction in directions)


def test_the_constraint_holds_for_the_error_too():
    """``sigma+ - K_c - v_s K_v`` is known to be zero."""
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    found = fitted("asymmetric_stribeck", samples, zero_slope="positive").friction
    slope = np.array([-1.0, -STRIBECK_VELOCITY, 1.0, 0.0])
    assert slope @ found.covariance @ slope == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("searched", [False, True])
def test_errors_are_as_large_as_their_covariance(searched):
    truth = np.array([*STRIBECK, 0.03]) if searched else STRIBECK
    law = "asymmetric_stribeck_scaled" if searched else "asymmetric_stribeck"
    nees, runs = 0.0, 12
    for seed in range(runs):
        samples = motor_samples(law, truth, noise=0.1, seed=seed)
        found = fit_curve(make_law(law), samples.select(slice(None, None, 8)), PLAIN).friction
        nees += (found.values - truth) @ np.linalg.solve(found.covariance, found.values - truth)
    freedom = runs * truth.size
    assert 0.5 * freedom < nees < chi2.ppf(0.995, freedom)


def test_a_motor_turned_around_has_its_static_frictions_swapped():
    samples = motor_samples(
        "asymmetric_stribeck", STRIBECK, DRIVE_INERTIA, OFFSET, noise=0.1, columns=(INERTIA, FREE_OFFSET)
    )
    turned = replace(
        samples,
        velocity=-samples.velocity,
        friction=-samples.friction,
        extra_columns=samples.extra_columns * [-1.0, 1.0],
    )
    one, other = (fitted("asymmetric_stribeck", signals) for signals in (samples, turned))
    np.testing.assert_allclose(other.friction.values, one.friction.values[[0, 1, 3, 2]], rtol=1e-6)
    np.testing.assert_allclose(
        [*other.extra_parameters.values()], [*one.extra_parameters.values()] * np.array([1.0, -1.0]), rtol=1e-6
    )


@pytest.mark.parametrize("directions", [[1], [-1], [1, -1]])
def test_static_friction_that_nothing_shows_is_coulomb_friction(directions):
    """Extrapolated by exp(|dq| / v_s) it was thousands of newton metres, which a controller would have commanded."""
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    shown = (np.abs(samples.velocity) > 0.1) | ~np.isin(np.sign(samples.velocity), directions)
    found = identified(replace(samples, friction=np.where(shown, samples.friction, np.nan)))
    values, sigma = found.values[0], np.sqrt(np.diagonal(found.covariance[0]))
    unseen = np.isin(np.arange(4), [2 if direction > 0 else 3 for direction in directions])
    assert (np.abs(values[unseen] - values[0]) < sigma[unseen]).all() and values.max() < 3.0 * STRIBECK.max()
    np.testing.assert_allclose(values[~unseen], STRIBECK[~unseen], rtol=0.1)
    assert (np.abs(values - STRIBECK) < 3.0 * sigma).all() and (sigma[unseen] > 0.5).all()


def test_static_friction_that_shows_above_the_stribeck_velocity_is_identified_within_its_sigma():
    """Many samples at two Stribeck velocities are worth some at one: Coulomb friction there would be far off."""
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.05)
    seen = np.abs(samples.velocity) > 0.025
    found = identified(replace(samples, friction=np.where(seen, samples.friction, np.nan)))
    sigma = np.sqrt(np.diagonal(found.covariance[0]))
    assert (np.abs(found.values[0] - STRIBECK) < 3.0 * sigma).all() and (sigma[2:] < 0.5 * STRIBECK[2:]).all()


def test_outliers_do_not_pull():
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.05)
    knocks = np.where(np.arange(6000) % 50 == 0, 5.0, 0.0)
    found = fitted("asymmetric_stribeck", replace(samples, friction=samples.friction + knocks))
    np.testing.assert_allclose(found.values, STRIBECK, rtol=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (MotorOptions(law="nope"), "'asymmetric_stribeck', 'asymmetric_stribeck_scaled', 'coulomb_viscous'"),
        (MotorOptions(zero_slope="upwards"), "'both', 'negative', 'none', 'positive'"),
        (MotorOptions(law="coulomb_viscous", stribeck_velocity=0.02), "are for the law 'asymmetric_stribeck', not for"),
        (MotorOptions(law="coulomb_viscous", zero_slope="both"), "are for the law 'asymmetric_stribeck'"),
        (MotorOptions(stribeck_velocity=0.0), "must be above zero"),
    ],
)
def test_impossible_laws_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        motor_law(options)
