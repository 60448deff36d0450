"""Claims about the friction laws of a robot whose joints have different ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

from friction_estimator.config import IdentifierConfig
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.observers.identifier import FrictionIdentifier
from friction_estimator.laws import JointLaws, laws_of_joints, linear_law_names, make_linear_law
from friction_estimator.laws.joint_laws import MeanFriction, expected_friction

JOINTS = ("hip", "l_knee", "r_knee", "ankle")
MIXED = ("three_slope", "coulomb_viscous", "coulomb_viscous", "tanh_load")
MIXED_CONFIG = IdentifierConfig(law="three_slope", joint_laws=("*_knee=coulomb_viscous", "ankle = tanh_load"))

names_of_four = st.lists(st.sampled_from(linear_law_names()), min_size=4, max_size=4)
four = st.lists(st.floats(-5, 5), min_size=4, max_size=4).map(np.array)


def exists(laws: JointLaws) -> np.ndarray:
    """(n, p) one where a parameter exists, zero in the padding."""
    return (laws.prior_std > 0.0).astype(float)


def expected_of(laws: JointLaws, parameters, velocity, load, std):
    """The expected friction of one instant."""
    at, slides = (np.ascontiguousarray(one) for one in (parameters, velocity, load, std)), np.empty((len(std), 0))
    mean = MeanFriction.empty(*parameters.shape)
    expected_friction(laws.table, *at, slides, slides, mean)
    return mean


@given(names=names_of_four, dq=four, load=four, seed=st.integers(0, 2**32 - 1))
def test_a_mixed_set_is_each_joints_own_law_padded_with_zeros(names, dq, load, seed):
    laws, rng = JointLaws(names), np.random.default_rng(seed)
    parameters = rng.normal(size=(4, laws.parameter_count))
    phi, torque = laws.regressor(dq, load), laws.torque(parameters, dq, load)
    for k, name in enumerate(names):
        law = make_linear_law(name)
        p = len(law.parameter_names)
        own, row = parameters[k : k + 1, :p], slice(k, k + 1)
        np.testing.assert_array_equal(phi[row, :p], law.regressor(dq[row], load[row]))
        np.testing.assert_array_equal(phi[k, p:], 0.0)
        np.testing.assert_allclose(torque[row], law.torque(own, dq[row], load[row]), atol=1e-12)
        np.testing.assert_allclose(parameters[k] @ laws.coulomb_weights[k], law.coulomb(own)[0], atol=1e-12)
        assert laws.parameter_names[k] == law.parameter_names
        np.testing.assert_array_equal(laws.prior_std[k] > 0.0, np.arange(laws.parameter_count) < p)
        np.testing.assert_array_equal(laws.prior_std[k, :p], law.prior_std)
        np.testing.assert_array_equal(laws.nonnegative[k, :p], law.nonnegative)
    for array in (laws.prior_std, laws.nonnegative, laws.coulomb_weights):
        assert not array[exists(laws) == 0.0].any()


@pytest.mark.parametrize("names", [MIXED, ("tanh_load",) * 4])
def test_stacked_velocities_give_the_regressors_of_each(names):
    laws, rng = JointLaws(names), np.random.default_rng(1)
    dq, load = rng.normal(size=(2, 3, 4)), rng.normal(size=4)
    phi = laws.regressor(dq, load)
    assert phi.shape == (2, 3, 4, 6)
    np.testing.assert_array_equal(phi[1, 2], laws.regressor(dq[1, 2], load))


@pytest.mark.parametrize("velocity", [0.0, 0.02, 0.1, -0.4])
def test_expected_regressor_is_the_mean_over_a_noisy_velocity(velocity):
    """Against 200,000 draws; the quadrature has seven nodes, so the steepest tangent may be a few percent off."""
    laws, rng = JointLaws(MIXED), np.random.default_rng(2)
    velocities, load, std = np.full(4, velocity), np.array([1.0, 2.0, -30.0, -2.0]), np.full(4, 0.008)
    draws = velocities + std * rng.normal(size=(200_000, 4))
    expected = expected_of(laws, exists(laws), velocities, load, std)[0]
    sampled = laws.regressor(draws, load).mean(axis=0)
    smooth = [0, 3]  # the knees have a jump: the next test
    scale = np.where(exists(laws) > 0.0, np.abs(laws.regressor(np.ones(4), load)), 1.0)
    np.testing.assert_allclose((expected / scale)[smooth], (sampled / scale)[smooth], atol=0.02)
    if velocity == 0.02:  # where the curvature is: the noisy regressor itself is further off
        noisy = np.abs(laws.regressor(velocities, load) - sampled)[0, 0]
        assert np.abs(expected - sampled)[0, 0] < 0.3 * noisy


@pytest.mark.parametrize(("std_per_slope", "bound"), [(1.0, 0.003), (2.0, 0.05), (3.0, 0.11)])
def test_expected_tangent_is_as_near_as_documented_and_nearer_than_the_tangent(std_per_slope, bound):
    """Against the integral over the Gaussian, for the steepest column of the three slopes (0.015 rad/s)."""
    n, std = 60, 0.015 * std_per_slope
    velocity, error = np.linspace(0.0, 0.2, n), np.linspace(-8.0, 8.0, 4001)
    weight = np.exp(-0.5 * error**2) / np.exp(-0.5 * error**2).sum()
    mean = np.tanh((velocity[:, None] + std * error) / 0.015) @ weight
    laws = JointLaws(["three_slope"] * n)
    expected = expected_of(laws, exists(laws), velocity, velocity, np.full(n, std))[0][:, 0]
    off = np.abs(expected - mean).max()
    assert off < bound and off < 0.2 * np.abs(np.tanh(velocity / 0.015) - mean).max()


@given(velocity=st.floats(-1, 1), std=st.floats(1e-6, 1.0))
def test_expected_jump_is_never_more_than_half_off(velocity, std):
    laws = JointLaws(["coulomb_viscous"])
    phi = expected_of(laws, exists(laws), np.array([velocity]), np.zeros(1), np.array([std]))[0][0]
    assert abs(phi[0] - erf(velocity / (np.sqrt(2.0) * std))) < 0.46
    assert phi[1] == pytest.approx(velocity, abs=1e-12)


def test_a_velocity_without_error_has_the_regressor_itself():
    laws, dq = JointLaws(MIXED), np.array([0.1, -0.2, 0.0, 1.0])
    regressor, torque, variance = expected_of(laws, exists(laws), dq, dq, np.zeros(4))
    np.testing.assert_allclose(regressor, laws.regressor(dq, dq), atol=1e-15)
    np.testing.assert_allclose(torque, laws.torque(exists(laws), dq, dq), atol=1e-14)
    np.testing.assert_allclose(variance, 0.0, atol=1e-28)


@given(velocity=st.floats(-1, 1), std=st.floats(1e-6, 1.0))
def test_viscous_friction_of_an_uncertain_velocity_is_as_uncertain(velocity, std):
    """The quadrature is exact for polynomials: mean F_v dq, variance F_v^2 std^2."""
    laws = JointLaws(["coulomb_viscous"])
    _, torque, variance = expected_of(laws, np.array([[0.0, 3.0]]), np.array([velocity]), np.zeros(1), np.array([std]))
    assert torque[0] == pytest.approx(3.0 * velocity, abs=1e-12) and variance[0] == pytest.approx(9.0 * std**2)


def learned(config: IdentifierConfig, seed: int = 4, count: int = 3000) -> tuple[FrictionIdentifier, np.ndarray]:
    """An identifier that saw the friction of laws of its own kind, and the true parameters (n, p)."""
    rng, identifier = np.random.default_rng(seed), FrictionIdentifier(config, JOINTS)
    laws = identifier.laws
    truth = np.where(exists(laws) > 0.0, rng.uniform(0.1, 1.0, exists(laws).shape) * laws.prior_std / 10.0, 0.0)
    for _ in range(count):
        dq, load = rng.normal(size=4) * rng.choice([0.03, 0.2, 1.0]), rng.normal(0.0, 20.0, 4)
        phi = identifier.regressor(dq, load)
        identifier.learn(phi, laws.torque(truth, dq, load), np.full(4, 1e-3), np.ones(4, dtype=bool))
    return identifier, truth


def test_three_laws_in_one_robot_are_identified_live():
    identifier, truth = learned(MIXED_CONFIG)
    assert identifier.laws.law_names == MIXED
    scale = np.where(exists(identifier.laws) > 0.0, identifier.laws.prior_std, 1.0)
    np.testing.assert_allclose(identifier.law.parameters / scale, truth / scale, atol=1e-3)
    coulomb, viscous = (identifier.visited.rows * truth).sum(axis=-1)
    np.testing.assert_allclose(identifier.law.coulomb, coulomb, atol=0.01)
    np.testing.assert_allclose(identifier.law.viscous, viscous, atol=0.01)
    assert identifier.law.coulomb_sigma.min() > 0.0 and identifier.law.viscous_sigma.min() > 0.0


@pytest.mark.parametrize("forgetting", [1.0, 0.995])
def test_padding_stays_exactly_zero_and_disturbs_no_joint(forgetting):
    mixed, _ = learned(replace(MIXED_CONFIG, forgetting=forgetting))
    padding = exists(mixed.laws) == 0.0
    assert padding.any()
    np.testing.assert_array_equal(mixed.law.parameters[padding], 0.0)
    np.testing.assert_array_equal(mixed.law.parameters_sigma[padding], 0.0)
    covariance = mixed.identified.covariance
    np.testing.assert_array_equal(covariance[padding[:, :, None] | padding[:, None, :]], 0.0)
    rng, alone = np.random.default_rng(5), FrictionIdentifier(IdentifierConfig(forgetting=forgetting), ("knee",))
    beside = FrictionIdentifier(replace(MIXED_CONFIG, forgetting=forgetting), JOINTS)
    for dq in rng.normal(size=500):
        measured, noise = 0.7 * np.sign(dq) + 0.9 * dq + 0.1 * rng.normal(), np.full(4, 0.1)
        velocity, load = np.full(4, dq), np.ones(4)
        beside.learn(beside.regressor(velocity, load), np.full(4, measured), noise, np.ones(4, dtype=bool))
        phi = alone.regressor(velocity[:1], load[:1])
        alone.learn(phi, np.array([measured]), noise[:1], np.ones(1, dtype=bool))
    np.testing.assert_allclose(beside.law.parameters[1, :2], alone.law.parameters[0], rtol=1e-9)
    np.testing.assert_allclose(beside.law.coulomb_sigma[1], alone.law.coulomb_sigma[0], rtol=1e-9)


def test_coulomb_sigma_counts_that_tangents_stand_in_for_each_other():
    """Little motion near zero: single tangents are uncertain, their sum is much less so."""
    rng, identifier = np.random.default_rng(6), FrictionIdentifier(IdentifierConfig(law="three_slope"), ("hip",))
    for dq in rng.uniform(0.5, 2.0, (2000, 1)) * rng.choice([-1.0, 1.0], (2000, 1)):
        measured = 0.8 * np.sign(dq) + 0.9 * dq + 0.1 * rng.normal(size=1)
        identifier.visited.add_velocities(identifier.regressor(dq, dq), dq, np.zeros(1), 0.01)
        identifier.learn(identifier.regressor(dq, dq), measured, np.full(1, 0.1), np.ones(1, dtype=bool))
    assert identifier.law.coulomb_sigma[0] < 0.1 * identifier.law.parameters_sigma[0, 0]
    assert abs(identifier.law.coulomb[0] - 0.8) < 3.0 * identifier.law.coulomb_sigma[0]


def test_restored_joints_predict_the_same_beside_joints_with_larger_laws():
    source, _ = learned(IdentifierConfig(law="coulomb_viscous"))
    target = FrictionIdentifier(MIXED_CONFIG, JOINTS)
    knees = replace_rows(source, ("l_knee", "r_knee"))
    target.restore(knees)
    np.testing.assert_array_equal(target.law.parameters[1:3, :2], source.law.parameters[1:3])
    np.testing.assert_array_equal(target.law.parameters[1:3, 2:], 0.0)
    np.testing.assert_array_equal(target.law.parameters[[0, 3]], 0.0)
    np.testing.assert_allclose(target.law.coulomb_sigma[1:3], source.law.coulomb_sigma[1:3])


def replace_rows(source: FrictionIdentifier, joints: tuple[str, ...]):
    """What the source identified about some of its joints."""
    everything = source.identified
    rows = [everything.joint_names.index(name) for name in joints]
    arrays = ("values", "covariance", "residual_variance", "measurement_variance", "samples")
    return replace(
        everything,
        joint_names=joints,
        law_names=tuple(everything.law_names[row] for row in rows),
        **{name: getattr(everything, name)[rows] for name in arrays},
    )


def test_parameters_of_another_law_are_refused_with_the_joints():
    source = FrictionIdentifier(IdentifierConfig(law="coulomb_viscous"), JOINTS)
    with pytest.raises(ConfigError, match="hip: 'coulomb_viscous', not 'three_slope'; ankle: .*not 'tanh_load'"):
        FrictionIdentifier(MIXED_CONFIG, JOINTS).restore(source.identified)


def test_the_last_matching_entry_holds():
    entries = ("*=asymmetric", "*_knee=three_slope", "l_knee=tanh_load")
    found = laws_of_joints("coulomb_viscous", entries, JOINTS)
    assert found == ("asymmetric", "tanh_load", "three_slope", "asymmetric")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("elbow=three_slope", "'elbow=three_slope' matches no joint; the joints are 'ankle', 'hip', 'l_knee'"),
        ("hip", "'hip': it must be written joint=law; the laws that can be identified are 'asymmetric'"),
        ("hip=three_slopes", "'hip=three_slopes': 'three_slopes' is no linear law; .*'three_slope'"),
        ("hip=makkar", "'hip=makkar': 'makkar' is no linear law; the laws that can be identified are"),
    ],
)
def test_entries_that_fit_nothing_are_refused_with_the_choices(entry, message):
    with pytest.raises(ConfigError, match=message):
        FrictionIdentifier(IdentifierConfig(joint_laws=(entry,)), JOINTS)


def test_laws_describe_themselves_by_the_commonest_and_its_exceptions():
    assert JointLaws(["three_slope"] * 4).describe(JOINTS) == "three_slope"
    assert JointLaws(MIXED).describe(JOINTS) == "coulomb_viscous; three_slope: hip; tanh_load: ankle"
