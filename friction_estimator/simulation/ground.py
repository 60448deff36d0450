"""The ground under the feet: an incline, and patches of other height and tilt under every footstep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import SimulationError
from friction_estimator.types import FloatArray

_STEEPEST = 0.5  # [rad]


@dataclass(frozen=True, slots=True)
class Plane:
    """Ground under one foot: ``z = height + gradient . ((x, y) - (x_0, y_0))``.

    Attributes
    ----------
    x, y : a point of it [m]
    height : there [m]
    gradient : rise along x and along y [m/m]
    """

    x: float = 0.0
    y: float = 0.0
    height: float = 0.0
    gradient: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ground:
    """What the robot walks on; every footprint lies on a plane of its own.

    Two kinds of deviation, uniformly distributed: those that the walk is planned for, as from a map, and those that the
    map does not show. The first footprints, where the robot stands when time starts, lie on the bare incline.

    Attributes
    ----------
    slope : uphill along x [rad]
    height, tilt : largest deviation of a patch from the incline, in height [m] and about each axis [rad]
    unseen_height, unseen_tilt : largest further deviation, unknown to the walk
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
        if not (np.abs(angles).max() <= _STEEPEST and 0.0 <= np.min(sizes) and np.max(sizes) < np.inf):
            raise SimulationError(
                f"the ground may be inclined by {_STEEPEST} rad at most and its deviations are not negative, got {self}"
            )

    def incline(self, x: float, y: float) -> Plane:
        """The bare incline at a place."""
        rise = float(np.tan(self.slope))
        return Plane(x, y, rise * x, (rise, 0.0))

    def mapped(self, places: FloatArray) -> list[Plane]:
        """Patches under the footprints at ``places`` (N, 2) as the walk knows them."""
        return self._patches(places, self._deviations(len(places))[:, 0])

    def true(self, places: FloatArray) -> list[Plane]:
        """Patches under the footprints at ``places`` (N, 2) as they are."""
        return self._patches(places, self._deviations(len(places)).sum(axis=1))

    def _deviations(self, count: int) -> FloatArray:
        """Height and gradients of each footprint, mapped and unseen, (count, 2, 3); more footprints change none."""
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
