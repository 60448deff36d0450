"""The estimator for recordings: every estimate also uses later samples."""

from __future__ import annotations

import math
from collections import deque

from friction_estimator.config import Config
from friction_estimator.errors import ConfigError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.kalman.smoother import KalmanSmoother
from friction_estimator.estimation.pipeline import NUMERICAL_ERRORS, SensedFrame, has_effort
from friction_estimator.types import FrictionEstimate, JointFriction, JointSample, SensorFrame

SMOOTHING_LAG = 2.0
"""Default lag: longer ones do not improve estimates of a walk [s]."""


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
        self._smoother = KalmanSmoother(config, self.pipeline.robot, lag, self._health)
        self.pipeline.friction = self._smoother.stage
        self._waiting: deque[tuple[SensorFrame, SensedFrame]] = deque()

    def add_joints(self, sample: JointSample) -> list[FrictionEstimate]:
        """As of :class:`Estimator`; samples without motor torques are refused, there is nothing to smooth."""
        if not has_effort(sample):
            raise InputError("smoothing needs the effort (motor torque) of the joint states: replay without smoothing")
        return super().add_joints(sample)

    def flush(self) -> list[FrictionEstimate]:
        """All estimates that still wait for later samples: the end of a recording."""
        estimates = super().flush()
        try:
            return estimates + self._complete(self._smoother.flush())
        except NUMERICAL_ERRORS as error:
            self._restart(error)
            return estimates

    def reset(self) -> None:
        """Restart all filters; frames that wait are lost."""
        self._waiting.clear()
        self._smoother.reset()
        super().reset()

    def process(self, frame: SensorFrame) -> list[FrictionEstimate]:
        """Estimates of the frames that no longer wait; where the filters restart, none waits any longer."""
        estimates = self._complete(self._smoother.flush()) if frame.dt == 0.0 else []
        sensed = self.pipeline.sense(frame)
        self._waiting.append((frame, sensed))
        return estimates + self._complete(self._smoother.step(frame, sensed.attitude, sensed.phase, sensed.dynamics))

    def _complete(self, finished: list[JointFriction]) -> list[FrictionEstimate]:
        estimates = []
        for friction in finished:
            frame, sensed = self._waiting.popleft()
            estimates.append(self.pipeline.estimate(frame, sensed, friction))
            self.monitor.add(estimates[-1])
        return estimates
