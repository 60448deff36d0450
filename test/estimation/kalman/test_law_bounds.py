"""Claims about the bounds of the published parameters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from friction_estimator.estimation.kalman.law_bounds import law_bounds, project_onto_bounds
from friction_estimator.laws.joint_laws import JointLaws


def within_bounds(parameters: np.ndarray, covariance: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The nearest parameters (r, p) within their bounds (n, b, p), joint by joint, again and again."""
    moved = parameters.copy()
    for row, (x, P) in enumerate(zip(moved, covariance, strict=True)):
        project_onto_bounds(x, P, bounds[row % len(bounds)])
    return moved


LAWS = JointLaws(("coulomb_viscous", "six_slope_load", "three_slope"))
BOUNDS = law_bounds(LAWS)


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(3, LAWS.parameter_count, LAWS.parameter_count)) * (LAWS.prior_std > 0.0)[:, :, None]
    return rng.normal(size=(3, LAWS.parameter_count)) * (LAWS.prior_std > 0.0), roots @ np.swapaxes(roots, 1, 2)


def test_bounds_are_the_nonnegative_parameters_and_the_plateau():
    parameters = np.array(
        [
            [1.0, 2.0, 0, 0, 0, 0, 0, 0, 0],
            [2.0, 1.0, -1.0, -1.0, 3.0, 1.0, 5.0, 6.0, 7.0],
            [1.0, -3.0, 1.0, 2.0, 0, 0, 0, 0, 0],
        ]
    )
    values = (BOUNDS @ parameters[:, :, None])[:, :, 0]
    assert sorted(values[0][values[0] != 0.0]) == [1.0, 1.0, 2.0]
    assert sorted(values[1][values[1] != 0.0]) == [5.0, 5.0, 6.0, 7.0]
    assert sorted(values[2][values[2] != 0.0]) == [-1.0, 2.0]


@given(seed=st.integers(0, 2**32 - 1))
def test_published_parameters_are_the_most_likely_ones_within_their_bounds(seed):
    """Karush, Kuhn and Tucker: they differ by forces that push, each of a bound that is met exactly."""
    parameters, covariance = random_case(seed)
    found = within_bounds(parameters, covariance, BOUNDS)
    for x, y, P, bounds in zip(parameters, found, covariance, BOUNDS, strict=True):
        std = np.sqrt(np.einsum("bi,ij,bj->b", bounds, P, bounds))
        assert (bounds @ y > -1e-6 * std - 1e-12).all()
        met = bounds[(np.abs(bounds @ y) <= 1e-6 * std) & (std > 0.0)]
        left = nnls(P @ met.T, y - x)[1] if met.size else np.abs(y - x).max()
        assert left < 1e-6 * (1.0 + np.abs(y - x).max())


def test_bounds_that_are_nearly_opposite_leave_what_the_data_know_of_the_friction():
    """Slow motion: nothing separates the plateau from viscous friction, but the friction itself is known."""
    laws = JointLaws(("three_slope",))
    velocity = np.linspace(0.002, 0.1, 50)
    phi = laws.regressor(velocity[:, None], np.zeros((50, 1)))[:, 0]
    truth = 0.65 - 0.2 * velocity  # falls a little
    information = np.diag(laws.prior_std[0] ** -2.0) + phi.T @ phi / 0.05**2
    P = np.linalg.inv(information)
    x = P @ (phi.T @ truth) / 0.05**2
    bounds = law_bounds(laws)
    assert (bounds[0] @ x).min() < -1.0
    (y,) = within_bounds(x[None], np.ascontiguousarray(0.5 * (P + P.T))[None], bounds)
    assert (bounds[0] @ y).min() > -1e-9
    np.testing.assert_allclose(phi @ y, phi @ x, atol=3.0 * np.sqrt(np.einsum("vi,ij,vj->v", phi, P, phi).max()))


@given(seed=st.integers(0, 2**32 - 1))
def test_parameters_within_their_bounds_stay_as_they_are(seed):
    parameters, covariance = random_case(seed)
    inside = np.abs(parameters)
    np.testing.assert_array_equal(within_bounds(inside, covariance, BOUNDS), inside)


def test_the_way_to_a_bound_is_the_most_likely_one():
    """One violated bound: the conditional mean of the others, given that it is met."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 2))
    covariance = np.zeros((3, LAWS.parameter_count, LAWS.parameter_count))
    covariance[0, :2, :2] = P = root @ root.T + np.eye(2)
    parameters = np.zeros((3, LAWS.parameter_count))
    parameters[0, :2] = 5.0, -1.0
    expected = 5.0 + P[0, 1] / P[1, 1] * 1.0
    np.testing.assert_allclose(within_bounds(parameters, covariance, BOUNDS)[0, :2], [expected, 0.0], atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_parameters_at_their_bound_are_exactly_zero(seed):
    """Rounding of 1e-16 N m would else decide the presliding of the load, a quotient of two torques."""
    for x, P, bounds in zip(*random_case(seed), BOUNDS, strict=True):
        (y,) = within_bounds(x[None], P[None], bounds[None])
        single, std = np.diagonal(bounds) > 0.0, np.sqrt(np.diagonal(P))
        assert np.all((y == 0.0) | (y > 1e-9 * std), where=single)


def test_a_variance_that_rounding_has_made_negative_leaves_a_parameter_exactly_at_its_bound():
    """In compiled code, which has NaN for its square root, and in plain Python, which has an error."""
    for project in (project_onto_bounds, getattr(project_onto_bounds, "py_func", project_onto_bounds)):
        x = np.zeros(LAWS.parameter_count)
        x[:2] = -1e-12, 1.0
        project(x, np.diag([-1e-20, *np.zeros(x.size - 1)]), BOUNDS[0])
        assert x[0] == 0.0 and x[1] == 1.0
