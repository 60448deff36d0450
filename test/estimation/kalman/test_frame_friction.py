"""Claims about the friction of the instant: used where the law cannot tell the sign, and nowhere else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import erf

from friction_estimator.config import config_from_parameters
from friction_estimator.estimation.kalman.frame_friction import (
    FRICTION_VARIANCE,
    MODEL_ERROR_VARIANCE,
    TORQUE,
    VELOCITY_VARIANCE,
    InstantCorrection,
    allow_for_chatter,
    combine_law_and_model_error,
    weigh_measurement,
    weigh_residual,
)
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.robot.model import RobotModel
from test.biped import Instant, consistent_instant, suralp_config

CONFIG = suralp_config(fbse__base_angular_acceleration="gyro")
UNKNOWN = np.full((2, 12), np.nan), np.full((2, 12), np.nan)
NOTHING, LARGEST = (np.zeros(12), np.zeros(12)), np.full(12, 5.0)
FIRM = np.zeros(12, dtype=bool)
SLOW = np.zeros(12), JointMotion(np.zeros(12), np.zeros(12), np.zeros(12), np.full(12, 0.01))


@pytest.fixture
def instant(urdf_xml) -> Instant:
    """The left foot stands; frictions of about 1 N m."""
    return consistent_instant(urdf_xml, np.random.default_rng(4), (True, False), minimum_norm=False)


def sensed(robot: RobotModel, instant: Instant) -> tuple:
    frame = instant.frame
    dynamics = robot.dynamics(frame.position, frame.velocity, frame.angular_velocity, frame.specific_force)
    return frame, frame.wrenches, *UNKNOWN, instant.attitude, instant.phase, FIRM, dynamics


def test_an_estimate_that_knows_nothing_becomes_the_measurement_on_the_standing_leg(robot, instant):
    friction, variance = InstantCorrection(CONFIG, robot).correct(
        np.zeros(12), np.full(12, 1e6), *SLOW, *sensed(robot, instant), NOTHING, LARGEST
    )
    np.testing.assert_allclose(friction[:6], instant.friction[:6], atol=1e-3)
    np.testing.assert_array_equal(friction[6:], 0.0)
    assert (variance[:6] < 100.0).all()
    np.testing.assert_array_equal(variance[6:], 1e6)


def test_a_measurement_that_is_too_large_for_friction_corrects_nothing(robot, instant):
    """A torque of 20 N m that is no friction, as a foot makes that slips, acts on the first joint."""
    frame, *others = sensed(robot, instant)
    slipping = dataclasses.replace(frame, effort=frame.effort + 20.0 * (np.arange(12) == 0))
    prior = np.full(12, 2.0)
    friction, variance = InstantCorrection(CONFIG, robot).correct(
        np.zeros(12), prior, *SLOW, slipping, *others, NOTHING, LARGEST
    )
    assert friction[0] == 0.0 and variance[0] == 2.0
    assert (variance[1:6] < 2.0).all()


def test_estimate_and_measurement_are_weighed_by_their_variances(robot, instant):
    """The Kalman update of a scalar: the posterior variance is the harmonic sum, the estimate lies between."""
    prior, correct = np.full(12, 2.0), InstantCorrection(CONFIG, robot).correct
    measured, posterior_of_nothing = correct(
        np.zeros(12), np.full(12, 1e9), *SLOW, *sensed(robot, instant), NOTHING, LARGEST
    )
    friction, variance = correct(np.zeros(12), prior, *SLOW, *sensed(robot, instant), NOTHING, LARGEST)
    expected = 1.0 / (1.0 / prior + 1.0 / posterior_of_nothing)
    np.testing.assert_allclose(variance[:6], expected[:6], rtol=1e-5)
    np.testing.assert_allclose(friction[:6], (expected / posterior_of_nothing * measured)[:6], rtol=1e-5, atol=1e-9)


def test_what_calibration_explains_is_no_friction_and_its_doubt_counts(robot, instant):
    correct, torque = InstantCorrection(CONFIG, robot).correct, np.linspace(-1.0, 1.0, 12)
    plain = correct(np.zeros(12), np.full(12, 1e9), *SLOW, *sensed(robot, instant), NOTHING, LARGEST)
    less = correct(np.zeros(12), np.full(12, 1e9), *SLOW, *sensed(robot, instant), (torque, np.full(12, 3.0)), LARGEST)
    np.testing.assert_allclose(less[0][:6], (plain[0] - torque)[:6], atol=1e-3)
    np.testing.assert_allclose(less[1][:6], plain[1][:6] + 3.0, rtol=1e-3)


def test_measured_noise_makes_the_measurement_count_less(robot, instant):
    """Noise that the monitor found, larger than the parameters have it."""
    correction, unsure = InstantCorrection(CONFIG, robot), np.full(12, 2.0)
    _, by_parameters = correction.correct(np.zeros(12), unsure, *SLOW, *sensed(robot, instant), NOTHING, LARGEST)
    sensors = CONFIG.sensors
    correction.retune(dataclasses.replace(sensors, velocity_std=20.0 * sensors.velocity_std, force_std=20.0))
    correction.reset()
    _, by_measured_noise = correction.correct(np.zeros(12), unsure, *SLOW, *sensed(robot, instant), NOTHING, LARGEST)
    assert (by_measured_noise[:6] > 1.5 * by_parameters[:6]).all()


def test_a_leg_in_the_air_is_corrected_by_the_momentum_observer_and_the_standing_one_is_not(robot, instant):
    frame, wrenches, _, _, *others = sensed(robot, instant)
    external, noise = np.full((2, 12), 0.5), np.full((2, 12), 0.01)
    correct = InstantCorrection(CONFIG, robot).correct
    friction, variance = correct(
        np.zeros(12), np.full(12, 2.0), *SLOW, frame, wrenches, external, noise, *others, NOTHING, LARGEST
    )
    alone, _ = correct(np.zeros(12), np.full(12, 2.0), *SLOW, *sensed(robot, instant), NOTHING, LARGEST)
    np.testing.assert_array_equal(friction[:6], alone[:6])
    assert (friction[6:] < -0.3).all() and (variance[6:] < 0.6).all()


def test_a_leg_whose_foot_lands_or_lifts_off_is_corrected_by_the_momentum_observer(robot, instant):
    """FBSE needs the acceleration of a foot that rolls or is hit; the momentum observer needs none."""
    frame, wrenches, _, _, attitude, phase, _, dynamics = sensed(robot, instant)
    sensors = frame, wrenches, np.full((2, 12), 0.5), np.full((2, 12), 0.01), attitude, phase
    correct, unsure = InstantCorrection(CONFIG, robot).correct, np.full(12, 2.0)
    landing = np.arange(12) < 6
    friction, variance = correct(np.zeros(12), unsure, *SLOW, *sensors, landing, dynamics, NOTHING, LARGEST)
    np.testing.assert_allclose(friction[:6], friction[6:])
    assert (variance < 0.6).all()


def test_an_arm_without_feet_is_corrected_by_the_momentum_observer():
    config = config_from_parameters({"robot.fixed_base": True})
    xml = """<robot name="arm"><link name="world"/><link name="rod"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="pivot" type="continuous"><parent link="world"/><child link="rod"/><axis xyz="0 1 0"/></joint>
    </robot>"""
    one, none = np.ones(1), np.zeros(1)
    slow, unused = JointMotion(none, none, none, 0.01 * one), (None, None, None, None)
    friction, variance = InstantCorrection(config, RobotModel(config, xml)).correct(
        one, one, none, slow, None, None, np.full((2, 1), 2.0), np.full((2, 1), 0.01), *unused, (none, none), one
    )
    assert friction[0] < 0.0 and variance[0] < 0.5


def test_a_momentum_observer_that_lags_corrects_a_part_and_no_more_than_friction_can_be():
    unsure, knows = 0.5, np.zeros(6, dtype=bool)
    variance = np.array([unsure, unsure, unsure, unsure, 0.03, unsure])
    external, noise = np.array([0.5, 0.5, 0.5, np.nan, 0.5, 8.0]), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    knows[2] = True
    friction, left = np.ones(6), variance.copy()
    weigh_residual(friction, left, knows, np.stack([external] * 2), np.stack([noise] * 2), np.full(6, 1.0))
    assert 1.0 - 0.5 < friction[0] < 1.0 - 0.4 and 0.05 * unsure < left[0] < 0.2 * unsure
    assert friction[0] < friction[1] < 1.0 and left[0] < left[1] < unsure
    np.testing.assert_array_equal(friction[2:], 1.0)
    np.testing.assert_array_equal(left[2:], variance[2:])


def test_the_fast_low_pass_counts_where_the_readings_are_good_enough_and_the_slow_one_elsewhere():
    external, noise = np.array([[0.1, 0.1], [0.5, 0.5]]), np.array([[0.0, 0.0], [0.01, 1.0]])
    friction = np.ones(2)
    weigh_residual(friction, np.full(2, 0.5), np.zeros(2, dtype=bool), external, noise, np.ones(2))
    assert friction[0] == pytest.approx(0.55, abs=0.02) and friction[1] == pytest.approx(0.92, abs=0.01)


def test_while_a_joint_is_pushed_sigma_covers_the_unexplained_torque_up_to_its_friction():
    law = np.zeros((9, 3))
    law[TORQUE], law[FRICTION_VARIANCE], law[MODEL_ERROR_VARIANCE] = 2.0, 0.01, 0.01
    external, pushed = np.array([0.5, 30.0, 30.0]), np.array([True, True, False])
    out, measured = np.empty((6, 3)), np.empty(3, dtype=bool)
    recent = np.ones(3)
    combine_law_and_model_error(law, external, np.zeros(3), recent, pushed, 0.0, measured, out)
    np.testing.assert_allclose(out[1], np.sqrt([0.01 + 0.5**2, 0.01 + 2.0**2, 0.01]))
    np.testing.assert_array_equal(measured, ~pushed)


def test_the_mean_of_a_sign_falls_as_the_velocity_is_less_sure_and_its_mean_square_stays():
    velocity, chatter = np.array([0.0, 0.002, 0.002, 0.5, 0.002]), 0.006**2
    std = np.array([0.001, 0.001, 0.003, 0.001, 0.001])
    law, before = np.zeros((9, 5)), 2.0 * np.array([erf(v / s / 2**0.5) for v, s in zip(velocity, std, strict=True)])
    law[TORQUE], law[VELOCITY_VARIANCE] = before, 4.0 - before**2
    free_at_rest = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    allow_for_chatter(law, velocity, std, np.full(5, chatter), free_at_rest)
    signs = np.sign(velocity[:4] + np.hypot(std[:4], 0.006) * np.random.default_rng(0).normal(size=(100_000, 4)))
    np.testing.assert_allclose(law[TORQUE, :4], 2.0 * signs.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(law[VELOCITY_VARIANCE] + law[TORQUE] ** 2, 4.0)
    assert law[TORQUE, 4] == before[4]


@pytest.mark.parametrize("true_std", [0.0, 0.004, 0.01])
def test_the_chatter_of_a_joint_is_found_from_the_friction_of_the_instant(true_std):
    """Friction of 3 N m has the sign of the velocity of the instant, and is measured to 0.3 N m."""
    rng, std, chatter, errors = np.random.default_rng(1), 0.001, np.array([1e-8]), []
    for velocity in 0.015 * np.sin(0.01 * np.arange(6000.0)):
        true = 3.0 * np.sign(velocity + np.hypot(std, true_std) * rng.normal())
        law = np.zeros((9, 1))
        law[TORQUE] = mean = 3.0 * erf(velocity / std / 2**0.5)
        law[VELOCITY_VARIANCE] = 9.0 - mean**2
        now, known = (np.array([velocity]), np.array([std]), chatter), (np.full(1, 0.3), np.ones(1, dtype=bool))
        allow_for_chatter(law, *now, np.zeros(1))
        friction, variance = law[TORQUE].copy(), np.maximum(law[VELOCITY_VARIANCE], 1e-6)
        measured = np.array([true + 0.3 * rng.normal()])
        weigh_measurement(friction, variance, np.zeros(1), *now, measured, *known, *np.zeros((2, 1)), np.full(1, 3.0))
        errors.append((friction[0] - true) ** 2)
    assert 0.6 * true_std < np.sqrt(chatter[0]) < max(1.6 * true_std, 0.001)
    assert np.sqrt(np.mean(errors[2000:])) < 0.4
