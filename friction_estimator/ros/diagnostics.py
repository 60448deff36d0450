"""State of the estimator node as diagnostic messages: inputs, rates, latency, load, and problems of the estimates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from friction_estimator.estimation.compensation import FrictionCompensation
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.estimation.health import Health
from friction_estimator.estimation.validity import NO_PROBLEM, Reason, advice
from friction_estimator.kernels import compiler
from friction_estimator.ros.input_queue import InputQueue
from friction_estimator.ros.middleware import diagnostic_status
from friction_estimator.types import FrictionEstimate

_MAX_ARRIVALS = 5000  # arrival times that are kept of samples without an estimate
_LATE_SHARE = 0.01  # of the frames, above which samples that came too late are a problem
_LONGEST_LAG = 1.0  # of stamps that are compared; larger ones are those of another clock [s]
_SHORTEST_PERIOD = 1e-3  # of a report [s]
_CHEAP_OBSERVERS = ("fbse", "momentum")


class _Statistics(NamedTuple):
    """Statistics of some values; NaN when there are none."""

    min: float
    mean: float
    p50: float
    p99: float
    max: float

    def texts(self, label: str, *names: str) -> dict[str, object]:
        """Some of them, of times in seconds, under a label."""
        return {f"{label} {name}": f"{1e3 * getattr(self, name):.3f} ms" for name in names}


class RecentValues:
    """The newest values of a quantity that arrives at 1 kHz; adding a value costs one array write.

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

    def take(self) -> _Statistics:
        """Statistics of the newest ``size`` values since the previous call."""
        values = self._values[: min(self._count, self._size)]
        self._count = 0
        if not len(values):
            return _Statistics(*[math.nan] * len(_Statistics._fields))
        low, median, p99, high = np.quantile(values, (0.0, 0.5, 0.99, 1.0)).tolist()
        return _Statistics(low, float(values.mean()), median, p99, high)


@dataclass(slots=True)
class InputCounters:
    """Counters of the messages of one topic."""

    received: int = 0  # messages since the start
    refused: int = 0  # of these
    last_error: str = ""  # reason for which the newest refused message was refused
    mismatch: str = ""  # why messages of a publisher cannot arrive, and what to do; empty when they can


_OF_HEALTH = ("restarts", "repeated", "frames", "contradicting", "mixed", "without_effort", "late", "stray")
"""Counters of the estimator of which the increase is reported."""


class NodeDiagnostics:
    """Counts messages and estimates, and makes the statuses of ``/diagnostics``.

    Parameters
    ----------
    name : of the node, with which the name of every status begins
    queue : of the input messages
    estimator : on which to report
    publishers : names of the nodes that publish a topic
    """

    def __init__(
        self, name: str, queue: InputQueue, estimator: Estimator, publishers: Callable[[str], Sequence[str]]
    ) -> None:
        self._name, self._publishers = name, publishers
        self._queue = queue
        self._estimator = estimator
        self._inputs: dict[str, InputCounters] = {}
        self._arrivals: dict[int, float] = {}
        self._processing, self._steps, self._age = RecentValues(), RecentValues(), RecentValues()
        self._published = 0
        self._newest: FrictionEstimate | None = None
        self._before: dict[str, float] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a period now: what came before the node was activated belongs to no report."""
        self._increases()

    def input_counters(self, topic: str) -> InputCounters:
        """Counters of a topic, for its callback."""
        return self._inputs.setdefault(topic, InputCounters())

    def arrived(self, stamp_ns: int, time: float) -> None:
        """Note that a joint state with this stamp arrived at this time of ``time.perf_counter`` [s]."""
        self._arrivals[stamp_ns] = time

    def stepped(self, duration: float) -> None:
        """Note how long the estimator took for a sample that made estimates possible [s]."""
        self._steps.add(duration)

    def published(self, estimate: FrictionEstimate, now_ns: int) -> None:
        """Note that an estimate has been published; ``now_ns`` is the time of the node's clock."""
        self._published += 1
        self._newest = estimate
        arrival = self._arrivals.pop(estimate.stamp_ns, None)
        if arrival is not None:
            self._processing.add(time.perf_counter() - arrival)
        self._age.add(1e-9 * (now_ns - estimate.stamp_ns))

    def report(self) -> list[DiagnosticStatus]:
        """Statuses of the time since the previous call."""
        if len(self._arrivals) > _MAX_ARRIVALS:  # dropped samples get no estimate
            self._arrivals.clear()
        new, estimator = self._increases(), self._estimator
        refusals = {topic: text for topic, item in self._inputs.items() if (text := _refusal(topic, item, new))}
        statuses = [self._input(topic, item, new, refusals.get(topic, "")) for topic, item in self._inputs.items()]
        statuses += [self._load(new), self._sensors(new, refusals), self._estimates(new)]
        if estimator.config.has_friction:
            statuses.append(self._diagnosis())
        if estimator.compensation is not None:
            statuses.append(self._compensation(estimator.compensation))
        return statuses

    def _increases(self) -> dict[str, float]:
        """Increase of every counter, of the time and of the idle time [s] since the previous call."""
        queue = self._queue
        now = {name: float(getattr(self._estimator.health, name)) for name in _OF_HEALTH}
        now |= {"published": self._published, "used": queue.used, "left out": queue.left_out}
        now |= {"seconds": time.monotonic(), "idle": queue.idle}
        for topic, item in self._inputs.items():
            now |= {f"{topic} received": item.received, f"{topic} refused": item.refused}
        new = {name: count - self._before.get(name, 0.0) for name, count in now.items()}
        new["seconds"] = max(new["seconds"], _SHORTEST_PERIOD)
        self._before = now
        return new

    def _input(self, topic: str, item: InputCounters, new: Mapping[str, float], refusal: str) -> DiagnosticStatus:
        rate = new[f"{topic} received"] / new["seconds"]
        values: dict[str, object] = {
            "rate": f"{rate:.1f} Hz",
            "received": item.received,
            "refused": item.refused,
            "reason of the newest refusal": item.last_error or "none refused",
            "publishers": ", ".join(self._publishers(topic)) or "none",
        }
        label = f"input {topic}"
        if refusal:
            return self._status(label, DiagnosticStatus.ERROR, refusal, values)
        if rate == 0.0:
            message = "no message since the last report: " + (
                item.mismatch or "check that the driver runs and publishes on this topic"
            )
            return self._status(label, DiagnosticStatus.WARN, message, values)
        return self._status(label, DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _sensors(self, new: Mapping[str, float], refusals: Mapping[str, str]) -> DiagnosticStatus:
        """Problems of the sensor data, and an error where they leave no friction."""
        health, joints = self._estimator.health, self._estimator.config.output.joint_states_topic
        problems = [f"{topic}: {refusal.removeprefix(f'{topic}: ')}" for topic, refusal in refusals.items()]
        publishers = {topic: self._publishers(topic) for topic in self._inputs}
        problems += self._joint_state_problems(new, refusals, publishers.pop(joints, ()))
        problems += [
            f"{topic}: second publisher on {topic}: {', '.join(names)}: end all but one, or give them other topics; a "
            "killed node counts for some 20 s more"
            for topic, names in publishers.items()
            if len(names) > 1
        ]
        useless = any(new[f"{topic} received"] <= new[f"{topic} refused"] for topic in refusals)
        problems += health.findings
        if health.frames:
            problems += self._late_topics()
            useless = useless or bool(self._estimator.config.has_friction and new["without_effort"])
        level = (DiagnosticStatus.ERROR if useless else DiagnosticStatus.WARN) if problems else DiagnosticStatus.OK
        values = _sensor_values(health)
        return self._status("sensors", level, "; ".join(problems) or "data of all sensors", values)

    def _joint_state_problems(
        self, new: Mapping[str, float], refusals: Mapping[str, str], publishers: Sequence[str]
    ) -> list[str]:
        """What is wrong with the stamps, the order, the effort or the publishers of the joint states."""
        config, health = self._estimator.config, self._estimator.health
        started = health.frames > 0
        topic, problems = config.output.joint_states_topic, list[str]()
        restarts, repeated, frames, contradicting, mixed, without, late, stray = (
            round(new[name]) for name in _OF_HEALTH
        )
        if repeated > frames:
            problems.append(
                f"{topic}: {repeated} of {repeated + frames} joint states repeat the stamp or the positions of the "
                "one before and are not used: check that the driver sets the stamps and reads the encoders"
            )
        elif not (started or health.zeros or topic in refusals):
            problems.append(f"no joint state yet: check that {topic} is published")
        if len(publishers) > 1 and (repeated or contradicting or mixed):
            problems.append(f"{topic}: {len(publishers)} publishers: {', '.join(publishers)}")
        if not started:
            return problems
        if restarts:
            problems.append(
                f"{topic}: the filters restarted {restarts} times since the last report, because the stamps paused or "
                "jumped: check the clock of the driver, and the network"
            )
        if late > _LATE_SHARE * frames:
            problems.append(f"{topic}: {late} samples came too late to be used: raise synchronizer.max_wait")
        if stray > _LATE_SHARE * frames:
            problems.append(f"{topic}: the stamps of {stray} samples are far from the others: check the clock")
        if config.has_friction and without:
            problems.append(
                f"{topic}: {without} joint states without effort: friction is NaN then; publish the motor torques"
            )
        return problems

    def _late_topics(self) -> list[str]:
        """Topics whose stamps are too far behind those of the joint states, where no finding names the topic."""
        config, findings = self._estimator.config, self._estimator.health.findings
        joints = config.output.joint_states_topic
        return [
            f"{topic}: its stamps are at least {1e3 * lag:.1f} ms behind those of {joints} on arrival, too late for a "
            "node that keeps up: correct the stamps, or raise synchronizer.max_wait"
            for topic, lag in self._queue.take_lags().items()
            if config.synchronizer.max_wait < lag < _LONGEST_LAG and not any(topic in text for text in findings)
        ]

    def _estimates(self, new: Mapping[str, float]) -> DiagnosticStatus:
        rate, restarts = new["published"] / new["seconds"], round(new["restarts"])
        values: dict[str, object] = {"rate": f"{rate:.1f} Hz", "published": self._published}
        values |= self._processing.take().texts("processing", "p50", "p99")
        if not rate or self._newest is None:
            return self._status("estimates", DiagnosticStatus.WARN, "no estimate: see the inputs and sensors", values)
        friction = self._newest.friction
        if self._estimator.config.has_friction and (unknown := int((~np.isfinite(friction)).sum())):
            message = f"the friction of {unknown} of {friction.size} joints is NaN: see the status sensors"
            return self._status("estimates", DiagnosticStatus.ERROR, message, values)
        if restarts > 1:
            message = f"the filters restarted {restarts} times since the last report: see the status sensors"
            return self._status("estimates", DiagnosticStatus.WARN, message, values)
        return self._status("estimates", DiagnosticStatus.OK, f"{rate:.0f} Hz", values)

    def _load(self, new: Mapping[str, float]) -> DiagnosticStatus:
        """Busy time of the node in this period [s], its highest rate, joint samples left out, times of steps, ages."""
        config, queue, period = self._estimator.config, self._queue, new["seconds"]
        came = new.get(f"{config.output.joint_states_topic} received", 0.0)
        used, left_out = round(new["used"]), round(new["left out"])
        keeps_up = not left_out and not queue.cannot_keep_up
        busy = max(period - new["idle"], 1e-6) if keeps_up else period
        values: dict[str, object] = {
            "busy": f"{100.0 * min(busy / period, 1.0):.0f} %",
            "busy time per joint state": f"{1e3 * busy / used:.3f} ms" if used else "nan",
            "highest possible rate": f"{used / busy:.0f} Hz" if used else "nan",
            "joint states left out": queue.left_out,
            "numerical kernels": "compiled" if compiler.COMPILED else f"plain Python: {compiler.NOT_COMPILED}",
        }
        for label, recent in (("step time", self._steps), ("age", self._age)):
            values |= recent.take().texts(label, "min", "mean", "p99", "max")
        if keeps_up:
            return self._status("load", DiagnosticStatus.OK, f"{values['busy']} busy", values)
        rate = f"joint states arrive at {came / period:.0f} Hz, but this node can process only {used / busy:.0f} Hz"
        outcome = f"{left_out} of {used + left_out} were left out" if left_out else "estimates are late"
        remedy = "publish joint states at a lower rate"
        if config.has_friction and config.observer not in _CHEAP_OBSERVERS:
            remedy += f", or choose a cheaper observer (parameter observer: {', '.join(_CHEAP_OBSERVERS)})"
        return self._status("load", DiagnosticStatus.WARN, f"{rate}: {outcome}; {remedy}", values)

    def _diagnosis(self) -> DiagnosticStatus:
        """Joints whose friction should not be used now, with the reason and the remedy."""
        estimator = self._estimator
        diagnoses = estimator.diagnose()
        values = {f"valid {diagnosis.joint}": diagnosis.text or "yes" for diagnosis in diagnoses}
        values["identification"] = "frozen" if estimator.frozen else "running"
        if not estimator.health.frames:
            return self._status("friction diagnosis", DiagnosticStatus.STALE, "no estimate yet", values)
        is_new = all(set(one.kinds) <= {Reason.START} for one in diagnoses)  # every run begins so: no fault
        level = DiagnosticStatus.OK if is_new else DiagnosticStatus.WARN
        return self._status("friction diagnosis", level, "; ".join(advice(diagnoses)) or NO_PROBLEM, values)

    def _compensation(self, compensation: FrictionCompensation) -> DiagnosticStatus:
        joints = self._estimator.joint_names
        values = dict(zip(joints, compensation.states(self._estimator.invalid_reasons()), strict=True))
        if compensation.idle_reason:
            return self._status(
                "compensation", DiagnosticStatus.WARN, f"zero torque: {compensation.idle_reason}", values
            )
        message = f"{int(compensation.compensated.sum())} of {len(joints)} joints compensated now"
        if doubted := [joint for joint, valid in zip(joints, compensation.trusted.tolist(), strict=True) if not valid]:
            message += f"; the torque has faded out where there is a doubt: {', '.join(doubted)}"
            return self._status("compensation", DiagnosticStatus.WARN, message, {"gain": compensation.gain, **values})
        return self._status("compensation", DiagnosticStatus.OK, message, {"gain": compensation.gain, **values})

    def _status(self, label: str, level: bytes, message: str, values: Mapping[str, object]) -> DiagnosticStatus:
        return diagnostic_status(f"{self._name}: {label}", level, message, values)


def _refusal(topic: str, item: InputCounters, new: Mapping[str, float]) -> str:
    """Why messages were refused since the previous report; empty when none was."""
    received, refused = round(new[f"{topic} received"]), round(new[f"{topic} refused"])
    return f"{refused} of {max(received, refused)} messages refused: {item.last_error}" if refused else ""


def _sensor_values(health: Health) -> dict[str, object]:
    """Counters since the start, delays of the topics and the newest events."""
    first = health.event_count - len(health.events) + 1
    return {
        "late joint states dropped": health.late,
        "repeated samples dropped": health.repeated,
        "samples with stray stamps dropped": health.stray,
        "contradicting samples dropped": health.contradicting,
        "samples of zeros dropped": health.zeros,
        "gaps in time": health.gaps,
        "jumps back in time": health.time_jumps,
        "restarts after an error": health.error_restarts,
        "events": health.event_count,
        **{f"stamps of {topic}": f"{1e3 * delay:.1f} ms behind" for topic, delay in health.delays.items()},
        **{f"event {number}": event for number, event in enumerate(health.events, first)},
    }
