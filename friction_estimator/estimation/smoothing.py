"""The estimator for recordings: fixed-lag smoothing, in which every estimate also uses later samples.

frames ─► MotionSmoother ─► friction stage, which identifies ──────────────┐ law and calibration
          half a second ahead                                              ▼
                              a lag later the same frames ─► friction stage, frozen ─► friction, law, sigma

The velocities are smoothed because the law at a noisy velocity near zero is the largest error of the live stage. The
second stage only evaluates what the first one has identified up to a lag later, so no window counts twice.

Every filter of the bank of motion filters is stationary, and so is its Rauch-Tung-Striebel smoother: one constant gain
(Rauch, Tung & Striebel 1965, eq. 3.28). The filters are weighed by how well they have predicted the readings before and
after.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from friction_estimator.config import Config, KalmanConfig, SensorNoise
from friction_estimator.errors import ConfigError, InputError, choices
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.motion.joint_motion import (
    JointMotion,
    MotionBank,
    combine_models,
    empty_motion,
    step_filters,
)
from friction_estimator.estimation.motion.stationary_filters import (
    TRANSITION,
    WHITE_JERK,
    MotionModels,
    reading_noise,
    stationary_covariance,
)
from friction_estimator.estimation.pipeline import LEARNING_STAGES, NUMERICAL_ERRORS, SensedFrame, has_effort
from friction_estimator.kernels.compiler import entry_point
from friction_estimator.types import FloatArray, FrictionEstimate, JointSample, SensorFrame, Tensor

MOTION_MEMORY = 0.1
"""Time over which the motion models are compared, before and after each reading [s]: shorter than a step."""
SMOOTHING_LAG = 2.0
"""Default lag: longer ones do not improve estimates of a walk [s]."""
_LOOK_AHEAD = 5.0 * MOTION_MEMORY
"""Velocities are smoothed with later readings of this time [s], five time constants of the bank's memory."""
_BLOCK_DURATION = 0.5
"""Work is done in blocks of this length, or of half a lag [s]."""


@dataclass(frozen=True, slots=True)
class StationarySmoothers:
    """Stationary Rauch-Tung-Striebel smoothers of ``b`` jerk densities, for the state ``[q, dq dt, ddq dt^2]``."""

    gain: FloatArray  # (b, 3, 3) from the correction of the next state to that of this one
    velocity_variance: FloatArray  # (b,) of the smoothed `dq dt`


def stationary_smoothers(
    densities: FloatArray, position_std: float, velocity_std: float, dt: float
) -> StationarySmoothers:
    """Gains and covariances from the Riccati equation of every jerk density; parameters as of `stationary_filters`."""
    C, R = np.eye(2, 3), reading_noise(position_std, velocity_std, dt)
    gains, variances = [], []
    for density in densities:
        P_predicted = stationary_covariance(TRANSITION, density * dt**5 / position_std**2 * WHITE_JERK, R)
        S = C @ P_predicted @ C.T + np.diag(R)
        P = P_predicted - P_predicted @ C.T @ np.linalg.solve(S, C @ P_predicted)
        A = np.linalg.solve(P_predicted, TRANSITION @ P).T
        smoothed = solve_discrete_lyapunov(A, P - A @ P_predicted @ A.T)
        gains.append(A)
        variances.append(max(float(smoothed[1, 1]), 0.0) * position_std**2)  # below zero by rounding: exact readings
    return StationarySmoothers(np.array(gains), np.array(variances))


@dataclass(frozen=True, slots=True)
class _Filtered:
    """State of the bank after a reading: state (b, 3, n), faded log-likelihood (b, n) of the readings so far."""

    dt: float
    state: FloatArray
    log_likelihood: FloatArray


@entry_point
def _smooth_one_step(state: Tensor, after: Tensor, gain: Tensor, dt: float) -> FloatArray:
    """Smoothed states (m, 3, n) from the filtered ones of the same instant and the smoothed ones of the next.

    ``x_s(t) = x(t) + A (x_s(t + dt) - F x(t))`` for the state ``[q, dq dt, ddq dt^2]`` of every model (Rauch, Tung &
    Striebel 1965, eq. 3.28).
    """
    m, _, n = state.shape
    smoothed = np.empty((m, 3, n))
    for model in range(m):
        A = gain[model]
        for joint in range(n):
            q, dq, ddq = state[model, 0, joint], state[model, 1, joint] * dt, state[model, 2, joint] * dt * dt
            c0 = after[model, 0, joint] - (q + dq + 0.5 * ddq)
            c1 = after[model, 1, joint] * dt - (dq + ddq)
            c2 = after[model, 2, joint] * dt * dt - ddq
            smoothed[model, 0, joint] = q + A[0, 0] * c0 + A[0, 1] * c1 + A[0, 2] * c2
            smoothed[model, 1, joint] = (dq + A[1, 0] * c0 + A[1, 1] * c1 + A[1, 2] * c2) / dt
            smoothed[model, 2, joint] = (ddq + A[2, 0] * c0 + A[2, 1] * c1 + A[2, 2] * c2) / (dt * dt)
    return smoothed


class MotionSmoother:
    """The bank of motion filters, forward and backward; models do not interact, every filter has one smoother.

    Readings go in with :meth:`step`; :meth:`smoothed` gives the motion of the oldest ones by all of them.

    Parameters
    ----------
    config : ``jerk_densities``
    noise : of the joint positions and velocities
    """

    def __init__(self, config: KalmanConfig, noise: SensorNoise) -> None:
        self._bank = MotionBank(MotionModels(np.array(config.jerk_densities), np.zeros(0)), noise)
        self.retune(noise)
        self.reset()

    def retune(self, noise: SensorNoise) -> None:
        """Use the gains of this noise from now on, backward too."""
        self._bank.retune(noise)
        self._smoothers: dict[int, StationarySmoothers] = {}

    def reset(self) -> None:
        """Forget all readings."""
        self._state: FloatArray | None = None
        self._filtered: list[_Filtered] = []

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> None:
        """Add one reading of positions and velocities (n,), ``dt`` [s] after the one before."""
        if self._state is None or dt == 0.0:
            self._state = self._bank.begin(position, velocity)
            self._log_likelihood = np.zeros((self._bank.count, position.size))
        else:
            (buffer, filters), state = self._bank.filters(dt), self._state.copy()
            distance = np.empty_like(self._log_likelihood)
            step_filters(state, position, velocity, dt, buffer, distance)
            newest = -0.5 * (distance + filters.log_determinant[:, None])
            self._state = state
            self._log_likelihood = math.exp(-dt / MOTION_MEMORY) * self._log_likelihood + newest
        self._filtered.append(_Filtered(dt, self._state, self._log_likelihood))

    def smoothed(self, count: int) -> list[JointMotion]:
        """Remove the oldest ``count`` readings; return the motions there, smoothed by all readings so far."""
        filtered = self._filtered
        result: list[JointMotion] = []
        state = filtered[-1].state
        later = np.zeros_like(filtered[-1].log_likelihood)
        for index in range(len(filtered) - 1, -1, -1):
            now = filtered[index]
            if index < len(filtered) - 1:
                after = filtered[index + 1]
                keep = math.exp(-after.dt / MOTION_MEMORY)
                gain = self._smoothers_for(after.dt).gain
                state = _smooth_one_step(now.state, state, gain, after.dt)
                later = keep * (later + after.log_likelihood - keep * now.log_likelihood)
            if index < count:
                result.append(self._motion(now, state, now.log_likelihood + later))
        del filtered[:count]
        return result[::-1]

    def _motion(self, now: _Filtered, state: FloatArray, log_likelihood: FloatArray) -> JointMotion:
        if now.dt == 0.0:
            return self._bank.first_motion(now.state)
        variance = self._smoothers_for(now.dt).velocity_variance / now.dt**2
        weight = np.exp(log_likelihood - log_likelihood.max(axis=0))
        out, motion = empty_motion(state.shape[2])
        combine_models(state, weight / weight.sum(axis=0), variance, out)
        result: JointMotion = motion
        return result

    def _smoothers_for(self, dt: float) -> StationarySmoothers:
        key, period = self._bank.nearby_period(dt)
        if key not in self._smoothers:
            self._smoothers[key] = stationary_smoothers(
                self._bank.models.jerk_densities, self._bank.position_std, self._bank.velocity_std, period
            )
        return self._smoothers[key]


class SmoothedMotions:
    """Motion source of a stage: motions that have been smoothed already.

    Parameters
    ----------
    smoother : of the motions
    """

    def __init__(self, smoother: MotionSmoother) -> None:
        self._smoother = smoother
        self.motion: JointMotion | None = None

    def reset(self) -> None:
        """Do nothing: the smoother restarts by itself."""

    def retune(self, noise: SensorNoise, encoder_step: FloatArray) -> None:
        """Use this noise for readings not smoothed yet; encoder steps are not used: rounding counts as white noise."""
        self._smoother.retune(noise)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """The smoothed motion that was set as ``motion``; the arguments are not used."""
        assert self.motion is not None
        return self.motion


class SmoothedEstimator(Estimator):
    """An :class:`Estimator` whose estimates come later and also use later samples.

    The external torque is not smoothed: it is that of the live stage, with smoothed velocities.

    Parameters
    ----------
    config, urdf_xml : as of :class:`Estimator`
    lag : each estimate uses at least this much of the later samples; ``inf``: all of them [s]

    Raises
    ------
    ConfigError
        When the observer has no smoother, friction is to be compensated, or the lag is not positive.
    """

    def __init__(self, config: Config, urdf_xml: str, lag: float) -> None:
        if config.observer not in LEARNING_STAGES:
            raise ConfigError(
                f"smoothing needs observer: {choices(LEARNING_STAGES)}; {config.observer!r} has no smoother"
            )
        if config.compensation.enabled:
            raise ConfigError("smoothed friction comes too late to be compensated: set compensation.enabled: false")
        if math.isnan(lag) or lag <= 0.0:
            raise ConfigError(f"the smoother must look ahead: {lag:g} s is not a positive time")
        super().__init__(config, urdf_xml)
        self._motion = MotionSmoother(config.kalman, config.sensors)
        self._smoothed_source = SmoothedMotions(self._motion)
        self._identifying, self._evaluating = (
            LEARNING_STAGES[config.observer](config, self.pipeline.robot, self._health, self._smoothed_source)
            for _ in range(2)
        )
        self._evaluating.frozen = True
        self.pipeline.friction = self._identifying
        self._lag, self._block = lag, max(_BLOCK_DURATION, 0.5 * lag)
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        self._motion.reset()
        self._sensed: list[tuple[SensorFrame, SensedFrame]] = []
        self._waiting: deque[tuple[float, SensorFrame, SensedFrame, JointMotion]] = deque()
        self._unsmoothed = 0.0

    def add_joints(self, sample: JointSample) -> list[FrictionEstimate]:
        """As of :class:`Estimator`; samples without motor torques are refused, there is nothing to smooth."""
        if not has_effort(sample):
            raise InputError("smoothing needs the effort (motor torque) of the joint states: replay without smoothing")
        return super().add_joints(sample)

    def flush(self) -> list[FrictionEstimate]:
        """All estimates that still wait for later samples: the end of a recording."""
        estimates = super().flush()
        try:
            return estimates + self._finish()
        except NUMERICAL_ERRORS as error:
            self._restart(error)
            return estimates

    def reset(self) -> None:
        """Restart all filters; frames that wait are lost."""
        self._drop_waiting()
        self._evaluating.reset()
        super().reset()

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Estimates of the frames that have waited for the lag, or, where the filters restart, of all that wait."""
        estimates = self._finish() if frame.dt == 0.0 else []
        self._sensed.append((frame, self.pipeline.sense(frame)))
        self._motion.step(frame.position, frame.velocity, frame.dt)
        self._unsmoothed += frame.dt
        if self._unsmoothed < _LOOK_AHEAD + _BLOCK_DURATION:
            return estimates
        self._identify(len(self._sensed) - round(_LOOK_AHEAD / self._unsmoothed * len(self._sensed)))
        now = self._identifying.time
        if now - self._waiting[0][0] < self._lag + self._block:
            return estimates
        return estimates + self._evaluate(now - self._lag)

    def _finish(self) -> list[FrictionEstimate]:
        """Estimates of all frames that wait: the recording has ended, or has a gap here."""
        if self._sensed:
            self._identify(len(self._sensed))
        finished = self._evaluate(math.inf) if self._waiting else []
        self._drop_waiting()
        self._identifying.reset()
        self._evaluating.reset()
        return finished

    def _identify(self, count: int) -> None:
        """Feed the oldest frames to the identifying stage, with smoothed motions."""
        ready, self._sensed = self._sensed[:count], self._sensed[count:]
        for (frame, sensed), motion in zip(ready, self._motion.smoothed(count), strict=True):
            self._smoothed_source.motion = motion
            self._identifying.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
            self._waiting.append((self._identifying.time, frame, sensed, motion))
        self._unsmoothed = sum(frame.dt for frame, _ in self._sensed)

    def _evaluate(self, until: float) -> list[FrictionEstimate]:
        """Estimates of the frames up to a time [s], with what the identifying stage has found by now."""
        self._evaluating.copy_identified(self._identifying)
        finished = []
        while self._waiting and self._waiting[0][0] <= until:
            _, frame, sensed, self._smoothed_source.motion = self._waiting.popleft()
            friction = self._evaluating.step(frame, sensed.attitude, sensed.phase, sensed.dynamics)
            finished.append(self.pipeline.estimate(frame, sensed, friction))
        for estimate in finished:
            self.innovations.add(estimate)
        return finished
