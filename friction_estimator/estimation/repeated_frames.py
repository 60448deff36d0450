"""Joint samples with the positions of the one before under a new stamp: the driver has missed a cycle of its bus.

A filter that believes such a sample sees the joints stand still for one period and then jump by two; one in a hundred
makes friction three times worse. A sample that is missing costs nothing. But joints at rest and coarse encoders also
repeat themselves. So a repetition counts as a missed cycle only where, by how often each joint has changed its reading
lately, hardly ever none of them would have changed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from friction_estimator.types import FloatArray, SensorFrame

_FOLLOW = 0.05
"""Weight of the newest sample in the frequency of changes; repetitions count, too."""
_SUREST = 0.99
_UNLIKELY = math.log(1e-3)
_LONGEST = 5
"""So many repetitions in a row are left out at most: joints may stop, and nobody shall wait long for an estimate."""


class RepeatedFrames:
    """Leaves out frames whose joints repeat the frame before; the next frame bears their time, too."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._before: SensorFrame | None = None
        self._changing: FloatArray | None = None
        self._left_out = 0.0
        self._row = 0

    def leave_out(self, frames: list[SensorFrame]) -> list[SensorFrame]:
        """Frames that say something new, in their order."""
        return [self._with_time_left_out(frame) for frame in frames if not self._repeats(frame)]

    def _repeats(self, frame: SensorFrame) -> bool:
        before, self._before = self._before, frame
        if frame.dt == 0.0:
            self._left_out, self._row = 0.0, 0
            return False
        if before is None:
            return False
        changed = frame.position != before.position
        if self._changing is None:
            self._changing = np.zeros(changed.size)
        self._row = 0 if changed.any() else self._row + 1
        unlikely = self._row and np.log1p(-np.minimum(self._changing, _SUREST)).sum() < _UNLIKELY
        self._changing += _FOLLOW * (changed - self._changing)
        if not unlikely or self._row > _LONGEST:
            return False
        self._left_out += frame.dt
        return True

    def _with_time_left_out(self, frame: SensorFrame) -> SensorFrame:
        if self._left_out == 0.0:
            return frame
        dt, self._left_out = frame.dt + self._left_out, 0.0
        return dataclasses.replace(frame, dt=dt)
