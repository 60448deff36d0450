"""Errors of sensors are found on a walk and named; the estimate accounts for some, and recovers from the others."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the walk is simulated")

from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.robot import load_robot
from friction_estimator.metrics import root_mean_square
from friction_estimator.simulation import Simulator, make_noise, make_scenario
from friction_estimator.simulation.sensors import Timing
from friction_estimator.types import JointSample, WrenchSample

SETTLED = 6000
DURATION = 8.0
ROBOT = load_robot("suralp")
KNEE = np.arange(12) == 3


def walked(**errors):
    """Estimator, its friction and the truth (m, 12) of a walk whose sensors have these errors."""
    level = replace(make_noise("paper_std"), **errors)
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, make_scenario("walk", DURATION), level, seed=5)
    estimator, truth, friction = Estimator(ROBOT.config, ROBOT.urdf_xml), [], []
    while simulator.time < DURATION:
        sample = simulator.step()
        truth.append(sample.truth.friction)
        friction += [estimate.friction for reading in sample.readings for estimate in estimator.add(reading)]
    friction += [estimate.friction for estimate in estimator.flush()]
    return estimator, np.array(friction), np.array(truth)


@pytest.mark.slow
def test_late_wrenches_and_a_tilted_imu_are_found_and_named():
    estimator, friction, truth = walked(imu_tilt=math.radians(3.0), timing=Timing(wrench_delay=5e-3))
    findings = estimator.health.findings
    for topic, value in (("l_foot/wrench", 5.0), ("r_foot/wrench", 5.0), ("imu/data", 3.0)):
        named = [text for text in findings if text.startswith(f"{topic}: ")]
        assert len(named) == 1
        number = next(float(word) for word in named[0].split() if word.replace(".", "", 1).isdigit())
        assert number == pytest.approx(value, abs=1.0 if topic != "imu/data" else 0.5)
    error = root_mean_square(friction[SETTLED:] - truth[SETTLED:])
    assert (error / root_mean_square(truth[SETTLED:]) < 0.2).all()


@pytest.mark.slow
def test_late_motor_torques_are_named_as_such():
    estimator, _, _ = walked(timing=Timing(effort_delay=1e-3))
    assert len(estimator.health.findings) == 1
    text = r"joint_states: the motor torques are ([0-9.]+) ms older .*\. The estimate accounts for it; .*"
    found = re.fullmatch(text, estimator.health.findings[0])
    assert float(found[1]) == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_what_was_identified_from_a_wrong_sensor_is_dropped_once_the_sensor_is_right_again():
    """The force sensors are turned by 90 degrees for three seconds, and named."""
    scenario = make_scenario("walk", 18.5)
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, scenario, make_noise("paper_std"), seed=5)
    estimator, errors, named = Estimator(ROBOT.config, ROBOT.urdf_xml), [], False
    while simulator.time < scenario.duration:
        sample, turned = simulator.step(), 10.0 <= simulator.time < 13.0
        for reading in sample.readings:
            if turned and isinstance(reading, WrenchSample):
                reading = replace(reading, wrench=reading.wrench[[0, 2, 1, 3, 5, 4]] * [1, -1, 1, 1, -1, 1])
            errors += [estimate.friction - sample.truth.friction for estimate in estimator.add(reading)]
        named = named or estimator.health.sensors_wrong
    assert named and not estimator.health.sensors_wrong
    before, after = (root_mean_square(np.array(errors[start : start + 1000])) for start in (9000, 17400))
    assert (after < 2.0 * before + 0.02).all()


def slip(joints: JointSample) -> JointSample:
    return replace(joints, position=joints.position + 0.1 * KNEE)


def gain(joints: JointSample) -> JointSample:
    return replace(joints, effort=joints.effort * (1.0 + 0.2 * KNEE))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (slip, r"joint_states: the encoder of joint 'l_knee' has slipped by (0\.1|0\.09\d*|0\.11) rad"),
        (gain, r"joint_states: the effort of joint 'l_knee' is 1\.[12]\d times its torque"),
    ],
)
def test_a_sensor_that_changes_in_mid_run_is_named_and_sigma_holds_the_errors(change, text):
    scenario = make_scenario("walk", 13.0)
    simulator = Simulator(ROBOT.config, ROBOT.urdf_xml, scenario, make_noise("paper_std"), seed=5)
    estimator, held = Estimator(ROBOT.config, ROBOT.urdf_xml), []
    while simulator.time < scenario.duration:
        sample, changed = simulator.step(), simulator.time > 8.0
        for reading in sample.readings:
            reading = change(reading) if changed and isinstance(reading, JointSample) else reading
            for one in estimator.add(reading):
                held.append(np.abs(one.friction - sample.truth.friction) < 3.0 * one.sigma)
    assert re.match(text, estimator.health.findings[0])
    assert (np.mean(held[8000:], axis=0) > 0.9).all()
