"""Messages that wait for the estimator: how busy the node is, and what it leaves out when it cannot keep up.

The middleware holds a queue for each topic, does not report its length, and drops the oldest message of a full one,
whatever the other topics lose. Hence all messages that are there are fetched ten times a second, and before each
estimate when the node cannot keep up, into one queue whose length and age are known.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from rclpy.executors import Executor

from friction_estimator.ros.spin import IDLE, Running

_PERIOD = 0.1
"""Time between two looks at the queue [s]."""

_TOO_MANY = 2.0
"""The node is late when more joint samples wait than this many times those that it used since the look before."""

_LOOKS = 10
"""The node cannot keep up when it was late that often in a row, and can again when it left nothing out that often."""

_SHORTEST_WAIT = 1e-4
"""A shorter time until the next message is that of fetching it [s]."""

_LONGEST_QUEUE = 2000
"""Messages; with more the middleware's own queues fill up."""

_PATIENCE = 0.02
"""Age from which on a joint sample is left out while the node cannot keep up, if a newer one waits after it [s]."""

_LONGEST_GAP = 0.1
"""Joint samples that are used arrived at most this long one after the other [s]: filters must not restart."""

_STRIDE = 20
"""Messages between two looks at whether the process shall end, which cost as much as reading one."""

Take = Callable[[bytes, float], bool]
"""Uses one message that arrived at a time [s]; true when an estimate came out."""


class InputQueue:
    """Takes messages in the order of their arrival, and leaves joint samples out when they come too fast.

    A pause of the process makes the node late, but it catches up. A node that stays late for a second cannot keep up:
    old joint samples are left out where a newer one waits after them. Messages of the other sensors are all used: they
    cost little, and the next frame interpolates between them.

    Parameters
    ----------
    leave_out : False: every sample is used, however late
    now : clock [s]

    Attributes
    ----------
    used, left_out : joint samples that were used, and that were not
    idle : time spent waiting for messages [s]
    late : looks at the queue in a row that found it too long
    """

    def __init__(self, leave_out: bool, now: Callable[[], float] = time.perf_counter) -> None:
        self._leave_out = leave_out
        self._now = now
        self._waiting: deque[tuple[float, Take, bool, bytes]] = deque()
        self._joints = 0
        self._behind = False
        self._next_look = now() + _PERIOD
        self._used_before = self._left_out_before = self._complete = 0
        self._used_arrival = 0.0
        self.late = 0
        self.used = self.left_out = 0
        self.idle = 0.0

    def receiver(self, take: Take, joints: bool = False) -> Callable[[bytes], None]:
        """Callback of a subscription.

        Parameters
        ----------
        take : called with each of its messages, when it is their turn
        joints : whether these are the joint samples
        """
        append, now = self._waiting.append, self._now

        def receive(raw: bytes) -> None:
            append((now(), take, joints, raw))
            self._joints += joints

        return receive

    def run(self, executor: Executor, running: Running) -> None:
        """Fetch and use messages until the process shall end."""
        while running():
            for _ in range(_STRIDE):
                if not self._fetch(executor):
                    break
                self.use()

    def _fetch(self, executor: Executor) -> bool:
        """Wait for a message if there is none; true when there is one."""
        waiting, spin_once, now = self._waiting, executor.spin_once, self._now
        if not waiting:
            before = now()
            spin_once(timeout_sec=IDLE)
            waited = (waiting[0][0] if waiting else now()) - before
            self.idle += waited if waited > _SHORTEST_WAIT else 0.0
        if self._behind or now() >= self._next_look:
            known = 0
            while known < len(waiting) < _LONGEST_QUEUE:
                known = len(waiting)
                spin_once(timeout_sec=0.0)  # not without need: it costs more than a message when there is none
            self.look()
        return bool(waiting)

    def look(self) -> None:
        """Find out, when it is time to, whether the node keeps up; all messages that are there were fetched before."""
        if (now := self._now()) < self._next_look:
            return
        self._next_look = now + _PERIOD
        used, self._used_before = self.used - self._used_before, self.used
        left_out, self._left_out_before = self.left_out - self._left_out_before, self.left_out
        self.late = self.late + 1 if self._joints > _TOO_MANY * used else 0
        self._complete = 0 if left_out else self._complete + 1
        self._behind = self._leave_out and (self.cannot_keep_up or (self._behind and self._complete < _LOOKS))

    @property
    def cannot_keep_up(self) -> bool:
        """True while the node has been late for long."""
        return self.late >= _LOOKS

    def use(self) -> None:
        """Use messages until an estimate came out or none is left."""
        waiting = self._waiting
        while waiting:
            arrived, take, joints, raw = waiting.popleft()
            if joints:
                self._joints -= 1
                if self._is_left_out(arrived):
                    self.left_out += 1
                    continue
                self.used += 1
            if take(raw, arrived):
                return

    def use_all(self) -> None:
        """Use all messages that wait."""
        while self._waiting:
            self.use()

    def _is_left_out(self, arrived: float) -> bool:
        is_old = self._now() - arrived > _PATIENCE and arrived - self._used_arrival < _LONGEST_GAP
        if self._behind and self._joints and is_old:
            return True
        self._used_arrival = arrived
        return False
