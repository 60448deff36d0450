"""Counters, flags and events of an estimator since its start, from which the node makes diagnostics."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

EVENTS_KEPT = 20
"""Number of newest events that :attr:`Health.events` holds."""
_PAUSE_NS = 5_000_000_000
"""A condition that pauses for longer than this makes a new event when it comes back [ns]."""
_RESTART_PAUSE = 1000
"""A restart fewer frames after another one of the same kind makes no new event: stamps that jump jump often."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that went wrong with the input, or made the filters start anew.

    Attributes
    ----------
    code : kind of event: ``robot_model``, ``repeated_stamp``, ``repeated_positions``, ``late_joint_state``,
        ``stray_joint_state``, ``contradicting_positions``, ``missing_effort``, ``missing_velocity``, ``gap``,
        ``time_jump``, ``error_restart``, ``tilt``, ``ripple`` or ``sensor``
    stamp_ns : stamp of the joint sample at which it began [ns]; None before the first sample
    text : what happened, and what was done about it
    """

    code: str
    stamp_ns: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.stamp_ns is None else f"at {1e-9 * self.stamp_ns:.3f} s: {self.text}"


@dataclass(slots=True)
class Health:
    """Counters, flags and events of one :class:`~friction_estimator.estimation.estimator.Estimator`.

    Attributes
    ----------
    frames : joint samples that became an estimate
    late : joint samples dropped because their stamp was older than one already used
    stray : joint samples dropped because their stamp alone was far from those of the others
    repeated : joint samples dropped because their stamp, or all positions while the joints move, stood still
    contradicting : joint samples dropped because their positions contradict those before: of a second publisher
    without_effort : joint samples that carried no motor torques
    gaps : times the joint-state clock jumped forward by more than half a second
    time_jumps : times the clock jumped back and the filters restarted
    error_restarts : times a stage restarted because its result was not finite, or a computation failed
    imu_stale, foot_stale : sensors that deliver nothing now
    findings : what is wrong with sensors now, one sentence each that begins with the topic and ends with what to do
    sensors_wrong : True where the estimate does not account for all findings
    doubts : joints that depend on readings that are known to be wrong, with the finding
    innovation_excess : size of the innovations of the last second, in standard deviations, where they are inconsistent
    delays : how far the stamps of a topic are behind those of the joint states, by topic [s]
    events : newest events, oldest first
    event_count : number of events since the start
    """

    frames: int = 0
    late: int = 0
    stray: int = 0
    repeated: int = 0
    contradicting: int = 0
    without_effort: int = 0
    gaps: int = 0
    time_jumps: int = 0
    error_restarts: int = 0
    imu_stale: bool = True
    foot_stale: dict[str, bool] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    sensors_wrong: bool = False
    doubts: dict[str, str] = field(default_factory=dict)
    innovation_excess: float = 1.0
    delays: dict[str, float] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    event_count: int = 0
    _newest_ns: dict[str, int] = field(default_factory=dict)
    _restart_frame: dict[str, int] = field(default_factory=dict)

    @property
    def restarts(self) -> int:
        """Number of restarts of the filters because of the stamps of the joint states."""
        return self.gaps + self.time_jumps

    def add_event(self, code: str, stamp_ns: int | None, text: str) -> None:
        """Keep an event."""
        self.events.append(Event(code, stamp_ns, text))
        self.event_count += 1

    def add_error_restart(self, stage: str, stamp_ns: int, error: Exception) -> None:
        """Count that a stage restarts after an error, and keep an event unless the stage does so again and again."""
        self.error_restarts += 1
        self.add_lasting_event("error_restart", stamp_ns, f"{stage} restarted: {error}", condition=stage)

    def add_lasting_event(self, code: str, stamp_ns: int, text: str, condition: str = "") -> None:
        """Keep an event when a condition begins; while it lasts, further calls add nothing.

        Parameters
        ----------
        code, stamp_ns, text : of the event
        condition : distinguishes conditions with the same code
        """
        condition += code
        newest = self._newest_ns.get(condition)
        self._newest_ns[condition] = stamp_ns
        if newest is None or not 0 <= stamp_ns - newest <= _PAUSE_NS:
            self.add_event(code, stamp_ns, text)

    def add_restart(self, code: str, stamp_ns: int, text: str) -> None:
        """Keep the event of a restart of the filters, unless another one with this code was just before."""
        if self.frames - self._restart_frame.get(code, -_RESTART_PAUSE) >= _RESTART_PAUSE:
            self.add_event(code, stamp_ns, f"{text}: filters restarted")
        self._restart_frame[code] = self.frames

    def events_since(self, count: int) -> tuple[Event, ...]:
        """Events after the first ``count``, oldest first, as far as they are kept."""
        new = min(self.event_count - count, len(self.events))
        return tuple(self.events)[len(self.events) - new :]
