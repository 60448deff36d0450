"""The planned walk as functions of time: base, feet, and how the feet share the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg import solve_banded

from friction_estimator.simulation.footsteps import (
    LEFT,
    RIGHT,
    FootPose,
    Footstep,
    Gait,
    Ground,
    Plane,
    foot_beside,
    ground_rotation,
    places,
    plan_footsteps,
    yaw_rotation,
)
from friction_estimator.types import FloatArray

_KNOT_PERIOD = 0.01  # of the centre-of-mass trajectory [s]
_LOOK_AHEAD = 3.0  # planned beyond the duration, because the pendulum depends on the steps to come [s]
_SINUSOIDS = 3  # of the random motion of a joint
_FREQUENCY_RANGE = (0.2, 0.6)  # lowest and highest of these [Hz]
_POSTURE_EASE = 2.0  # time in which that motion gets its full size [s]
_LEVEL_GROUND = Ground()


def _minimum_jerk(s: FloatArray) -> FloatArray:
    """``10 s^3 - 15 s^4 + 6 s^5``: from 0 to 1 with zero velocity and acceleration at both ends."""
    return s**3 * (10.0 + s * (6.0 * s - 15.0))


@dataclass(frozen=True, slots=True)
class _MoveSequence:
    """A quantity that is constant except during minimum-jerk moves, which do not overlap."""

    starts: FloatArray  # (m,) start of each move, increasing [s]
    durations: FloatArray  # (m,) [s]
    values: FloatArray  # (m + 1, d) value before the first and after each move

    @classmethod
    def from_moves(cls, first: Sequence[float], moves: Sequence[tuple[float, float, Sequence[float]]]) -> _MoveSequence:
        """Build from the first value and ``(start, duration, value afterwards)`` of each move."""
        return cls(
            np.array([move[0] for move in moves]),
            np.array([move[1] for move in moves]),
            np.array([first, *(move[2] for move in moves)], dtype=float),
        )

    def progress(self, time: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Index of the move at each time (-1 before the first), and the completed part of that move (0 to 1)."""
        if not self.starts.size:
            return np.full(time.shape, -1), np.ones(time.shape)
        index = np.searchsorted(self.starts, time, side="right") - 1
        s: FloatArray = np.clip((time - self.starts[index]) / self.durations[index], 0.0, 1.0)
        s[index < 0] = 1.0
        return index, s

    def __call__(self, time: FloatArray) -> FloatArray:
        """Values (N, d) at times (N,)."""
        index, s = self.progress(time)
        before = self.values[np.maximum(index, 0)]
        after = self.values[index + 1]
        return before + _minimum_jerk(s)[:, None] * (after - before)


@dataclass(frozen=True, slots=True)
class PostureMotion:
    """Random motion of joints: sums of sinusoids, which begin slowly at the first lift-off."""

    posture: FloatArray  # (m,) where the joints begin [rad]
    centre: FloatArray  # (m,) of the motion [rad]
    amplitude: FloatArray  # (m,) of the motion [rad]
    rate: FloatArray  # (k, m) of the sinusoids [rad/s]
    phase: FloatArray  # (k, m) of the sinusoids [rad]
    start: float  # [s]

    @classmethod
    def from_gait(cls, gait: Gait, posture: FloatArray, limits: FloatArray) -> PostureMotion:
        """Motion of a gait around a posture (m,), as far as it goes toward the limits (2, m) [rad]."""
        lowest, highest = posture + gait.posture_range * (limits - posture)
        rng, size = np.random.default_rng(gait.random_posture), (_SINUSOIDS, posture.size)
        rate, phase = 2.0 * np.pi * rng.uniform(*_FREQUENCY_RANGE, size), rng.uniform(0.0, 2.0 * np.pi, size)
        return cls(posture, 0.5 * (lowest + highest), 0.5 * (highest - lowest), rate, phase, gait.start)

    def __call__(self, time: FloatArray) -> FloatArray:
        """Positions (N, m) at times (N,) [rad]."""
        swing = np.sin(self.rate * time[:, None, None] + self.phase).mean(axis=1)
        begun = _minimum_jerk(np.clip((time - self.start) / _POSTURE_EASE, 0.0, 1.0))[:, None]
        return self.posture + begun * (self.centre + self.amplitude * swing - self.posture)


def _foot_moves(
    steps: Sequence[Footstep], patches: Sequence[Plane], foot: int, home: FootPose, bare: Plane
) -> _MoveSequence:
    """Place, height, heading and gradient of one sole."""
    moves = [
        (step.start, step.duration, _on(step.pose, patch))
        for step, patch in zip(steps, patches, strict=True)
        if step.foot == foot
    ]
    return _MoveSequence.from_moves(_on(home, bare), moves)


def _on(pose: FootPose, plane: Plane) -> tuple[float, ...]:
    return (pose.x, pose.y, plane.height, pose.yaw, *plane.gradient)


def _height_moves(
    steps: Sequence[Footstep], patches: Sequence[Plane], heights: Sequence[float], gait: Gait
) -> _MoveSequence:
    """The trunk goes to the mean height of the feet during each step."""
    now = list(heights)
    moves = []
    for step, patch in zip(steps, patches, strict=True):
        now[step.foot] = patch.height
        moves.append((step.start, gait.single_support + gait.double_support, (0.5 * (now[0] + now[1]),)))
    return _MoveSequence.from_moves((0.5 * (heights[0] + heights[1]),), moves)


def _yaw_moves(steps: Sequence[Footstep], gait: Gait) -> _MoveSequence:
    """The trunk turns to the mean heading of the feet during each step, the swinging side a little ahead."""
    yaws = [0.0, 0.0]
    moves = []
    for step in steps:
        yaws[step.foot] = step.pose.yaw
        ahead = gait.pelvis_rotation if step.foot == RIGHT else -gait.pelvis_rotation
        moves.append((step.start, gait.single_support + gait.double_support, (0.5 * (yaws[0] + yaws[1]) + ahead,)))
    return _MoveSequence.from_moves((0.0,), moves)


def _share_moves(steps: Sequence[Footstep], gait: Gait) -> _MoveSequence:
    """Part of the load on the left foot: 1 while the right foot swings, 0 while the left foot swings, 0.5 at rest."""
    moves: list[tuple[float, float, tuple[float]]] = []
    lift_off_free = 0.0
    for step in steps:
        moves.append((lift_off_free, step.start - lift_off_free, (float(step.foot == RIGHT),)))
        lift_off_free = step.start + step.duration
    if steps:
        moves.append((lift_off_free, gait.double_support, (0.5,)))
    return _MoveSequence.from_moves((0.5,), moves)


def com_from_zmp(zmp: FloatArray, period: float, omega: float) -> FloatArray:
    """Solve ``c - c'' / omega^2 = p`` with the centre of mass over the ZMP at both ends.

    The boundary-value problem is one tridiagonal system, which is well conditioned for any length. Integrating the
    unstable pendulum forward would diverge.

    Parameters
    ----------
    zmp : (K, d) zero-moment point at equidistant knots [m]
    period : time between knots [s]
    omega : ``sqrt(g / z_c)`` [1/s]

    Returns
    -------
    (K, d) centre of mass at the knots [m]
    """
    weight = 1.0 / (omega * period) ** 2
    bands = np.empty((3, zmp.shape[0]))
    bands[0], bands[1], bands[2] = -weight, 1.0 + 2.0 * weight, -weight
    bands[1, [0, -1]] = 1.0
    bands[0, 1] = bands[2, -2] = 0.0
    return solve_banded((1, 1), bands, zmp)


@dataclass(frozen=True, slots=True)
class WalkDimensions:
    """Dimensions of the robot that stands upright with the hips at walking height."""

    half_width: float  # from the middle to each sole [m]
    base_height: float  # base origin over the ground [m]
    com_height: float  # centre of mass over the ground [m]
    com_to_base: FloatArray  # (2,) base origin minus centre of mass, horizontal, in base axes [m]
    leg_length: float  # stretched, hip to sole [m]
    gravity: float  # [m/s^2]


@dataclass(frozen=True, slots=True)
class WalkSamples:
    """The walk at N times; feet in the order left, right."""

    base: FloatArray  # (N, 3) base origin in the world [m]
    base_yaw: FloatArray  # (N,) [rad]
    soles: FloatArray  # (2, N, 3) sole origins in the world [m]
    sole_rotations: FloatArray  # (2, N, 3, 3) sole to world
    load_share: FloatArray  # (N, 2) part of the weight that each foot carries


class WalkPlan:
    """Trajectories of base and feet for a gait.

    The zero-moment point (ZMP) moves from foot to foot by minimum jerk in double support. The centre of mass follows
    from the linear inverted pendulum. The feet move by minimum jerk.

    Parameters
    ----------
    gait : timing and step size
    dimensions : of the robot
    duration : time that the plan must cover [s]
    ground : the plan uses its mapped part only
    footsteps : in the order of time; None: those of the gait

    Attributes
    ----------
    gait, footsteps : as given
    """

    def __init__(
        self,
        gait: Gait,
        dimensions: WalkDimensions,
        duration: float,
        ground: Ground = _LEVEL_GROUND,
        footsteps: Sequence[Footstep] | None = None,
    ) -> None:
        self.gait, self._duration = gait, duration
        self._size, self._ground = dimensions, ground
        self._before: tuple[WalkPlan, float, float] | None = None
        steps = plan_footsteps(gait, dimensions.half_width, duration + _LOOK_AHEAD) if footsteps is None else footsteps
        self.footsteps = list(steps)
        width = dimensions.half_width
        self._home = home = (foot_beside(0.0, 0.0, 0.0, width), foot_beside(0.0, 0.0, 0.0, -width))
        patches = ground.mapped(places(self.footsteps))
        bare = [ground.incline(pose.x, pose.y) for pose in home]
        self._feet = tuple(_foot_moves(self.footsteps, patches, foot, home[foot], bare[foot]) for foot in (LEFT, RIGHT))
        self._height = _height_moves(self.footsteps, patches, [plane.height for plane in bare], gait)
        self._yaw = _yaw_moves(self.footsteps, gait)
        self._share = _share_moves(self.footsteps, gait)
        self._shift = 0.0
        self._com = self._plan_com(duration + 2.0 * _LOOK_AHEAD)

    def next_step(self, time: float) -> int:
        """Index of the footstep that lasts at a time [s], or of the next one."""
        return sum(step.start + step.duration <= time for step in self.footsteps)

    def footprint(self, foot: int, step: int) -> FootPose:
        """Where a foot stands before the footstep with this index."""
        return next((one.pose for one in reversed(self.footsteps[:step]) if one.foot == foot), self._home[foot])

    def revised(self, time: float, poses: Sequence[FootPose]) -> WalkPlan:
        """The same walk up to a time [s], then the footsteps to these poses in turn, then a stand.

        The foot that swings then, or swings next, goes to the first of the poses. The timing of the footsteps stays.
        The new trajectories take over from the old ones gradually: the feet until the footstep ends, the base until the
        load is on both feet.
        """
        first, gait = self.next_step(time), self.gait
        coming = self.footsteps[first : first + len(poses)]
        steps = [replace(step, pose=pose) for step, pose in zip(coming, poses, strict=False)]
        plan = WalkPlan(gait, self._size, self._duration, self._ground, [*self.footsteps[:first], *steps])
        if steps:
            landing = steps[0].start + steps[0].duration
            plan._before = self, time, landing
        return plan

    def sample(self, time: FloatArray) -> WalkSamples:
        """Evaluate the plan at times (N,) [s], from one control period before zero to the end of the duration."""
        feet, trunk = self._course(time)
        yaw = trunk[:, 3]
        offset = self._size.com_to_base
        c, s = np.cos(yaw), np.sin(yaw)
        base = np.empty((time.size, 3))
        base[:, 0] = trunk[:, 0] + c * offset[0] - s * offset[1]
        base[:, 1] = trunk[:, 1] + s * offset[0] + c * offset[1]
        base[:, 2] = trunk[:, 2] + self._size.base_height - self._squat(time)
        soles = feet[:, :, :3].copy()
        soles[:, :, 2] += [self._clearance(moves, time) for moves in self._feet]
        rotations = np.stack([ground_rotation(pose[:, 4:]) @ yaw_rotation(pose[:, 3]) for pose in feet])
        return WalkSamples(base, yaw, soles, rotations, np.stack([trunk[:, 4], 1.0 - trunk[:, 4]], axis=1))

    def _course(self, time: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Feet (2, N, 6) as in :func:`_foot_moves`; centre of mass (2), height and heading of the trunk, share of the
        left foot (N, 5).
        """
        feet = np.stack([moves(time) for moves in self._feet])
        trunk = np.column_stack((self._com(time), self._height(time), self._yaw(time), self._left_share(time)))
        if self._before is not None:
            plan, start, landing = self._before
            for now, before, end in zip(
                (feet, trunk), plan._course(time), (landing, landing + self.gait.double_support), strict=True
            ):
                done = _minimum_jerk(np.clip((time - start) / (end - start), 0.0, 1.0))[:, None]
                now += (1.0 - done) * (before - now)
        return feet, trunk

    def _squat(self, time: FloatArray) -> FloatArray:
        phase = 2.0 * np.pi * np.maximum(time - self.gait.start, 0.0) / self.gait.squat_period
        ease = np.clip((time - self.gait.start) / self.gait.squat_period, 0.0, 1.0)
        depth = self.gait.squat_depth * self._size.leg_length
        return depth * _minimum_jerk(ease) * 0.5 * (1.0 - np.cos(phase))

    def _clearance(self, feet: _MoveSequence, time: FloatArray) -> FloatArray:
        s = feet.progress(time)[1]
        return self.gait.clearance * (4.0 * s * (1.0 - s)) ** 3

    def _left_share(self, time: FloatArray) -> FloatArray:
        """Minimum-jerk load transfer, plus the push-off of the first weight shift."""
        return self._share(time)[:, 0] + self._shift * self._bump(time)

    def _bump(self, time: FloatArray) -> FloatArray:
        s = np.clip(time / self.gait.start, 0.0, 1.0)
        return (4.0 * s * (1.0 - s)) ** 2

    def _plan_com(self, until: float) -> CubicSpline:
        """Centre of mass that starts at rest.

        The pendulum must be moving toward the first stance foot when the other lifts off. A bump in the load share
        before that, away from the stance foot, starts the motion; its size follows from zero initial velocity.
        """
        time = np.arange(0.0, until, _KNOT_PERIOD)
        omega = np.sqrt(self._size.gravity / self._size.com_height)
        left, right = (feet(time)[:, :2] for feet in self._feet)
        share = self._share(time)
        com = com_from_zmp(right + share * (left - right), _KNOT_PERIOD, omega)
        if self.footsteps:
            bump = com_from_zmp(self._bump(time)[:, None] * (left - right), _KNOT_PERIOD, omega)
            across = (left - right)[0]
            velocity, bump_velocity = (CubicSpline(time, path)(0.0, 1) @ across for path in (com, bump))
            self._shift = -float(velocity / bump_velocity)
            com = com + self._shift * bump
        return CubicSpline(time, com)
