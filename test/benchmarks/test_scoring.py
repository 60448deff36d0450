"""Errors, consistency and pushes from tracks whose numbers are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.accuracy.scoring import RunName, phase_scores, push_scores
from benchmarks.shared.estimates import Track, joint_groups
from benchmarks.shared.walks import PERIOD, SimulatedRun, standing_joints
from friction_estimator.simulation import Push, make_scenario

NAME = RunName("push_knee", "paper_std", 0)
NAMES = ("l_knee", "l_ankle", "r_knee", "r_ankle")
LIMBS = np.array([[True, True, False, False], [False, False, True, True]])
GROUPS = joint_groups(NAMES, LIMBS)


def test_joints_of_equal_limbs_share_a_column():
    assert GROUPS.labels == ("knee", "ankle")
    talos = [f"leg_{side}_{number}_joint" for side in ("left", "right") for number in (1, 2)]
    assert joint_groups(talos, LIMBS).labels == ("leg 1 joint", "leg 2 joint")
    folded = GROUPS.fold(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert sorted(folded[:, 0]) == [1.0, 3.0]
    assert sorted(folded[:, 1]) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("names", "limb"),
    [
        (NAMES, LIMBS[:, :3]),  # one leg is longer
        (("a", "b", "c", "d"), LIMBS),  # names that say nothing
        (NAMES, LIMBS | [True, False, False, False]),  # a joint that two limbs share
    ],
)
def test_other_robots_have_a_column_for_every_joint(names, limb):
    names = names[: limb.shape[1]]
    groups = joint_groups(names, limb)
    assert groups.labels == names
    np.testing.assert_array_equal(groups.fold(np.arange(4.0)[None, : len(names)]), [np.arange(4.0)[: len(names)]])


def test_joints_stand_with_their_limb_and_joints_of_no_limb_with_any_foot():
    limb = np.array([[True, False, False], [False, True, False]])
    contact = np.array([[True, False], [False, False], [False, True]])
    expected = [[True, False, True], [False, False, False], [False, True, True]]
    np.testing.assert_array_equal(standing_joints(contact, limb), expected)


@pytest.mark.parametrize(("factor", "inside", "nees"), [(1.0, 0.95, 1.0), (0.5, 0.673, 4.0), (10.0, 1.0, 0.01)])
def test_consistency_of_errors_with_a_known_distribution(factor, inside, nees):
    """Errors of sigma 0.2 with a sigma that is wrong by a factor: expected values of the normal distribution."""
    error = 0.2 * np.random.default_rng(0).standard_normal((20_000, 4))
    truth = np.ones_like(error)
    where = {"stance": np.ones(error.shape, dtype=bool)}
    (score,) = phase_scores(NAME, "any", GROUPS, truth + error, truth, np.full_like(error, 0.2 * factor), where)
    np.testing.assert_allclose(score.rmse, 0.2, rtol=0.02)
    np.testing.assert_allclose(score.truth_rms, 1.0)
    np.testing.assert_allclose(score.nees, nees, rtol=0.05)
    np.testing.assert_allclose(score.inside, inside, atol=0.01)


def test_only_the_samples_of_a_phase_count():
    estimate, truth = np.zeros((4, 4)), np.zeros((4, 4))
    estimate[2:] = 3.0
    late = np.zeros((4, 4), dtype=bool)
    late[2:] = True
    stance, swing, none = phase_scores(
        NAME, "any", GROUPS, estimate, truth, np.ones((4, 4)), {"a": late, "b": ~late, "c": late & ~late}
    )
    assert (stance.rmse, swing.rmse) == ((3.0, 3.0), (0.0, 0.0))
    assert np.isnan(none.rmse).all()
    assert np.isnan(none.inside).all()


@pytest.fixture
def pushed_run():
    """A push of 20 N m at the left knee from 7.0 s to 7.08 s, and one that comes too early to be judged."""
    time = PERIOD * np.arange(10_000)
    pushes = tuple(Push(start, 0.08, (1.0, 0.0, 0.0), "left_knee") for start in (3.0, 7.0))
    scenario = dataclasses.replace(make_scenario("walk", 10.0), pushes=pushes)
    torque = np.zeros((time.size, 4))
    torque[7000:7080, :2] = 20.0, -5.0
    nothing = np.zeros_like(torque)
    return SimulatedRun(scenario, [], time, nothing, torque, [], np.ones(torque.shape, dtype=bool))


def lagged_track(run, gain, sigma):
    """External torque behind a first-order low-pass, as a momentum observer has it; friction off by 0.3 in the push."""
    external = np.zeros_like(run.external_torque)
    decay = np.exp(-gain * PERIOD)
    for k in range(1, len(external)):
        external[k] = decay * external[k - 1] + (1.0 - decay) * run.external_torque[k - 1]
    friction = np.where((run.time > 7.0) & (run.time < 8.0), 0.3, 0.1)[:, None] * np.ones((1, 4))
    wide = np.full_like(external, sigma)
    return Track(friction, wide, friction, wide, external, wide, [], [])


def test_push_is_measured_at_its_end_and_detected_at_five_sigma(pushed_run):
    pushes, after = push_scores(NAME, "any", GROUPS, pushed_run, lagged_track(pushed_run, 30.0, 1.0))
    (push,) = pushes
    assert (push.start, push.joint, push.truth) == (7.0, "knee", 20.0)
    assert push.estimate == pytest.approx(20.0 * (1.0 - np.exp(-30.0 * 0.08)))
    assert push.delay == pytest.approx(np.log(20.0 / 15.0) / 30.0, abs=PERIOD)
    assert push.false_alarms == 0.0
    stance = next(score for score in after if score.phase == "stance 1 s after")
    np.testing.assert_allclose(stance.rmse, 0.1)


def test_missed_pushes_and_false_alarms_are_seen(pushed_run):
    deaf = push_scores(NAME, "any", GROUPS, pushed_run, lagged_track(pushed_run, 30.0, 10.0))[0][0]
    assert np.isnan(deaf.delay)
    nervous = lagged_track(pushed_run, 30.0, 1.0)
    nervous.external_torque[9500:, 3] = 9.0
    assert push_scores(NAME, "any", GROUPS, pushed_run, nervous)[0][0].false_alarms == pytest.approx(
        500 / 2919, rel=0.01
    )
