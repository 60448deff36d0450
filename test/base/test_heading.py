"""Claims about the heading that standing feet hold."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from friction_estimator.base.odometry import REST_SPEED
from friction_estimator.base.soles import ROTATION_STD, TWIST_STD, correct_heading, new_heading, step_heading
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.types import Attitude
from test.biped import suralp_config
from test.sway import sway

DT = 0.01
BOTH = np.array([True, True])
EVEN = np.ones(2)
BIAS = 0.008


def turn(yaw):
    return Rotation.from_euler("z", yaw).as_matrix()


def use(filter_, soles, standing, load, distance):
    """Advance the filter by one sample; soles of a robot at rest twist as if it moved slowly."""
    distance = max(distance, REST_SPEED * DT)
    step_heading(filter_, soles, standing & filter_.resists_twist, load, distance, DT, True)


def run(filter_, seconds, drift, twists=(0.0, 0.0), standing=BOTH, load=EVEN, speed=0.0, start=0.0):
    """Feet that stand with ``twists`` while the attitude's yaw drifts; returns that drift at the end."""
    for k in range(round(seconds / DT)):
        yaw = start + drift * k * DT
        soles = np.array([turn(yaw + twist) for twist in twists])
        use(filter_, soles, standing, load, speed * DT)
    return start + drift * (round(seconds / DT) - 1) * DT


def test_a_robot_at_rest_learns_the_bias_and_its_heading_does_not_drift():
    filter_ = new_heading(suralp_config())
    drifted = run(filter_, 20.0, BIAS)
    assert filter_.mean[0] == pytest.approx(-drifted, abs=math.radians(0.1))
    assert filter_.mean[1] == pytest.approx(BIAS, abs=2e-4)


def test_a_bias_learned_at_rest_holds_the_heading_while_no_foot_stands():
    filter_ = new_heading(suralp_config())
    drifted = run(filter_, 10.0, BIAS)
    drifted = run(filter_, 20.0, BIAS, standing=~BOTH, start=drifted)
    assert abs(filter_.mean[0] + drifted) < 0.05 * BIAS * 20.0


def test_soles_that_twist_at_every_step_hardly_turn_a_robot_whose_gyroscope_is_known():
    """Feet alone would add up all the twists."""
    filter_ = new_heading(suralp_config())
    drifted, twist = run(filter_, 10.0, BIAS), math.radians(2.0)
    for step in range(10):
        standing = np.array([step % 2 == 0, step % 2 == 1])
        drifted = run(filter_, 0.25, BIAS, standing=standing, speed=0.15, start=drifted)
        drifted = run(filter_, 0.25, BIAS, (twist, twist), standing, speed=0.15, start=drifted)
    assert abs(filter_.mean[0] + drifted) < 0.25 * 10 * twist


def test_a_sole_that_jumps_has_slipped_and_the_other_one_holds_the_heading():
    filter_ = new_heading(suralp_config())
    run(filter_, 5.0, 0.0)
    run(filter_, 1.0, 0.0, (math.radians(10.0), 0.0))
    assert abs(filter_.mean[0]) < math.radians(0.1)


def test_a_lightly_loaded_sole_counts_less_than_a_loaded_one():
    errors = []
    for load in (np.array([1.95, 0.05]), np.array([0.05, 1.95])):
        filter_ = new_heading(suralp_config())
        run(filter_, 2.0, 0.0, load=load)
        for k in range(100):
            run(filter_, DT, 0.0, (0.0, math.radians(0.05) * k), load=load, speed=0.1)
        errors.append(abs(filter_.mean[0]))
    assert errors[0] < 0.2 * errors[1]


def test_feet_that_may_turn_do_not_correct_the_heading():
    config = suralp_config()
    feet = tuple(dataclasses.replace(foot, contact="point") for foot in config.feet)
    filter_ = new_heading(dataclasses.replace(config, feet=feet))
    run(filter_, 5.0, BIAS)
    assert filter_.mean[0] == 0.0 and filter_.mean[1] == 0.0


def test_sigma_of_the_heading_covers_its_error():
    rng = np.random.default_rng(2)
    config = suralp_config()
    squares = []
    for _ in range(60):
        bias = config.attitude.gyro_bias_std * rng.normal()
        filter_, yaw, twists, speed = new_heading(config), 0.0, np.zeros(2), 0.1
        noise = config.sensors.angular_velocity_std
        for _ in range(200):
            yaw += (bias + noise * rng.normal()) * DT
            twists = twists + TWIST_STD * math.sqrt(speed * DT) * rng.normal(size=2)
            seen = twists + ROTATION_STD * rng.normal(size=2)
            use(filter_, np.array([turn(yaw + x) for x in seen]), BOTH, EVEN, speed * DT)
        squares.append((filter_.mean[0] + yaw) ** 2 / filter_.covariance[0, 0])
    assert 0.5 < np.mean(squares) < 1.7


def test_the_correction_turns_about_the_vertical_and_takes_the_bias_from_the_rate():
    filter_ = new_heading(suralp_config())
    run(filter_, 20.0, BIAS)
    R = Rotation.from_euler("ZYX", [0.4, 0.3, -0.2]).as_matrix()
    attitude = Attitude(R, BIAS * R[2], np.zeros(3), np.zeros(3), np.eye(3), 1e-4 * np.eye(3))
    rotation, rate, _, rate_covariance = correct_heading(filter_, attitude)
    np.testing.assert_allclose(rotation[2], R[2], atol=1e-12)
    np.testing.assert_allclose(rotation, turn(filter_.mean[0]) @ R, atol=1e-12)
    np.testing.assert_allclose(rate, 0.0, atol=2e-4)
    assert (np.linalg.eigvalsh(rate_covariance) >= 0.0).all()


def test_base_state_of_a_swaying_robot_keeps_its_yaw_with_a_biased_gyroscope(urdf_xml):
    """The whole path: the printed filter drifts by the bias times the time, though swaying feet may twist."""
    yaws = {}
    for method in ("lipm", "odometry"):
        estimator = Estimator(suralp_config(base_state__method=method), urdf_xml)
        for instant in sway(urdf_xml, 2.0, amplitude=0.02):
            biased = instant.imu.angular_velocity + [0.0, 0.0, BIAS]
            estimates = estimator.add_joints(instant.joints)
            estimates += estimator.add_imu(dataclasses.replace(instant.imu, angular_velocity=biased))
            for wrench in instant.wrenches:
                estimates += estimator.add_wrench(wrench)
        yaws[method] = Rotation.from_matrix(estimates[-1].base.rotation_base_to_world).as_euler("ZYX")[0]
    assert yaws["lipm"] == pytest.approx(2.0 * BIAS, rel=0.1)
    assert abs(yaws["odometry"]) < 0.4 * yaws["lipm"]
