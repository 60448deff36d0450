"""Claims about all friction laws in the registry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from friction_estimator.errors import ConfigError
from friction_estimator.laws import Role, law_names, linear_law_names, make_law, make_linear_law

TABLE_I = np.array([[0.7, 100, 10, 0.6, 100, 0.9], [0.05, 100, 10, 0.01, 100, 0.9]])
PARAMETERS = {
    "asymmetric": np.array([[0.7, 0.9, 0.4, 0.5], [0.2, 0.1, 0.2, 0.3]]),
    "asymmetric_stribeck": np.array([[0.85, 0.9, 1.27, 1.95], [0.2, 0.1, 0.3, 0.1]]),
    "asymmetric_stribeck_scaled": np.array([[0.85, 0.9, 1.27, 1.95, 0.02], [0.2, 0.1, 0.3, 0.1, 0.2]]),
    "coulomb_viscous": np.array([[0.7, 0.9], [0.2, 0.1]]),
    "six_slope": np.array([[0.2, 0.5, 0.6, 0.3, -0.4, 0.5, 0.9], [0.0, 0.1, 0.0, 0.2, 0.0, 0.3, 0.1]]),
    "six_slope_load": np.array(
        [[0.2, 0.5, 0.6, 0.3, -0.4, 0.5, 0.9, 0.1, 0.002], [0, 0.1, 0, 0.2, 0, 0.3, 0.1, 0, 0.001]]
    ),
    "load_quadrants": np.array([[2.0, 0.1, 1.5, 0.2, 4.0, 0.0], [1.0, 0.05, 0.0, 0.0, 3.0, 0.0]]),
    "load_velocity": np.array(
        [
            [5.0, 8.0, 0.05, 0.08, 3.0, 4.0, 0.2, 0.1, 4.0, 0.0, 0.05],
            [0.5, 0.2, 0.1, 0.0, 0.8, 1.0, 0.3, 0.4, 1.0, 0.0, 0.3],
        ]
    ),
    "makkar": TABLE_I,
    "stribeck_load": np.array([[5.0, 8.0, 1.51, 4.0, 0.002], [1.0, 2.0, 0.1, 3.0, 0.0]]),
    "tanh_load": np.array([[0.5, 0.6, -0.4, 0.9, 0.1, 0.002], [0.1, 0.0, 0.2, 0.1, 0.0, 0.001]]),
    "tanh_stribeck": np.array([[0.2, 0.8, 0.2, 0.2, 0.0, 40.0], [0.9, 0.1, 0.5, 0.05, 0.0, 100.0]]),
    "three_slope": np.array([[0.5, 0.6, -0.4, 0.9], [0.1, 0.0, 0.2, 0.1]]),
}
"""Two passive joints for each law."""

SWAPPED = {
    "asymmetric": [2, 3, 0, 1],
    "asymmetric_stribeck": [0, 1, 3, 2],
    "asymmetric_stribeck_scaled": [0, 1, 3, 2, 4],
}
"""Places of the parameters of a joint that is turned around, for laws that depend on the direction."""
SYMMETRIC = [name for name in law_names() if name not in SWAPPED]
velocities = st.lists(st.floats(-5, 5), min_size=2, max_size=2).map(np.array)
loads = st.lists(st.floats(-100, 100), min_size=2, max_size=2).map(np.array)


@pytest.mark.parametrize("name", law_names())
@given(dq=velocities, load=loads)
def test_friction_resists_motion(name, dq, load):
    assert (make_law(name).torque(PARAMETERS[name], dq, load) * dq >= 0.0).all()


@pytest.mark.parametrize("name", SYMMETRIC)
@given(dq=velocities, load=loads)
def test_turning_the_joint_axis_around_turns_the_friction_around(name, dq, load):
    law = make_law(name)
    torque = law.torque(PARAMETERS[name], dq, load)
    np.testing.assert_allclose(law.torque(PARAMETERS[name], -dq, -load), -torque, atol=1e-12)


@pytest.mark.parametrize(("name", "swapped"), SWAPPED.items())
@given(dq=velocities)
def test_an_asymmetric_joint_turned_around_has_its_directions_swapped(name, swapped, dq):
    law, parameters = make_law(name), PARAMETERS[name]
    np.testing.assert_allclose(law.torque(parameters[:, swapped], -dq), -law.torque(parameters, dq), atol=1e-12)


@pytest.mark.parametrize("name", linear_law_names())
@given(seed=st.integers(0, 2**32 - 1))
def test_each_linear_law_identifies_its_own_parameters_exactly(name, seed):
    rng, law = np.random.default_rng(seed), make_linear_law(name)
    p = len(law.parameter_names)
    truth = np.where(law.nonnegative, rng.uniform(0.0, 2.0, p), rng.normal(size=p))
    dq = np.concatenate((rng.normal(0.0, 0.02, 100), rng.normal(0.0, 0.2, 100), rng.normal(0.0, 1.0, 100)))
    load = rng.normal(0.0, 2.0, dq.size)
    torque = law.torque(np.tile(truth, (dq.size, 1)), dq, load)
    found = np.linalg.lstsq(law.regressor(dq, load), torque, rcond=None)[0]
    np.testing.assert_allclose(found, truth, atol=1e-8)


@pytest.mark.parametrize("name", linear_law_names())
def test_regressors_of_any_shape_are_those_of_each_velocity(name):
    rng, law = np.random.default_rng(0), make_linear_law(name)
    dq, load = rng.normal(size=(3, 4, 5)), rng.normal(size=5)
    phi = law.regressor(dq, load)
    assert phi.shape == (3, 4, 5, len(law.parameter_names))
    np.testing.assert_array_equal(phi[2, 1], law.regressor(dq[2, 1], load))


@pytest.mark.parametrize("name", linear_law_names())
def test_linear_laws_have_a_prior_of_each_parameter(name):
    law = make_linear_law(name)
    assert len(law.parameter_names) == len(law.prior_std)
    assert min(law.prior_std) > 0.0


@pytest.mark.parametrize("name", law_names())
def test_only_nonlinear_laws_have_shapes_and_these_have_a_range(name):
    law = make_law(name)
    shapes = [parameter for parameter in law.parameters if parameter.role is Role.SHAPE]
    assert law.is_linear == (not shapes)
    assert all(0.0 <= low < high < np.inf for low, high in (parameter.bounds for parameter in shapes))


@pytest.mark.parametrize("name", sorted(set(law_names()) - set(linear_law_names())))
@given(dq=velocities, load=loads)
def test_nonlinear_laws_are_linear_in_all_that_is_no_shape(name, dq, load):
    law = make_law(name)
    scale = np.where([parameter.role is Role.SHAPE for parameter in law.parameters], 1.0, 3.0)
    tripled = law.torque(scale * PARAMETERS[name], dq, load)
    np.testing.assert_allclose(tripled, 3.0 * law.torque(PARAMETERS[name], dq, load), atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(law_names()) - set(linear_law_names())))
def test_beyond_the_stribeck_region_only_coulomb_and_viscous_friction_are_left(name):
    law, parameters = make_law(name), PARAMETERS[name]
    edge = law.stribeck_region(parameters)
    slopes = [
        (law.torque(parameters, k * edge + 1e-6, np.zeros(2)) - law.torque(parameters, k * edge, np.zeros(2))) / 1e-6
        for k in (1.5, 4.0)
    ]
    static = np.abs(law.torque(parameters, 0.1 * edge, np.zeros(2)))
    np.testing.assert_array_less(np.abs(slopes[0] - slopes[1]) * edge, 0.1 * static)


@pytest.mark.parametrize("name", linear_law_names())
def test_coulomb_and_viscous_friction_are_what_remains_without_load_at_high_speed(name):
    """Mean of both directions; the offset, which resists nothing, drops out of it."""
    law, fast = make_linear_law(name), np.array([50.0, 50.0])
    parameters = PARAMETERS[name]
    resisting = [
        0.5 * (law.torque(parameters, dq, np.zeros(2)) - law.torque(parameters, -dq, np.zeros(2)))
        for dq in (fast, 2.0 * fast)
    ]
    viscous = (resisting[1] - resisting[0]) / fast
    np.testing.assert_allclose(law.viscous(parameters), viscous, atol=1e-12)
    np.testing.assert_allclose(law.coulomb(parameters), resisting[0] - viscous * fast, atol=1e-12)


@pytest.mark.parametrize("name", linear_law_names())
@given(dq=velocities, load=loads, seed=st.integers(0, 2**32 - 1))
def test_parameters_marked_nonnegative_are_those_that_resist_on_their_own(name, dq, load, seed):
    law = make_linear_law(name)
    resists = (law.regressor(dq, load) * dq[:, None] >= 0.0).all(axis=0)
    assert resists[list(law.nonnegative)].all()


def test_makkar_has_the_static_friction_the_paper_names():
    """Section 7.2: the static coefficient is about gamma_1 + gamma_4, reached at a small velocity."""
    velocity = np.linspace(0.0, 0.2, 2000)
    law = make_law("makkar")
    peak = max(law.torque(TABLE_I[:1], np.array([v]))[0] for v in velocity)
    assert peak == pytest.approx(0.7 + 0.6, rel=0.2)


@pytest.mark.parametrize(
    ("name", "parameters", "velocity", "load", "by_hand"),
    [
        # tanh(1) = 0.761594, tanh(0.1) = 0.099668: 0.7 (0.661926) + 0.6 (0.761594) + 0.9 (0.01)
        ("makkar", TABLE_I[0], 0.01, 0.0, 0.4633482 + 0.4569564 + 0.009),
        # exp(-1) = 0.367879, tanh(8) = 1 - 2.25e-7: 0.2 (0.2) + 0.8 (1 + 0.2 (0.367879)) + 0.8
        ("tanh_stribeck", (0.2, 0.8, 0.2, 0.2, 0.8, 40.0), 0.2, 0.0, 0.04 + 0.8588606 + 0.8),
        # only tanh(-1): 0.2 (-0.025) - 0.8 (0.761594) (1 + 0.2 exp(-1/64)) + 0.8, exp(-1/64) = 0.984496
        ("tanh_stribeck", (0.2, 0.8, 0.2, 0.2, 0.8, 40.0), -0.025, 0.0, -0.005 - 0.7292406 + 0.8),
        # exp(-1) = 0.367879 at the Stribeck velocity: -(5 + (2 - 5) 0.367879 + 0.002 (900)) - 4 (1.51)
        ("stribeck_load", (5.0, 2.0, 1.51, 4.0, 0.002), -1.51, 30.0, -(5.0 - 1.1036383 + 1.8) - 6.04),
        # motor quadrants: (0.1 (20) + 2) + 4 (0.5) + 0.3; generator quadrants: -(0.2 (20) + 1.5) - 4 (0.5) + 0.3
        ("load_quadrants", (2.0, 0.1, 1.5, 0.2, 4.0, 0.3), 0.5, 20.0, 4.0 + 2.0 + 0.3),
        ("load_quadrants", (2.0, 0.1, 1.5, 0.2, 4.0, 0.3), -0.5, -20.0, -4.0 - 2.0 + 0.3),
        ("load_quadrants", (2.0, 0.1, 1.5, 0.2, 4.0, 0.3), -0.5, 20.0, -5.5 - 2.0 + 0.3),
        ("load_quadrants", (2.0, 0.1, 1.5, 0.2, 4.0, 0.3), 0.5, -20.0, 5.5 + 2.0 + 0.3),
        # far from zero all tangents are one: 0.5 + 0.6 - 0.4 + 0.9 (3) + 0.1 (20) + 0.002 (400)
        (
            "load_velocity",
            (2.0, 3.0, 0.1, 0.2, 1.0, 2.0, 0.3, 0.4, 4.0, 0.5, 0.2),
            0.2,
            10.0,
            3.0 + 2 / np.e + 0.8 + 0.5,
        ),
        ("load_velocity", (2.0, 3.0, 0.1, 0.2, 1.0, 2.0, 0.3, 0.4, 4.0, 0.5, 0.2), -9e9, 10.0, -4.0 - 36e9 + 0.5),
        ("load_velocity", (2.0, 3.0, 0.1, 0.2, 1.0, 2.0, 0.3, 0.4, 4.0, 0.5, 0.2), 1e-12, -10.0, 6.0 + 0.5),
        ("tanh_load", (0.5, 0.6, -0.4, 0.9, 0.1, 0.002), 3.0, -20.0, 0.7 + 2.7 + 2.0 + 0.8),
        # tanh of 50, 10, sqrt(10), 1, 1/sqrt(10), 0.1:
        # 0.2 + 0.5 + 0.6 (0.996423) + 0.3 (0.761594) - 0.4 (0.306092) + 0.5 (0.0996680) + 0.09
        (
            "six_slope",
            (0.2, 0.5, 0.6, 0.3, -0.4, 0.5, 0.9),
            0.1,
            0.0,
            0.7 + 0.5978537 + 0.2284782 - 0.1224368 + 0.0498340 + 0.09,
        ),
        # the same, and the load's tangent is one: 0.1 (20) + 0.002 (400)
        ("six_slope_load", (0.2, 0.5, 0.6, 0.3, -0.4, 0.5, 0.9, 0.1, 0.002), 0.1, -20.0, 1.5437291 + 2.0 + 0.8),
        # one decay velocity: 0.85 (1 - 0.367879) + 0.9 (0.0174533) + 1.27 (0.367879), and sigma_s- the other way
        ("asymmetric_stribeck", (0.85, 0.9, 1.27, 1.95), np.pi / 180, 0.0, 0.5373025 + 0.0157080 + 0.4672069),
        ("asymmetric_stribeck", (0.85, 0.9, 1.27, 1.95), -np.pi / 180, 0.0, -0.5373025 - 0.0157080 - 0.7173649),
        ("asymmetric_stribeck_scaled", (0.85, 0.9, 1.27, 1.95, 0.1), 0.1, 0.0, 0.5373025 + 0.09 + 0.4672069),
        ("asymmetric", (0.7, 0.9, 0.4, 0.5), -2.0, 0.0, -0.4 - 1.0),
    ],
)
def test_laws_have_the_values_of_their_equations(name, parameters, velocity, load, by_hand):
    torque = make_law(name).torque(np.array([parameters]), np.array([velocity]), np.array([load]))
    assert torque[0] == pytest.approx(by_hand, abs=2e-6)


@pytest.mark.parametrize("saturation", np.geomspace(0.01, 1.0, 11))
def test_neighbouring_slopes_of_the_six_slope_law_meet_any_slope_between(saturation):
    law, velocity = make_linear_law("six_slope"), np.concatenate((np.linspace(0.0, 0.05, 100), np.linspace(0, 3, 300)))
    truth = np.tanh(velocity / saturation)
    phi = law.regressor(velocity)
    assert np.abs(phi @ np.linalg.lstsq(phi, truth, rcond=None)[0] - truth).max() < 0.04


def test_guedelhas_stribeck_friction_starts_at_the_static_friction_of_its_direction():
    """The limits of eqs. 23-25, which the printed signs of eqs. 26-31 miss."""
    law, parameters = make_law("asymmetric_stribeck"), np.array([[0.85, 0.3, 1.27, 1.95]])
    assert law.torque(parameters, np.array([1e-9]))[0] == pytest.approx(1.27)
    assert law.torque(parameters, np.array([-1e-9]))[0] == pytest.approx(-1.95)
    assert law.torque(parameters, np.array([1.0]))[0] == pytest.approx(0.85 + 0.3)


def test_hamons_coefficients_follow_from_those_identified_with_the_motor_torque():
    """Friction of the output torque by eq. 20; the motor torque as load gives alpha and beta over 1 +- alpha."""
    rng, alpha_m, beta_m, alpha_g, beta_g = np.random.default_rng(8), 0.2, 2.0, 0.15, 1.5
    output, direction = rng.uniform(10.0, 40.0, 400) * rng.choice([-1.0, 1.0], 400), rng.choice([-1.0, 1.0], 400)
    drives = output * direction > 0.0
    friction = np.where(drives, alpha_m * output + beta_m * direction, -alpha_g * output + beta_g * direction)
    law, velocity, motor = make_linear_law("load_quadrants"), direction * rng.uniform(0.1, 1.0, 400), output + friction
    found = np.linalg.lstsq(law.regressor(velocity, motor), friction, rcond=None)[0]
    m, g = 1.0 + alpha_m, 1.0 - alpha_g
    np.testing.assert_allclose(found, [beta_m / m, alpha_m / m, beta_g / g, alpha_g / g, 0.0, 0.0], atol=1e-10)


@pytest.mark.parametrize("name", ["stribeck_load", "tanh_load", "six_slope_load", "load_quadrants", "load_velocity"])
def test_load_dependent_laws_ask_for_the_load(name):
    with pytest.raises(ConfigError, match=f"'{name}' needs the load"):
        make_law(name).torque(PARAMETERS[name], np.ones(2))


def test_unknown_law_names_the_known_ones():
    with pytest.raises(ConfigError, match="'coulomb_viscous', 'load_quadrants', 'load_velocity'"):
        make_law("nope")


def test_a_law_that_is_not_linear_names_the_linear_ones():
    with pytest.raises(ConfigError, match="'tanh_stribeck' is not linear.*'three_slope'") as caught:
        make_linear_law("tanh_stribeck")
    assert "'makkar'" not in str(caught.value)
