"""The smoothed Kalman stage: better than the live stage, and honest about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.motion.joint_motion import JointMotionFilter
from friction_estimator.estimation.motion.stationary_filters import TRANSITION, WHITE_JERK
from friction_estimator.estimation.pipeline import LEARNING_STAGES
from friction_estimator.estimation.smoothing import MotionSmoother, SmoothedEstimator, stationary_smoothers
from friction_estimator.types import FrictionEstimate, ImuSample, JointSample, WrenchSample
from test.biped import suralp_config
from test.one_leg import one_leg

NOISE = SensorNoise(position_std=3e-4, velocity_std=0.045, angular_velocity_std=0.01, force_std=1.0, moment_std=0.1)
Samples = Sequence[tuple[JointSample, ImuSample, tuple[WrenchSample, ...]]]


def test_smoothed_velocities_are_consistent_and_better() -> None:
    rng, dt, density, joints = np.random.default_rng(0), 1e-3, 1e3, 60
    noise = SensorNoise(position_std=3e-4, velocity_std=0.045)
    config = KalmanConfig(jerk_densities=(density,), acceleration_densities=())
    smoother, motion_filter = MotionSmoother(config, noise), JointMotionFilter(config, noise, ())
    root = np.linalg.cholesky(density * dt**5 * WHITE_JERK)
    state, true, live = np.zeros((3, joints)), [], []
    for k in range(500):
        state = TRANSITION @ state + root @ rng.normal(size=(3, joints)) if k else state
        true.append(state[1] / dt)
        read = rng.normal(size=(2, joints)) * [[noise.position_std], [noise.velocity_std]]
        reading = state[0] + read[0], state[1] / dt + read[1], dt if k else 0.0
        live.append(motion_filter.step(*reading))
        smoother.step(*reading)
    smoothed = smoother.smoothed(500)
    assert len(smoothed) == 500
    middle = slice(150, 400)
    errors, live_errors = (
        np.array([motion.velocity for motion in motions])[middle] - np.array(true)[middle]
        for motions in (smoothed, live)
    )
    std = np.array([motion.velocity_std for motion in smoothed])[middle]
    assert 0.9 < ((errors / std) ** 2).mean() < 1.1
    assert np.std(errors) < 0.7 * np.std(live_errors)


def test_velocities_do_not_depend_on_the_blocks_they_are_smoothed_in() -> None:
    rng = np.random.default_rng(1)
    readings = rng.normal(size=(400, 2, 3)) * 1e-3
    whole, parts = (MotionSmoother(KalmanConfig(), NOISE) for _ in range(2))
    pieces = []
    for k, (position, velocity) in enumerate(readings):
        for smoother in (whole, parts):
            smoother.step(position, velocity, 1e-3 if k else 0.0)
    pieces = parts.smoothed(150) + parts.smoothed(250)
    for one, other in zip(whole.smoothed(400), pieces, strict=True):
        np.testing.assert_allclose(one.velocity, other.velocity, rtol=1e-10, atol=1e-12)


@pytest.fixture(scope="module")
def noisy(urdf_xml: str) -> tuple[Samples, np.ndarray]:
    """1.3 s of one leg with noise, and the true friction."""
    rng = np.random.default_rng(7)
    samples, friction = [], []
    for instant in one_leg(urdf_xml, 1.3):
        joints, imu, feet = instant.samples
        n = joints.position.size
        joints = JointSample(
            joints.stamp_ns,
            joints.position + NOISE.position_std * rng.normal(size=n),
            joints.velocity + NOISE.velocity_std * rng.normal(size=n),
            joints.effort,
        )
        rate = imu.angular_velocity + NOISE.angular_velocity_std * rng.normal(size=3)
        white = np.repeat((NOISE.force_std, NOISE.moment_std), 3)
        wrenches = tuple(WrenchSample(w.stamp_ns, w.foot, w.wrench + white * rng.normal(size=6)) for w in feet)
        samples.append((joints, ImuSample(imu.stamp_ns, rate, imu.specific_force), wrenches))
        friction.append(instant.friction)
    return samples, np.array(friction)


def drive(estimator: Estimator, samples: Samples) -> list[FrictionEstimate]:
    estimates = []
    for joints, imu, wrenches in samples:
        estimates += estimator.add_joints(joints) + estimator.add_imu(imu)
        for wrench in wrenches:
            estimates += estimator.add_wrench(wrench)
    return estimates + estimator.flush()


def known_noise() -> dict[str, Any]:
    names = ("position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std")
    return {f"sensors__{name}": getattr(NOISE, name) for name in names}


@pytest.mark.parametrize("observer", LEARNING_STAGES)
def test_smoothed_estimates_are_better_than_the_live_ones_and_their_sigma_is_honest(
    observer: str, urdf_xml: str, noisy: tuple[Samples, np.ndarray]
) -> None:
    samples, friction = noisy
    config = suralp_config(observer=observer, **known_noise())
    live = drive(Estimator(config, urdf_xml), samples)
    smoothed = drive(SmoothedEstimator(config, urdf_xml, 1.0), samples)
    assert [one.stamp_ns for one in smoothed] == [joints.stamp_ns for joints, _, _ in samples]
    late = slice(600, None)
    errors = np.array([estimate.friction for estimate in smoothed])[late] - friction[late]
    live_errors = np.array([estimate.friction for estimate in live])[late] - friction[late]
    sigma = np.array([estimate.sigma for estimate in smoothed])[late]
    assert np.sqrt((errors**2).mean()) < 0.9 * np.sqrt((live_errors**2).mean())
    squares = (errors / sigma) ** 2
    assert (squares < 3.84).mean() > 0.9
    assert 0.01 < squares.mean() < 1.5


@pytest.mark.parametrize("observer", LEARNING_STAGES)
def test_a_gap_ends_what_can_be_known_and_loses_nothing(
    observer: str, urdf_xml: str, noisy: tuple[Samples, np.ndarray]
) -> None:
    samples, _ = noisy
    config = suralp_config(observer=observer, **known_noise())
    kept = [*samples[:300], *samples[1000:1300]]  # 0.7 s are missing
    smoothed = drive(SmoothedEstimator(config, urdf_xml, np.inf), kept)
    assert [one.stamp_ns for one in smoothed] == [joints.stamp_ns for joints, _, _ in kept]
    first = drive(SmoothedEstimator(config, urdf_xml, np.inf), kept[:300])
    np.testing.assert_allclose(smoothed[200].friction, first[200].friction, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("velocity_std", [0.0, 1e-9, 1e-3])
def test_smoothers_of_exact_readings_have_no_negative_variance(velocity_std: float) -> None:
    densities = np.array(KalmanConfig().jerk_densities)
    assert (stationary_smoothers(densities, 1e-7, velocity_std, 1e-3).velocity_variance >= 0.0).all()
