"""Metrics against numbers worked out by hand, and what must hold for any numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from friction_estimator.metrics import joint_errors, phase_mask, root_mean_square

NAN = np.nan
NUMBERS = st.floats(-100.0, 100.0)


def test_errors_are_those_worked_out_by_hand() -> None:
    truth = np.array([[3.0, 1.0], [4.0, -1.0]])
    estimate = truth + np.array([[1.0, 2.0], [-1.0, 0.0]])
    errors = joint_errors(estimate, truth, sigma=np.array([[0.5, 1.0], [1.0, 2.0]]))
    assert errors.count.tolist() == [2.0, 2.0]
    assert errors.rmse.tolist() == pytest.approx([1.0, np.sqrt(2.0)])
    assert errors.truth_rms.tolist() == pytest.approx([np.sqrt(12.5), 1.0])
    assert errors.relative_rmse.tolist() == pytest.approx([1.0 / np.sqrt(12.5), np.sqrt(2.0)])
    assert errors.bias.tolist() == pytest.approx([0.0, 1.0])
    assert errors.nees.tolist() == pytest.approx([2.5, 2.0])


def test_samples_outside_the_mask_and_nan_do_not_count() -> None:
    truth = np.array([[1.0, 1.0], [1.0, NAN], [1.0, 1.0]])
    estimate = np.array([[2.0, 3.0], [99.0, 5.0], [4.0, NAN]])
    where = np.array([[True, True], [False, True], [True, True]])
    errors = joint_errors(estimate, truth, where=where)
    assert errors.count.tolist() == [2.0, 1.0]
    assert errors.rmse.tolist() == pytest.approx([np.sqrt(5.0), 2.0])
    assert errors.bias.tolist() == pytest.approx([2.0, 2.0])


def test_a_joint_without_samples_has_no_errors() -> None:
    errors = joint_errors(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 1)), np.zeros((2, 1), dtype=bool))
    assert errors.count.tolist() == [0.0]
    for values in (errors.rmse, errors.relative_rmse, errors.bias, errors.nees, errors.truth_rms):
        assert np.isnan(values).all()


def test_predicting_zero_has_the_relative_error_one() -> None:
    truth = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(joint_errors(np.zeros_like(truth), truth).relative_rmse, 1.0)


def test_gaussian_errors_of_the_right_sigma_have_the_nees_one() -> None:
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 2.0, (20000, 2))
    errors = joint_errors(sigma * rng.normal(size=sigma.shape), np.zeros(sigma.shape), sigma)
    np.testing.assert_allclose(errors.nees, 1.0, atol=4.0 * np.sqrt(2.0 / 20000))


@given(
    estimate=hnp.arrays(float, (7, 2), elements=NUMBERS),
    truth=hnp.arrays(float, (7, 2), elements=NUMBERS),
    unit=st.floats(0.01, 100.0),
)
def test_errors_scale_with_the_unit_and_ignore_the_order_of_samples(
    estimate: np.ndarray, truth: np.ndarray, unit: float
) -> None:
    plain = joint_errors(estimate, truth)
    scaled = joint_errors(unit * estimate[::-1], unit * truth[::-1])
    np.testing.assert_allclose(scaled.rmse, unit * plain.rmse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled.bias, unit * plain.bias, rtol=1e-9, atol=1e-9)
    assert (np.abs(plain.bias) <= plain.rmse + 1e-9).all()


def test_phase_mask_includes_the_start_and_not_the_end() -> None:
    time = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    assert phase_mask(time, [(0.1, 0.2), (0.4, 9.0)]).tolist() == [False, True, False, False, True]


def test_root_mean_square_ignores_nan() -> None:
    assert root_mean_square(np.array([[3.0], [NAN], [4.0]])).tolist() == pytest.approx([np.sqrt(12.5)])
