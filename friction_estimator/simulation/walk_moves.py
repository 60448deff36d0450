"""The moves that a walk is made of: feet, trunk and load, one move a footstep."""

from __future__ import annotations

from collections.abc import Sequence

from friction_estimator.simulation.footsteps import RIGHT, FootPose, Footstep, Gait
from friction_estimator.simulation.ground import Plane
from friction_estimator.simulation.profile import MoveSequence


def foot_moves(
    steps: Sequence[Footstep], patches: Sequence[Plane], foot: int, home: FootPose, bare: Plane
) -> MoveSequence:
    """Place, height, heading and gradient of one sole."""
    moves = [
        (step.start, step.duration, _on(step.pose, patch))
        for step, patch in zip(steps, patches, strict=True)
        if step.foot == foot
    ]
    return MoveSequence.of(_on(home, bare), moves)


def _on(pose: FootPose, plane: Plane) -> tuple[float, ...]:
    return (pose.x, pose.y, plane.height, pose.yaw, *plane.gradient)


def height_moves(
    steps: Sequence[Footstep], patches: Sequence[Plane], heights: Sequence[float], gait: Gait
) -> MoveSequence:
    """The trunk goes to the mean height of the feet during each step."""
    now = list(heights)
    moves = []
    for step, patch in zip(steps, patches, strict=True):
        now[step.foot] = patch.height
        moves.append((step.start, gait.single_support + gait.double_support, (0.5 * (now[0] + now[1]),)))
    return MoveSequence.of((0.5 * (heights[0] + heights[1]),), moves)


def yaw_moves(steps: Sequence[Footstep], gait: Gait) -> MoveSequence:
    """The trunk turns to the mean heading of the feet during each step, the swinging side a little ahead."""
    yaws = [0.0, 0.0]
    moves = []
    for step in steps:
        yaws[step.foot] = step.pose.yaw
        ahead = gait.pelvis_rotation if step.foot == RIGHT else -gait.pelvis_rotation
        moves.append((step.start, gait.single_support + gait.double_support, (0.5 * (yaws[0] + yaws[1]) + ahead,)))
    return MoveSequence.of((0.0,), moves)


def share_moves(steps: Sequence[Footstep], gait: Gait) -> MoveSequence:
    """Part of the load on the left foot: all of it while the right foot swings, and so on; half at rest."""
    moves: list[tuple[float, float, tuple[float]]] = []
    lift_off_free = 0.0
    for step in steps:
        moves.append((lift_off_free, step.start - lift_off_free, (float(step.foot == RIGHT),)))
        lift_off_free = step.start + step.duration
    if steps:
        moves.append((lift_off_free, gait.double_support, (0.5,)))
    return MoveSequence.of((0.5,), moves)
