"""The smoothed Kalman stage: equal to the batch solution, better than the live stage, and honest about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.history import sweep
from friction_estimator.estimation.kalman.joint_motion import TRANSITION, WHITE_JERK, JointMotionFilter
from friction_estimator.estimation.kalman.limb_filter import MODEL_ERROR_TIME, LimbFilter
from friction_estimator.estimation.kalman.limb_state import Limb, LimbState, LimbWindow, lay_out
from friction_estimator.estimation.kalman.smoother import MotionSmoother
from friction_estimator.estimation.smoothing import SmoothedEstimator
from friction_estimator.laws.joint_laws import JointLaws
from friction_estimator.types import FrictionEstimate, ImuSample, JointSample, WrenchSample
from test.biped import suralp_config
from test.estimation.kalman.synthetic import random_windows
from test.one_leg import one_leg

CONFIG = KalmanConfig(innovation_gate=1e6, law_process_noise=0.1, calibration_process_noise=0.1)
DURATION = 0.01
WINDOWS = 12
EMPTY = (4, 9)
"""Windows after which the foot is weighed."""
BIAS_VARIANCE = np.full(6, 0.5)
NOISE = SensorNoise(position_std=3e-4, velocity_std=0.045, angular_velocity_std=0.01, force_std=1.0, moment_std=0.1)
Samples = Sequence[tuple[JointSample, ImuSample, tuple[WrenchSample, ...]]]


def filtered(layout: LimbState, windows: list[LimbWindow]) -> tuple[LimbFilter, list[np.ndarray]]:
    """The traced filter over the windows, and the model error variance that each of them used."""
    limb_filter = LimbFilter(layout, CONFIG, np.zeros((2, 3, 2)), np.zeros((2, 2)), history=True)
    limb_filter.begin(windows[0].momentum, windows[0].momentum_covariance)
    limb_filter.close(0.0)
    variances = []
    for k, window in enumerate(windows[1:], start=1):
        variances.append(limb_filter.model_error_variance.copy())
        limb_filter.step(window, frozen=False, touching=False)
        if k in EMPTY:
            limb_filter.update_foot_bias(0, np.full(6, 0.1 * k), BIAS_VARIANCE)
        limb_filter.close(k * DURATION)
    return limb_filter, variances


def batch(layout: LimbState, windows: list[LimbWindow], variances: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean (w, s) and covariance (w s, w s) of all states given all readings: one big Gaussian, conditioned."""
    s, rows = layout.size, layout.momentum
    P = layout.prior_covariance()
    P[rows] = P[:, rows] = 0.0
    P[rows, rows] = windows[0].momentum_covariance
    P[layout.model_error, layout.model_error] = np.eye(2) * CONFIG.model_error_std**2
    mean = [np.r_[windows[0].momentum, np.zeros(s - 2)]]
    covariance = P
    decay = np.ones(s)
    decay[layout.model_error] = np.exp(-DURATION / MODEL_ERROR_TIME)
    for window, variance in zip(windows[1:], variances, strict=True):
        F = np.eye(s)
        F[rows] -= DURATION * window.force_columns
        F = decay[:, None] * F
        Q = np.zeros((s, s))
        Q[rows, rows] = DURATION**2 * window.force_variance + 1e-10 * np.eye(2)
        Q[layout.model_error, layout.model_error] = np.diag((1 - decay[layout.model_error] ** 2) * variance)
        known = layout.prior_std[layout.law]
        Q[layout.law, layout.law] = DURATION * np.diag((CONFIG.law_process_noise * known) ** 2)
        part = layout.calibration
        Q[part, part] = DURATION * CONFIG.calibration_process_noise**2 * layout.prior_covariance()[part, part]
        state = F @ mean[-1]
        state[rows] += DURATION * window.force
        mean.append(state)
        last = covariance[-s:]
        covariance = np.block([[covariance, last.T @ F.T], [F @ last, F @ last[:, -s:] @ F.T + Q]])
    picks, readings, noise = [], [], []
    foot = layout.foot(layout.foot_bias, 0)
    for k, window in enumerate(windows[1:], start=1):
        picks.append(k * s + np.arange(2))
        readings.append(window.momentum)
        noise.append(window.momentum_covariance)
        if k in EMPTY:
            picks.append(k * s + np.arange(foot.start, foot.stop))
            readings.append(np.full(6, 0.1 * k))
            noise.append(np.diag(BIAS_VARIANCE))
    pick, x = np.concatenate(picks), np.concatenate(mean)
    R = np.zeros((pick.size, pick.size))
    start = 0
    for block in noise:
        R[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    gain = np.linalg.solve(covariance[np.ix_(pick, pick)] + R, covariance[pick]).T
    return (x + gain @ (np.concatenate(readings) - x[pick])).reshape(-1, s), covariance - gain @ covariance[pick]


def test_the_backward_sweep_is_the_batch_least_squares_solution() -> None:
    rng = np.random.default_rng(2)
    limb = Limb(np.array([0, 1]), np.array([0]))
    layout = lay_out(limb, JointLaws(("coulomb_viscous",) * 2), CONFIG, NOISE, floating=True)
    windows = random_windows(layout, rng, WINDOWS)
    limb_filter, variances = filtered(layout, windows)
    mean, covariance = batch(layout, windows, variances)
    smoothed = sweep(limb_filter.history, np.inf)
    assert len(smoothed) == WINDOWS
    rows = np.arange(limb_filter.output.start, limb_filter.output.stop)
    for k, (time, state, P) in enumerate(smoothed):
        assert time == pytest.approx(k * DURATION)
        np.testing.assert_allclose(state, mean[k, rows], atol=1e-9)
        np.testing.assert_allclose(P, covariance[np.ix_(k * layout.size + rows, k * layout.size + rows)], atol=1e-9)
    later = np.abs(smoothed[0][1] - np.r_[np.zeros(2), np.zeros(rows.size - 2)]).max()
    assert later > 1e-3  # the first window has learned from the others


def test_windows_that_teach_nothing_teach_nothing_when_smoothed_either() -> None:
    rng = np.random.default_rng(5)
    limb = Limb(np.array([0, 1]), np.array([0]))
    layout = lay_out(limb, JointLaws(("coulomb_viscous",) * 2), CONFIG, NOISE, floating=True)
    limb_filter = LimbFilter(layout, CONFIG, np.zeros((2, 3, 2)), np.zeros((2, 2)), history=True)
    windows = random_windows(layout, rng, WINDOWS)
    limb_filter.begin(windows[0].momentum, windows[0].momentum_covariance)
    resting = (3, 4, 5)
    for k, window in enumerate(windows[1:], start=1):
        limb_filter.step(window, frozen=k in resting, touching=False)
        limb_filter.close(k * DURATION)
    smoothed = sweep(limb_filter.history, np.inf)
    laws = [(state[2:], P[2:, 2:]) for _, state, P in smoothed]
    for k in resting:
        np.testing.assert_allclose(laws[k - 2][0], laws[k - 1][0], atol=1e-9)
        np.testing.assert_allclose(laws[k - 2][1], laws[k - 1][1], atol=1e-9)
    learned = np.abs(laws[0][0] - limb_filter.state[layout.law]).max()
    assert learned > 1e-6  # the law walks in the other windows
    for _, _, P in smoothed:
        assert np.linalg.eigvalsh(P).min() > -1e-9


def test_a_bound_that_was_reached_late_is_known_early() -> None:
    rng = np.random.default_rng(4)
    limb = Limb(np.array([0, 1]), np.zeros(0, dtype=int))
    laws = JointLaws(("coulomb_viscous",) * 2)
    layout = lay_out(limb, laws, CONFIG, NOISE, floating=True)
    limb_filter = LimbFilter(layout, CONFIG, np.tile(np.eye(2), (2, 1, 1)), np.zeros((2, 2)), history=True)
    windows = random_windows(layout, rng, WINDOWS)
    limb_filter.begin(windows[0].momentum, windows[0].momentum_covariance)
    limb_filter.close(0.0)
    limb_filter.state[layout.law.start] = -1e3  # far out, and so moved back by the next window
    limb_filter.close(0.001)
    limb_filter.step(windows[1], frozen=False, touching=False)
    limb_filter.close(DURATION)
    smoothed = [state for _, state, _ in sweep(limb_filter.history, np.inf)]
    assert limb_filter.state[layout.law.start] > -50.0
    walked = np.sqrt(DURATION) * CONFIG.law_process_noise * layout.prior_std[layout.law.start]
    assert smoothed[1][2] == pytest.approx(smoothed[2][2], abs=walked)


def test_smoothed_velocities_are_consistent_and_better() -> None:
    rng, dt, density, joints = np.random.default_rng(0), 1e-3, 1e3, 60
    noise = SensorNoise(position_std=3e-4, velocity_std=0.045)
    config = KalmanConfig(jerk_densities=(density,), acceleration_densities=())
    smoother, motion_filter = MotionSmoother(config, noise), JointMotionFilter(config, noise)
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


def told() -> dict[str, float]:
    names = ("position_std", "velocity_std", "angular_velocity_std", "force_std", "moment_std")
    return {f"sensors__{name}": getattr(NOISE, name) for name in names}


def test_smoothed_estimates_are_better_than_the_live_ones_and_their_sigma_is_honest(
    urdf_xml: str, noisy: tuple[Samples, np.ndarray]
) -> None:
    samples, friction = noisy
    config = suralp_config(**told())
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
    assert 0.1 < squares.mean() < 1.5


def test_a_gap_ends_what_can_be_known_and_loses_nothing(urdf_xml: str, noisy: tuple[Samples, np.ndarray]) -> None:
    samples, _ = noisy
    config = suralp_config(**told())
    kept = [*samples[:300], *samples[1000:1300]]  # 0.7 s are missing
    smoothed = drive(SmoothedEstimator(config, urdf_xml, np.inf), kept)
    assert [one.stamp_ns for one in smoothed] == [joints.stamp_ns for joints, _, _ in kept]
    first = drive(SmoothedEstimator(config, urdf_xml, np.inf), kept[:300])
    np.testing.assert_allclose(smoothed[200].friction, first[200].friction, rtol=1e-6, atol=1e-8)
