"""Claims about the external torque, and about the watch on pushes."""

from __future__ import annotations

import numpy as np

from friction_estimator.estimation.kalman.disturbance import (
    EXTERNAL_TORQUE_GATE,
    FRICTION_RATIO,
    MAX_PUSH_DURATION,
    MIN_PUSH_TORQUE,
    OBSERVER_BANDWIDTHS,
    PUSH_SETTLING_TIME,
    DisturbanceMemory,
    ExternalTorque,
    detect_pushes,
    is_push_torque,
    step_disturbance,
)
from friction_estimator.estimation.kalman.law_at_motion import LawAtMotion
from friction_estimator.estimation.kalman.limb_estimates import empty_estimates
from friction_estimator.estimation.observers.momentum import ObserverInputs, ResidualTable, initial_residual
from friction_estimator.kernels.records import buffered_zeros
from friction_estimator.types import Dynamics

LIMB_OF_JOINT = np.array([0, 0, 1])
FRICTION = np.array([1.0, -0.5, 0.2])
DT = 1e-3
NO_FEET = np.zeros((0, 3)), np.zeros((0, 3, 3))


def memory_of(joints: int, limbs: int) -> DisturbanceMemory:
    """Before the first sample."""
    n = joints
    _, memory = buffered_zeros(
        DisturbanceMemory, observer=(5, n), variance=(2, n), filtered_expected=n, last_expected=n, last_external=(2, n),
        since_push=limbs, disturbed_for=limbs, since_release=limbs,
    )  # fmt: skip
    memory.observer[:] = initial_residual(n)
    memory.filtered_expected[:] = np.nan
    memory.since_push[:] = memory.since_release[:] = np.inf
    return memory


def watch_of(torques: np.ndarray, sigma: float = 0.1) -> tuple[np.ndarray, list[int]]:
    """Pushed joints (t, 3), and the limbs that were given back, at every instant of torques (t, 3)."""
    memory, disturbed, lasting = memory_of(3, 2), np.empty(torques.shape, dtype=bool), []
    for torque, now in zip(torques, disturbed, strict=True):
        large = np.array([is_push_torque(one, sigma, friction) for one, friction in zip(torque, FRICTION, strict=True)])
        lasting.append(detect_pushes(large, LIMB_OF_JOINT, DT, memory, now))
    return disturbed, lasting


def pulse(joint: int, size: float, start: int, stop: int, length: int = 400) -> np.ndarray:
    torques = np.zeros((length, 3))
    torques[start:stop, joint] = size
    return torques


def test_a_torque_shows_behind_both_low_passes():
    """A joint that stays at rest although a torque begins to act; nothing is known of it for the first 0.1 s."""
    none, nothing, memory = np.zeros(1), np.zeros((0, 6)), memory_of(1, 1)
    dynamics = Dynamics(none, none, np.zeros(3), np.eye(1), none, none, np.zeros((0, 6, 1)), nothing, *NO_FEET)
    table = ResidualTable(np.zeros((0, 1), dtype=bool), OBSERVER_BANDWIDTHS[0], True, 0)
    estimates, out = empty_estimates(1, 2, 0, 1), ExternalTorque.zeros(1)
    shown = []
    for k in range(400):
        inputs = ObserverInputs(np.array([float(k >= 300)]), nothing, True, np.zeros(0, bool), DT)
        step_disturbance(dynamics, inputs, table, none, estimates, memory, LawAtMotion.zeros(1, 2), out)
        shown.append((out.slow[0], out.fast[0]))
    shown = np.array(shown)
    after = DT * np.arange(100)
    assert np.isnan(shown[90]).all() and not np.any(shown[250])
    np.testing.assert_allclose(shown[300:], -(1.0 - np.exp(-np.outer(after, OBSERVER_BANDWIDTHS))), atol=1e-9)


def test_a_push_is_noticed_at_once_in_its_limb_and_in_no_other():
    disturbed, lasting = watch_of(pulse(1, 8.0, 100, 180))
    assert not disturbed[:100].any() and not disturbed[:, 2].any()
    settle = round(PUSH_SETTLING_TIME / DT)
    assert disturbed[100 : 180 + settle - 1, :2].all() and not disturbed[180 + settle + 1 :].any()
    assert not any(lasting)


def test_small_torques_and_torques_of_the_size_of_the_friction_are_no_pushes():
    below = FRICTION_RATIO * 0.5 + MIN_PUSH_TORQUE
    assert not watch_of(pulse(1, 0.99 * below, 100, 180))[0].any()
    assert watch_of(pulse(1, 1.01 * below, 100, 180))[0].any()


def test_uncertain_torques_are_no_pushes():
    assert not watch_of(pulse(1, 8.0, 100, 180), sigma=8.0 / (0.99 * EXTERNAL_TORQUE_GATE))[0].any()
    assert not watch_of(pulse(1, 8.0, 100, 180), sigma=np.nan)[0].any()
    assert not watch_of(np.full((50, 3), np.nan))[0].any()


def test_what_lasts_too_long_is_no_push_and_nothing_is_for_as_long_again():
    longest = round(MAX_PUSH_DURATION / DT)
    disturbed, lasting = watch_of(pulse(2, -8.0, 100, 3 * longest, 4 * longest))
    given_back = [k for k, limbs in enumerate(lasting) if limbs]
    assert lasting[given_back[0]] == 1 << 1 and abs(given_back[0] - 100 - longest) <= 2
    assert not disturbed[given_back[0] + 1 : given_back[0] + longest - 1].any()
    assert disturbed[given_back[0] + longest + 2 : 3 * longest, 2].any()
