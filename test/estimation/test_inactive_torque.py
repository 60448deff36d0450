"""Claims about the random test of the compensation: a torque that does not act is found, one that acts is not blamed.

Joints move as sines, with friction ``COULOMB tanh(v / 0.02) + VISCOUS v``. Their law follows whatever the balance has,
within 0.3 s: so the torque would grow without end where it does not act.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.estimation.inactive_torque import InactiveTorqueTest

DT, BANDWIDTH, LEARNING_TIME = 2e-3, 40.0, 0.3
COULOMB, VISCOUS = 0.6, 0.9
JOINTS = 30
Acting = Callable[[np.ndarray], np.ndarray]


def walked(
    acting: Acting, seconds: float, seed: int = 1, delay: float = 0.0, noise: float = 0.15, gain: float = 1.0,
    change: float = 1.0, change_at: float = 3.0,
) -> tuple[InactiveTorqueTest, np.ndarray, np.ndarray]:  # fmt: skip
    """The test after a motion, the largest torque over the true friction then and before, and the last laws (n,).

    Parameters
    ----------
    acting : torque that acts where one was sent
    delay : of what acts [s]
    change : factor on the true friction from ``change_at`` on [s]
    """
    rng, n = np.random.default_rng(seed), JOINTS
    test, scale = InactiveTorqueTest(n, 1), np.ones(n)
    frequency, phase = rng.uniform(2.0, 8.0, (2, n)), rng.uniform(0.0, 6.0, (2, n))
    sent, disturbance, lowpass, law_lowpass = np.zeros((4, n))
    waiting = deque([sent] * (1 + round(delay / DT)))
    keep, lasts, worst = math.exp(-BANDWIDTH * DT), math.exp(-DT / 0.05), np.zeros(n)
    for step in range(round(seconds / DT)):
        time = step * DT
        velocity = 1.2 * (np.sin(frequency * time + phase)).sum(axis=0)
        shape = COULOMB * np.tanh(velocity / 0.02) + VISCOUS * velocity
        true = shape * (change if time > change_at else 1.0)
        waiting.append(sent)
        there = waiting.popleft()
        disturbance = lasts * disturbance + math.sqrt(1.0 - lasts**2) * noise * rng.normal(size=n)
        balance = true + there - acting(there) + disturbance
        lowpass, law_lowpass = (
            keep * old + (1.0 - keep) * new for old, new in ((lowpass, balance), (law_lowpass, scale * shape))
        )
        tested = test.law[:, 0] * shape
        test.add(DT, sent, scale * shape, tested, scale * shape, np.zeros(n), lowpass - law_lowpass)
        level = test.levels(round(1e9 * (time + DT)), DT, scale[:, None], np.ones(n, dtype=bool))
        scale = scale + DT / LEARNING_TIME * shape * (balance - scale * shape) / (shape**2 + 0.1)
        sent = level * gain * test.limited(scale * shape, tested)
        worst = np.maximum(worst, (np.abs(sent) - np.abs(true)) / (0.5 + np.abs(true)))
    return test, worst, scale


def all_of_it(torque: np.ndarray) -> np.ndarray:
    return torque


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**31), delay=st.sampled_from((0.0, 0.005, 0.015)), noise=st.sampled_from((0.05, 0.2)))
def test_drives_that_apply_everything_pass_within_seconds_and_are_not_blamed(seed, delay, noise):
    test, _, scale = walked(all_of_it, 6.0, seed, delay, noise)
    assert not test.failed.any() and test.running.sum() < JOINTS / 3
    np.testing.assert_allclose(test.law[~test.running, 0], 1.0, atol=0.6)
    assert np.abs(scale - 1.0).max() < 0.6


@pytest.mark.parametrize("change", [2.0, 0.5])
def test_friction_that_changes_is_no_torque_that_does_not_act_and_is_followed(change):
    test, worst, _ = walked(all_of_it, 16.0, change=change, gain=0.8)
    assert not test.failed.any() and test.running.sum() <= 2
    if change > 1.0:
        passed = ~test.running
        assert (test.law[passed, 0] > 1.5).all() and worst.max() < 0.5


@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 2**31), part=st.sampled_from((1.0, 0.5, -1.0, -0.7)), delay=st.sampled_from((0.0, 0.005, 0.01))
)
def test_a_part_that_does_not_act_or_is_not_in_the_effort_is_found_with_its_size(seed, part, delay):
    test, worst, _ = walked(lambda torque: (1.0 - part) * torque, 8.0, seed, delay)
    assert test.failed.sum() >= JOINTS - 1
    np.testing.assert_allclose(test.part[test.failed].mean(), part, atol=0.25 * abs(part))
    assert worst.max() < 0.3  # of the friction, and of errors of the law, whatever was learned


@pytest.mark.parametrize("limit", [0.5, 1.0])
def test_a_drive_that_saturates_is_found_and_its_torque_does_not_grow(limit):
    test, worst, _ = walked(lambda torque: np.clip(torque, -limit, limit), 12.0)
    assert test.failed.mean() > 0.8 and (test.part[test.failed] > 0.05).all()
    assert worst.max() < 0.5


def test_a_torque_without_a_cap_would_grow_without_end(monkeypatch):
    """The model above is hostile: without the tested law as a limit, a drive that applies nothing is believed."""
    monkeypatch.setattr(InactiveTorqueTest, "limited", lambda _, friction, tested: friction)
    *_, scale = walked(lambda torque: 0.0 * torque, 1.0)
    assert np.median(scale) > 1.5


def test_the_same_stamps_reduce_the_same_torques():
    def levels() -> np.ndarray:
        test, ones = InactiveTorqueTest(JOINTS, 1), np.ones(JOINTS)
        return np.array([test.levels(k * 10**7, 0.01, ones[:, None], ones > 0.0) for k in range(-50, 100)])

    first = levels()
    np.testing.assert_array_equal(first, levels())
    assert 0.55 < first.mean() < 0.7 and first.min() == 0.25 and first.max() == 1.0


def test_a_joint_at_rest_is_not_decided():
    test, rest, ones = InactiveTorqueTest(2, 1), np.zeros(2), np.ones(2)
    for step in range(3000):
        test.add(DT, rest, rest, rest, rest, rest, 0.1 * np.random.default_rng(step).normal(size=2))
        test.levels(round(1e9 * DT * step), DT, ones[:, None], ones > 0.0)
    assert test.running.all() and not test.failed.any() and np.isnan(test.part).all()
