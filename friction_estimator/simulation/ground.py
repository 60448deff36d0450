"""The ground under the feet: an incline, and a patch of other height and tilt under every footstep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import SimulationError
from friction_estimator.simulation.footsteps import Footstep, places
from friction_estimator.types import FloatArray

_MAX_ANGLE = 0.5  # [rad]


@dataclass(frozen=True, slots=True)
class Plane:
    """Ground under one foot: ``z = height + gradient . ((x, y) - (x_0, y_0))``.

    Attributes
    ----------
    x, y : a point of it [m]
    height : of that point [m]
    gradient : rise along x and along y [m/m]
    """

    x: float = 0.0
    y: float = 0.0
    height: float = 0.0
    gradient: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ground:
    """Ground that the robot walks on: one plane per footprint.

    Deviations of the planes are uniformly distributed and of two kinds: mapped ones, which the walk plan uses, and
    unmapped ones. The first footprints, where the robot stands when time starts, lie on the bare incline.

    Attributes
    ----------
    slope : uphill along x [rad]
    height, tilt : largest deviation of a patch from the incline, in height [m] and about each axis [rad]
    unseen_height, unseen_tilt : largest further deviation, which the walk plan does not use [m], [rad]
    seed : of the deviations
    """

    slope: float = 0.0
    height: float = 0.0
    tilt: float = 0.0
    unseen_height: float = 0.0
    unseen_tilt: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        angles = (self.slope, self.tilt, self.unseen_tilt)
        sizes = (self.height, self.tilt, self.unseen_height, self.unseen_tilt)
        if not (np.abs(angles).max() <= _MAX_ANGLE and 0.0 <= np.min(sizes) and np.max(sizes) < np.inf):
            raise SimulationError(
                f"the ground may be inclined by {_MAX_ANGLE} rad at most, and no deviation may be negative; got {self}"
            )

    def incline(self, x: float, y: float) -> Plane:
        """Plane of the bare incline at a point [m]."""
        rise = float(np.tan(self.slope))
        return Plane(x, y, rise * x, (rise, 0.0))

    def mapped(self, places: FloatArray) -> list[Plane]:
        """Patches under the footprints at ``places`` (N, 2) as the walk plan uses them."""
        return self._patches(places, self._deviations(len(places))[:, 0])

    def true(self, places: FloatArray) -> list[Plane]:
        """Patches under the footprints at ``places`` (N, 2) with all deviations."""
        return self._patches(places, self._deviations(len(places)).sum(axis=1))

    def _deviations(self, count: int) -> FloatArray:
        """Height and gradients of each footprint, mapped and unseen, (count, 2, 3); a larger count adds footprints."""
        largest = ((self.height, self.tilt, self.tilt), (self.unseen_height, self.unseen_tilt, self.unseen_tilt))
        return np.random.default_rng(self.seed).uniform(-1.0, 1.0, (count, 2, 3)) * largest

    def _patches(self, places: FloatArray, deviations: FloatArray) -> list[Plane]:
        patches = []
        for (x, y), (height, along_x, along_y) in zip(places.tolist(), deviations.tolist(), strict=True):
            bare = self.incline(x, y)
            patches.append(Plane(x, y, bare.height + height, (bare.gradient[0] + along_x, along_y)))
        return patches


def ground_rotation(gradient: FloatArray) -> FloatArray:
    """Smallest rotations that lay level soles on ground of these gradients (N, 2), as (N, 3, 3)."""
    normal = np.concatenate([-gradient, np.ones((gradient.shape[0], 1))], axis=1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    x, y, z = normal.T
    k = 1.0 / (1.0 + z)
    rows = [1.0 - k * x * x, -k * x * y, x, -k * x * y, 1.0 - k * y * y, y, -x, -y, z]
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


class FloorSchedule:
    """Gives the true ground of each footstep when its foot is highest, in the middle of the swing.

    Parameters
    ----------
    ground : mapped and unmapped deviations
    footsteps : in the order of time
    first : the first footstep whose ground is still to be given

    Attributes
    ----------
    next_change : time of the next footstep that :meth:`due` has not returned yet, infinite after the last [s]
    """

    def __init__(self, ground: Ground, footsteps: Sequence[Footstep], first: int = 0) -> None:
        self._steps = footsteps
        self._planes = ground.true(places(footsteps))
        self._next = first
        self.next_change = self._middle()

    def due(self, time: float) -> Iterator[tuple[int, Plane]]:
        """Feet (left 0, right 1) whose ground changes by this time, with the new ground; time never runs backward."""
        while time >= self.next_change:
            yield self._steps[self._next].foot, self._planes[self._next]
            self._next += 1
            self.next_change = self._middle()

    def _middle(self) -> float:
        if self._next == len(self._steps):
            return math.inf
        step = self._steps[self._next]
        return step.start + 0.5 * step.duration
