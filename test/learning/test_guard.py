"""Motions that the networks do not know, although each input is one of the training data, show in the errors."""

import numpy as np
import pytest

from friction_estimator.estimation.health import Health
from friction_estimator.learning.external_torque import CHANGE_TIME, Guard
from friction_estimator.learning.network import Model, RobotIdentity
from test.learning.golden import ROWS, networks

DT = 1e-3
ONE, TWO = networks()


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def guard(health):
    identity = RobotIdentity(1, "", "", ("hip", "knee"), (), "", 100.0)
    limits = np.tile([[-1.0], [1.0]], 7)
    return Guard(Model(identity, DT, (ONE, TWO), limits, np.zeros((2, 5)), {}), False, health)


def judged(guard, size, seconds, pushed=lambda time: 0.0):
    """Errors of this size (ROWS,) as parts of sigma; whether each row is known after each sample."""
    rng, known = np.random.default_rng(0), []
    for k in range(round(seconds / DT)):
        external = size * rng.standard_normal(ROWS) + pushed(k * DT)
        known.append(np.isfinite(guard.external_torque(external, np.zeros(ROWS), np.ones(ROWS), k, DT)))
    return np.array(known)


def test_errors_like_their_sigma_are_known_and_short_large_ones_too(guard, health):
    assert judged(guard, np.ones(ROWS), 6.5, lambda time: 50.0 * (2.0 < time % 3.0 < 2.1)).all()
    assert health.event_count == 0


def test_a_limb_whose_errors_stay_beyond_sigma_is_not_known_until_they_have_fallen(guard, health):
    size = np.ones(ROWS)
    size[ONE.module.outputs] = 3.0
    known = judged(guard, size, 3.0)
    assert known[:500].all() and known[:, TWO.module.outputs].all()
    assert not known[2500:, ONE.module.outputs].any()
    (event,) = health.events
    assert event.code == "mob_net_sigma" and "'one' stays beyond the sigma of MOB-Net" in event.text
    assert judged(guard, np.ones(ROWS), 8.0)[-1].all()


def test_a_torque_that_is_not_known_changes_nothing(guard):
    guard.external_torque(np.full(ROWS, np.nan), np.zeros(ROWS), np.ones(ROWS), 0, DT)
    assert judged(guard, np.ones(ROWS), 1.0).all()


def test_sigma_holds_what_the_external_torque_has_changed_by_lately_and_a_gap_begins_anew(guard):
    external, shown = np.full(ROWS, 2.0), []
    for k in range(400):
        external[0] = 12.0 if k >= 100 else np.nan if k == 50 else 2.0
        shown.append(guard.sigma(external, np.ones(ROWS), DT))
    shown = np.array(shown)
    np.testing.assert_array_equal(np.delete(shown, 0, axis=1), 1.0)
    np.testing.assert_array_equal(shown[:100, 0], 1.0)
    after = 1.0 + np.arange(300)
    np.testing.assert_allclose(shown[100:, 0], np.maximum(10.0 * np.exp(-after * DT / CHANGE_TIME), 1.0))
    guard.reset()
    np.testing.assert_array_equal(guard.sigma(np.full(ROWS, 7.0), np.ones(ROWS), DT), 1.0)
