"""Claims about the external torque, and about the watch on pushes."""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.kalman.disturbance import (
    FRICTION_RATIO,
    GATE,
    LONGEST_PUSH,
    PUSH_SETTLING,
    SMALLEST_PUSH,
    DisturbanceWatch,
    is_large,
    step_disturbance,
)
from friction_estimator.estimation.kalman.limb_state import Limb
from friction_estimator.estimation.observers.momentum import initial_residual

LIMBS = (Limb(np.array([0, 1]), np.array([0])), Limb(np.array([2]), np.array([], dtype=int)))
FRICTION = np.array([1.0, -0.5, 0.2])
DT = 1e-3


def watch_of(torques: np.ndarray, sigma: float = 0.1) -> tuple[np.ndarray, list[list[int]]]:
    """Pushed joints (t, 3), and the limbs that were given back, at every instant of torques (t, 3)."""
    watch, pushed, lasting = DisturbanceWatch(LIMBS, 3), [], []
    for torque in torques:
        lasting.append(step(watch, torque, sigma))
        pushed.append(watch.pushed)
    return np.array(pushed), lasting


def step(watch: DisturbanceWatch, torque: np.ndarray, sigma: float = 0.1) -> list[int]:
    gates = GATE, FRICTION_RATIO, SMALLEST_PUSH
    large = np.array([is_large(one, sigma, friction, *gates) for one, friction in zip(torque, FRICTION, strict=True)])
    return watch.step(large if large.any() else None, DT)


def pulse(joint: int, size: float, start: int, stop: int, length: int = 400) -> np.ndarray:
    torques = np.zeros((length, 3))
    torques[start:stop, joint] = size
    return torques


def test_a_torque_shows_behind_both_low_passes():
    """A joint that stays at rest although a torque begins to act; nothing is known of it for the first 0.1 s."""
    gains, H, none, nothing = np.array([40.0, 120.0]), np.eye(1), np.zeros(1), np.zeros((0, 6))
    residual, low_pass = initial_residual(1), np.full((4, 1), np.nan)
    passed, sigma, noise, large = np.empty((2, 1)), np.empty(1), np.empty((2, 1)), np.empty(1, dtype=bool)
    shown = []
    for k in range(400):
        effort = np.array([float(k >= 300)])
        step_disturbance(
            H, none, none, np.zeros((0, 6, 1)), np.zeros(3), effort, nothing, nothing, nothing, residual, True,
            np.zeros(0, bool), np.zeros((0, 1), bool), DT, gains, True, 0, none, none, np.zeros((9, 1)), none, none,
            np.zeros((2, 1)), low_pass, GATE, FRICTION_RATIO, SMALLEST_PUSH, nothing, passed, sigma, noise, large,
        )  # fmt: skip
        shown.append(passed[:, 0].copy())
    after = DT * np.arange(100)
    assert np.isnan(shown[90]).all() and not np.any(shown[250])
    np.testing.assert_allclose(np.array(shown[300:]), -(1.0 - np.exp(-np.outer(after, gains))), atol=1e-9)


def test_a_push_is_noticed_at_once_in_its_limb_and_in_no_other():
    pushed, lasting = watch_of(pulse(1, 8.0, 100, 180))
    assert not pushed[:100].any() and not pushed[:, 2].any()
    settle = round(PUSH_SETTLING / DT)
    assert pushed[100 : 180 + settle - 1, :2].all() and not pushed[180 + settle + 1 :].any()
    assert not any(lasting)


def test_small_torques_and_torques_of_the_size_of_the_friction_are_no_pushes():
    below = FRICTION_RATIO * 0.5 + SMALLEST_PUSH
    assert not watch_of(pulse(1, 0.99 * below, 100, 180))[0].any()
    assert watch_of(pulse(1, 1.01 * below, 100, 180))[0].any()


def test_uncertain_torques_are_no_pushes():
    assert not watch_of(pulse(1, 8.0, 100, 180), sigma=8.0 / (0.99 * GATE))[0].any()
    assert not watch_of(pulse(1, 8.0, 100, 180), sigma=np.nan)[0].any()
    assert not watch_of(np.full((50, 3), np.nan))[0].any()


def test_what_lasts_too_long_is_no_push_and_nothing_is_for_as_long_again():
    longest = round(LONGEST_PUSH / DT)
    pushed, lasting = watch_of(pulse(2, -8.0, 100, 3 * longest, 4 * longest))
    given_back = [k for k, limbs in enumerate(lasting) if limbs]
    assert lasting[given_back[0]] == [1] and abs(given_back[0] - 100 - longest) <= 2
    assert not pushed[given_back[0] + 1 : given_back[0] + longest - 1].any()
    assert pushed[given_back[0] + longest + 2 : 3 * longest, 2].any()


def test_arrays_that_left_do_not_change_and_reset_forgets_the_push():
    watch = DisturbanceWatch(LIMBS, 3)
    step(watch, np.array([9.0, 0.0, 0.0]))
    kept = watch.pushed
    for _ in range(100):
        step(watch, np.zeros(3))
    np.testing.assert_array_equal(kept, [True, True, False])
    step(watch, np.array([9.0, 0.0, 0.0]))
    watch.reset()
    assert not watch.pushed.any()
