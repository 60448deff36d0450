"""Queue of the input messages of the estimator: busy time of the node, and joint samples left out under overload.

The middleware has one queue per topic. It does not report the length of a queue, and drops the oldest message of a full
one independently of the other topics. Therefore all available messages are fetched into one queue of known length and
age: ten times a second, and before each estimate while the node cannot keep up.

Only joint samples wake the process. The messages of the other sensors wait in the middleware until a joint sample needs
them: an executor that wakes for each of them costs as much CPU time as using them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from rclpy.executors import Executor
from rclpy.qos import qos_policy_name_from_kind

from friction_estimator.errors import InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.messages.cdr import BODY, stamp_of
from friction_estimator.messages.sensors import Sample
from friction_estimator.ros.spin import IDLE, Running
from friction_estimator.types import FrictionEstimate

if TYPE_CHECKING:
    from friction_estimator.ros.diagnostics import NodeDiagnostics

_PERIOD = 0.1
"""Time between two checks of the queue [s]."""

_MAX_WAITING = 2.0
"""The node is late when more joint samples wait than this multiple of those used since the previous check."""

_CHECKS = 10
"""After this number of late checks in a row the node cannot keep up. It can again after as many checks in a row in
which it left out no sample."""

_MIN_WAIT = 1e-4
"""Shorter waiting times are counted as busy, because fetching a message takes as long [s]."""

_MAX_LENGTH = 2000
"""Largest number of fetched messages."""

_PATIENCE = 0.02
"""While the node cannot keep up, joint samples older than this are left out if a newer one waits [s]."""

_MAX_GAP = 0.1
"""Largest time between the arrivals of two used joint samples [s], so that filters do not restart."""

_LAGS = 20
"""Largest number of lags of a topic that are kept: those of two seconds."""

_POLL = 2e-4
"""Time between two looks for the reading that a joint sample waits for [s]."""

_AHEAD = 1_000_000_000
"""A reading that is further ahead of the joint states has another clock: no order follows from its stamp [ns]."""

_STAMPED = BODY + 8
"""Length of a message that ends with the stamp of its header [bytes]."""

_STRIDE = 20
"""Estimates between two checks whether the process shall end, which costs as much as reading a message."""

Use = Callable[[bytes, float], bool]
"""Uses one message that arrived at a time [s]; true when it led to an estimate."""


@dataclass(slots=True, eq=False)
class _Source:
    """Sensor whose messages are fetched on demand."""

    fetch: Callable[[], bytes | None]  # oldest message in the middleware
    enqueue: Callable[[bytes], None]  # puts a message into the queue
    topic: str  # of the messages
    newest_ns: int = 0  # stamp of the newest one that was fetched [ns]
    checked_ns: int = 0  # its value at the previous check [ns]
    count: int = 0  # number of messages since the previous check
    # lags at the newest checks since the previous take_lags [ns]
    lags_ns: deque[float] = field(default_factory=lambda: deque(maxlen=_LAGS))


class InputQueue:
    """Passes on messages in the order of their arrival, and leaves joint samples out when they arrive too fast.

    middleware ─► fetch ─► enqueue ─► use: the estimator gets the message, or it is left out

    The executor fetches joint states, and the queue fetches the messages of other sensors.

    After a pause of the process the node is late, but it catches up. A node that stays late for a second cannot keep
    up: then old joint samples are left out if a newer one waits. All messages of the other sensors are used: they cost
    little, and the next frame interpolates between them.

    Parameters
    ----------
    leave_out : False: every sample is used, even when the node cannot keep up
    now : clock [s]

    Attributes
    ----------
    is_waiting : returns True while a joint sample waits for a reading of another sensor
    used, left_out : number of joint samples that were used, and that were left out
    """

    def __init__(self, leave_out: bool, now: Callable[[], float] = time.perf_counter) -> None:
        self._leave_out = leave_out
        self._now = now
        self._waiting: deque[tuple[float, Use, bool, bytes]] = deque()
        self._sources: list[_Source] = []
        self.is_waiting: Callable[[], bool] = lambda: False
        self._waiting_joint_count = self._newest_ns = 0
        self._behind = False
        self._next_check = now() + _PERIOD
        self._used_before = self._left_out_before = self._complete = 0
        self._used_arrival = 0.0
        self._late = 0
        self.used = self.left_out = 0
        self._idle = 0.0
        self._waits_since: float | None = None

    def enqueue(self, use: Use, raw: bytes) -> None:
        """Put a message of another sensor into the queue; ``use`` is called with it, at once if none waits."""
        if self._waiting:
            self._waiting.append((self._now(), use, False, raw))
        else:
            use(raw, self._now())

    def enqueue_joints(self, use: Use, raw: bytes) -> None:
        """Put a joint state into the queue; ``use`` is called with it.

        The readings that it needs go before it into the queue, and nothing newer: after a pause, readings and joint
        samples advance together.
        """
        stamp_ns = stamp_of(raw) if len(raw) >= _STAMPED else None
        self._newest_ns = stamp_ns or 0
        self._fetch_others(stamp_ns)
        self._waiting.append((self._now(), use, True, raw))
        self._waiting_joint_count += 1

    def add_source(
        self, fetch: Callable[[], bytes | None], enqueue: Callable[[bytes], None], topic: str = ""
    ) -> Callable[[], None]:
        """Fetch the messages of a sensor when joint samples need them, and call ``enqueue`` with each.

        Returns
        -------
        Function that ends the fetching.
        """
        source = _Source(fetch, enqueue, topic)
        self._sources.append(source)
        return lambda: self._sources.remove(source)

    def run(self, executor: Executor, running: Running) -> None:
        """Fetch and use messages until the process shall end."""
        while running():
            for _ in range(_STRIDE):
                if not self._fetch(executor):
                    break
                self.use_until_estimate()

    def _fetch(self, executor: Executor) -> bool:
        """Wait for a message if there is none; true when there is one."""
        waiting, spin_once, now = self._waiting, executor.spin_once, self._now
        if not waiting:
            before = self._waits_since = now()
            spin_once(timeout_sec=_POLL if self.is_waiting() else IDLE)
            if not waiting:  # no new joint sample, so what has arrived is not ahead of any
                self._fetch_others()
            waited = (waiting[0][0] if waiting else now()) - before
            self._idle += waited if waited > _MIN_WAIT else 0.0
            self._waits_since = None
        if self._behind or now() >= self._next_check:
            known = 0
            while known < len(waiting) < _MAX_LENGTH:
                known = len(waiting)
                spin_once(timeout_sec=0.0)  # expensive when there is no message, hence not before every message
            self.check()
        return bool(waiting)

    def _fetch_others(self, stamp_ns: int | None = None) -> None:
        """Fetch what has arrived of the other sensors: up to the first stamp from this one on [ns]; None: all."""
        for source in self._sources:
            while stamp_ns is None or not stamp_ns <= source.newest_ns <= stamp_ns + _AHEAD:
                if (raw := source.fetch()) is None:
                    break
                source.newest_ns = stamp_of(raw) if len(raw) >= _STAMPED else 0
                source.count += 1
                source.enqueue(raw)

    def check(self) -> None:
        """Check whether the node keeps up, if the period is over; call it when all available messages are fetched."""
        if (now := self._now()) < self._next_check:
            return
        self._next_check = now + _PERIOD
        for source in self._sources:
            if source.newest_ns > source.checked_ns:
                period_ns = (source.newest_ns - source.checked_ns) / source.count
                source.lags_ns.append(self._newest_ns - source.newest_ns - period_ns)
            source.checked_ns, source.count = source.newest_ns, 0
        used, self._used_before = self.used - self._used_before, self.used
        left_out, self._left_out_before = self.left_out - self._left_out_before, self.left_out
        self._late = self._late + 1 if self._waiting_joint_count > _MAX_WAITING * used else 0
        self._complete = 0 if left_out else self._complete + 1
        self._behind = self._leave_out and (self.cannot_keep_up or (self._behind and self._complete < _CHECKS))

    def take_lags(self) -> dict[str, float]:
        """How far the stamps of each topic that delivers are behind those of the joint states on arrival, at least [s].

        The median since the previous call, less the period of the topic. A node that is late finds every reading in
        time, and so cannot see from its estimates that the stamps lag.
        """
        lags = {source.topic: 1e-9 * median(source.lags_ns) for source in self._sources if source.lags_ns}
        for source in self._sources:
            source.lags_ns.clear()
        return lags

    @property
    def idle(self) -> float:
        """Time spent waiting for messages until now [s]; a report of the node is made while it waits."""
        return self._idle + (self._now() - self._waits_since if self._waits_since is not None else 0.0)

    @property
    def cannot_keep_up(self) -> bool:
        """True while the node has been late for a second or longer."""
        return self._late >= _CHECKS

    def use_until_estimate(self) -> None:
        """Use messages until one leads to an estimate or none is left."""
        waiting = self._waiting
        while waiting:
            arrived, use, joints, raw = waiting.popleft()
            if joints:
                self._waiting_joint_count -= 1
                if self._is_left_out(arrived):
                    self.left_out += 1
                    continue
                self.used += 1
            if use(raw, arrived):
                return

    def use_all(self) -> None:
        """Use all messages that have arrived."""
        self._fetch_others()
        while self._waiting:
            self.use_until_estimate()

    def _is_left_out(self, arrived: float) -> bool:
        if self._behind and self._waiting_joint_count and arrived - self._used_arrival < _MAX_GAP:
            if self._now() - arrived > _PATIENCE:
                return True
        self._used_arrival = arrived
        return False


class InputTopic:
    """Gives the messages of one topic to the estimator, and its estimates to the node.

    subscription ─► enqueue ─► InputQueue ─► use: read, Estimator.add, publish

    Bad messages are counted, logged and skipped. Executor and queue may hold messages when the node leaves its state:
    they are dropped, because by then estimator and publishers may be gone.

    Parameters
    ----------
    name : of the topic
    read : makes a sample of a serialized message
    estimator : that uses the samples
    queue : in which the messages wait
    diagnostics : that count them
    joints : True for the joint states, whose messages wake the process
    publish : gets the estimates
    warn : logs a warning, with a key by which it is not repeated too often
    """

    def __init__(
        self,
        name: str,
        read: Callable[[bytes], Sample],
        estimator: Estimator,
        queue: InputQueue,
        diagnostics: NodeDiagnostics,
        joints: bool,
        publish: Callable[[FrictionEstimate], None],
        warn: Callable[[str, str], None],
    ) -> None:
        self._name, self._read, self._is_joint_topic = name, read, joints
        self._estimator: Estimator | None = estimator
        self._diagnostics, self._counters = diagnostics, diagnostics.input_counters(name)
        self._enqueue = queue.enqueue_joints if joints else queue.enqueue
        self._publish, self._warn = publish, warn

    def enqueue(self, raw: bytes) -> None:
        """Put a message into the queue."""
        self._counters.received += 1
        self._enqueue(self.use, raw)

    def use(self, raw: bytes, arrived: float) -> bool:
        """Give a message, arrived at this time [s], to the estimator; true when it led to an estimate."""
        if self._estimator is None:
            return False
        try:
            sample = self._read(raw)
            if self._is_joint_topic:
                self._diagnostics.arrived(sample.stamp_ns, arrived)
            before = time.perf_counter()
            estimates = self._estimator.add(sample)
            if estimates:
                self._diagnostics.stepped(time.perf_counter() - before)
        except InputError as error:
            self._counters.refused += 1
            self._counters.last_error = str(error)
            self._warn(self._name, str(error))
            return False
        for estimate in estimates:
            self._publish(estimate)
        return bool(estimates)

    def note_mismatch(self, event: Any) -> None:
        """Warn that messages of a publisher cannot arrive, because its quality of service does not fit."""
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        self._counters.mismatch = (
            f"a publisher offers another QoS ({policy}); set inputs_reliable to false, or publish it reliably"
        )
        self._warn(f"QoS of {self._name}", f"{self._name}: no message arrives: {self._counters.mismatch}")

    def end(self) -> None:
        """Ignore all further messages."""
        self._estimator = None
