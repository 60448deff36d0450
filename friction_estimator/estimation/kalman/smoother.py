"""Fixed-lag smoother of the Kalman stage: every estimate also uses later samples. For recordings.

frames ─► motion smoother ─► the same stage, its filters traced ─► backward sweep ─► friction, law, sigma
          half a second ahead                                      a lag ahead

The velocities are smoothed first, because the law at a noisy velocity near zero is the largest error of the live stage.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from dataclasses import dataclass

from friction_estimator.config import Config, SensorNoise
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.motion_smoother import MOTION_MEMORY, MotionSmoother
from friction_estimator.estimation.kalman.stage import LOAD_ERROR, KalmanFriction
from friction_estimator.estimation.kalman.window_smoother import FilteredFrame, SmoothedWindows, WindowSmoother
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, JointFriction, SensorFrame

_MOTION_MEMORIES = 5.0
"""Velocities are smoothed with this many ``MOTION_MEMORY`` of later readings: the bank remembers nothing longer."""
_BLOCK = 0.5
"""Work is done in blocks of this length, or of half a lag [s]."""


class SmoothedMotions:
    """Motion source of the stage: motions that have been smoothed already.

    Parameters
    ----------
    smoother : of the motions
    """

    def __init__(self, smoother: MotionSmoother) -> None:
        self._smoother = smoother
        self.motions: deque[JointMotion] = deque()

    def reset(self) -> None:
        """The smoother restarts by itself."""

    def retune(self, noise: SensorNoise) -> None:
        """For the readings that are not smoothed yet."""
        self._smoother.retune(noise)

    def step(self, position: FloatArray, velocity: FloatArray, dt: float) -> JointMotion:
        """The next motion."""
        return self.motions.popleft()


@dataclass(frozen=True, slots=True)
class _Sensed:
    """A frame that waits for its smoothed motion."""

    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics


class KalmanSmoother:
    """Fixed-lag smoother of the Kalman stage.

    Parameters
    ----------
    config : ``observer: kalman``
    robot : the model that also makes the :class:`Dynamics`
    lag : every sample is estimated with at least this much of what came later; ``inf``: with all of it [s]
    """

    def __init__(self, config: Config, robot: RobotModel, lag: float) -> None:
        self._motion = MotionSmoother(config.kalman, config.sensors)
        self._given = SmoothedMotions(self._motion)
        self.stage = KalmanFriction(config, robot, self._given, history=True)
        bank = self.stage.bank
        self._windows = WindowSmoother(self.stage.laws, robot.motors, bank.limbs, bank.visited)
        self._ahead = _MOTION_MEMORIES * MOTION_MEMORY
        self._lag = lag
        self._block = max(_BLOCK, 0.5 * lag)
        self._clear()

    def _clear(self) -> None:
        self._motion.reset()
        self._sensed: list[_Sensed] = []
        self._passed: list[FilteredFrame] = []
        self._waiting = 0.0

    def reset(self) -> None:
        """Restart; what waits is lost, law and calibration stay."""
        self._clear()
        self.stage.reset()
        for limb_filter in self.stage.bank.filters:
            if limb_filter.history is not None:
                limb_filter.history.clear()

    def step(
        self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics
    ) -> list[JointFriction]:
        """Use one frame; what it completes, oldest first. Flush before a frame with ``dt == 0``."""
        self._motion.step(frame.position, frame.velocity, frame.dt)
        self._sensed.append(_Sensed(frame, attitude, phase, dynamics))
        self._waiting += frame.dt
        if self._waiting < self._ahead + _BLOCK:
            return []
        self._pass(len(self._sensed) - round(self._ahead / self._waiting * len(self._sensed)))
        if self.stage.time - self._passed[0].time < self._lag + self._block:
            return []
        return self._smooth(self.stage.time - self._lag)

    def flush(self) -> list[JointFriction]:
        """Everything that waits: the recording has ended, or has a gap here."""
        if self._sensed:
            self._pass(len(self._sensed))
        finished = self._smooth(math.inf) if self._passed else []
        self.reset()
        return finished

    def _pass(self, count: int) -> None:
        """Let the stage use the oldest frames."""
        ready, self._sensed = self._sensed[:count], self._sensed[count:]
        for sensed, motion in zip(ready, self._motion.smoothed(count), strict=True):
            self._given.motions.append(motion)
            friction = self.stage.step(sensed.frame, sensed.attitude, sensed.phase, sensed.dynamics)
            self._passed.append(FilteredFrame(self.stage.time, sensed.frame.effort, motion, friction))
        self._waiting = sum(sensed.frame.dt for sensed in self._sensed)

    def _smooth(self, until: float) -> list[JointFriction]:
        """Hand out the frames up to a time."""
        count = sum(passed.time <= until for passed in self._passed)
        ready, self._passed = self._passed[:count], self._passed[count:]
        self.stage.finish_pending_updates()
        windows = self._windows.sweep(self.stage.bank.filters, until)
        return self._frictions(ready, windows) if windows is not None else [passed.friction for passed in ready]

    def _frictions(self, ready: list[FilteredFrame], windows: SmoothedWindows) -> list[JointFriction]:
        values, laws = windows.at(ready, self.stage.model_error_variance, LOAD_ERROR)
        return [
            dataclasses.replace(passed.friction, law=law, **{name: column[row] for name, column in values.items()})
            for row, (passed, law) in enumerate(zip(ready, laws, strict=True))
        ]
