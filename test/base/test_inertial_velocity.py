"""Claims about the velocity by accelerometer and legs."""

from __future__ import annotations

import dataclasses

import numpy as np

from friction_estimator.base.attitude import VIBRATION_STD
from friction_estimator.base.velocity import (
    SOLE_SPEED_STD,
    correct_velocity,
    hidden_velocity_square,
    imu_velocity_by_legs,
    new_velocity,
    predict_velocity,
    velocity_is_bounded,
)
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Dynamics
from test.biped import suralp_config
from test.sway import sway

DT = 0.005
TILT = 0.01
SECONDS = 12.0


def motion(seconds=SECONDS):
    """Velocity and acceleration (s, 3) of something that walks."""
    t = np.arange(round(seconds / DT)) * DT
    rate = 2.0 * np.pi * np.array([0.7, 1.3, 0.9])
    phase = rate * t[:, None] + [0.0, 1.0, 2.0]
    return 0.15 * np.sin(phase), 0.15 * rate * np.cos(phase)


def predict(filter_, acceleration, error):
    fresh = not np.isnan(acceleration).any()
    predict_velocity(filter_, acceleration, fresh, np.full(3, error), DT)


def correct(filter_, velocity, dt, least_std=0.0):
    correct_velocity(filter_, velocity, dt, np.full(3, least_std**2))


def follow(legs, acceleration, config=None, error=(9.81 * TILT) ** 2):
    """Velocity and its standard deviation (s, 3); where ``legs`` is NaN no foot stands."""
    filter_ = new_velocity(config or suralp_config())
    velocity, sigma = np.empty_like(legs), np.empty_like(legs)
    for k in range(len(legs)):
        if k:
            predict(filter_, acceleration[k], error)
        if not np.isnan(legs[k]).any():
            correct(filter_, legs[k], DT if k else 0.0)
        velocity[k] = filter_.velocity
        sigma[k] = np.sqrt(filter_.variance + SOLE_SPEED_STD**2)
    return velocity, sigma


def rms(values):
    return np.sqrt((values[len(values) // 4 :] ** 2).mean())


def wobble(seed, corner, std=0.08):
    """Error of the legs that lasts: white noise behind a low-pass of ``corner`` [rad/s]."""
    rng, keep = np.random.default_rng(seed), np.exp(-corner * DT)
    error = np.zeros((round(SECONDS / DT), 3))
    for k in range(1, len(error)):
        error[k] = keep * error[k - 1] + std * np.sqrt(1.0 - keep * keep) * rng.normal(size=3)
    return error


def test_exact_legs_and_accelerometer_give_the_exact_velocity():
    velocity, acceleration = motion()
    assert rms(follow(velocity, acceleration)[0] - velocity) < 1e-4


def test_white_noise_of_the_legs_is_averaged_out_though_no_parameter_has_it():
    velocity, acceleration = motion()
    noise = 0.05 * np.random.default_rng(0).normal(size=velocity.shape)
    assert rms(follow(velocity + noise, acceleration)[0] - velocity) < 0.3 * rms(noise)


def test_legs_that_oscillate_do_not_carry_the_velocity_along():
    velocity, acceleration = motion()
    error = wobble(1, 2.0 * np.pi * 5.0)
    assert rms(follow(velocity + error, acceleration)[0] - velocity) < 0.5 * rms(error)


def test_exact_legs_are_trusted_beside_a_wrong_accelerometer():
    """Biased as a trunk whose tilt is wrong by half a degree, and shaken."""
    velocity, acceleration = motion()
    wrong = acceleration + 0.08 + 0.5 * np.random.default_rng(2).normal(size=velocity.shape)
    assert rms(follow(velocity, wrong)[0] - velocity) < 3e-3


def test_noise_that_ends_is_forgotten():
    velocity, acceleration = motion(24.0)
    noise = 0.2 * np.random.default_rng(3).normal(size=velocity.shape)
    noise[len(noise) // 4 :] = 0.0
    bias = 0.08
    late = slice(len(noise) // 2, None)
    assert rms((follow(velocity + noise, acceleration + bias)[0] - velocity)[late]) < 5e-3


def test_sigma_covers_the_error_whether_the_noise_of_the_legs_is_white_or_lasts():
    velocity, acceleration = motion()
    rng = np.random.default_rng(4)
    std = VIBRATION_STD
    for error in (0.05 * rng.normal(size=velocity.shape), wobble(5, 2.0 * np.pi * 10.0, 0.05)):
        shaken = acceleration + std * rng.normal(size=velocity.shape)
        estimate, sigma = follow(velocity + error, shaken)
        squares = (((estimate - velocity) / sigma) ** 2)[400:]
        assert 0.2 < squares.mean() < 2.0


def test_in_flight_the_accelerometer_carries_on():
    velocity, acceleration = motion()
    legs = velocity.copy()
    flight = slice(1000, 1060)
    legs[flight] = np.nan
    estimate, sigma = follow(legs, acceleration)
    assert np.abs(estimate[flight] - velocity[flight]).max() < 2e-3
    assert (sigma[1059] > 3.0 * sigma[999]).all()


def test_legs_alone_carry_on_while_the_imu_is_silent():
    velocity, acceleration = motion()
    silent = acceleration.copy()
    silent[1000:] = np.nan
    estimate, _ = follow(velocity, silent)
    assert rms((estimate - velocity)[1100:]) < 0.02


def test_velocity_by_legs_is_that_of_the_imu_while_the_soles_rest(urdf_xml):
    model = RobotModel(suralp_config(), urdf_xml)
    for instant in list(sway(urdf_xml, 1.2, amplitude=0.02, turn=0.05))[900::100]:
        joints, imu = instant.joints, instant.imu
        dynamics = model.dynamics(joints.position, joints.velocity, imu.angular_velocity, imu.specific_force)
        legs = imu_velocity_by_legs(
            np.array([3.0, 1.0]),
            np.array([True, True]),
            instant.rotation,
            Dynamics(*dynamics),
        )
        lever = instant.rotation @ np.cross(imu.angular_velocity, model.imu_position_in_base)
        np.testing.assert_allclose(legs, instant.velocity + lever, atol=1e-8)


def test_joints_whose_velocity_oscillates_do_not_shake_the_base(urdf_xml):
    """The whole path, as on a robot whose hips tell a velocity that is not the slope of their position."""
    estimator, errors = Estimator(suralp_config(), urdf_xml), []
    hips = [estimator.joint_names.index(f"{side}_hip_pitch") for side in "lr"]
    shake, height = 0.2, 0.6
    for k, instant in enumerate(sway(urdf_xml, 2.0, amplitude=0.02)):
        velocity = instant.joints.velocity.copy()
        velocity[hips] += shake * np.sin(2.0 * np.pi * 12.0 * 1e-3 * k)
        estimates = estimator.add_joints(dataclasses.replace(instant.joints, velocity=velocity))
        estimates += estimator.add_imu(instant.imu)
        for wrench in instant.wrenches:
            estimates += estimator.add_wrench(wrench)
        errors += [estimate.base.linear_velocity[0] - instant.velocity[0] for estimate in estimates]
    assert rms(np.array(errors)) < 0.2 * shake * height / np.sqrt(2.0)


def test_a_sole_that_seems_to_turn_shows_how_wrong_the_legs_are(urdf_xml):
    """One joint velocity of the standing leg is wrong: least is hidden by ankles, most by hips."""
    model = RobotModel(suralp_config(), urdf_xml)
    instant = list(sway(urdf_xml, 1.0, amplitude=0.02))[-1]
    left = np.array([True, False])
    for joint in ("l_hip_roll", "l_hip_pitch", "l_knee", "l_ankle_pitch"):
        velocity = instant.joints.velocity.copy()
        velocity[model.joint_names.index(joint)] += 0.1
        dynamics = model.dynamics(
            instant.joints.position, velocity, instant.imu.angular_velocity, instant.imu.specific_force
        )
        legs = imu_velocity_by_legs(np.ones(2), left, instant.rotation, Dynamics(*dynamics))
        lever = instant.rotation @ np.cross(instant.imu.angular_velocity, model.imu_position_in_base)
        wrong = np.linalg.norm(legs - instant.velocity - lever)
        at = instant.rotation, Dynamics(*dynamics), model.imu_position_in_base
        turning = hidden_velocity_square(np.ones(2), left, *at)
        hidden = np.sqrt(sum(turning))
        assert wrong < 1.2 * hidden
        assert "hip" not in joint or wrong > 0.5 * hidden


def test_legs_in_doubt_make_the_velocity_unsure_at_once():
    velocity, acceleration = motion()
    filter_ = new_velocity(suralp_config())
    for k in range(1000):
        predict(filter_, acceleration[k], 0.01)
        correct(filter_, velocity[k], DT)
    sure = filter_.variance.copy()
    for k in range(1000, 1010):
        predict(filter_, acceleration[k], 0.01)
        correct(filter_, velocity[k], DT, least_std=0.1)
    assert (filter_.variance > 4.0 * sure).all()


def test_a_state_with_a_number_that_is_not_finite_is_not_sound():
    assert velocity_is_bounded(new_velocity(suralp_config()))
    for row in range(12):
        broken = new_velocity(suralp_config())
        broken[row][1] = np.nan
        assert not velocity_is_bounded(broken), broken._fields[row]
