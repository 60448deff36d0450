"""The walk as functions of time: base, feet and how they share the load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from friction_estimator.simulation.footsteps import LEFT, RIGHT, Gait, foot_beside, places, plan_footsteps
from friction_estimator.simulation.ground import Ground, ground_rotation
from friction_estimator.simulation.leg_kinematics import yaw_rotation
from friction_estimator.simulation.lipm import com_from_zmp
from friction_estimator.simulation.profile import MoveSequence, minimum_jerk
from friction_estimator.simulation.walk_moves import foot_moves, height_moves, share_moves, yaw_moves
from friction_estimator.types import FloatArray

_KNOT_PERIOD = 0.01
_LOOK_AHEAD = 3.0
_LEVEL = Ground()


@dataclass(frozen=True, slots=True)
class WalkDimensions:
    """What the plan must know about the robot, standing upright with the hips at walking height.

    Attributes
    ----------
    half_width : from the middle to each sole [m]
    base_height : base origin over the ground [m]
    com_height : centre of mass over the ground [m]
    com_to_base : (2,) base origin minus centre of mass, horizontal, in base axes [m]
    leg_length : stretched, hip to sole [m]
    gravity : [m/s^2]
    """

    half_width: float
    base_height: float
    com_height: float
    com_to_base: FloatArray
    leg_length: float
    gravity: float


@dataclass(frozen=True, slots=True)
class WalkSamples:
    """The plan at N times; feet are left, right.

    Attributes
    ----------
    base : (N, 3) base origin in the world [m]
    base_yaw : (N,) [rad]
    soles : (2, N, 3) sole origins in the world [m]
    sole_rotations : (2, N, 3, 3) sole to world
    load_share : (N, 2) part of the weight that each foot carries
    """

    base: FloatArray
    base_yaw: FloatArray
    soles: FloatArray
    sole_rotations: FloatArray
    load_share: FloatArray


class WalkPlan:
    """ZMP from foot to foot by minimum jerk in double support, centre of mass from the pendulum, feet by minimum jerk.

    Parameters
    ----------
    gait : what to do
    dimensions : of the robot
    duration : time that the plan must cover [s]
    ground : what the feet are put on, as far as its map shows

    Attributes
    ----------
    footsteps : in the order of time
    """

    def __init__(self, gait: Gait, dimensions: WalkDimensions, duration: float, ground: Ground = _LEVEL) -> None:
        self._gait = gait
        self._size = dimensions
        self.footsteps = plan_footsteps(gait, dimensions.half_width, duration + _LOOK_AHEAD)
        width = dimensions.half_width
        home = (foot_beside(0.0, 0.0, 0.0, width), foot_beside(0.0, 0.0, 0.0, -width))
        patches = ground.mapped(places(self.footsteps))
        bare = [ground.incline(pose.x, pose.y) for pose in home]
        self._feet = tuple(foot_moves(self.footsteps, patches, foot, home[foot], bare[foot]) for foot in (LEFT, RIGHT))
        self._height = height_moves(self.footsteps, patches, [plane.height for plane in bare], gait)
        self._yaw = yaw_moves(self.footsteps, gait)
        self._share = share_moves(self.footsteps, gait)
        self._shift = 0.0
        self._com = self._plan_com(duration + 2.0 * _LOOK_AHEAD)

    def sample(self, time: FloatArray) -> WalkSamples:
        """Evaluate the plan at times (N,) [s], from a moment before zero to the end of the duration."""
        yaw = self._yaw(time)[:, 0]
        offset = self._size.com_to_base
        c, s = np.cos(yaw), np.sin(yaw)
        com = self._com(time)
        base = np.empty((time.size, 3))
        base[:, 0] = com[:, 0] + c * offset[0] - s * offset[1]
        base[:, 1] = com[:, 1] + s * offset[0] + c * offset[1]
        base[:, 2] = self._height(time)[:, 0] + self._size.base_height - self._squat(time)
        poses = np.stack([feet(time) for feet in self._feet])
        soles = poses[:, :, :3].copy()
        soles[:, :, 2] += [self._clearance(feet, time) for feet in self._feet]
        rotations = np.stack([ground_rotation(pose[:, 4:]) @ yaw_rotation(pose[:, 3]) for pose in poses])
        left = self._left_share(time)
        return WalkSamples(base, yaw, soles, rotations, np.stack([left, 1.0 - left], axis=1))

    def _squat(self, time: FloatArray) -> FloatArray:
        phase = 2.0 * np.pi * np.maximum(time - self._gait.start, 0.0) / self._gait.squat_period
        ease = np.clip((time - self._gait.start) / self._gait.squat_period, 0.0, 1.0)
        depth = self._gait.squat_depth * self._size.leg_length
        return depth * minimum_jerk(ease) * 0.5 * (1.0 - np.cos(phase))

    def _clearance(self, feet: MoveSequence, time: FloatArray) -> FloatArray:
        s = feet.progress(time)[1]
        return self._gait.clearance * (4.0 * s * (1.0 - s)) ** 3

    def _left_share(self, time: FloatArray) -> FloatArray:
        """Minimum-jerk load transfer, plus the push-off of the first weight shift."""
        return self._share(time)[:, 0] + self._shift * self._bump(time)

    def _bump(self, time: FloatArray) -> FloatArray:
        s = np.clip(time / self._gait.start, 0.0, 1.0)
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
