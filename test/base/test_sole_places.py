"""Claims about the place of the base on the ground."""

from __future__ import annotations

import numpy as np

from friction_estimator.base.soles import new_places, step_places

NOTHING = np.zeros(2)
SOLES = np.array([[0.0, 0.1], [0.0, -0.1]])
BOTH = np.array([True, True])


def started():
    places = new_places(2)
    step_places(places, SOLES, BOTH, np.ones(2), NOTHING, NOTHING)
    return places


def test_the_world_starts_under_the_robot_and_standing_soles_carry_it_exactly():
    places = started()
    np.testing.assert_array_equal(places.position, 0.0)
    step_places(places, SOLES - [0.05, 0.02], BOTH, np.array([0.4, 1.6]), NOTHING, NOTHING)
    np.testing.assert_allclose(places.position, [0.05, 0.02], atol=1e-12)


def test_a_sole_that_lands_is_placed_by_the_one_that_stands_and_not_by_the_velocity():
    places = started()
    left = np.array([True, False])
    step_places(places, SOLES - [0.03, 0.0], left, np.array([2.0, 0.0]), NOTHING, NOTHING)
    wrong = np.array([0.5, 0.5])
    moved = SOLES + [[-0.06, 0.0], [0.1, 0.0]]
    step_places(places, moved, BOTH, np.array([1.5, 0.5]), wrong, NOTHING)
    np.testing.assert_allclose(places.position, [0.06, 0.0], atol=1e-12)
    step_places(places, moved - [0.04, 0.0], ~left, np.array([0.0, 2.0]), wrong, NOTHING)
    np.testing.assert_allclose(places.position, [0.10, 0.0], atol=1e-12)


def test_a_lightly_loaded_sole_that_scuffs_hardly_moves_the_base():
    places, scuffed = started(), SOLES.copy()
    scuffed[1, 0] += 0.05
    step_places(places, scuffed, BOTH, np.array([1.96, 0.04]), NOTHING, NOTHING)
    assert abs(places.position[0]) < 0.05 * 0.03


def test_in_flight_the_velocity_carries_on_and_where_it_lands_is_as_unsure():
    places, spread = started(), np.array([1e-4, 2e-4])
    for _ in range(10):
        step_places(places, SOLES, ~BOTH, np.zeros(2), np.array([0.01, 0.0]), spread)
    np.testing.assert_allclose(places.position, [0.1, 0.0], atol=1e-12)
    before = places.variance.copy()
    step_places(places, SOLES, BOTH, np.ones(2), NOTHING, NOTHING)
    np.testing.assert_allclose(places.position, [0.1, 0.0], atol=1e-12)
    assert (places.variance > before).all() and (before > 9.0 * spread).all()
