"""Collision detection: what is detected, when, in which limb, and what is not."""

import dataclasses
import math

import numpy as np
import pytest

from friction_estimator.collision.detector import (
    COLLISION_PAUSE,
    MIN_DURATION,
    SETTLING_TIME,
    THRESHOLD_FACTORS,
    WARM_UP_TIME,
    CollisionDetector,
    ThresholdLearner,
    Thresholds,
    load_thresholds,
)
from friction_estimator.errors import LearningError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import ContactPhase
from test.hopper import HOPPER, hopper_config, hopping

PERIOD_NS = 1_000_000
START = round(1e9 * WARM_UP_TIME / PERIOD_NS) + 1
"""Samples before the first one that is compared."""


@pytest.fixture(scope="module")
def robot():
    return RobotModel(hopper_config(), HOPPER)


@pytest.fixture(scope="module")
def template():
    estimator = Estimator(hopper_config(), HOPPER)
    instants = hopping(1, 2)
    return [
        one for instant in instants for s in (instant.joints, instant.imu, instant.wrench) for one in estimator.add(s)
    ][0]


def thresholds(torque=10.0, sigma=2.0):
    values = np.empty((2, 2, 2))
    values[:, 0], values[:, 1] = torque, sigma
    return Thresholds(("hip", "knee"), values)


def estimates(template, torque, sigma=None, contact=None):
    """Estimates 1 ms apart with these torques and sigmas (m, n), and contact (m,) of the foot."""
    torque = np.asarray(torque, dtype=float)
    sigma = np.ones_like(torque) if sigma is None else np.asarray(sigma, dtype=float)
    contact = np.zeros(len(torque), dtype=bool) if contact is None else contact
    since = math.inf
    for k, (one, std, stands) in enumerate(zip(torque, sigma, contact, strict=True)):
        since = 0.0 if k and stands != contact[k - 1] else since + 1e-3
        torque = {"external_torque": one, "external_torque_sigma": std}
        phase = ContactPhase(np.array([stands]), np.array([since]), "")
        yield dataclasses.replace(template, stamp_ns=(k + 1) * PERIOD_NS, phase=phase, **torque)


def detected(robot, limits, sequence):
    detector = CollisionDetector(robot, limits)
    return [(k, one) for k, estimate in enumerate(sequence) for one in detector.step(estimate)]


def step_of(height, joint=1, length=200, before=START):
    torque = np.zeros((before + length, 2))
    torque[before:, joint] = height
    return torque


def test_a_step_is_detected_when_it_has_been_above_the_threshold_for_five_milliseconds(robot, template):
    for height in (12.0, -40.0):
        ((sample, collision),) = detected(robot, thresholds(), estimates(template, step_of(height)))
        assert sample == START + round(1e3 * MIN_DURATION)
        assert (collision.joint, collision.limb, collision.signal) == ("knee", "hip to knee", "external torque")
        assert math.copysign(1.0, collision.value) == math.copysign(1.0, height)
        assert abs(collision.value) > collision.threshold == 10.0


def test_sigma_alone_shows_a_collision(robot, template):
    torque, sigma = step_of(0.0), np.ones((START + 200, 2))
    sigma[START:, 0] = 5.0
    ((_, collision),) = detected(robot, thresholds(), estimates(template, torque, sigma))
    assert (collision.joint, collision.signal, collision.threshold) == ("hip", "sigma", 2.0)


def test_a_glitch_of_a_few_samples_is_none(robot, template):
    torque = step_of(0.0)
    torque[START : START + 3] = 30.0  # above the threshold for less than 5 ms
    assert detected(robot, thresholds(), estimates(template, torque)) == []


def test_a_limb_collides_once_until_it_has_been_below_the_thresholds_for_a_while(robot, template):
    torque = step_of(0.0, length=2000)
    for start in (0, 200, 1000):  # the second one begins before the pause is over
        torque[START + start : START + start + 100] = 50.0
    found = detected(robot, thresholds(), estimates(template, torque))
    assert [sample // 1000 for sample, _ in found] == [START // 1000, (START + 1000) // 1000]
    assert COLLISION_PAUSE > 0.1


def test_a_joint_in_contact_has_its_own_threshold_and_none_right_after_the_contact_has_changed(robot, template):
    limits, lands = thresholds(), START + 100
    limits.values[1, 0] = 2.0
    torque, contact = step_of(5.0, length=400), np.arange(START + 400) >= lands
    ((sample, collision),) = detected(robot, limits, estimates(template, torque, contact=contact))
    assert collision.in_contact
    assert sample == lands + round(1e3 * (SETTLING_TIME + MIN_DURATION))


def test_a_limb_is_hit_while_it_is_above_the_thresholds_and_known_by_its_foot(robot, template):
    torque = step_of(0.0, length=400)
    torque[START : START + 100] = 50.0
    detector, hits = CollisionDetector(robot, thresholds()), []
    for estimate in estimates(template, torque):
        detector.step(estimate)
        hits.append(detector.hit)
    samples = [k for k, hit in enumerate(hits) if hit]
    assert {hit for hit in hits if hit} == {(0,)}
    assert samples == list(range(START + round(1e3 * MIN_DURATION), START + 100))


def test_unknown_torque_is_not_compared_and_a_gap_begins_anew(robot, template):
    torque = step_of(np.nan)
    assert detected(robot, thresholds(), estimates(template, torque)) == []
    sequence = list(estimates(template, step_of(50.0, before=START - 1, length=900)))
    late = [dataclasses.replace(one, stamp_ns=one.stamp_ns + 10**9) for one in sequence[START - 1 :]]
    assert detected(robot, thresholds(), [*sequence[: START - 1], *late]) == []


def test_the_walk_from_which_thresholds_are_learned_has_no_collision_and_one_a_fifth_larger_has(robot, template):
    rng = np.random.default_rng(0)
    torque, sigma = rng.normal(0.0, 3.0, (START + 3000, 2)), rng.uniform(0.5, 1.5, (START + 3000, 2))
    contact = np.arange(START + 3000) // 300 % 2 == 0
    learner = ThresholdLearner(robot)
    for estimate in estimates(template, torque, sigma, contact):
        learner.step(estimate)
    limits = learner.thresholds()
    assert detected(robot, limits, estimates(template, torque, sigma, contact)) == []
    tight = dataclasses.replace(limits, values=limits.values / (1.2 * np.reshape(THRESHOLD_FACTORS, (2, 1, 1))))
    slow = np.repeat(torque[::40], 40, axis=0)[: len(torque)]
    assert detected(robot, tight, estimates(template, slow, sigma, contact))


def test_thresholds_in_a_file_are_the_same_to_the_bit_and_infinite_where_nothing_was_seen(robot, template, tmp_path):
    learner = ThresholdLearner(robot)
    with pytest.raises(LearningError, match="no sample has an external torque"):
        learner.thresholds()
    for estimate in estimates(template, np.random.default_rng(1).normal(size=(START + 50, 2))):
        learner.step(estimate)
    limits = learner.thresholds("kalman")
    assert np.isinf(limits.values[1]).all()  # the foot was in the air all the time
    limits.save(tmp_path / "thresholds.yaml")
    read = load_thresholds(tmp_path / "thresholds.yaml")
    np.testing.assert_array_equal(read.values, limits.values)
    assert (read.joint_names, read.source) == (("hip", "knee"), "kalman")


def test_thresholds_of_other_joints_or_another_source_or_no_thresholds_are_refused(robot, tmp_path):
    other = Thresholds(("elbow",), np.ones((2, 2, 1)), "kalman")
    with pytest.raises(LearningError, match="for the joints elbow; the robot has hip, knee"):
        CollisionDetector(robot, other)
    with pytest.raises(LearningError, match="external torque of kalman, not of a model"):
        other.check(("elbow",), "a model")
    (tmp_path / "x.yaml").write_text("format: something\n")
    with pytest.raises(LearningError, match="holds no collision thresholds"):
        load_thresholds(tmp_path / "x.yaml")
