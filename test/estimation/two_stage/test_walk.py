"""Claims about the stage ``two_stage`` on a short simulated walk with the noise of the paper's table."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from test.feeding import feed, stacked

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

SECONDS, SETTLED, SEED, CHANGED = 6.0, 3500, 3, 3500


@dataclass(frozen=True)
class Run:
    """What an estimator has found: itself, friction and its errors once settled, over sigma, too."""

    estimator: Estimator
    estimates: list[Any]
    errors: np.ndarray
    squares: np.ndarray
    truth_rms: np.ndarray


@pytest.fixture(scope="module")
def walk():
    from friction_estimator.simulation import Simulator, make_noise, make_scenario

    robot = load_robot("suralp")
    simulator = Simulator(
        robot.config, robot.urdf_xml, make_scenario("walk", SECONDS), make_noise("paper_std"), seed=SEED
    )
    return robot, [simulator.step() for _ in range(round(SECONDS * 1000))]


def estimator_of(robot, **changes) -> Estimator:
    return Estimator(dataclasses.replace(robot.config, observer="two_stage", **changes), robot.urdf_xml)


@pytest.fixture(scope="module")
def run(walk) -> Run:
    robot, samples = walk
    estimator = estimator_of(robot)
    estimates = feed(estimator, samples) + estimator.flush()
    truth = np.array([sample.truth.friction for sample in samples])[SETTLED:]
    errors = stacked(estimates, "friction")[SETTLED:] - truth
    sigma = stacked(estimates, "sigma")[SETTLED:]
    return Run(estimator, estimates, errors, (errors / sigma) ** 2, np.sqrt((truth**2).mean(axis=0)))


def test_the_error_of_every_joint_is_a_small_part_of_its_friction(run):
    relative = np.sqrt((run.errors**2).mean(axis=0)) / run.truth_rms
    assert np.median(relative) < 0.1 and relative.max() < 0.2


def test_sigma_covers_the_errors_and_is_not_many_times_as_large(run):
    inside = (run.squares < 3.84).mean(axis=0)
    assert inside.min() > 0.9 and run.squares.mean() > 0.05


def test_walking_without_pushes_disturbs_no_joint_and_needs_no_restart(run):
    assert not stacked(run.estimates, "disturbed")[SETTLED:].any()
    assert run.estimator.health.error_restarts == 0


def test_saved_parameters_are_those_of_a_new_run_before_it_has_moved(walk, run):
    saved = run.estimator.identified
    anew = estimator_of(walk[0])
    anew.restore(saved)
    restored = anew.identified
    np.testing.assert_allclose(restored.values, saved.values, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(restored.covariance, saved.covariance, rtol=1e-4, atol=1e-7)


def test_a_bias_of_a_foot_sensor_shows_while_the_foot_is_in_the_air_and_changes_no_friction(walk, run):
    robot, samples = walk
    bias = np.array([4.0, -3.0, 5.0, 0.2, -0.3, 0.1])
    biased = [
        dataclasses.replace(
            sample,
            wrenches=[
                dataclasses.replace(one, wrench=one.wrench + bias) if one.foot == 0 else one for one in sample.wrenches
            ],
        )
        for sample in samples
    ]
    estimates = feed(estimator_of(robot), biased)
    change = stacked(estimates, "friction")[SETTLED:] - stacked(run.estimates, "friction")[SETTLED : len(estimates)]
    assert np.sqrt((change**2).mean(axis=0)).max() < 0.05


def test_friction_that_doubles_is_found_within_seconds(walk):
    robot, samples = walk
    changed = [
        sample
        if k < CHANGED
        else dataclasses.replace(
            sample, joints=dataclasses.replace(sample.joints, effort=sample.joints.effort + sample.truth.friction)
        )
        for k, sample in enumerate(samples)
    ]
    estimator = estimator_of(robot)
    friction = stacked(feed(estimator, changed) + estimator.flush(), "friction")[-1000:]
    truth = 2.0 * np.array([sample.truth.friction for sample in samples])[-1000:]
    relative = np.sqrt(((friction - truth) ** 2).mean(axis=0) / (truth**2).mean(axis=0))
    assert np.median(relative) < 0.2 and relative.max() < 0.45


def test_a_frozen_law_stays_as_it_is(walk, run):
    robot, samples = walk
    estimator = estimator_of(robot)
    estimator.restore(run.estimator.identified)
    estimator.frozen = True
    before = estimator.identified.values
    estimates = feed(estimator, samples[:1500])
    np.testing.assert_array_equal(estimator.identified.values, before)
    assert np.isfinite(stacked(estimates, "friction")).all()


def test_a_silent_foot_sensor_leaves_the_other_leg_measured(walk, run):
    robot, samples = walk
    estimator = estimator_of(robot)
    estimator.restore(run.estimator.identified)
    silent = [
        sample if k < 700 else dataclasses.replace(sample, wrenches=sample.wrenches[1:])
        for k, sample in enumerate(samples[:1500])
    ]
    measured = stacked(feed(estimator, silent), "measured")
    assert measured[600].all() and not measured[-1, :6].any() and measured[-1, 6:].all()


@pytest.mark.parametrize("wrong_for", [1.0, 4.0, math.inf])
def test_what_was_learned_while_a_sensor_was_wrong_is_dropped_however_long_that_was(walk, run, wrong_for):
    estimator = estimator_of(walk[0])
    estimator.pipeline.friction.copy_identified(run.estimator.pipeline.friction)
    feed(estimator, walk[1][: SETTLED // 2])
    before = sum(float(np.trace(limb.solution.information[0])) for limb in estimator.pipeline.friction.limbs)
    estimator.pipeline.friction.set_sensor_fault(wrong=True, wrong_for=wrong_for)
    estimator.pipeline.friction.set_sensor_fault(wrong=False, wrong_for=wrong_for)
    after = sum(float(np.trace(limb.solution.information[0])) for limb in estimator.pipeline.friction.limbs)
    assert 0.0 < after < before
