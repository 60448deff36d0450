"""The filter of a limb is the batch least-squares solution of all its windows."""

from __future__ import annotations

import numpy as np

from friction_estimator.config import KalmanConfig, SensorNoise
from friction_estimator.estimation.kalman.limb_equations import LAW_ERROR_TIME, LimbBalance
from friction_estimator.estimation.kalman.limb_filter import LimbFilter
from friction_estimator.estimation.kalman.limb_state import LimbStateLayout, make_layout
from friction_estimator.laws.joint_laws import JointLaws
from test.estimation.kalman.synthetic import limb_of, motors, random_balances

CONFIG = KalmanConfig(innovation_gate=1e6, law_process_noise=0.1, calibration_process_noise=0.1)
DURATION = 0.01
WINDOWS = 12
EMPTY = (4, 9)
"""Windows after which the foot is weighed."""
BIAS_VARIANCE = np.full(6, 0.5)


def filtered(layout: LimbStateLayout, windows: list[LimbBalance]) -> tuple[LimbFilter, list[np.ndarray]]:
    """The filter after the windows, and the law error variance that each of them used."""
    limb_filter = LimbFilter(layout, CONFIG, np.zeros((2, 3, 2)), np.zeros((2, 2)))
    limb_filter.start_from(windows[0].momentum, windows[0].momentum_covariance)
    variances = []
    for k, window in enumerate(windows[1:], start=1):
        variances.append(limb_filter.memory.law_error_variance.copy())
        limb_filter.update(window, frozen=False, contact_transition=False)
        if k in EMPTY:
            limb_filter.correct_foot_bias(0, np.full(6, 0.1 * k), BIAS_VARIANCE)
    return limb_filter, variances


def batch(
    layout: LimbStateLayout, windows: list[LimbBalance], variances: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (w, s) and covariance (w s, w s) of all states given all readings: one big Gaussian, conditioned."""
    s, rows = layout.size, layout["momentum"]
    P = layout.prior_covariance()
    P[rows] = P[:, rows] = 0.0
    P[rows, rows] = windows[0].momentum_covariance
    P[layout["law_error"], layout["law_error"]] = np.eye(2) * CONFIG.law_error_std**2
    mean = [np.r_[windows[0].momentum, np.zeros(s - 2)]]
    covariance = P
    decay = np.ones(s)
    decay[layout["law_error"]] = np.exp(-DURATION / LAW_ERROR_TIME)
    for window, variance in zip(windows[1:], variances, strict=True):
        F = np.eye(s)
        F[rows] -= DURATION * window.force_columns
        F = decay[:, None] * F
        Q = np.zeros((s, s))
        Q[rows, rows] = DURATION**2 * window.force_variance + 1e-10 * np.eye(2)
        Q[layout["law_error"], layout["law_error"]] = np.diag((1 - decay[layout["law_error"]] ** 2) * variance)
        known = layout.prior_std[layout["law"]]
        Q[layout["law"], layout["law"]] = DURATION * np.diag((CONFIG.law_process_noise * known) ** 2)
        part = layout.calibration
        Q[part, part] = DURATION * CONFIG.calibration_process_noise**2 * layout.prior_covariance()[part, part]
        state = F @ mean[-1]
        state[rows] += DURATION * window.force
        mean.append(state)
        last = covariance[-s:]
        covariance = np.block([[covariance, last.T @ F.T], [F @ last, F @ last[:, -s:] @ F.T + Q]])
    picks, readings, noise = [], [], []
    foot = layout.foot_bias(0)
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


def test_the_filter_is_the_batch_least_squares_solution() -> None:
    rng = np.random.default_rng(2)
    limb = limb_of(np.array([0, 1]), np.array([0]))
    layout = make_layout(limb, JointLaws(("coulomb_viscous",) * 2), CONFIG, SensorNoise(), True, motors(2))
    windows = random_balances(layout, rng, WINDOWS)
    limb_filter, variances = filtered(layout, windows)
    mean, covariance = batch(layout, windows, variances)
    np.testing.assert_allclose(limb_filter.state, mean[-1], atol=1e-9)
    np.testing.assert_allclose(limb_filter.covariance, covariance[-layout.size :, -layout.size :], atol=1e-9)
