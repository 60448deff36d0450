"""Spreads the work of a window over the frames after it, so that no frame bears the work of all limbs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from friction_estimator.estimation.kalman.limb_bank import LimbBank
from friction_estimator.estimation.kalman.windows import Window

_SHARED_PARTS = 6
"""Parts of the work of a window besides the limbs: feet, robot model, wrong positions, wrong links, what was learned,
publication."""


def share_out(costs: Sequence[float]) -> list[list[int]]:
    """Groups of tasks of which none costs more than the largest task: each goes into the first group with room."""
    groups: list[list[int]] = []
    room: list[float] = []
    for index in sorted(range(len(costs)), key=lambda index: -costs[index]):
        place = next((place for place, left in enumerate(room) if left >= costs[index]), len(groups))
        if place == len(groups):
            groups.append([])
            room.append(max(costs))
        groups[place].append(index)
        room[place] -= costs[index]
    return groups


class LimbSchedule:
    """Spreads the work of a window over the frames after it.

    First come the feet, the robot model at its end, and the torques of wrong positions and links, then one group of
    limbs a frame, then what all limbs have learned, last its publication. The largest limb alone is a group. A group of
    smaller limbs costs at most as much as the largest. Where a window has fewer samples than that, each frame does
    more.

    Parameters
    ----------
    bank : of the filters
    """

    def __init__(self, bank: LimbBank) -> None:
        self._bank = bank
        self._groups = share_out([limb_filter.layout.size**2 for limb_filter in bank.filters])
        self._frozen, self._stride = False, 1
        self.reset()

    def reset(self) -> None:
        """Drop the window that waits to be used."""
        self._work: Iterator[None] | None = None

    def begin_window(self, window: Window, usable: bool) -> None:
        """A window is complete; every :meth:`step` from now on does a part of its work."""
        self._work = self._parts(window, usable)
        self._stride = math.ceil((_SHARED_PARTS + len(self._groups)) / max(window.samples, 1))

    def step(self, frozen: bool) -> bool:
        """Do the next part of the work, if any is left; True when the estimates are new."""
        if self._work is None:
            return False
        self._frozen = frozen
        for _ in range(self._stride):
            if next(self._work, True):
                self._work = None
                self._bank.publish_estimates()
                return True
        return False

    def finish(self, frozen: bool) -> bool:
        """Do all the work that is left; True when the estimates are new."""
        new = False
        while self._work is not None:
            new = self.step(frozen)
        return new

    def _parts(self, window: Window, usable: bool) -> Iterator[None]:
        bank = self._bank
        bank.begin_window(window)
        yield
        bank.evaluate_dynamics(window)
        yield
        position = bank.dynamics.position_columns()
        yield
        links = bank.dynamics.link_columns(position)
        for group in self._groups:
            yield
            for limb in group:
                bank.step_limb(limb, window, links, usable, self._frozen)
        yield
        bank.finish_window(window.time)
        yield
