"""When the ground under a foot changes: in the middle of a swing, while nothing touches it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from friction_estimator.simulation.footsteps import Footstep, places
from friction_estimator.simulation.ground import Ground, Plane


class FloorSchedule:
    """Hands out the true ground of each footstep when its foot is highest.

    Parameters
    ----------
    ground : with the deviations that the walk does not know
    footsteps : in the order of time

    Attributes
    ----------
    next_change : time of the next footstep that :meth:`due` has not handed out yet, infinite after the last [s]
    """

    def __init__(self, ground: Ground, footsteps: Sequence[Footstep]) -> None:
        self._steps = footsteps
        self._planes = ground.true(places(footsteps))
        self._next = 0
        self.next_change = self._middle()

    def due(self, time: float) -> Iterator[tuple[int, Plane]]:
        """Feet, left 0 and right 1, that get new ground by this time; time never runs backward."""
        while time >= self.next_change:
            yield self._steps[self._next].foot, self._planes[self._next]
            self._next += 1
            self.next_change = self._middle()

    def _middle(self) -> float:
        if self._next == len(self._steps):
            return math.inf
        step = self._steps[self._next]
        return step.start + 0.5 * step.duration
