"""Pace of the simulator and the bag player: real time, and no further ahead of the estimator than a limit."""

from __future__ import annotations

import time

from rclpy.executors import Executor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.middleware import SENSOR_INPUT
from friction_estimator.ros.spin import Running

_PATIENCE = 0.1  # longest delay that is caught up [s]
_GIVE_UP = 5.0  # without an estimate, after which samples are sent without waiting [s]
_LAST_PERIOD_NS = 100_000_000  # one period of the slow output, and more


class Pace:
    """Keeps a loop at a multiple of real time by sleeping to deadlines.

    A 1 ms ROS timer gives 989 to 996 Hz, this gives 1000 Hz.

    Parameters
    ----------
    factor : simulated or recorded time divided by real time; 0: no waiting

    Attributes
    ----------
    behind : delay of the newest call of :meth:`wait` against the deadlines of the first one [s]
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._start = time.perf_counter()
        self._moved = 0.0
        self.behind = 0.0

    def wait(self, elapsed: float) -> None:
        """Sleep until the moment that is ``elapsed`` seconds of simulated or recorded time after the start.

        A delay of at most 0.1 s is caught up. After a longer one all later deadlines move, to avoid a burst of samples.
        """
        if not self._factor:
            return
        delay = self._start + elapsed / self._factor - time.perf_counter()
        self.behind = self._moved + max(0.0, -delay)
        if delay > 0.0:
            time.sleep(delay)
        elif delay < -_PATIENCE:
            self._start -= delay
            self._moved -= delay


class Lead:
    """Keeps simulator or bag player from getting too far ahead of an estimator that cannot keep up with them.

    Otherwise queues would fill up until messages are lost. The stamps of a slow output of the estimator are compared
    with those of the sent samples.

    Parameters
    ----------
    node : owner of the subscription
    limit : largest distance between the stamps [s]; 0: no limit

    Attributes
    ----------
    waited : time spent waiting for the estimator [s]
    """

    def __init__(self, node: Node, limit: float) -> None:
        self._node = node
        self._limit_ns = int(limit * 1e9)
        self._estimated_ns: int | None = None
        self.waited = 0.0
        if self._limit_ns:
            node.create_subscription(JointState, topics.MODEL.name, self._note, SENSOR_INPUT, raw=True)

    def _note(self, raw: bytes) -> None:
        self._estimated_ns = stamp_of(raw)

    def hold(self, stamp_ns: int, executor: Executor, running: Running) -> None:
        """Spin until the distance to the estimator is within the limit; it counts from the first call."""
        if self._limit_ns:
            if self._estimated_ns is None:
                self._estimated_ns = stamp_ns
            self._wait(stamp_ns, self._limit_ns, executor, running)

    def finish(self, stamp_ns: int, executor: Executor, running: Running) -> None:
        """Spin until the estimator has used the last sample, up to one period of the slow output."""
        if self._limit_ns:
            self._wait(stamp_ns, min(self._limit_ns, _LAST_PERIOD_NS), executor, running)

    def _wait(self, stamp_ns: int, limit_ns: int, executor: Executor, running: Running) -> None:
        start = time.monotonic()
        before, give_up = self._estimated_ns, start + _GIVE_UP
        while self._estimated_ns is not None and stamp_ns - self._estimated_ns > limit_ns and running():
            executor.spin_once(timeout_sec=0.01)
            if self._estimated_ns != before:
                before, give_up = self._estimated_ns, time.monotonic() + _GIVE_UP
            elif time.monotonic() > give_up:
                self._node.get_logger().warning(
                    f"no estimate for {_GIVE_UP:.0f} s on {topics.MODEL.name}: samples are sent without waiting for "
                    "the estimator; check that it runs"
                )
                self._limit_ns = 0
                break
        self.waited += time.monotonic() - start
