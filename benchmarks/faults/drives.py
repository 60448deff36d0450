"""The walk in closed loop with drives that do not obey: the effort reports another torque than the one that acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.faults.matrix import ProcessFault, Wrong
from benchmarks.faults.readings import Walk
from friction_estimator.io.robot import load_robot
from friction_estimator.kernels.compiler import prepare
from friction_estimator.simulation import Simulator, make_noise, make_scenario
from friction_estimator.types import FloatArray, JointSample

Drive = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From the compensation that was sent: the torque that acts, and the one that the effort contains, (n,) [N m]."""
SECONDS = 15.0
"""Of a walk: drives that limit large torques show in a part of it only [s]."""
_END = 1.5
"""Time at the end, a step, in which the estimate must be right again [s]."""
_MAX_ERROR = 0.25
"""Largest RMS error there [N m]: about a fifth of the friction."""
_MAX_EXCESS = 0.3
"""Largest part by which a torque may be beyond the largest friction of its joint so far."""
_NAME = "friction_compensation"


@dataclass(frozen=True, slots=True)
class Loop:
    """One walk in closed loop.

    Attributes
    ----------
    excess : largest torque of a joint, over the largest friction of this joint until then, minus one
    error : RMS of the errors of friction at the end [N m]
    torque : RMS of the torques there over that of the friction
    findings : all of them at the end
    """

    excess: float
    error: float
    torque: float
    findings: tuple[str, ...]


def closed_loop(drive: Drive, gain: float = 0.8, seconds: float = SECONDS) -> Loop:
    """Walk with compensation from the start; the law is learned on the way."""
    robot = load_robot("suralp", {"compensation.enabled": True, "compensation.gain": gain})
    simulator = Simulator(robot.config, robot.urdf_xml, make_scenario("walk", seconds), make_noise("paper_std"))
    estimator = robot.estimator()
    prepare()
    sent, largest, excess = np.zeros(len(estimator.joint_names)), np.full(len(estimator.joint_names), 0.5), -1.0
    rows: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    while simulator.time < seconds:
        acts, reported = drive(sent)
        sample = simulator.step(acts)
        largest = np.maximum(largest, np.abs(sample.truth.friction))
        for reading in sample.readings:
            if isinstance(reading, JointSample):
                effort = reading.effort - acts + reported
                reading = JointSample(reading.stamp_ns, reading.position, reading.velocity, effort)
            for estimate in estimator.add(reading):
                sent = np.zeros_like(sent) if estimate.compensation is None else estimate.compensation
                if simulator.time > seconds - _END:
                    rows.append((estimate.friction - sample.truth.friction, sent, sample.truth.friction))
        excess = max(excess, float((np.abs(sent) / largest).max()) - 1.0)
    error, torque, friction = (float(np.sqrt(np.mean(np.square(values)))) for values in zip(*rows, strict=True))
    return Loop(excess, error, torque / friction, estimator.health.findings)


def judged(loop: Loop, obeys: bool) -> Wrong:
    """What is not as expected."""
    wrong = [] if loop.excess <= _MAX_EXCESS else [f"a torque is {1.0 + loop.excess:.1f} times the friction"]
    if loop.error > _MAX_ERROR:
        wrong.append(f"the error of friction is {loop.error:.2f} N m at the end")
    named = any(_NAME in text for text in loop.findings)
    if named == obeys:
        wrong.append("a drive that obeys is blamed" if obeys else "no finding names the torque that does not act")
    if obeys and loop.torque < 0.5:
        wrong.append(f"only {loop.torque:.0%} of the friction is compensated")
    return wrong


DRIVES: dict[str, tuple[str, Drive, bool]] = {
    "drives_obey": ("drives apply all of the compensation and report it", lambda sent: (sent, sent), True),
    "drives_ignore": ("drives report it and apply nothing", lambda sent: (0.0 * sent, sent), False),
    "drives_limit": ("drives report it and apply at most 1 N m", lambda sent: (np.clip(sent, -1.0, 1.0), sent), False),
    "drives_half": ("drives report it and apply half of it", lambda sent: (0.5 * sent, sent), False),
    "drives_silent": ("drives apply it and do not report it", lambda sent: (sent, 0.0 * sent), False),
}
"""What happens, the drive, and whether it obeys."""


def drive_faults() -> dict[str, ProcessFault]:
    """Rows of the table by name."""
    right = "no finding, most of the friction is compensated"
    found = "a finding names the joints, no torque beyond the friction, friction is right at the end"

    def run(drive: Drive, obeys: bool, gain: float, walk: Walk, folder: Path) -> Wrong:
        return judged(closed_loop(drive, gain), obeys)

    rows = [
        ProcessFault(
            f"{name}{suffix}", f"{what}, gain {gain:g}", right if obeys else found, partial(run, drive, obeys, gain)
        )
        for name, (what, drive, obeys) in DRIVES.items()
        for suffix, gain in (("", 0.8), ("_1", 1.0))
    ]
    return {row.name: row for row in rows}
