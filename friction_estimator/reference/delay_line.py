"""A window of past frames, and the delayed frame in it for which an acausal observer gives friction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, SensorFrame


@dataclass(frozen=True, slots=True)
class Instant:
    """One frame with everything the stages before made of it.

    Attributes
    ----------
    time : since the restart [s]
    """

    time: float
    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics


class DelayLine:
    """Keeps what a window of samples about a delayed instant needs, and delays other signals alike.

    Parameters
    ----------
    before, after : samples of the window on both sides of the delayed instant
    look_ahead : the delayed instant is at least this much older than the newest one [s]

    Attributes
    ----------
    delay : samples from the delayed instant to the newest one
    """

    def __init__(self, before: int, after: int, look_ahead: float) -> None:
        self._before = before
        self._after = after
        self._look_ahead = look_ahead
        self.reset()

    def reset(self) -> None:
        """Empty the line."""
        self._instants: deque[Instant] = deque()
        self._signals: deque[FloatArray] = deque()
        self.delay = self._after

    def push(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> None:
        """Add the newest frame; drop what no window needs any more."""
        instants = self._instants
        time = instants[-1].time + frame.dt if instants else 0.0
        instants.append(Instant(time, frame, attitude, phase, dynamics))
        middle, last = self._before, len(instants) - 1
        while middle < last - self._after and instants[middle + 1].time <= time - self._look_ahead + 1e-9:
            instants.popleft()
            last -= 1
        self.delay = max(self._after, last - middle)

    @property
    def ready(self) -> bool:
        """True once the window is full and the delayed instant old enough."""
        instants = self._instants
        if len(instants) <= self._before + self._after:
            return False
        return instants[-1].time - instants[self._before].time >= self._look_ahead - 1e-9

    @property
    def delayed(self) -> Instant:
        """The instant that the window is about; only when ``ready``."""
        return self._instants[self._before]

    @property
    def age(self) -> float:
        """From the beginning of the window to the newest frame [s]."""
        return self._instants[-1].time - self._instants[0].time

    @property
    def lag(self) -> float:
        """From the delayed instant to the newest frame [s]; only when ``ready``."""
        return self._instants[-1].time - self.delayed.time

    def window(self) -> tuple[FloatArray, list[SensorFrame]]:
        """Times relative to the delayed instant (L,) [s], and frames, of the window; only when ``ready``."""
        instants = [self._instants[k] for k in range(self._before + self._after + 1)]
        now = self.delayed.time
        return np.array([instant.time - now for instant in instants]), [instant.frame for instant in instants]

    def filter(self, signal: FloatArray) -> FloatArray:
        """The signal as it was at the delayed instant; the oldest known one while the line fills up."""
        self._signals.append(signal)
        while len(self._signals) > self.delay + 1:
            self._signals.popleft()
        return self._signals[0]
