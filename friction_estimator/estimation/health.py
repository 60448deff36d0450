"""Counters, flags, events and findings of an estimator since its start."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import compress
from typing import NamedTuple

import numpy as np

from friction_estimator.errors import choices
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import BoolArray

EVENTS_KEPT = 20
"""Number of newest events that :attr:`Health.events` holds."""
_PAUSE_NS = 5_000_000_000
"""A condition that pauses for longer than this makes a new event when it comes back [ns]."""
_RESTART_PAUSE = 1000
"""A restart fewer frames after another one of the same kind makes no new event: stamps that jump jump often."""
_MIN_PASSES = 2
"""A finding stays until its check has passed this many times since it failed. Single conclusions may be right by
chance while the sensor is wrong: some legs of a walk show little."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that went wrong with the input, or made the filters start anew."""

    # kind of event: `robot_model`, `repeated_stamp`, `repeated_positions`, `late_joint_state`,
    # `stray_joint_state`, `contradicting_positions`, `missing_effort`, `missing_velocity`, `gap`, `time_jump`,
    # `error_restart`, `tilt`, `ripple`, `sensor`, `mob_net_input`, `mob_net_rate` or `mob_net_sigma`
    code: str
    stamp_ns: int | None  # stamp of the joint sample at which it began [ns]; None before the first sample
    text: str  # what happened, and what was done about it

    def __str__(self) -> str:
        return self.text if self.stamp_ns is None else f"at {1e-9 * self.stamp_ns:.3f} s: {self.text}"


@dataclass(slots=True)
class Health:
    """Counters, flags and events of one :class:`~friction_estimator.estimation.estimator.Estimator`."""

    frames: int = 0  # joint samples that became an estimate
    late: int = 0  # joint samples dropped because their stamp was older than one already used
    stray: int = 0  # joint samples dropped because their stamp alone was far from those of the others
    repeated: int = 0  # joint samples dropped because their stamp, or all positions while the joints move, stood still
    # joint samples dropped because their positions contradict those before: of a second publisher
    contradicting: int = 0
    zeros: int = 0  # joint samples dropped because all positions, velocities and efforts are zero
    mixed: int = 0  # joint samples while velocities or efforts of two publishers came in turns
    without_effort: int = 0  # joint samples that carried no motor torques
    gaps: int = 0  # times the joint-state clock jumped forward by more than half a second
    time_jumps: int = 0  # times the clock jumped back and the filters restarted
    error_restarts: int = 0  # times a stage restarted because its result was not finite, or a computation failed
    # what is wrong with sensors now, one sentence each that begins with the topic and ends with what to do
    findings: tuple[str, ...] = ()
    sensors_wrong: bool = False  # True where the estimate does not account for all findings
    # joints that depend on sensors that are known to be wrong or silent, with the finding
    invalid_joints: dict[str, str] = field(default_factory=dict)
    # size of the innovations of the last second, in standard deviations, where they are inconsistent
    innovation_excess: float = 1.0
    # how far the stamps of a topic are behind those of the joint states, by topic [s]
    delays: dict[str, float] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))  # newest events, oldest first
    event_count: int = 0  # number of events since the start
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
        text = f"{stage} restarted: {type(error).__name__}: {error}"
        self.add_lasting_event("error_restart", stamp_ns, text, condition=stage)

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


class SensorFault(Enum):
    """What may be wrong with a sensor."""

    SILENCE = "silence"
    ZEROS = "zeros in place of readings"
    PUBLISHERS = "second publisher"
    MIXED = "readings of two publishers"
    MESSAGE_RATE = "rate"
    LAG = "lag"
    LATE = "late readings"
    PACKETS = "stamps in packets"
    LONG_PACKETS = "stamps in long packets"
    DELAY = "delay"
    TILT = "tilt"
    EFFORT_GAIN = "gain of effort"
    POSITION_OFFSET = "offset of position"
    STUCK_POSITION = "stuck position"
    STUCK_VELOCITY = "stuck velocity"
    STUCK_EFFORT = "stuck effort"
    STUCK_GYROSCOPE = "stuck angular velocity"
    STUCK_ACCELEROMETER = "stuck specific force"
    STUCK_WRENCH = "stuck wrench"
    VELOCITY_SIGN = "sign of velocity"
    VELOCITY_UNIT = "unit of velocity"
    ACCELEROMETER_UNIT = "unit of specific force"
    IMU_DIRECTION = "direction of specific force"
    HEADING = "heading of the IMU"
    GYROSCOPE_UNIT = "angular velocity"
    WRENCH_DIRECTION = "direction of wrench"
    WRENCH_OFFSET = "offset of wrench"
    WRENCH_POINT = "point of moments"
    WRENCH_UNIT = "unit of wrench"
    NO_WRENCH = "no wrench"
    EFFORT_SIGN = "sign of effort"
    EFFORT_UNIT = "unit of effort"
    EFFORT_FORCES = "forces that effort lacks"
    COMPENSATION = "compensation that does not act"


TIMING_FAULTS = frozenset(
    (
        SensorFault.SILENCE,
        SensorFault.ZEROS,
        SensorFault.PUBLISHERS,
        SensorFault.MESSAGE_RATE,
        SensorFault.LAG,
        SensorFault.LATE,
        SensorFault.LONG_PACKETS,
    )
)
"""Silent sensors, refused readings, wrong rates and stamps."""
CALIBRATED_FAULTS = frozenset(
    (
        SensorFault.DELAY,
        SensorFault.TILT,
        SensorFault.EFFORT_GAIN,
        SensorFault.POSITION_OFFSET,
        SensorFault.COMPENSATION,
        SensorFault.PACKETS,
    )
)
"""Errors that the estimate accounts for."""
TORQUE_FAULTS = frozenset(
    (SensorFault.STUCK_EFFORT, SensorFault.EFFORT_SIGN, SensorFault.EFFORT_UNIT, SensorFault.EFFORT_FORCES)
)
"""Wrong torques: no check of another sensor depends on them alone."""
HARMLESS_FAULTS = TIMING_FAULTS | CALIBRATED_FAULTS
"""Findings with which no reading that is used is wrong."""
_UNUSED = frozenset((SensorFault.SILENCE, SensorFault.LAG))
"""Findings with which a sensor has no reading that can be used: its joints lack it."""

JOINTS = "{joints}"
"""Stands in the text of a finding for the names of its joints."""
OUTCOME = "{outcome}"
"""Stands in the text of a finding for what the estimate makes of it."""


class Check(NamedTuple):
    """Result of one sensor check on one topic; with an empty ``text`` the sensor has passed."""

    # what was checked
    kind: SensorFault
    topic: str
    text: str  # finding; empty where the sensor is right
    joints: BoolArray | None = None  # (n,) joints that the finding names; None: it names none

    @staticmethod
    def corrected(kind: SensorFault, topic: str, what: str, remedy: str, joints: BoolArray | None = None) -> Check:
        """Finding about an error that the estimate corrects."""
        return Check(kind, topic, f"{topic}: the {what}. {OUTCOME}; {remedy}", joints)


@dataclass(slots=True)
class _Finding:
    """A check that has failed: how often it has passed since, its first text, and all joints since then (n,)."""

    passes: int
    text: str
    joints: BoolArray | None


class Findings:
    """Failed checks of the sensors, each until its check has been right twice.

    Parameters
    ----------
    health : whose findings, invalid joints and events are written
    robot : names and limbs
    foot_topics : in the order of the feet

    Attributes
    ----------
    current : by kind and topic
    wrong : those of readings that are used and wrong
    """

    def __init__(self, health: Health, robot: RobotModel, foot_topics: Sequence[str]) -> None:
        self._health, self._robot, self._foot_topics = health, robot, foot_topics
        self.current: dict[tuple[SensorFault, str], _Finding] = {}
        self.wrong: dict[tuple[SensorFault, str], _Finding] = {}

    def update(self, check: Check, stamp_ns: int) -> bool:
        """Begin, continue or end the finding of a check; True where it ends."""
        key = check.kind, check.topic
        finding = self.current.get(key)
        if not check.text:
            if finding is not None:
                finding.passes += 1
                if finding.passes == _MIN_PASSES:
                    del self.current[key]
                    return True
        elif finding is None:
            self.current[key] = finding = _Finding(0, check.text, check.joints)
            self._health.add_event("sensor", stamp_ns, self._sentence(finding))
        else:
            finding.passes = 0
            if finding.joints is not None and check.joints is not None:
                finding.joints = finding.joints | check.joints
        return False

    def publish(self, coupled: BoolArray) -> None:
        """Write findings and invalid joints; ``coupled`` (n, n): joints that move each other."""
        health, names = self._health, self._robot.joint_names
        health.findings = tuple(map(self._sentence, self.current.values()))
        health.sensors_wrong = any(kind not in CALIBRATED_FAULTS for kind, _ in self.current)
        self.wrong = {key: finding for key, finding in self.current.items() if key[0] not in HARMLESS_FAULTS}
        health.invalid_joints = {}
        for (kind, topic), finding in self.current.items():
            if kind in HARMLESS_FAULTS - _UNUSED:
                continue
            for name in compress(names, self._affected(topic, finding.joints, coupled)):
                health.invalid_joints.setdefault(name, self._sentence(finding))

    def is_wrong(self, topic: str, but: SensorFault | None = None) -> bool:
        """Whether readings of a topic are known to be wrong; faults of rates, torques and kind ``but`` do not count."""
        others = HARMLESS_FAULTS | TORQUE_FAULTS | {but}
        return any(kind not in others and of == topic for kind, of in self.current)

    def _sentence(self, finding: _Finding) -> str:
        """Text of a finding with the names of its joints, and whether the estimate accounts for it now."""
        excess = self._health.innovation_excess
        outcome = f"The innovations are still {excess:.1f} times too large, and sigma with them"
        text = finding.text.replace(OUTCOME, outcome if excess > 1.0 else "The estimate accounts for it")
        if finding.joints is None:
            return text
        return text.replace(JOINTS, choices(compress(self._robot.joint_names, finding.joints)))

    def _affected(self, topic: str, joints: BoolArray | None, coupled: BoolArray) -> BoolArray:
        """Joints (n,) whose friction depends on a sensor: those that the named ones move, of the foot's leg, or all."""
        if joints is not None:
            return np.asarray(coupled[joints].any(axis=0))
        limbs = [limb for of, limb in zip(self._foot_topics, self._robot.limb, strict=True) if of == topic]
        return np.asarray(limbs[0]) if limbs else np.ones(len(self._robot.joint_names), dtype=bool)
