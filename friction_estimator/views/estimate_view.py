"""A view of the estimates of a replay: all of them, in real time where the display does not keep them."""

from __future__ import annotations

import time

import numpy as np
from scipy.spatial.transform import Rotation

from friction_estimator.io.robot import Robot
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import FrictionEstimate
from friction_estimator.views.frame import Skeleton, ViewFrame
from friction_estimator.views.live_view import LiveView

_PERIOD_NS = 50_000_000


class EstimateView:
    """Draws an estimate every 50 ms of the recording.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    def __init__(self, robot: Robot, view: LiveView) -> None:
        self._joint_names = RobotModel(robot.config, robot.urdf_xml).joint_names
        self._skeleton = Skeleton(robot, self._joint_names)
        self._view = view
        self._first_ns = self._next_ns = 0
        self._started = 0.0

    def show(self, estimate: FrictionEstimate) -> None:
        """Draw the estimate when it is time."""
        if estimate.stamp_ns < self._next_ns:
            return
        if not self._first_ns:
            self._first_ns, self._started = estimate.stamp_ns, time.monotonic()
        self._next_ns = estimate.stamp_ns + _PERIOD_NS
        base = estimate.base
        pose = base.position_base_in_world, Rotation.from_matrix(base.rotation_base_to_world).as_quat()
        elapsed = 1e-9 * (estimate.stamp_ns - self._first_ns)
        if not self._view.display.keeps:
            time.sleep(max(0.0, self._started + elapsed - time.monotonic()))
        frame = ViewFrame(
            time=elapsed,
            joint_names=self._joint_names,
            friction=estimate.friction,
            sigma=estimate.sigma,
            truth=np.full(len(self._joint_names), np.nan),
            phase=estimate.phase.name,
            base_position=pose[0],
            base_quaternion=pose[1],
            segments=self._skeleton.segments(estimate.position, *pose),
            segment_joints=self._skeleton.segment_joints,
        )
        self._view.display.draw(frame)
