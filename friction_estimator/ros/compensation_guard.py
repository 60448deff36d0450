"""Sees to it that the last torque on ``friction_compensation`` is zero, whatever ends the estimates."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

_LOOKS = 4
"""Looks at the clock during one time-out."""


class CompensationGuard:
    """Asks for zero torque when no estimate has left for ``compensation.timeout``, once for each silence.

    Time is that of the machine: under ``use_sim_time`` a clock that stands still must not hold a torque.

    Parameters
    ----------
    node : owner of the timer
    timeout : [s]
    stop : publishes zero torque with a stamp [ns]
    """

    def __init__(self, node: Node, timeout: float, stop: Callable[[int], None]) -> None:
        self._timeout = timeout
        self._stop = stop
        self._stamp_ns: int | None = None
        self._left = 0.0
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(timeout / _LOOKS, self._look, clock=steady)

    def published(self, stamp_ns: int) -> None:
        """A torque with this stamp has left."""
        self._stamp_ns, self._left = stamp_ns, time.monotonic()

    def end(self) -> None:
        """Ask for zero torque now, unless it was the last message anyway; its stamp goes on from the one before."""
        if self._stamp_ns is not None:
            silence_ns = int(1e9 * (time.monotonic() - self._left))
            stamp_ns, self._stamp_ns = self._stamp_ns + silence_ns, None
            self._stop(stamp_ns)

    def _look(self) -> None:
        if time.monotonic() - self._left > self._timeout:
            self.end()
