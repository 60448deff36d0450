"""Claims about the contact-phase detector."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.base.contact_phase import ContactPhaseDetector, add_collisions_of_feet, ground_wrenches

WEIGHT = 1000.0
FRESH = np.array([True, True])


def detector(names=("left_support", "right_support")):
    return ContactPhaseDetector(WEIGHT, names)


def forces(left, right):
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = left, right
    return wrenches


def run(target, left, right, steps, fresh=FRESH):
    return [target.step(forces(left, right), fresh, 1e-3) for _ in range(steps)][-1]


def test_phases_of_a_step_have_their_names():
    d = detector()
    assert run(d, 500, 500, 50).name == "double_support"
    assert run(d, 1000, 0, 50).name == "left_support"
    assert run(d, 0, 1000, 50).name == "right_support"
    assert run(d, 0, 0, 50).name == "flight"


def test_three_feet_join_their_names():
    d = detector(("a", "b", "c"))
    wrenches = np.zeros((3, 6))
    wrenches[[0, 2], 2] = 500.0
    assert d.step(wrenches, np.ones(3, dtype=bool), 1e-3).name == "a+c"


def test_chatter_shorter_than_the_debounce_changes_nothing():
    d = detector()
    run(d, 1000, 0, 50)
    for _ in range(20):
        assert run(d, 1000, 100, 5).name == "left_support"
        assert run(d, 1000, 0, 1).name == "left_support"


def test_between_the_thresholds_the_foot_stays_as_it_is():
    d = detector()
    run(d, 1000, 200, 50)
    assert run(d, 1000, 20, 100).name == "double_support"
    run(d, 1000, 0, 50)
    assert run(d, 1000, 20, 100).name == "left_support"


def test_since_counts_from_the_landing():
    d = detector()
    run(d, 1000, 0, 50)
    phase = run(d, 500, 500, 8 + 30)
    assert phase.contact.all() and phase.since[1] == pytest.approx(0.030, abs=2e-3)


def test_a_silent_sensor_leaves_its_foot_as_it_was():
    d = detector()
    run(d, 500, 500, 50)
    assert run(d, 500, 0, 50, np.array([True, False])).name == "double_support"


TOUCHING, KICKED, STANDING = [30.0, 0.0, 40.0, 1.0, 2.0, 3.0], [-150.0, 0.0, 20.0, 0.0, 5.0, 0.0], [-90.0] * 6


def test_what_acts_along_the_sole_of_a_foot_in_the_air_is_not_the_grounds():
    wrenches = np.array([TOUCHING, KICKED, STANDING])
    of_ground = np.empty_like(wrenches)
    ground_wrenches(wrenches, np.array([False, False, True]), of_ground)
    np.testing.assert_array_equal(of_ground, [TOUCHING, [0.0] * 6, STANDING])


def test_the_torque_of_a_collision_of_a_foot_is_in_the_external_torque_and_what_the_low_pass_lacks_in_sigma():
    J = np.random.default_rng(0).standard_normal((3, 6, 8))
    J[1, :, 6] = 0.0  # the first joint does not carry the foot that is hit
    wrenches, passed, keep = np.array([TOUCHING, KICKED, STANDING]), np.full(2, np.nan), 0.9
    contact, true = np.array([False, False, True]), np.array(KICKED) @ J[1, :, 6:]
    add_collisions_of_feet(J, np.zeros((3, 6)), contact, keep, passed, np.zeros(2), np.ones(2))
    for steps in range(1, 4):
        torque, sigma = np.array([3.0, -2.0]), np.ones(2)
        add_collisions_of_feet(J, wrenches, contact, keep, passed, torque, sigma)
        np.testing.assert_allclose(torque, [3.0, -2.0] + (1.0 - keep**steps) * true)
        np.testing.assert_allclose(sigma, np.hypot(1.0, keep**steps * true))
