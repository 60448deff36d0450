"""The node's health as diagnostic messages: rates, latency, bad input, silent sensors, problems of the estimates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from friction_estimator import compiled
from friction_estimator.config import Config
from friction_estimator.estimation.compensation import FrictionCompensation
from friction_estimator.estimation.diagnosis import advice
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.ros.input_queue import InputQueue
from friction_estimator.ros.latency import RecentValues
from friction_estimator.types import FrictionEstimate

_FORGOTTEN_ARRIVALS = 5000
_CHEAP_OBSERVERS = ("fbse", "momentum")


@dataclass(slots=True)
class InputCounters:
    """What arrived on one topic.

    Attributes
    ----------
    received, refused : messages since the start
    last_error : why the newest refused message was refused
    received_before, refused_before : values at the report before
    """

    received: int = 0
    refused: int = 0
    last_error: str = ""
    received_before: int = 0
    refused_before: int = 0


class NodeDiagnostics:
    """Counts what the callbacks tell it, and turns it into statuses.

    Parameters
    ----------
    name : of the node, first word of every status
    queue : where the messages wait
    """

    def __init__(self, name: str, queue: InputQueue) -> None:
        self._name = name
        self._queue = queue
        self._joints = InputCounters()
        self._queue_before = (0, 0, 0.0)
        self._estimator: Estimator | None = None
        self._inputs: dict[str, InputCounters] = {}
        self._arrivals: dict[int, float] = {}
        self._processing = RecentValues()
        self._age = RecentValues()
        self._published = 0
        self._published_before = 0
        self._resets = 0
        self._reported = time.monotonic()

    def start(self, estimator: Estimator) -> None:
        """Report on this estimator from now on."""
        self._estimator = estimator

    def input_counters(self, topic: str, joints: bool = False) -> InputCounters:
        """Counters that the callback of a topic advances; ``joints``: these are the joint states."""
        counters = self._inputs.setdefault(topic, InputCounters())
        if joints:
            self._joints = counters
        return counters

    def arrived(self, stamp_ns: int, time: float) -> None:
        """A joint-state message with this stamp came at this time of ``time.perf_counter`` [s]."""
        self._arrivals[stamp_ns] = time

    def published(self, estimate: FrictionEstimate, now_ns: int) -> None:
        """An estimate has left; ``now_ns`` is the node's clock."""
        self._published += 1
        arrival = self._arrivals.pop(estimate.stamp_ns, None)
        if arrival is not None:
            self._processing.add(time.perf_counter() - arrival)
        self._age.add(1e-9 * (now_ns - estimate.stamp_ns))

    def failed(self) -> None:
        """The estimator had to restart after an error."""
        self._resets += 1

    def report(self) -> list[DiagnosticStatus]:
        """Statuses of the time since the call before."""
        now = time.monotonic()
        period, self._reported = max(now - self._reported, 1e-3), now
        if len(self._arrivals) > _FORGOTTEN_ARRIVALS:  # samples that were dropped never leave
            self._arrivals.clear()
        if self._estimator is None:
            return [self._status("estimates", DiagnosticStatus.WARN, "waiting for the URDF on robot_description", {})]
        load = self._load(period, self._estimator.config)  # before _input, which moves received_before
        statuses = [self._input(topic, item, period) for topic, item in self._inputs.items()]
        statuses.append(load)
        statuses.append(self._sensors(self._estimator))
        statuses.append(self._estimates(period))
        if self._estimator.config.has_friction:
            statuses.append(self._diagnosis(self._estimator))
        if self._estimator.compensation is not None:
            statuses.append(self._compensation(self._estimator.compensation, self._estimator.joint_names))
        return statuses

    def _input(self, topic: str, item: InputCounters, period: float) -> DiagnosticStatus:
        rate = (item.received - item.received_before) / period
        refused = item.refused - item.refused_before
        item.received_before, item.refused_before = item.received, item.refused
        values: dict[str, object] = {
            "rate": f"{rate:.1f} Hz",
            "received": item.received,
            "refused": item.refused,
            "last refused because": item.last_error or "none refused",
        }
        label = f"input {topic}"
        if refused:
            return self._status(label, DiagnosticStatus.ERROR, f"{refused} refused: {item.last_error}", values)
        if rate == 0.0:
            return self._status(label, DiagnosticStatus.WARN, "silent", values)
        return self._status(label, DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _sensors(self, estimator: Estimator) -> DiagnosticStatus:
        health = estimator.health
        if not health.frames:
            return self._status("sensors", DiagnosticStatus.WARN, "no joint state yet", {})
        problems = ["the IMU is silent"] if health.imu_stale and not estimator.config.robot.fixed_base else []
        problems += [f"foot sensor {foot!r} is silent" for foot, stale in health.foot_stale.items() if stale]
        problems += [
            f"foot sensor {foot!r} pulls the foot down: set feet.{foot}.flip" for foot in health.wrench_sign_suspect
        ]
        values: dict[str, object] = {
            "late samples dropped": health.late,
            "repeated samples dropped": health.repeated,
            "gaps in time": health.gaps,
            "jumps back in time": health.time_jumps,
            "restarts after an error": self._resets,
            "events": health.event_count,
        }
        first = health.event_count - len(health.events) + 1
        values |= {f"event {number}": event for number, event in enumerate(health.events, first)}
        level = DiagnosticStatus.WARN if problems else DiagnosticStatus.OK
        return self._status("sensors", level, "; ".join(problems) or "all sensors deliver", values)

    def _estimates(self, period: float) -> DiagnosticStatus:
        rate = (self._published - self._published_before) / period
        self._published_before = self._published
        values: dict[str, object] = {"rate": f"{rate:.1f} Hz", "published": self._published}
        for label, recent in (("processing", self._processing), ("age", self._age)):
            median, high = recent.take_quantiles(0.5, 0.99)
            values[f"{label} p50"] = f"{1e3 * median:.3f} ms"
            values[f"{label} p99"] = f"{1e3 * high:.3f} ms"
        if not rate:
            return self._status("estimates", DiagnosticStatus.WARN, "no estimate", values)
        return self._status("estimates", DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _load(self, period: float, config: Config) -> DiagnosticStatus:
        """How busy the node was in this period [s], which rate of joint states it can hold, and what it left out."""
        queue, before = self._queue, self._queue_before
        self._queue_before = queue.used, queue.left_out, queue.idle
        used, left_out, idle = (now - then for now, then in zip(self._queue_before, before, strict=True))
        came = self._joints.received - self._joints.received_before
        keeps_up = not left_out and not queue.cannot_keep_up
        busy = max(period - idle, 1e-6) if keeps_up else period
        values: dict[str, object] = {
            "busy": f"{100.0 * min(busy / period, 1.0):.0f} %",
            "busy time per joint state": f"{1e3 * busy / used:.3f} ms" if used else "nan",
            "rate it can hold": f"{used / busy:.0f} Hz" if used else "nan",
            "joint states left out": queue.left_out,
            "numerical kernels": "compiled" if compiled.COMPILED else f"plain Python: {compiled.NOT_COMPILED}",
        }
        if keeps_up:
            return self._status("load", DiagnosticStatus.OK, f"{values['busy']} busy", values)
        rate = f"joint states come at {came / period:.0f} Hz, and this node can hold {used / busy:.0f} Hz"
        outcome = (
            f"{left_out} of {used + left_out} were left out, the newest are used" if left_out else "estimates are late"
        )
        remedy = "send joint states at a lower rate"
        if config.has_friction and config.observer not in _CHEAP_OBSERVERS:
            remedy += f", or choose a cheaper observer (parameter observer: {', '.join(_CHEAP_OBSERVERS)})"
        return self._status("load", DiagnosticStatus.WARN, f"{rate}: {outcome}; {remedy}", values)

    def _diagnosis(self, estimator: Estimator) -> DiagnosticStatus:
        """Which joints should not be trusted, why, and what to do about it."""
        diagnoses = estimator.diagnose()
        values = {diagnosis.joint: str(diagnosis) for diagnosis in diagnoses}
        values["identification"] = "frozen" if estimator.frozen else "running"
        if problems := advice(diagnoses):
            return self._status("friction diagnosis", DiagnosticStatus.WARN, "; ".join(problems), values)
        if not estimator.health.frames:
            return self._status("friction diagnosis", DiagnosticStatus.STALE, "no estimate", values)
        return self._status("friction diagnosis", DiagnosticStatus.OK, "no problem found", values)

    def _compensation(self, compensation: FrictionCompensation, joints: Sequence[str]) -> DiagnosticStatus:
        values = {
            joint: "compensated" if compensated else "at rest, or its law is not known well enough"
            for joint, compensated in zip(joints, compensation.compensated.tolist(), strict=True)
        }
        if compensation.idle:
            return self._status("compensation", DiagnosticStatus.WARN, f"zero torque: {compensation.idle}", values)
        message = f"{int(compensation.compensated.sum())} of {len(joints)} joints compensated now"
        return self._status("compensation", DiagnosticStatus.OK, message, {"gain": compensation.gain, **values})

    def _status(self, label: str, level: bytes, message: str, values: Mapping[str, object]) -> DiagnosticStatus:
        pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        return DiagnosticStatus(
            name=f"{self._name}: {label}", level=level, message=message, hardware_id="friction_estimator", values=pairs
        )
