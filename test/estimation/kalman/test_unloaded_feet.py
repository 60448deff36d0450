"""Claims about feet in the air: found when they are, with readings that are theirs alone."""

from __future__ import annotations

import numpy as np
import pytest

from friction_estimator.base.contact_phase import UnloadedFeet
from friction_estimator.config import KalmanConfig
from friction_estimator.estimation.kalman.local_motion import LocalMotion
from friction_estimator.estimation.kalman.windows import Window
from test.estimation.kalman.synthetic import filter_of

FORCE_STD, BIAS_STD, FIRM = 1.0, 2.0, 30.0
BIAS = np.array([0.5, -0.3, -1.5, 0.02, 0.05, -0.01])
MOTION = LocalMotion(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(3))


def window(force: float, rng: np.random.Generator, fresh: bool = True) -> Window:
    """Ten readings of one foot that carries a force [N], and has a bias."""
    readings = BIAS + rng.normal(size=(10, 6)) * [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]
    readings[:, 2] += force
    normal = readings[:, 2]
    return Window(
        time=0.0, duration=0.01, samples=10, reading_counts=np.full(2, 10.0), end_motion=MOTION,
        angular_acceleration=np.zeros(3), acceleration=np.zeros(2),
        mean_acceleration=np.zeros(5), mean_acceleration_std=np.zeros(5),
        effort=np.zeros(2), specific_force=np.zeros(3), wrenches=readings.mean(axis=0)[None],
        wrench_shift=np.zeros(1), effort_rate=np.zeros(2), wrench_rate=np.zeros((1, 6)),
        normal_force=np.array([[normal.min()], [normal.max()]]), regressor=np.zeros((2, 1)),
        motor_friction_variance=np.zeros(2), specific_force_roughness=np.zeros(3),
            wrench_roughness=np.zeros((1, 6)), imu_fresh=True, wrench_fresh=np.array([fresh]),
        disturbed=np.zeros(2, dtype=bool), complete=True,
    )  # fmt: skip


def watch(forces: np.ndarray, stale: range = range(0)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Empty, touching, and the readings that would be trusted, window by window."""
    feet, rng = UnloadedFeet(1, FORCE_STD, BIAS_STD, FIRM), np.random.default_rng(0)
    empty, touching, readings = [], [], []
    for k, force in enumerate(forces):
        readings.append(feet.classify(window(force, rng, k not in stale))[0])
        empty.append(feet.unloaded[0])
        touching.append(feet.contact_transition[0])
    return np.array(empty), np.array(touching), np.array(readings)


STEP = np.r_[
    np.full(30, 500.0), np.linspace(500.0, 0.0, 10), np.zeros(40), np.linspace(0.0, 500.0, 5), np.full(15, 500)
]


def test_a_swinging_foot_is_unloaded_and_reads_its_bias():
    empty, _, readings = watch(STEP)
    assert not empty[:45].any() and empty[50:80].mean() > 0.9 and not empty[81:].any()
    np.testing.assert_allclose(readings[empty].mean(axis=0), BIAS, atol=0.3)


def test_a_foot_is_firm_on_the_ground_or_touching_or_unloaded():
    empty, touching, _ = watch(STEP)
    assert not touching[5:28].any() and not touching[86:].any()
    assert touching[40:45].all()
    assert not (touching & empty).any()


def test_readings_of_a_foot_that_still_leaves_the_ground_are_not_biases():
    """What is trusted lies in the middle of several windows that agree, so the last newtons are over by then."""
    empty, _, _ = watch(np.r_[np.full(20, 500.0), np.linspace(9.0, 0.0, 16)])
    assert not empty.any()


def test_a_foot_whose_sensor_is_silent_is_not_unloaded():
    empty, _, _ = watch(np.zeros(40), stale=range(20, 22))
    assert empty[10:20].all() and not empty[20:28].any() and empty[30:].all()


@pytest.mark.parametrize("dragged", [3.0, 5.0])
def test_a_bias_learned_while_the_foot_drags_cannot_lock_in(dragged):
    """A foot brushes the ground steadily, which no sensor tells from a bias; once it really hangs, the truth wins."""
    feet, rng, limb_filter = (
        UnloadedFeet(1, FORCE_STD, BIAS_STD, FIRM),
        np.random.default_rng(0),
        filter_of(KalmanConfig()),
    )
    normal = limb_filter.layout.foot_bias(0).start + 2
    variance, found = np.array([1.0, 1.0, 1.0, 0.01, 0.01, 0.01]) / 10, []
    for force in np.r_[np.full(15, dragged), np.zeros(300)]:
        reading = feet.classify(window(force, rng))[0]
        if feet.unloaded[0]:
            limb_filter.correct_foot_bias(0, reading, variance)
        found.append(limb_filter.state[normal])
    assert found[14] == pytest.approx(BIAS[2] + dragged, abs=0.5)
    assert found[-1] == pytest.approx(BIAS[2], abs=0.4)


def test_noisier_sensors_have_wider_limits():
    rng = np.random.default_rng(1)
    feet = UnloadedFeet(1, 0.01, 0.1, FIRM)
    for _ in range(20):
        feet.classify(window(0.0, rng))
        assert not feet.unloaded[0]
    feet.retune(FORCE_STD)
    for _ in range(10):
        feet.classify(window(0.0, rng))
    assert feet.unloaded[0]
