"""Where and when the feet step: the timing of Hashlamon & Erbatur 2014, section 7.1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from friction_estimator.types import FloatArray

LEFT, RIGHT = 0, 1
_LEAST_STEP = (-0.75, -1.0, -1.0)
"""Smallest random length, side and turn of a step, as parts of the largest."""


@dataclass(frozen=True, slots=True)
class Gait:
    """Motion of the robot.

    Attributes
    ----------
    walks : False: both feet stay on the ground
    start : first lift-off [s]
    stop : no step starts after this time; ``inf`` walks on for ever [s]
    single_support, double_support : durations [s]
    step_length : from one footprint to the next, forward [m]
    step_side : from one footprint to the next, to the left [m]; the foot of that side leads, the other one closes up
    step_turn : heading gained with each step, to the left [rad]
    pelvis_rotation : rotation of the trunk that moves the swinging side forward in each step [rad]
    clearance : height of the sole in mid-swing [m]
    leg_extension : height of the hips as a part of the stretched leg
    squat_depth : depth of a squat, as a part of the stretched leg
    squat_period : duration of one squat [s]
    random_steps : seed of random steps: length between -0.75 and 1, side and turn between -1 and 1 times the values
        above, uniformly and anew in each step (Lim et al. 2024, Table 2); None: all steps alike
    random_posture : seed of random motion of the joints outside the legs (section 4.3); None: they are held
    posture_range : largest random distance from the posture, as a part of that to the joint limit
    """

    walks: bool = True
    start: float = 0.5
    stop: float = math.inf
    single_support: float = 0.6
    double_support: float = 0.9
    step_length: float = 0.1
    step_side: float = 0.0
    step_turn: float = 0.0
    pelvis_rotation: float = 0.08
    clearance: float = 0.05
    leg_extension: float = 0.927
    squat_depth: float = 0.0
    squat_period: float = 3.0
    random_steps: int | None = None
    random_posture: int | None = None
    posture_range: float = 0.4


@dataclass(frozen=True, slots=True)
class FootPose:
    """A foot on the ground: position of the point under its hip [m] and heading [rad]."""

    x: float
    y: float
    yaw: float

    def place(self, pose: FootPose) -> FootPose:
        """A pose that is given in the frame of this one, in the frame in which this one is given."""
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
