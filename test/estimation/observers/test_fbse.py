"""Claims about foot-base sensor estimation (Hashlamon & Erbatur 2014, section 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from friction_estimator.config.robot import SIGMA_RATE
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation, _pseudo_inverse
from friction_estimator.robot.model import RobotModel
from test.biped import Instant, consistent_instant, suralp_config

LEFT, RIGHT, BOTH = (True, False), (False, True), (True, True)


def measure(instant: Instant, robot: RobotModel, **changes: object):
    return measured_by(FootBaseSensorEstimation(suralp_config(**changes), robot), instant, robot)


def measured_by(observer: FootBaseSensorEstimation, instant: Instant, robot: RobotModel):
    dynamics = robot.dynamics(
        instant.frame.position,
        instant.frame.velocity,
        instant.attitude.angular_velocity,
        instant.attitude.specific_force,
    )
    return observer.step(instant.frame, instant.attitude, instant.phase, dynamics)


@pytest.mark.parametrize("standing", [LEFT, RIGHT, BOTH])
@pytest.mark.parametrize("seed", range(5))
def test_friction_is_exact_with_exact_signals_and_the_gyros_angular_acceleration(robot, urdf_xml, standing, seed):
    instant = consistent_instant(urdf_xml, np.random.default_rng(seed), standing, minimum_norm=False)
    measured = measure(instant, robot, fbse__base_angular_acceleration="gyro")
    known = measured.available
    assert known.tolist() == [standing[0]] * 6 + [standing[1]] * 6
    np.testing.assert_allclose(measured.friction[known], instant.friction[known], atol=1e-8)


@pytest.mark.parametrize("standing", [LEFT, BOTH])
@pytest.mark.parametrize("seed", range(5))
def test_printed_equations_are_exact_where_the_motion_has_the_minimum_norm_they_assume(robot, urdf_xml, standing, seed):
    instant = consistent_instant(urdf_xml, np.random.default_rng(seed), standing, minimum_norm=True)
    measured = measure(instant, robot, fbse__base_angular_acceleration="minimum_norm")
    known = measured.available
    np.testing.assert_allclose(measured.friction[known], instant.friction[known], atol=1e-8)


def test_printed_equations_are_wrong_for_other_motions_of_the_trunk_but_not_at_the_ankle(robot, urdf_xml):
    instant = consistent_instant(urdf_xml, np.random.default_rng(0), LEFT, minimum_norm=False)
    error = measure(instant, robot).friction[:6] - instant.friction[:6]
    assert np.abs(error[:4]).max() > 1e-2
    np.testing.assert_allclose(error[5], 0.0, atol=1e-8)  # a resting foot needs no acceleration


def test_swing_leg_is_not_measured(robot, urdf_xml):
    instant = consistent_instant(urdf_xml, np.random.default_rng(0), RIGHT, minimum_norm=False)
    measured = measure(instant, robot)
    assert not measured.available[:6].any() and np.isnan(measured.friction[:6]).all()


def test_minimum_norm_acceleration_equals_the_pseudo_inverse():
    rng = np.random.default_rng(3)
    J, upsilon = rng.normal(size=(12, 15)), rng.normal(size=12)
    np.testing.assert_allclose(_pseudo_inverse(J) @ upsilon, np.linalg.pinv(J) @ upsilon, atol=1e-10)


def test_stretched_leg_still_has_an_answer():
    J = np.zeros((6, 9))
    J[:5, :5] = np.eye(5)
    assert np.isfinite(_pseudo_inverse(J) @ np.ones(6)).all()


@pytest.mark.parametrize("mode", ["minimum_norm", "gyro"])
@pytest.mark.parametrize("standing", [LEFT, BOTH])
def test_published_sigma_matches_the_spread_under_sensor_noise(robot, urdf_xml, standing, mode):
    """Monte Carlo over the sensors: the propagated variance is the measured one."""
    rng = np.random.default_rng(7)
    instant = consistent_instant(urdf_xml, rng, standing, minimum_norm=True)
    changes = {
        "fbse__base_angular_acceleration": mode,
        "fbse__angular_acceleration_std": 0.0,
        "sensors__position_std": 1e-4,
        "sensors__velocity_std": 2e-2,
        "sensors__effort_std": 0.05,
        "sensors__specific_force_std": 0.02,
        "sensors__angular_velocity_std": 5e-3,
    }
    config = suralp_config(**changes)
    noise, observer = config.sensors, FootBaseSensorEstimation(config, robot)
    reference = measured_by(observer, instant, robot)
    errors = []
    for _ in range(600):
        frame, attitude = instant.frame, instant.attitude
        omega = attitude.angular_velocity + noise.angular_velocity_std * rng.normal(size=3)
        force = attitude.specific_force + noise.specific_force_std * rng.normal(size=3)
        wrench_std = np.array([noise.force_std] * 3 + [noise.moment_std] * 3)
        noisy = replace(
            instant,
            frame=replace(
                frame,
                position=frame.position + noise.position_std * rng.normal(size=12),
                velocity=frame.velocity + noise.velocity_std * rng.normal(size=12),
                effort=frame.effort + noise.effort_std * rng.normal(size=12),
                wrenches=frame.wrenches + wrench_std * rng.normal(size=(2, 6)),
            ),
            attitude=attitude._replace(angular_velocity=omega, specific_force=force),
        )
        errors.append(measured_by(observer, noisy, robot).friction - reference.friction)
    known = reference.available
    ratio = np.std(np.array(errors)[:, known], axis=0) / reference.sigma[known]
    np.testing.assert_allclose(ratio, 1.0, atol=0.13)


def test_a_sigma_is_as_old_as_its_stamp_when_frames_between_were_skipped(robot, urdf_xml):
    first, later = (
        consistent_instant(urdf_xml, np.random.default_rng(seed), BOTH, minimum_norm=True) for seed in (7, 8)
    )
    observer = FootBaseSensorEstimation(suralp_config(), robot)

    def sigma(instant: Instant, stamp_ns: int) -> np.ndarray:
        frame = replace(instant.frame, stamp_ns=stamp_ns, dt=1e-3)
        motion = frame.position, frame.velocity, instant.attitude.angular_velocity, instant.attitude.specific_force
        return observer.step(frame, instant.attitude, instant.phase, robot.dynamics(*motion)).sigma

    kept = sigma(first, 0)
    period = round(1e9 / SIGMA_RATE)
    np.testing.assert_array_equal(sigma(later, period - 1), kept)
    np.testing.assert_array_equal(sigma(later, period), measure(later, robot).sigma)
