"""Claims about base parameters: which columns are identified, and the names of their groups."""

import numpy as np
import pytest

from friction_estimator.identification.rigid_body import base_parameters, in_words


def test_grouped_parameters_give_the_same_torque_and_say_what_they_hold():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50))
    W = np.column_stack((a, b, 0.25 * a - b, np.zeros(50)))
    base = base_parameters(("Izz upper", "mx upper", "m lower", "m base"), W)
    assert base.names == ("Izz upper + 0.25 m lower", "mx upper - m lower")
    np.testing.assert_allclose(W[:, base.kept] @ base.grouping, W, atol=1e-12)
    assert np.linalg.matrix_rank(W) == 2


def test_parameters_of_one_kind_and_factor_are_one_term_of_the_name():
    behind = {
        "hip": frozenset({"hip", "knee", "foot"}),
        "knee": frozenset({"knee", "foot"}),
        "foot": frozenset({"foot"}),
    }
    names = ("Izz hip", "m hip", "m knee", "m foot", "mz hip + 0.1 m knee", "Ia hip")
    row = np.array([1.0, 0.0, 0.25, 0.2500001, -2.0, 1.0])
    assert in_words(names, row, behind) == "Izz hip + 0.25 m from knee on - 2 (mz hip + 0.1 m knee) + Ia hip"
    assert in_words(names, np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0]), behind) == "m from hip on"
    assert (
        in_words(names, np.array([1.0, 0.5, 0.0, 0.5, 1e-5, -1.0]), behind) == "Izz hip + 0.5 m (hip + foot) - Ia hip"
    )


def test_columns_of_very_different_size_are_all_kept():
    W = np.random.default_rng(1).normal(size=(60, 4)) * [1e-5, 1.0, 1e4, 0.1]
    assert len(base_parameters("abcd", W, smallest=1e-12).kept) == 4
    assert base_parameters("abcd", W).kept.tolist() == [1, 2]  # rounded angles look like the others


@pytest.mark.parametrize("distance, kept", [(1e-3, 2), (1e-12, 1)])
def test_tolerance_separates_badly_excited_from_indistinguishable(distance, kept):
    a, b = np.random.default_rng(2).normal(size=(2, 40))
    assert len(base_parameters("ab", np.column_stack((a, a + distance * b))).kept) == kept
