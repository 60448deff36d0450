"""Claims about the contact-phase detector."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.base.contact_phase import ContactPhaseDetector

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
