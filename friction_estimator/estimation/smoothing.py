"""The estimator for recordings: fixed-lag smoothing, in which every estimate also uses later samples.

frames ─► MotionSmoother ─► KalmanFriction, which identifies ──────────────┐ law and calibration
          half a second ahead                                              ▼
                              a lag later the same frames ─► KalmanFriction, frozen ─► friction, law, sigma

The velocities are smoothed because the law at a noisy velocity near zero is the largest error of the live stage. The
second stage only evaluates what the first one has identified up to a lag later, so no window counts twice.
"""

from __future__ import annotations

import math
from collections import deque

from friction_estimator.config import Config
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.stage import KalmanFriction
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.estimation.motion.smoother import MOTION_MEMORY, MotionSmoother, SmoothedMotions
from friction_estimator.estimation.pipeline import NUMERICAL_ERRORS, SensedFrame, has_effort
from friction_estimator.types import FrictionEstimate, JointSample, SensorFrame

SMOOTHING_LAG = 2.0
"""Default lag: longer ones do not improve estimates of a walk [s]."""
_LOOK_AHEAD = 5.0 * MOTION_MEMORY
"""Velocities are smoothed with later readings of this time [s], five time constants of the bank's memory."""
_BLOCK_DURATION = 0.5
"""Work is done in blocks of this length, or of half a lag [s]."""


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
        When the observer is not ``kalman``, friction is to be compensated, or the lag is not positive.
    """

    def __init__(self, config: Config, urdf_xml: str, lag: float) -> None:
        if config.observer != "kalman":
            raise ConfigError(f"smoothing needs observer: kalman; {config.observer!r} has no smoother")
        if config.compensation.enabled:
            raise ConfigError("smoothed friction comes too late to be compensated: set compensation.enabled: false")
        if math.isnan(lag) or lag <= 0.0:
            raise ConfigError(f"the smoother must look ahead: {lag:g} s is not a positive time")
        super().__init__(config, urdf_xml)
        self._motion = MotionSmoother(config.kalman, config.sensors)
        self._smoothed_source = SmoothedMotions(self._motion)
        self._identifying, self._evaluating = (
            KalmanFriction(config, self.pipeline.robot, self._health, self._smoothed_source) for _ in range(2)
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
        """Estimates of the frames that no longer wait; where the filters restart, none waits any longer."""
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
            self.monitor.add(estimate)
        return finished
