"""Stick phases are found and left out."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.identification.curves.drive import BY_HAND, sliding, velocity_noise

PERIOD = 0.01
TIME = PERIOD * np.arange(4000)
WHOLE = np.zeros(TIME.size, dtype=np.intp)
STOP_AND_GO = 0.2 * np.clip(np.sin(0.5 * np.pi * TIME), 0.5, 1.0) - 0.1  # at rest most of the second half of 4 s


def test_rest_and_margins_at_both_ends_of_a_slip_are_left_out_and_motion_is_not():
    moves = STOP_AND_GO > 0.01
    cut = 5
    expected = moves.copy()
    for shift in range(-cut, cut + 1):
        expected &= np.roll(moves, shift)
    expected[:cut], expected[-cut:] = False, False
    np.testing.assert_array_equal(sliding(STOP_AND_GO, WHOLE, PERIOD, 0.01), expected)


def test_each_direction_is_a_slip_of_its_own_and_none_crosses_a_gap():
    velocity = np.where(TIME < 20.0, 0.1, -0.1)
    slides = sliding(velocity, (TIME >= 30.0).astype(np.intp), PERIOD, 0.0)
    assert sorted(np.flatnonzero(~slides)) == [
        *range(5), *range(1995, 2005), *range(2995, 3005), *range(3995, 4000)
    ]  # fmt: skip


@pytest.mark.parametrize("rests", [False, True])
def test_noise_is_that_of_the_moving_joint(rests):
    rng = np.random.default_rng(2)
    motion = STOP_AND_GO if rests else 0.1 * np.sin(0.8 * TIME)
    noise = np.where(motion == 0.0, 0.0, 0.002) * rng.normal(size=TIME.size)  # an encoder at rest has none
    assert velocity_noise(motion + noise, WHOLE, PERIOD, BY_HAND) == pytest.approx(0.002, rel=0.25)


def test_thresholds_follow_from_the_noise():
    rng = np.random.default_rng(3)
    velocity = STOP_AND_GO + 0.002 * rng.normal(size=TIME.size)
    slides = sliding(velocity, WHOLE, PERIOD)
    assert not slides[STOP_AND_GO == 0.0].any()
    assert slides[STOP_AND_GO > 0.0].mean() > 0.8
