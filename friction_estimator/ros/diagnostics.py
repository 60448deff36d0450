"""The node's health as diagnostic messages: rates, latency, bad input, silent sensors, quality of the estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from friction_estimator.core.health import Health
from friction_estimator.ros.latency import RecentValues
from friction_estimator.ros.estimate_quality import EstimateQuality

_EXCITED = 0.02
"""A joint slower than this [rad/s] teaches nothing about its friction."""

_SUSPECT_ACTIVE = 0.3
"""Part of the samples with driving friction above which the torque, its sign or the model must be wrong."""


@dataclass(slots=True)
class InputCounters:
    """What arrived on one topic.

    Attributes
    ----------
    received, refused : messages since the start
    last_error : why the newest refused message was refused
    refused_before : value of ``refused`` at the report before
    received_before : value of ``received`` at the report before
    """

    received: int = 0
    refused: int = 0
    last_error: str = ""
    refused_before: int = 0
    received_before: int = 0


@dataclass(slots=True)
class NodeCounters:
    """All that the callbacks count for the next report.

    Attributes
    ----------
    inputs : one entry a topic
    published : estimates since the start
    published_before : value at the report before
    processing : arrival of a joint-state message to its estimate being published [s]
    age : header stamp to its estimate being published, by the node's clock [s]
    """

    inputs: dict[str, InputCounters] = field(default_factory=dict)
    published: int = 0
    published_before: int = 0
    processing: RecentValues = field(default_factory=RecentValues)
    age: RecentValues = field(default_factory=RecentValues)


def input_statuses(name: str, counters: NodeCounters, health: Health, period: float) -> list[DiagnosticStatus]:
    """One status for each topic: its rate, and the newest reason for which messages were refused."""
    statuses = []
    for topic, item in counters.inputs.items():
        rate = (item.received - item.received_before) / period
        refused = item.refused - item.refused_before
        if refused:
            level, message = DiagnosticStatus.ERROR, f"{refused} messages refused: {item.last_error}"
        elif rate == 0.0:
            level, message = DiagnosticStatus.WARN, "silent"
        else:
            level, message = DiagnosticStatus.OK, f"{rate:.0f} Hz"
        values = {"rate": f"{rate:.1f} Hz", "received": item.received, "refused": item.refused}
        if item.last_error:
            values["last refused because"] = item.last_error
        statuses.append(_status(f"{name}: input {topic}", level, message, values))
        item.refused_before, item.received_before = item.refused, item.received
    return statuses


def sensor_status(name: str, health: Health) -> DiagnosticStatus:
    """Which sensors the estimator does without, whose sign looks wrong, and what time did."""
    problems = []
    if health.imu_stale:
        problems.append("the IMU is silent")
    problems += [f"foot sensor {foot!r} is silent" for foot, stale in health.foot_stale.items() if stale]
    problems += [
        f"foot sensor {foot!r} pulls the foot down: set feet.{foot}.flip" for foot in health.wrench_sign_suspect
    ]
    level = DiagnosticStatus.WARN if problems else DiagnosticStatus.OK
    values = {
        "late samples dropped": health.late,
        "repeated samples dropped": health.repeated,
        "gaps in time": health.gaps,
        "jumps back in time": health.time_jumps,
        "newest time event": health.last_event or "none",
    }
    return _status(f"{name}: sensors", level, "; ".join(problems) or "all sensors deliver", values)


def estimate_status(name: str, counters: NodeCounters, health: Health, period: float) -> DiagnosticStatus:
    """Rate and latency of the estimates."""
    rate = (counters.published - counters.published_before) / period
    counters.published_before = counters.published
    values: dict[str, object] = {"rate": f"{rate:.1f} Hz", "published": counters.published}
    for label, recent in (("processing", counters.processing), ("age", counters.age)):
        median, high = recent.take_quantiles(0.5, 0.99)
        values[f"{label} p50"] = f"{1e3 * median:.2f} ms"
        values[f"{label} p99"] = f"{1e3 * high:.2f} ms"
    level = DiagnosticStatus.OK if rate else DiagnosticStatus.WARN
    return _status(f"{name}: estimates", level, f"{rate:.0f} Hz" if rate else "no estimate", values)


def quality_status(name: str, joints: Sequence[str], quality: EstimateQuality | None, frozen: bool) -> DiagnosticStatus:
    """Excitation, passivity and drift, joint by joint."""
    label = f"{name}: friction"
    if quality is None:
        return _status(label, DiagnosticStatus.WARN, "no estimate", {})
    values: dict[str, object] = {"identification": "frozen" if frozen else "running"}
    for i, joint in enumerate(joints):
        values[joint] = (
            f"rms velocity {quality.rms_velocity[i]:.3f} rad/s, driving {100.0 * quality.active[i]:.0f} %, "
            f"drift of F_c {quality.coulomb_drift[i]:+.3f} N m"
        )
    active = [joint for i, joint in enumerate(joints) if quality.active[i] > _SUSPECT_ACTIVE]
    if active:
        reason = "friction drives instead of braking (torque sign or model?): " + ", ".join(active)
        return _status(label, DiagnosticStatus.WARN, reason, values)
    excited = int((quality.rms_velocity > _EXCITED).sum())
    return _status(label, DiagnosticStatus.OK, f"passive; {excited} of {len(joints)} joints move enough", values)


def _status(name: str, level: bytes, message: str, values: dict[str, object]) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(name=name, level=level, message=message, hardware_id="friction_estimator", values=pairs)
