"""Where and when the feet step (timing of Hashlamon & Erbatur 2014, section 7.1), and the ground below every step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import SimulationError
from friction_estimator.types import FloatArray

LEFT, RIGHT = 0, 1  # numbers of the feet
_LEAST_STEP = (-0.75, -1.0, -1.0)
"""Smallest random length, side and turn of a step, as parts of the largest."""


@dataclass(frozen=True, slots=True)
class Gait:
    """Motion of the robot: timing and size of its steps, squats, and posture."""

    walks: bool = True  # False: both feet stay on the ground
    start: float = 0.5  # first lift-off [s]
    stop: float = math.inf  # no step starts after this time; `inf` walks on for ever [s]
    single_support: float = 0.6  # duration [s]
    double_support: float = 0.9  # duration [s]
    step_length: float = 0.1  # from one footprint to the next, forward [m]
    # from one footprint to the next, to the left [m]; the foot of that side leads, the other one closes up
    step_side: float = 0.0
    step_turn: float = 0.0  # heading gained with each step, to the left [rad]
    pelvis_rotation: float = 0.08  # rotation of the trunk that moves the swinging side forward in each step [rad]
    clearance: float = 0.05  # height of the sole in mid-swing [m]
    leg_extension: float = 0.927  # height of the hips as a part of the stretched leg
    squat_depth: float = 0.0  # depth of a squat, as a part of the stretched leg
    squat_period: float = 3.0  # duration of one squat [s]
    # seed of random steps: length between -0.75 and 1, side and turn between -1 and 1 times the values above,
    # uniformly and anew in each step (Lim et al. 2024, Table 2); None: all steps alike
    random_steps: int | None = None
    # seed of random motion of the joints outside the legs (section 4.3); None: they are held
    random_posture: int | None = None
    posture_range: float = 0.4  # largest random distance from the posture, as a part of that to the joint limit


@dataclass(frozen=True, slots=True)
class FootPose:
    """A foot on the ground: position of the point under its hip [m] and heading [rad]."""

    x: float
    y: float
    yaw: float

    def place(self, pose: FootPose) -> FootPose:
        """Transform a pose from the frame of this foot to the frame in which the pose of this foot is given."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return FootPose(self.x + c * pose.x - s * pose.y, self.y + s * pose.x + c * pose.y, self.yaw + pose.yaw)


@dataclass(frozen=True, slots=True)
class Footstep:
    """One swing of one foot."""

    foot: int
    start: float
    duration: float
    pose: FootPose


def foot_beside(x: float, y: float, yaw: float, lateral: float) -> FootPose:
    """Foot at ``lateral`` metres to the left of a body at (x, y) with this heading."""
    return FootPose(x - lateral * math.sin(yaw), y + lateral * math.cos(yaw), yaw)


def places(steps: Sequence[Footstep]) -> FloatArray:
    """Where the steps land, (N, 2) [m]."""
    return np.array([(step.pose.x, step.pose.y) for step in steps]).reshape(-1, 2)


def plan_footsteps(gait: Gait, half_width: float, until: float) -> list[Footstep]:
    """All steps that start before ``until``; the right foot swings first, so left single support comes first.

    Parameters
    ----------
    gait : timing and step size
    half_width : from the middle to the left foot [m]
    until : [s]
    """
    steps: list[Footstep] = []
    x = y = yaw = 0.0
    start = gait.start
    largest = np.array([gait.step_length, gait.step_side, gait.step_turn])
    rng = None if gait.random_steps is None else np.random.default_rng(gait.random_steps)
    while gait.walks and start <= min(until, gait.stop):
        foot = RIGHT if len(steps) % 2 == 0 else LEFT
        length, side, turn = (largest if rng is None else largest * rng.uniform(_LEAST_STEP, 1.0)).tolist()
        yaw += turn
        aside = _aside(side, foot)
        x += length * math.cos(yaw) - aside * math.sin(yaw)
        y += length * math.sin(yaw) + aside * math.cos(yaw)
        lateral = half_width if foot == LEFT else -half_width
        steps.append(Footstep(foot, start, gait.single_support, foot_beside(x, y, yaw, lateral)))
        start += gait.single_support + gait.double_support
    return steps


def _aside(side: float, foot: int) -> float:
    """Sideways motion of the body in a step of this foot with this ``step_side``, to the left [m].

    The leading foot steps by twice the distance and the other one closes up, so that the legs never cross.
    """
    leading = LEFT if side > 0.0 else RIGHT
    return 2.0 * side if foot == leading else 0.0


_MAX_ANGLE = 0.5  # [rad]


@dataclass(frozen=True, slots=True)
class Plane:
    """Ground under one foot: ``z = height + gradient . ((x, y) - (x_0, y_0))``."""

    x: float = 0.0  # of a point of it [m]
    y: float = 0.0  # of that point [m]
    height: float = 0.0  # of that point [m]
    gradient: tuple[float, float] = (0.0, 0.0)  # rise along x and along y [m/m]


@dataclass(frozen=True, slots=True)
class Ground:
    """Ground that the robot walks on: one plane per footprint.

    Deviations of the planes are uniformly distributed and of two kinds: mapped ones, which the walk plan uses, and
    unmapped ones. The first footprints, where the robot stands when time starts, lie on the bare incline.
    """

    slope: float = 0.0  # uphill along x [rad]
    height: float = 0.0  # largest deviation of a patch from the incline [m]
    tilt: float = 0.0  # the same, about each axis [rad]
    unseen_height: float = 0.0  # largest further deviation, which the walk plan does not use [m]
    unseen_tilt: float = 0.0  # the same, about each axis [rad]
    seed: int = 0  # of the deviations

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


def yaw_rotation(yaw: FloatArray) -> FloatArray:
    """Rotations about z, (N, 3, 3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    R = np.zeros((yaw.size, 3, 3))
    R[:, 0, 0], R[:, 0, 1], R[:, 1, 0], R[:, 1, 1], R[:, 2, 2] = c, -s, s, c, 1.0
    return R


class FloorSchedule:
    """Gives the true ground of each footstep when its foot is highest, in the middle of the swing.

    Parameters
    ----------
    ground : height errors of the floor that the walk plan knows (mapped) and does not know
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
