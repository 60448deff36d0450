"""A live view of the topics of a run that is recorded, or, as a separate process, of any running estimator."""

from __future__ import annotations

import time

from rclpy.executors import Executor
from rclpy.node import Node

from friction_estimator.io.robot import Robot
from friction_estimator.messages import topics
from friction_estimator.ros.live_run import LiveState, LiveTopics
from friction_estimator.ros.middleware import SENSOR_INPUT
from friction_estimator.ros.recorder_node import COLLISION, DIAGNOSTICS, PERIOD, Recorder
from friction_estimator.ros.spin import Running
from friction_estimator.views.frame import Skeleton, ViewFrame
from friction_estimator.views.live_view import LiveView

PERIOD_OF_FRAMES = 0.05
"""Time between two frames of a view [s]."""
_SHOWN = (
    topics.FRICTION, topics.SIGMA, topics.MEASURED, topics.COULOMB, topics.VISCOUS, topics.CONTACT_PHASE,
    topics.BASE_STATE, topics.TRUE_FRICTION,
)  # fmt: skip


class StateView:
    """Hands the state of a live run to a view, as frames.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    period = PERIOD_OF_FRAMES

    def __init__(self, robot: Robot, view: LiveView) -> None:
        self._robot, self._view = robot, view
        self._skeleton: Skeleton | None = None
        self._events = 0

    def show(self, state: LiveState) -> None:
        """Send a frame; nothing before the first estimate."""
        if not state.joint_names:
            return
        if self._skeleton is None:
            self._skeleton = Skeleton(self._robot, state.joint_names)
        new, self._events = state.collisions[self._events :], len(state.collisions)
        pose = state.base_position, state.base_quaternion
        frame = ViewFrame(
            time=state.elapsed,
            joint_names=state.joint_names,
            friction=state.friction,
            sigma=state.sigma,
            truth=state.truth,
            phase=state.phase,
            base_position=pose[0],
            base_quaternion=pose[1],
            segments=self._skeleton.segments(state.position, *pose),
            segment_joints=self._skeleton.segment_joints,
            events=new,
        )
        self._view.send(frame)


class ViewNode(Node):
    """Subscribes to the topics of an estimator and shows them until the process ends.

    Parameters
    ----------
    robot : configuration and URDF
    view : that draws
    """

    def __init__(self, robot: Robot, view: LiveView) -> None:
        super().__init__("friction_view")
        self._view = StateView(robot, view)
        self._recorder = Recorder(self)
        self._topics = LiveTopics(robot.config, self._recorder)
        watch = self._topics.handler
        joint_states = (robot.config.output.joint_states_topic, topics.JOINT_STATE)
        for topic, kind in [joint_states, *((one.name, one.type) for one in _SHOWN), DIAGNOSTICS, COLLISION]:
            self._recorder.record(topic, kind, SENSOR_INPUT, also=watch(topic))

    def play(self, executor: Executor, running: Running) -> None:
        """Show until the process shall end."""
        next_frame = 0.0
        while running():
            self._recorder.take()
            if time.monotonic() >= next_frame:
                next_frame = time.monotonic() + PERIOD_OF_FRAMES
                self._view.show(self._topics.state({}))
            executor.spin_once(timeout_sec=PERIOD)
        self._recorder.close()
