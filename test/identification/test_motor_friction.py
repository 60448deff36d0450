"""First phase: friction of a motor that is not driven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from friction_estimator.errors import ConfigError, InputError
from friction_estimator.identification.linear_problem import ORDINARY, SolverOptions
from friction_estimator.identification.motor.fit import MotorFriction, fit_motor_friction
from friction_estimator.identification.motor.problem import FrictionUnknowns, MotorLaw
from test.identification.hand_motion import STRIBECK, motor_samples

PARAMETERS = {
    "coulomb_viscous": np.array([0.6, 12.0]),
    "asymmetric": np.array([0.6, 12.0, 0.9, 10.0]),
    "asymmetric_stribeck": STRIBECK,
}
INERTIA, OFFSET = 0.4, 0.15


def fit(samples, unknowns, solver=ORDINARY) -> MotorFriction:
    return fit_motor_friction(samples, unknowns, np.zeros(samples.velocity.size), solver)


@pytest.mark.parametrize("law", PARAMETERS)
@pytest.mark.parametrize("known", [True, False])
def test_noiseless_data_give_what_went_in(law, known):
    motor_law = MotorLaw(law)
    offset = OFFSET if motor_law.offset_shows else 0.0
    samples = motor_samples(law, PARAMETERS[law], INERTIA, offset)
    found = fit(samples, FrictionUnknowns(motor_law, inertia=INERTIA if known else None, offset=motor_law.offset_shows))
    np.testing.assert_allclose(found.values, [*PARAMETERS[law], INERTIA], atol=1e-8)
    assert found.offset == pytest.approx(offset, abs=1e-8)
    assert found.names[-1] == "inertia" and len(found.units) == found.values.size
    assert (found.covariance[-1, -1] == 0.0) == known


def test_an_offset_cannot_be_separated_from_dry_friction_of_each_direction():
    assert [name for name in PARAMETERS if not MotorLaw(name).offset_shows] == ["asymmetric"]


def test_the_stribeck_velocity_is_found():
    truth = np.array([*STRIBECK, 0.04])
    samples = motor_samples("asymmetric_stribeck_scaled", truth, INERTIA)
    found = fit(samples, FrictionUnknowns(MotorLaw("asymmetric_stribeck"), search=True, inertia=None))
    assert found.law_name == "asymmetric_stribeck_scaled"
    np.testing.assert_allclose(found.values, [*truth, INERTIA], rtol=1e-3)


@pytest.mark.parametrize(("slowest", "unseen"), [((0.09, 0.001), "positive"), ((0.001, 0.09), "negative")])
def test_a_searched_stribeck_velocity_extrapolates_no_static_friction_either(slowest, unseen):
    """What moves slowly in one direction only shows the static friction of that direction only."""
    truth = np.array([*STRIBECK, 0.02])
    samples = motor_samples("asymmetric_stribeck_scaled", truth, noise=0.05)
    least = np.where(samples.velocity > 0.0, *slowest)
    found = fit(
        samples.select(np.abs(samples.velocity) > least), FrictionUnknowns(MotorLaw("asymmetric_stribeck"), True)
    )
    assert found.law.no_static == unseen
    lost, kept = (2, 3) if unseen == "positive" else (3, 2)
    assert found.values[lost] == found.values[0] == pytest.approx(STRIBECK[0], abs=0.05)
    for known in (kept, 4):
        assert abs(found.values[known] - truth[known]) < 3.0 * np.sqrt(found.covariance[known, known])


def test_where_no_static_friction_shows_the_stribeck_velocity_is_anything():
    samples = motor_samples("coulomb_viscous", PARAMETERS["coulomb_viscous"])
    few = samples.select((np.abs(samples.velocity) > 0.05) & (np.arange(samples.velocity.size) % 12 == 0))
    found = fit(few, FrictionUnknowns(MotorLaw("asymmetric_stribeck"), True))
    np.testing.assert_allclose(found.values[:4], [0.6, 12.0, 0.6, 0.6], atol=1e-6)
    assert np.isfinite(found.covariance).all() and found.covariance[4, 4] > (0.5 * found.values[4]) ** 2


def test_a_given_stribeck_velocity_is_written_down_without_error():
    truth = np.array([*STRIBECK, 0.04])
    samples = motor_samples("asymmetric_stribeck_scaled", truth)
    found = fit(samples, FrictionUnknowns(MotorLaw("asymmetric_stribeck", 0.04)))
    np.testing.assert_allclose(found.values, [*truth, 0.0], atol=1e-8)
    assert found.covariance[4, 4] == 0.0 and found.fit.values.size == 4


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(("side", "directions"), [("positive", [1]), ("negative", [-1]), ("both", [1, -1])])
def test_constrained_friction_leaves_standstill_with_zero_slope(side, directions, search):
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    found = fit(samples, FrictionUnknowns(MotorLaw("asymmetric_stribeck", zero_slope=side), search))
    for direction in (1, -1):
        near, far = found.friction(direction * np.array([1e-7, 2e-7]))
        slope = direction * (far - near) / 1e-7
        assert (abs(slope) < 1e-3 * found.values[1]) == (direction in directions)


def test_the_constraint_holds_for_the_error_too():
    """``sigma+ - K_c - v_s K_v`` is known to be zero."""
    law = MotorLaw("asymmetric_stribeck", zero_slope="positive")
    found = fit(motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1), FrictionUnknowns(law))
    slope = np.array([-1.0, -law.stribeck_velocity, 1.0, 0.0, 0.0])
    assert slope @ found.covariance @ slope == pytest.approx(0.0, abs=1e-15)


def test_data_that_meet_the_constraint_are_met_exactly():
    law = MotorLaw("asymmetric_stribeck", zero_slope="positive")
    truth = np.array([0.6, 40.0, 0.6 + 40.0 * law.stribeck_velocity, 1.9])
    found = fit(motor_samples("asymmetric_stribeck", truth), FrictionUnknowns(law))
    np.testing.assert_allclose(found.values[:4], truth, atol=1e-8)


@pytest.mark.parametrize("search", [False, True])
def test_errors_are_as_large_as_their_covariance(search):
    truth = np.array([*STRIBECK, 0.03]) if search else STRIBECK
    law = "asymmetric_stribeck_scaled" if search else "asymmetric_stribeck"
    unknowns = FrictionUnknowns(MotorLaw("asymmetric_stribeck"), search)
    nees, runs = 0.0, 8
    for seed in range(runs):
        samples = motor_samples(law, truth, noise=0.1, seed=seed)
        thinned = samples.select(np.arange(samples.velocity.size) % 8 == 0)
        found = fit(thinned, unknowns)
        error = found.values[:-1] - truth
        nees += error @ np.linalg.solve(found.covariance[:-1, :-1], error)
    low, high = chi2.ppf([0.005, 0.995], runs * truth.size)
    assert low < nees < high


def test_a_motor_turned_around_has_its_static_frictions_swapped():
    samples = motor_samples("asymmetric_stribeck", STRIBECK, INERTIA, OFFSET, noise=0.1)
    turned = replace(samples, velocity=-samples.velocity, acceleration=-samples.acceleration, torque=-samples.torque)
    unknowns = FrictionUnknowns(MotorLaw("asymmetric_stribeck"), inertia=None, offset=True)
    one, other = fit(samples, unknowns), fit(turned, unknowns)
    np.testing.assert_allclose(other.values, one.values[[0, 1, 3, 2, 4]], rtol=1e-9)
    assert other.offset == pytest.approx(-one.offset)


@pytest.mark.parametrize(("slow", "directions"), [([3], [1]), ([2], [-1]), ([], [1, -1])])
def test_static_friction_that_nothing_shows_is_coulomb_friction(slow, directions):
    """Extrapolated by exp(|dq| / v_s) it was thousands of newton metres, which a controller would have commanded."""
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    fast = np.abs(samples.velocity) > 0.1
    shown = fast | ~np.isin(np.sign(samples.velocity), directions)
    found = fit(samples.select(shown), FrictionUnknowns(MotorLaw("asymmetric_stribeck")))
    unseen = np.isin(np.arange(4), [2 if direction > 0 else 3 for direction in directions])
    np.testing.assert_allclose(found.values[:4][unseen], found.values[0])
    np.testing.assert_allclose(found.values[slow], STRIBECK[slow], rtol=0.1)
    assert found.values[0] == pytest.approx(STRIBECK[0], rel=0.1)


def test_static_friction_that_shows_above_the_stribeck_velocity_is_identified_within_its_sigma():
    """Many samples at two Stribeck velocities are worth some at one: Coulomb friction there would be far off."""
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.05)
    found = fit(samples.select(np.abs(samples.velocity) > 0.025), FrictionUnknowns(MotorLaw("asymmetric_stribeck")))
    sigma = np.sqrt(np.diagonal(found.covariance))[:4]
    assert found.law.no_static == "none"
    assert (np.abs(found.values[:4] - STRIBECK) < 3.0 * sigma).all() and (sigma[2:] < 0.5 * STRIBECK[2:]).all()


def test_a_drive_whose_torque_is_known_does_not_matter():
    samples = motor_samples("asymmetric_stribeck", STRIBECK)
    driving = 2.0 * np.sin(samples.instant / 70.0)
    driven = replace(samples, torque=samples.torque + driving)
    found = fit_motor_friction(driven, FrictionUnknowns(MotorLaw("asymmetric_stribeck")), driving, ORDINARY)
    np.testing.assert_allclose(found.values[:4], STRIBECK, atol=1e-8)


def test_outliers_do_not_pull():
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.05)
    knocks = np.where(samples.instant % 50 == 0, 5.0, 0.0)
    found = fit(replace(samples, torque=samples.torque + knocks), FrictionUnknowns(MotorLaw("asymmetric_stribeck")),
                SolverOptions())  # fmt: skip
    np.testing.assert_allclose(found.values[:4], STRIBECK, rtol=0.05)


@pytest.mark.parametrize("search", [False, True])
def test_the_jacobian_is_that_of_the_torque(search):
    samples = motor_samples("asymmetric_stribeck", STRIBECK, noise=0.1)
    found = fit(samples, FrictionUnknowns(MotorLaw("asymmetric_stribeck"), search, inertia=None))
    velocity, acceleration = np.array([0.01, -0.02, 0.3]), np.array([0.5, -0.2, 0.1])
    J = found.jacobian(velocity, acceleration)
    for k in range(found.values.size):
        step = np.where(np.arange(found.values.size) == k, 1e-6, 0.0)
        ahead, behind = (
            replace(found, values=found.values + sign * step).torque(velocity, acceleration) for sign in (1.0, -1.0)
        )
        np.testing.assert_allclose(J[:, k], (ahead - behind) / 2e-6, atol=2e-5)


def test_motion_in_one_direction_is_not_enough():
    samples = motor_samples("asymmetric_stribeck", STRIBECK)
    with pytest.raises(InputError, match=r"'motor' slides in 0 samples in the negative direction, 60 are needed"):
        fit(samples.select(samples.velocity > 0.0), FrictionUnknowns(MotorLaw("asymmetric_stribeck")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "'asymmetric_stribeck', 'asymmetric_stribeck_scaled', 'coulomb_viscous'"),
        (("asymmetric_stribeck", 0.02, "upwards"), "'both', 'negative', 'none', 'positive'"),
        (("coulomb_viscous", 0.02), "are for the law 'asymmetric_stribeck', not for 'coulomb_viscous'"),
        (("coulomb_viscous", np.pi / 180, "both"), "are for the law 'asymmetric_stribeck'"),
        (("asymmetric_stribeck", 0.0), "must be above zero"),
    ],
)
def test_impossible_laws_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        MotorLaw(*arguments)
