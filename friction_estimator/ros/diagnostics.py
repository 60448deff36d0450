"""State of the estimator node as diagnostic messages: inputs, rates, latency, load, and problems of the estimates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from friction_estimator import compiled
from friction_estimator.config import Config
from friction_estimator.estimation.compensation import FrictionCompensation
from friction_estimator.estimation.diagnosis import advice
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.ros.input_queue import InputQueue
from friction_estimator.ros.middleware import diagnostic_status
from friction_estimator.types import FrictionEstimate

_MAX_ARRIVALS = 5000  # arrival times that are kept of samples without an estimate
_CHEAP_OBSERVERS = ("fbse", "momentum")


class RecentValues:
    """The newest values of a quantity that arrives at 1 kHz, for quantiles; adding a value costs one array write.

    Parameters
    ----------
    size : number of values that are kept
    """

    def __init__(self, size: int = 4096) -> None:
        self._values = np.zeros(size)
        self._size = size
        self._count = 0

    def add(self, value: float) -> None:
        """Add one value."""
        self._values[self._count % self._size] = value
        self._count += 1

    def take_quantiles(self, *levels: float) -> tuple[float, ...]:
        """Quantiles of the newest ``size`` values since the previous call, NaN when there are none."""
        values = self._values[: min(self._count, self._size)]
        self._count = 0
        if not len(values):
            return (float("nan"),) * len(levels)
        return tuple(float(value) for value in np.quantile(values, levels))


@dataclass(slots=True)
class InputCounters:
    """Messages of one topic.

    Attributes
    ----------
    received, refused : number of messages since the start
    last_error : reason for which the newest refused message was refused
    received_before, refused_before : values at the previous report
    """

    received: int = 0
    refused: int = 0
    last_error: str = ""
    received_before: int = 0
    refused_before: int = 0


class NodeDiagnostics:
    """Counts messages and estimates, and makes the statuses of ``/diagnostics``.

    Parameters
    ----------
    name : of the node, with which the name of every status begins
    queue : of the input messages
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
        """Counters of a topic, for its callback; ``joints``: True for the joint states."""
        counters = self._inputs.setdefault(topic, InputCounters())
        if joints:
            self._joints = counters
        return counters

    def arrived(self, stamp_ns: int, time: float) -> None:
        """Note that a joint state with this stamp arrived at this time of ``time.perf_counter`` [s]."""
        self._arrivals[stamp_ns] = time

    def published(self, estimate: FrictionEstimate, now_ns: int) -> None:
        """Note that an estimate has been published; ``now_ns`` is the time of the node's clock."""
        self._published += 1
        arrival = self._arrivals.pop(estimate.stamp_ns, None)
        if arrival is not None:
            self._processing.add(time.perf_counter() - arrival)
        self._age.add(1e-9 * (now_ns - estimate.stamp_ns))

    def failed(self) -> None:
        """Note that the filters restarted after an error."""
        self._resets += 1

    def report(self) -> list[DiagnosticStatus]:
        """Statuses of the time since the previous call."""
        now = time.monotonic()
        period, self._reported = max(now - self._reported, 1e-3), now
        if len(self._arrivals) > _MAX_ARRIVALS:  # dropped samples get no estimate
            self._arrivals.clear()
        if self._estimator is None:
            return [self._status("estimates", DiagnosticStatus.WARN, "waiting for the URDF on robot_description", {})]
        load = self._load(period, self._estimator.config)  # before _input, which changes received_before
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
            "reason of the newest refusal": item.last_error or "none refused",
        }
        label = f"input {topic}"
        if refused:
            message = f"{refused} messages refused: {item.last_error}"
            return self._status(label, DiagnosticStatus.ERROR, message, values)
        if rate == 0.0:
            message = "no message since the last report: check that the driver runs and publishes on this topic"
            return self._status(label, DiagnosticStatus.WARN, message, values)
        return self._status(label, DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _sensors(self, estimator: Estimator) -> DiagnosticStatus:
        health, config = estimator.health, estimator.config
        if not health.frames:
            message = f"no joint state yet: check that {config.output.joint_states_topic} is published"
            return self._status("sensors", DiagnosticStatus.WARN, message, {})
        topics = {foot.name: foot.wrench_topic for foot in config.feet}
        problems = []
        if health.imu_stale and not config.robot.fixed_base:
            problems.append(f"no data of the IMU: check that {config.imu.topic} is published")
        problems += [
            f"no data of the foot sensor {foot!r}: check that {topics[foot]} is published"
            for foot, stale in health.foot_stale.items()
            if stale
        ]
        problems += [
            f"the force of the foot sensor {foot!r} points down: set feet.{foot}.flip"
            for foot in health.wrench_sign_suspect
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
        return self._status("sensors", level, "; ".join(problems) or "data of all sensors", values)

    def _estimates(self, period: float) -> DiagnosticStatus:
        rate = (self._published - self._published_before) / period
        self._published_before = self._published
        values: dict[str, object] = {"rate": f"{rate:.1f} Hz", "published": self._published}
        for label, recent in (("processing", self._processing), ("age", self._age)):
            median, high = recent.take_quantiles(0.5, 0.99)
            values[f"{label} p50"] = f"{1e3 * median:.3f} ms"
            values[f"{label} p99"] = f"{1e3 * high:.3f} ms"
        if not rate:
            return self._status("estimates", DiagnosticStatus.WARN, "no estimate: see the inputs and sensors", values)
        return self._status("estimates", DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _load(self, period: float, config: Config) -> DiagnosticStatus:
        """Busy time of the node in this period [s], highest rate that it can process, and joint samples it left out."""
        queue, before = self._queue, self._queue_before
        self._queue_before = queue.used, queue.left_out, queue.idle
        used, left_out, idle = (now - then for now, then in zip(self._queue_before, before, strict=True))
        came = self._joints.received - self._joints.received_before
        keeps_up = not left_out and not queue.cannot_keep_up
        busy = max(period - idle, 1e-6) if keeps_up else period
        values: dict[str, object] = {
            "busy": f"{100.0 * min(busy / period, 1.0):.0f} %",
            "busy time per joint state": f"{1e3 * busy / used:.3f} ms" if used else "nan",
            "highest possible rate": f"{used / busy:.0f} Hz" if used else "nan",
            "joint states left out": queue.left_out,
            "numerical kernels": "compiled" if compiled.COMPILED else f"plain Python: {compiled.NOT_COMPILED}",
        }
        if keeps_up:
            return self._status("load", DiagnosticStatus.OK, f"{values['busy']} busy", values)
        rate = f"joint states arrive at {came / period:.0f} Hz, but this node can process only {used / busy:.0f} Hz"
        outcome = f"{left_out} of {used + left_out} were left out" if left_out else "estimates are late"
        remedy = "publish joint states at a lower rate"
        if config.has_friction and config.observer not in _CHEAP_OBSERVERS:
            remedy += f", or choose a cheaper observer (parameter observer: {', '.join(_CHEAP_OBSERVERS)})"
        return self._status("load", DiagnosticStatus.WARN, f"{rate}: {outcome}; {remedy}", values)

    def _diagnosis(self, estimator: Estimator) -> DiagnosticStatus:
        """Joints whose estimates have a problem, with the reason and the remedy."""
        diagnoses = estimator.diagnose()
        values = {diagnosis.joint: str(diagnosis) for diagnosis in diagnoses}
        values["identification"] = "frozen" if estimator.frozen else "running"
        if problems := advice(diagnoses):
            return self._status("friction diagnosis", DiagnosticStatus.WARN, "; ".join(problems), values)
        if not estimator.health.frames:
            return self._status("friction diagnosis", DiagnosticStatus.STALE, "no estimate yet", values)
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
        return diagnostic_status(f"{self._name}: {label}", level, message, values)
