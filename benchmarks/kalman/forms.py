"""Other forms of the same filter on the same windows: unscented, square root; and how well conditioned P is.

The windows are those of a real run, of one limb. Gates, bounds and the adapted model error are left out, so that all
forms solve one and the same linear problem.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.shared.walks import PERIOD, SimulatedRun
from friction_estimator.config import Config, KalmanConfig
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.kalman.limb_filter import MODEL_ERROR_TIME, LimbFilter
from friction_estimator.estimation.kalman.limb_state import LimbState, LimbWindow
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.estimation.pipeline import Pipeline
from friction_estimator.linear_algebra import kalman_gain
from friction_estimator.types import FloatArray, SensorFrame

_MOMENTUM_VARIANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Problem:
    """A linear-Gaussian problem of ``w`` windows with ``s`` states.

    Attributes
    ----------
    layout : of the state
    config : decay of the model error, walk of law and calibration
    windows : (w)
    """

    layout: LimbState
    config: KalmanConfig
    windows: list[LimbWindow]

    def start(self) -> tuple[FloatArray, FloatArray]:
        """State (s,) and covariance (s, s) after the first window: its momentum, else the prior."""
        first, rows = self.windows[0], self.layout.momentum
        state, P = np.zeros(self.layout.size), self.layout.prior_covariance()
        state[rows], P[rows, rows] = first.momentum, first.momentum_covariance
        return state, P

    def transition(self, window: LimbWindow) -> tuple[FloatArray, FloatArray, FloatArray]:
        """F (s, s), input (s,), Q (s, s) of a window."""
        layout, T = self.layout, window.duration
        rows, model_error, law = layout.momentum, layout.model_error, layout.law
        decay = math.exp(-T / MODEL_ERROR_TIME)
        F, Q, given = np.eye(layout.size), np.zeros((layout.size,) * 2), np.zeros(layout.size)
        F[rows] -= T * window.force_columns
        F[model_error] *= decay
        given[rows] = T * window.force
        Q[rows, rows] = T * T * window.force_variance + _MOMENTUM_VARIANCE * np.eye(rows.stop)
        Q[model_error, model_error] = (1.0 - decay**2) * self.config.model_error_std**2 * np.eye(rows.stop)
        Q[law, law] = T * np.diag((self.config.law_process_noise * layout.prior_std[law]) ** 2)
        part = layout.calibration
        Q[part, part] = T * self.config.calibration_process_noise**2 * layout.prior_covariance()[part, part]
        return F, given, Q


class _Recorder(LimbFilter):
    """Keeps the windows that it is given."""

    def forget(self) -> None:
        super().forget()
        self.kept: list[LimbWindow] = []

    def step(self, window: LimbWindow, frozen: bool, touching: bool) -> None:
        self.kept.append(window)
        super().step(window, frozen, touching)


def record(config: Config, urdf_xml: str, run: SimulatedRun) -> Problem:
    """The windows of the first limb in a run."""
    pipeline = Pipeline(config, urdf_xml)
    stage = pipeline.friction
    if not isinstance(stage, KalmanFriction):
        raise ConfigError("the windows are those of observer: kalman")
    first, joints = stage.bank.filters[0], stage.bank.limbs[0].joints.size
    unbounded = np.zeros((joints, stage.laws.parameter_count + 1, stage.laws.parameter_count))
    recorder = _Recorder(first.layout, config.kalman, unbounded)
    stage.bank.filters[0] = recorder
    fresh = np.ones(len(config.feet), dtype=bool)
    for row, sample in enumerate(run.samples):
        sensed, imu = sample.joints, sample.imu
        wrenches = np.array([wrench.wrench for wrench in sample.wrenches])
        dt = PERIOD if row else 0.0
        pipeline.step(
            SensorFrame(
                sensed.stamp_ns, dt, sensed.position, sensed.velocity, sensed.effort,
                imu.angular_velocity, imu.specific_force, wrenches, True, fresh, np.ones(1 + len(wrenches)),
            )
        )  # fmt: skip
    return Problem(first.layout, config.kalman, recorder.kept)


@dataclass(frozen=True, slots=True)
class Result:
    """What a form ended with: state (w, s), standard deviations (w, s), condition numbers (w,), time a window [s]."""

    states: FloatArray
    std: FloatArray
    condition: FloatArray
    seconds: float


def covariance_form(problem: Problem) -> Result:
    """As in the stage: ``P -= K C P``."""
    rows = problem.layout.momentum
    state, P = problem.start()
    kept, conditions = [], []
    begun = time.perf_counter()
    for window in problem.windows[1:]:
        F, given, Q = problem.transition(window)
        state, P = F @ state + given, F @ P @ F.T + Q
        gain = kalman_gain(P[rows, rows] + window.momentum_covariance, P[rows])
        state = state + gain @ (window.momentum - state[rows])
        P = P - gain @ P[rows]
        P = 0.5 * (P + P.T)
        kept.append((state, np.sqrt(np.maximum(np.diag(P), 0.0))))
        if len(kept) % 100 == 0:
            conditions.append(_condition(P))
    return _result(kept, conditions, begun)


def square_root_form(problem: Problem) -> Result:
    """Triangular factors by QR decompositions: P = L L^T is never formed (Kaminski, Bryson & Schmidt 1971)."""
    rows, size = problem.layout.momentum, problem.layout.size
    state, P = problem.start()
    L = _root(P)
    kept = []
    begun = time.perf_counter()
    for window in problem.windows[1:]:
        F, given, Q = problem.transition(window)
        state = F @ state + given
        L = np.linalg.qr(np.hstack((F @ L, _root(Q))).T, mode="r").T
        m = rows.stop
        array = np.zeros((m + size, m + size))
        array[:m, :m] = np.linalg.cholesky(window.momentum_covariance)
        array[:m, m:], array[m:, m:] = L[rows], L
        lower = np.linalg.qr(array.T, mode="r").T
        gain = np.linalg.solve(lower[:m, :m].T, lower[m:, :m].T).T
        state = state + gain @ (window.momentum - state[rows])
        L = lower[m:, m:]
        kept.append((state, np.linalg.norm(L, axis=1)))
    return _result(kept, [], begun)


def unscented_form(problem: Problem) -> Result:
    """Julier's transform with 2 s symmetric points, for transition and measurement."""
    rows, size = problem.layout.momentum, problem.layout.size
    state, P = problem.start()
    kept = []
    begun = time.perf_counter()
    for window in problem.windows[1:]:
        F, given, Q = problem.transition(window)
        points = _points(state, P) @ F.T + given
        state = points.mean(axis=0)
        P = (points - state).T @ (points - state) / (2 * size) + Q
        points = _points(state, P)
        read = points[:, rows]
        mean = read.mean(axis=0)
        S = (read - mean).T @ (read - mean) / (2 * size) + window.momentum_covariance
        cross = (points - state).T @ (read - mean) / (2 * size)
        gain = np.linalg.solve(S, cross.T).T
        state = state + gain @ (window.momentum - mean)
        P = P - gain @ S @ gain.T
        kept.append((state, np.sqrt(np.maximum(np.diag(P), 0.0))))
    return _result(kept, [], begun)


def _points(state: FloatArray, P: FloatArray) -> FloatArray:
    spread = math.sqrt(state.size) * _root(P).T
    return np.concatenate((state + spread, state - spread))


def _root(P: FloatArray) -> FloatArray:
    """A factor of a semi-definite matrix, L L^T = P, from its correlation matrix, because the units differ widely."""
    std = np.sqrt(np.maximum(np.diag(P), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def _condition(P: FloatArray) -> float:
    """Of the correlation matrix of what has a variance, without the one direction that the convention fixes."""
    std = np.sqrt(np.maximum(np.diag(P), 0.0))
    known = std > 0.0
    values = np.linalg.eigvalsh(P[np.ix_(known, known)] / np.outer(std[known], std[known]))
    return float(values[-1] / values[1])


def _result(kept: list[tuple[FloatArray, FloatArray]], conditions: list[float], begun: float) -> Result:
    states, std = (np.array(column) for column in zip(*kept, strict=True))
    return Result(states, std, np.array(conditions), (time.perf_counter() - begun) / len(kept))


def largest_difference(one: Result, other: Result) -> tuple[float, float]:
    """Of the states, in standard deviations; and of the standard deviations themselves, relative."""
    w = min(len(one.states), len(other.states))
    std = one.std[:w]
    known = std > 1e-9 * std.max()
    scale = np.where(known, std, np.inf)
    return (
        float((np.abs(one.states[:w] - other.states[:w]) / scale).max()),
        float((np.abs(other.std[:w] - std) / scale).max()),
    )
