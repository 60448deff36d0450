"""Keeps simulator and bag player from running away from an estimator that cannot keep up with them.

A robot never waits for its estimator, but elsewhere nothing is gained by filling queues until messages are lost.
"""

from __future__ import annotations

import time

from rclpy.executors import Executor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from friction_estimator.messages import topics
from friction_estimator.messages.cdr import stamp_of
from friction_estimator.ros.qos import SENSOR_INPUT
from friction_estimator.ros.spin import Running

_GIVE_UP = 5.0
_LAST_PERIOD_NS = 100_000_000


class Lead:
    """Compares stamps with those of a slow output of the estimator.

    Parameters
    ----------
    node : owner of the subscription
    limit : how far the stamps may be ahead [s]; 0: any distance

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
        """Spin until the estimator has come near enough, from the first call on."""
        if self._limit_ns:
            if self._estimated_ns is None:
                self._estimated_ns = stamp_ns
            self._wait(stamp_ns, self._limit_ns, executor, running)

    def finish(self, stamp_ns: int, executor: Executor, running: Running) -> None:
        """Spin until the estimator is done with the last sample, but for the rest of a period of the slow output."""
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
                    f"no estimate for {_GIVE_UP:.0f} s: not waiting for the estimator any longer"
                )
                self._limit_ns = 0
                break
        self.waited += time.monotonic() - start
