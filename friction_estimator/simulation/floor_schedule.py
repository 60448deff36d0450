"""When the ground under a foot changes: in the middle of a swing, while nothing touches it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from friction_estimator.simulation.footsteps import Footstep, places
from friction_estimator.simulation.ground import Ground, Plane


class FloorSchedule:
    """Hands out the true ground of each footstep when its foot is highest.

    Parameters
    ----------
    ground : with the deviations that the walk does not know
    footsteps : in the order of time
    """

    def __init__(self, ground: Ground, footsteps: Sequence[Footstep]) -> None:
        self._steps = footsteps
        self._planes = ground.true(places(footsteps))
        self._next = 0

    def due(self, time: float) -> Iterator[tuple[int, Plane]]:
        """Feet, left 0 and right 1, that get new ground by this time; time never runs backward."""
        while self._next < len(self._steps) and time >= self._middle(self._steps[self._next]):
            yield self._steps[self._next].foot, self._planes[self._next]
            self._next += 1

    @staticmethod
    def _middle(step: Footstep) -> float:
        return step.start + 0.5 * step.duration
