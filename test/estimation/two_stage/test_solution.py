"""Claims about the second stage: least squares of an arrow, and the part of a constant torque that is friction."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.estimation.two_stage.solution import LimbSolution, one_sided_friction

M, P, C = 3, 4, 5
"""Motors, terms of a law, errors of the sensors."""


def informed(seed: int) -> tuple[LimbSolution, np.ndarray]:
    """A solution from random rows of every motor (M, r, P + C + 1), and these rows."""
    rows = np.random.default_rng(seed).normal(size=(M, 12, P + C + 1))
    solution = LimbSolution(M, P, C)
    solution.information[:] = rows.swapaxes(1, 2) @ rows
    solution.solve()
    return solution, rows


def dense(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Terms and covariance by one least squares over all laws and the errors, with a prior of unit variance."""
    A = np.zeros((M, rows.shape[1], M * P + C))
    for motor in range(M):
        A[motor, :, motor * P : (motor + 1) * P] = rows[motor, :, :P]
        A[motor, :, M * P :] = rows[motor, :, P:-1]
    A, y = A.reshape(-1, M * P + C), rows[:, :, -1].ravel()
    covariance = np.linalg.inv(A.T @ A + np.eye(M * P + C))
    return covariance @ A.T @ y, covariance


@pytest.mark.parametrize("seed", range(5))
def test_the_solution_is_that_of_least_squares_over_all_motors_together(seed):
    solution, rows = informed(seed)
    z, covariance = dense(rows)
    np.testing.assert_allclose(solution.law.ravel(), z[: M * P], atol=1e-10)
    np.testing.assert_allclose(solution.errors, z[M * P :], atol=1e-10)
    np.testing.assert_allclose(solution.error_covariance, covariance[M * P :, M * P :], atol=1e-10)
    for motor in range(M):
        own = slice(motor * P, (motor + 1) * P)
        np.testing.assert_allclose(solution.law_covariance[motor], covariance[own, own], atol=1e-10)


def test_without_information_the_terms_have_their_prior():
    solution = LimbSolution(M, P, C)
    assert not solution.law.any() and not solution.errors.any()
    np.testing.assert_array_equal(solution.law_covariance, np.tile(np.eye(P), (M, 1, 1)))


@pytest.mark.parametrize("motor", range(M))
def test_a_forgotten_law_keeps_its_values_and_is_less_certain_and_the_other_laws_stay(motor):
    solution, _ = informed(0)
    law, errors, before = solution.law.copy(), solution.errors.copy(), solution.law_covariance.copy()
    solution.forget_law(motor, 0.1)
    solution.solve()
    np.testing.assert_allclose(solution.law, law, atol=1e-9)
    np.testing.assert_allclose(solution.errors, errors, atol=1e-9)
    assert (np.linalg.eigvalsh(solution.law_covariance[motor] - before[motor]) > 1e-4).all()


def test_terms_that_are_dropped_have_their_prior_again():
    solution, _ = informed(1)
    solution.drop_terms(slice(1, 3))
    solution.solve()
    assert not solution.law[:, 1:3].any()
    np.testing.assert_allclose(solution.law_covariance[:, 1:3, 1:3], np.tile(np.eye(2), (M, 1, 1)), atol=1e-12)


def test_a_saved_law_comes_back_with_its_covariance_in_the_units_of_the_law():
    prior_std = np.array([3.0, 0.5, 0.0, 2.0])  # the third term is not used
    values, root = np.array([1.0, -0.2, 0.0, 0.7]), np.random.default_rng(2).normal(size=(P, P))
    covariance = root @ root.T * np.outer(prior_std, prior_std)
    solution = LimbSolution(M, P, C)
    solution.set_law(1, slice(P), values, covariance, prior_std)
    solution.solve()
    np.testing.assert_allclose(solution.law[1] * prior_std, values, rtol=1e-6)
    scaled = solution.law_covariance[1] * np.outer(prior_std, prior_std)
    np.testing.assert_allclose(scaled, covariance, rtol=1e-5, atol=1e-9)
    assert not solution.law[[0, 2]].any()


FRICTION, PRIOR, NO_MODEL_ERROR = np.ones(12), np.full(12, 1.5), np.zeros(12)


def test_motors_of_which_none_shows_one_sided_friction_have_none():
    offset = 0.02 * np.random.default_rng(0).normal(size=12)
    value, variance = one_sided_friction(offset, np.full(12, 1e-4), PRIOR, FRICTION, NO_MODEL_ERROR)
    assert (np.abs(value) < 0.01).all() and (np.sqrt(variance) < 0.1).all()


def test_motors_that_all_differ_between_the_directions_have_one_sided_friction():
    offset = 0.4 * np.array([1.0, -1.0] * 6)
    value, _ = one_sided_friction(offset, np.full(12, 1e-4), PRIOR, FRICTION, NO_MODEL_ERROR)
    assert (value / offset > 0.5).all()


def test_a_single_large_constant_torque_is_the_offset_of_a_sensor():
    offset = np.where(np.arange(12) == 3, 1.5, 0.01)
    value, _ = one_sided_friction(offset, np.full(12, 1e-4), PRIOR, FRICTION, NO_MODEL_ERROR)
    assert abs(value[3]) < 0.05


def test_constant_torques_as_large_as_errors_of_the_model_say_nothing_about_friction():
    offset = 0.4 * np.array([1.0, -1.0] * 6)
    sure, _ = one_sided_friction(offset, np.full(12, 1e-4), PRIOR, FRICTION, NO_MODEL_ERROR)
    value, variance = one_sided_friction(offset, np.full(12, 1e-4), PRIOR, FRICTION, np.full(12, 0.8))
    assert (np.abs(value) < 0.3 * np.abs(sure)).all() and (np.sqrt(variance) > 0.1).all()
