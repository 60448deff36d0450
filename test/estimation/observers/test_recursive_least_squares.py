"""Claims about the recursive identification (Hashlamon & Erbatur 2014, section 6)."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.config import IdentifierConfig
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.observers.identifier import (
    FrictionIdentifier,
    predict_friction,
    recursive_least_squares,
)
from friction_estimator.laws import make_law

ALL = np.ones(3, dtype=bool)
ACTIVE = np.array([True, False, True])
PRIOR = np.full((3, 2), 10.0)


class LeastSquares:
    """Eqs. 64-67 of three joints."""

    def __init__(self, forgetting: float = 1.0) -> None:
        self.parameters, self.covariance, self._forgetting = np.zeros((3, 2)), PRIOR[:, :, None] * np.eye(2), forgetting

    def step(self, regressor: np.ndarray, measured: np.ndarray) -> None:
        for rows in zip(self.parameters, self.covariance, PRIOR, regressor, measured, strict=True):
            recursive_least_squares(*rows, self._forgetting)


def data(seed: int, count: int = 200):
    rng = np.random.default_rng(seed)
    velocity = rng.normal(size=(count, 3))
    truth = np.array([[0.7, 0.9], [0.3, 0.2], [2.0, 0.0]])
    law = make_law("coulomb_viscous")
    return rng, velocity, truth, law


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_recursive_equals_batch_least_squares(seed):
    """Eqs. 64-67 against the batch form of eq. 63 with the prior P_0."""
    rng, velocity, truth, law = data(seed)
    rls = LeastSquares()
    information, right = np.tile(0.1 * np.eye(2), (3, 1, 1)), np.zeros((3, 2))
    for dq in velocity:
        phi = law.regressor(dq)
        y = law.torque(truth, dq) + 0.1 * rng.normal(size=3)
        rls.step(phi, y)
        information += phi[:, :, None] * phi[:, None, :]
        right += phi * y[:, None]
    np.testing.assert_allclose(rls.parameters, np.linalg.solve(information, right[..., None])[..., 0], atol=1e-9)
    np.testing.assert_allclose(rls.covariance, np.linalg.inv(information), atol=1e-9)


def test_joints_that_are_not_active_keep_their_parameters():
    _, velocity, truth, law = data(0)
    identifier = FrictionIdentifier(IdentifierConfig(), ("a", "b", "c"))
    for dq in velocity:
        measured = np.where(ACTIVE, law.torque(truth, dq), np.nan)
        identifier.learn(identifier.regressor(dq, np.zeros(3)), measured, np.zeros(3), ACTIVE)
    np.testing.assert_allclose(identifier.law.parameters[[0, 2]], truth[[0, 2]], atol=0.01)
    np.testing.assert_array_equal(identifier.law.parameters[1], 0.0)
    np.testing.assert_array_equal(np.isnan(identifier.nis), ~ACTIVE)


def test_forgetting_follows_a_change_that_the_printed_filter_averages():
    rng, velocity, truth, law = data(1, 2000)
    fixed, forgetting = LeastSquares(), LeastSquares(0.99)
    for k, dq in enumerate(velocity):
        y = law.torque(truth * (2.0 if k > 1000 else 1.0), dq)
        for rls in (fixed, forgetting):
            rls.step(law.regressor(dq), y)
    np.testing.assert_allclose(forgetting.parameters, 2 * truth, atol=1e-3)
    assert np.abs(fixed.parameters - 2 * truth).max() > 0.3


def test_forgetting_for_a_long_time_stays_finite_and_a_resting_joint_keeps_its_parameters():
    """40,000 samples; the third joint rests after the first 500 and must not wind up."""
    rng = np.random.default_rng(2)
    law, truth = make_law("coulomb_viscous"), np.array([[0.5, 0.9], [0.3, 0.2], [2.0, 0.1]])
    rls = LeastSquares(forgetting=0.995)
    for k in range(40_000):
        dq = rng.normal(size=3) * [1.0, 0.05, 1.0 if k < 500 else 0.0]
        rls.step(law.regressor(dq), law.torque(truth, dq) + 0.1 * rng.normal(size=3))
    np.testing.assert_allclose(rls.parameters[[0, 2]], truth[[0, 2]], atol=0.1)
    assert np.isfinite(rls.covariance).all() and np.diagonal(rls.covariance, axis1=1, axis2=2).max() <= 10.0
    np.testing.assert_array_equal(rls.covariance, rls.covariance.transpose(0, 2, 1))


def test_learning_and_restoring_do_not_write_into_estimates_that_left():
    _, velocity, truth, law = data(3)
    identifier = FrictionIdentifier(IdentifierConfig(), ("a", "b", "c"))

    def learn(dq, active):
        identifier.learn(identifier.regressor(dq, dq), law.torque(truth, dq), 0.1 + np.abs(dq), active)

    def leaving():
        law, saved = identifier.law, identifier.identified
        values = [getattr(estimates, field.name) for estimates in (law, saved) for field in fields(estimates)]
        return [identifier.nis, *(array for array in values if isinstance(array, np.ndarray) and array.dtype == float)]

    learn(velocity[0], ALL)
    left, saved = leaving(), identifier.identified
    kept = [values.copy() for values in left]
    learn(velocity[1], ALL)
    assert all((now != before).any() for now, before in zip(leaving(), left, strict=True))
    identifier.restore(replace(saved, values=saved.values + 100.0))
    for before, then in zip(left, kept, strict=True):
        np.testing.assert_array_equal(before, then)
    np.testing.assert_array_equal(identifier.law.parameters, saved.values + 100.0)
    published = identifier.law
    learn(velocity[2], ~ALL)
    assert identifier.law is published


def test_parameter_sigma_covers_the_error_under_white_noise():
    """Never smaller than the error; larger, because an error of the law cannot be excluded by 200 samples."""
    ratios = []
    for seed in range(40):
        rng, velocity, truth, law = data(seed)
        identifier = FrictionIdentifier(IdentifierConfig(), ("a", "b", "c"))
        for dq in velocity:
            phi = identifier.regressor(dq, np.zeros(3))
            identifier.learn(phi, law.torque(truth, dq) + 0.2 * rng.normal(size=3), np.full(3, 0.2), ALL)
        error = identifier.law.parameters - truth
        ratios.append(error / identifier.law.parameters_sigma)
    assert 0.02 < np.mean(np.square(ratios)) < 1.0


def test_law_sigma_holds_what_the_law_cannot_represent_and_grows_outside_of_what_it_saw():
    """A cubic law seen at low speed, predicted at four times the speed."""
    rng = np.random.default_rng(0)
    identifier = FrictionIdentifier(IdentifierConfig(), ("a",))
    one = np.ones(1, dtype=bool)
    for dq in rng.uniform(-1.0, 1.0, (4000, 1)):
        measured = 0.5 * np.sign(dq) + dq**3 + 0.3 * rng.normal(size=1)
        identifier.learn(identifier.regressor(dq, dq), measured, np.full(1, 0.3), one)
    friction, sigma = np.empty((2, 1)), np.empty((2, 1))
    for row, velocity in enumerate((0.5, 4.0)):
        regressor = identifier.regressor(np.array([velocity]), np.zeros(1))
        predict_friction(identifier.buffer, np.eye(1), regressor, friction[row], sigma[row])
    assert abs(friction[0, 0] - (0.5 + 0.5**3)) < 2.0 * sigma[0, 0] < 0.6
    assert sigma[1, 0] > 2.0 * sigma[0, 0]


def test_restored_parameters_predict_the_same_by_joint_name():
    _, velocity, truth, law = data(2)
    source = FrictionIdentifier(IdentifierConfig(), ("a", "b", "c"))
    for dq in velocity:
        source.learn(source.regressor(dq, dq), law.torque(truth, dq), np.ones(3), ALL)
    target = FrictionIdentifier(IdentifierConfig(), ("c", "x", "a"))
    target.restore(source.identified)
    np.testing.assert_array_equal(target.law.parameters[[0, 2]], source.law.parameters[[2, 0]])
    np.testing.assert_array_equal(target.law.parameters[1], 0.0)
    np.testing.assert_allclose(target.law.parameters_sigma[0], source.law.parameters_sigma[2])


def test_parameters_of_another_robot_are_refused():
    source = FrictionIdentifier(IdentifierConfig(), ("a", "b", "c"))
    with pytest.raises(ConfigError, match="joints a, b, c; this robot has x"):
        FrictionIdentifier(IdentifierConfig(), ("x",)).restore(source.identified)


@pytest.mark.parametrize(("name", "message"), [("coulom", "coulomb_viscous"), ("makkar", "not linear")])
def test_laws_that_cannot_be_identified_are_refused_with_the_choices(name, message):
    with pytest.raises(ConfigError, match=message):
        FrictionIdentifier(IdentifierConfig(law=name), ("a",))
