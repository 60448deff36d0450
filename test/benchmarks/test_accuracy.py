"""Claims about the whole method on the simulated walk; benchmarks.accuracy measures the same at length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy.scoring import RunName, base_score, track_scores
from benchmarks.shared.estimates import configure, drive, estimate
from friction_estimator.estimation.estimator import Estimator


@pytest.fixture(scope="module", params=["fbse", "momentum"])
def observed(request, robot, noisy_walk):
    config = configure("suralp", "paper_std", {"observer": request.param})
    return request.param, estimate(config, robot.urdf_xml, noisy_walk)


LARGEST = {"fbse": (0.15, 0.72, 0.72, 0.43, 0.17, 0.17), "momentum": (0.20, 0.50, 0.54, 0.26, 0.063, 0.042)}
"""Errors in stance from hip yaw to ankle roll [N m]."""


def test_errors_are_small_and_sigma_is_consistent(observed, noisy_walk, groups):
    """The mean of (error / sigma)^2 is about one."""
    observer, track = observed
    scores = track_scores(RunName("walk", "paper_std", 0), observer, groups, noisy_walk, track)
    stance = next(score for score in scores if (score.method, score.phase) == (observer, "stance"))
    assert (np.array(stance.rmse) < LARGEST[observer]).all(), stance.rmse
    assert 0.3 < np.mean(stance.nees) < 1.7
    assert max(stance.nees) < 2.5
    assert min(stance.inside) > 0.9


def test_base_state_follows_the_walk(observed, noisy_walk):
    score = base_score(RunName("walk", "paper_std", 0), noisy_walk, observed[1])
    assert score.velocity < 0.01
    assert score.drift < 0.03


def test_contact_phase_follows_the_gait(observed):
    """Single support of 0.6 s and double support of 0.9 s, left foot first (section 7.1)."""
    names = observed[1].phase_names
    changes = [(k, name) for k, name in enumerate(names) if k == 0 or names[k - 1] != name]
    order = [name for _, name in changes]
    assert order[:5] == ["double_support", "left_support", "double_support", "right_support", "double_support"]
    lengths = {name: [] for name in order}
    for (start, name), (end, _) in zip(changes[1:], changes[2:], strict=False):
        lengths[name].append((end - start) * 1e-3)
    single, double = np.mean(lengths["left_support"] + lengths["right_support"]), np.mean(lengths["double_support"])
    assert single + double == pytest.approx(1.5, abs=0.03)
    # a foot with less than 1.5 % of the weight counts as lifted, which it is a while before it moves
    assert 0.6 < single < 0.9


def test_a_repeated_joint_sample_has_the_estimate_of_the_one_before(robot, noisy_walk):
    """The driver has missed a cycle 2.5 s after the start, while the robot walks."""
    samples, missed = list(noisy_walk.samples[2300:2600]), 200
    repeated = replace(samples[missed].joints, position=samples[missed - 1].joints.position)
    samples[missed] = replace(samples[missed], joints=repeated)
    found = drive(Estimator(configure("suralp", "paper_std", {"observer": "fbse"}), robot.urdf_xml), samples)
    assert len(found) == len(samples)
    assert found[missed] is found[missed - 1]
    assert [k for k, one in enumerate(found) if one.stamp_ns != samples[k].joints.stamp_ns] == [missed]
