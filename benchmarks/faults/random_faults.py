"""Random faults through one live node for a long time: nothing may be lost, and the node must end with exit code 0."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from std_srvs.srv import SetBool, Trigger

from benchmarks.faults.live import NodeError
from benchmarks.faults.matrix import RECOVERY, Fault
from benchmarks.faults.node import LiveRun
from benchmarks.faults.readings import PERIOD, Reading, Walk
from benchmarks.faults.runs import AS_BEFORE, moving_rms
from friction_estimator.errors import ConfigError
from friction_estimator.io.parameters import load_parameters
from friction_estimator.types import JointSample

_BEFORE = 9.0
"""Good data before the first fault [s]."""
_GOOD = 3.0
"""Good data between two faults [s]."""
_LONGEST = 3.0
"""Duration of a fault [s]."""
_PATIENCE = 20
"""Pieces of good data after a fault for which the error may stay larger than before."""
_SETTLED = 0.5
"""Good data after a fault from which on every joint state must get an estimate [s]."""
_WARM = 60.0
"""Time after which the memory counts [s]."""
_STOPPED = 0.3
"""Time for which the process is stopped [s]."""


@dataclass(slots=True)
class RandomReport:
    """What was measured.

    Attributes
    ----------
    seconds : real time
    faults, services : number of random faults, and of service calls and stops of the process between them
    joint_states : joint states of good data, from half a second after each fault on
    lost : those without an estimate
    not_finite : good joint states after which the friction or its sigma was not finite
    recoveries : fault, and good data after it until the error was as before; NaN: not within a minute [s]
    failures : unhandled errors, compensation beyond its limit, failed services, exit codes that are not zero
    nodes : number of nodes; it is one when nothing failed
    memory : resident memory of the node after a minute and at the end [MiB]
    error : largest moving RMS error at the start and at the end [N m]
    """

    seconds: float = 0.0
    faults: int = 0
    services: int = 0
    joint_states: int = 0
    lost: int = 0
    not_finite: int = 0
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    nodes: int = 0
    memory: tuple[float, float] = (math.nan, math.nan)
    error: tuple[float, float] = (math.nan, math.nan)

    def rows(self) -> list[tuple[str, str]]:
        """Figures as rows of a table."""
        times = np.array([seconds for _, seconds in self.recoveries] or [math.nan])
        slow = sorted({name for name, seconds in self.recoveries if not seconds <= RECOVERY})
        return [
            ("duration", f"{self.seconds:.0f} s"),
            ("random faults, 0.2 to 3 s each", f"{self.faults}"),
            ("resets, saves, freezes and stops of the process between them", f"{self.services}"),
            ("joint states of good data, without the first half second after a fault", f"{self.joint_states:,}"),
            ("of these without an estimate", f"{self.lost}"),
            ("of these with a friction or sigma that is not finite", f"{self.not_finite}"),
            (
                "good data until the error is as before: median, 95 %, longest",
                " / ".join(
                    f"{value:.2f} s"
                    for value in np.quantile(np.nan_to_num(times, nan=np.inf), (0.5, 0.95, 1.0), method="higher")
                ),
            ),
            (
                f"faults after which that took longer than {RECOVERY:g} s",
                f"{int((~(times <= RECOVERY)).sum())} ({', '.join(slow) or 'none'})",
            ),
            (
                "largest moving RMS error of good data: start, end",
                " / ".join(f"{value:.3f} N m" for value in self.error),
            ),
            ("memory of the node: after a minute, at the end", " / ".join(f"{value:.1f} MiB" for value in self.memory)),
            ("nodes started (1: none failed)", f"{self.nodes}"),
            ("failures", "; ".join(self.failures) or "none; exit code 0"),
        ]


class RandomFaults:
    """Runs random faults.

    Parameters
    ----------
    walk : of the robot
    faults : to choose from
    folder : for logs
    seed : of choice, durations and faults
    show : called with a line of text after each fault
    """

    def __init__(
        self, walk: Walk, faults: Sequence[Fault], folder: Path, seed: int, show: Callable[[str], None]
    ) -> None:
        self._walk, self._faults, self._folder, self._show = walk, faults, folder, show
        self._rng = np.random.default_rng(seed)
        self.report = RandomReport()

    def run(self, seconds: float) -> RandomReport:
        """Go on for this real time [s]; a node that has failed is replaced by a new one."""
        started, report = time.monotonic(), self.report
        while (left := seconds - (time.monotonic() - started)) > 0.0:
            live = LiveRun(self._walk, self._folder, _BEFORE, int(self._rng.integers(2**31)))
            report.nodes += 1
            try:
                self._with(live, time.monotonic() + left)
            except NodeError as error:
                report.failures.append(str(error))
            finally:
                live.close()
            report.seconds = time.monotonic() - started
        return report

    def _with(self, live: LiveRun, end: float) -> None:
        """Faults in one node until this time of ``time.monotonic``, or until it ends."""
        report = self.report
        live.start()
        warm, memory, healthy = time.monotonic() + _WARM, math.nan, True
        while time.monotonic() < end and healthy:
            fault = self._faults[self._rng.integers(len(self._faults))]
            seconds = float(self._rng.uniform(0.2, _LONGEST))
            healthy = self._fault(live, fault, round(seconds, 3))
            if self._rng.random() < 0.15:
                self._interfere(live)
            if math.isnan(memory) and time.monotonic() > warm:
                memory = live.process.memory
        if healthy:
            last = self._good(live)
            report.memory, report.error = (memory, live.process.memory), (live.scorer.before, last)
        report.failures += [f"at the end: {wrong}" for wrong in live.end()]
        try:
            load_parameters(live.saved)
        except ConfigError as error:
            report.failures.append(str(error))

    def _fault(self, live: LiveRun, fault: Fault, seconds: float) -> bool:
        """One fault; whether the node still runs."""
        report = self.report
        outcome = live.run(fault, seconds, _GOOD)
        report.faults += 1
        self._count(live, [one for one in live.readings if one.index >= live.window.end + _SETTLED / PERIOD])
        recovery, pieces = outcome.recovery, 0
        while not math.isfinite(recovery) and pieces < _PATIENCE:
            pieces += 1
            if self._good(live) <= AS_BEFORE * live.scorer.before:
                recovery = _GOOD * pieces
        report.recoveries.append((fault.name, recovery))
        ended = live.process.process.poll()
        if ended is not None:
            report.failures.append(f"{fault.name} for {seconds:g} s: the node ended with exit code {ended}")
        report.failures += outcome.errors
        self._show(
            f"{report.faults:5d} {fault.name:20s} {seconds:.2f} s  recovery {recovery:5.2f} s  lost {report.lost}  "
            f"not finite {report.not_finite}  {live.process.memory:.1f} MiB  failures {len(report.failures)}"
        )
        return ended is None

    def _good(self, live: LiveRun) -> float:
        """Good data; the largest moving RMS error [N m]."""
        live.robot.clear()
        readings = live.stream.good(_GOOD)
        live.robot.send(readings)
        live.robot.finish(readings)
        errors = self._count(live, readings)
        return float(moving_rms(errors).max()) if len(errors) else math.nan

    def _count(self, live: LiveRun, readings: Sequence[Reading]) -> np.ndarray:
        """Count joint states of good data, and those without an estimate; the errors (m, n) of the others."""
        _, errors, sigma = live.scorer.errors(readings, live.robot.estimates(0.0, 0.0))
        stamps = {one.stamp_ns for one in readings if isinstance(one.sample, JointSample)}
        self.report.joint_states += len(stamps)
        self.report.lost += max(0, len(stamps) - len(errors))
        self.report.not_finite += int((~(np.isfinite(errors) & np.isfinite(sigma)).all(axis=1)).sum())
        return errors

    def _interfere(self, live: LiveRun) -> None:
        """Call a service, or stop the process for a moment."""
        self.report.services += 1
        choice = self._rng.integers(4)
        if choice == 0:
            live.robot.call(Trigger, "reset")
        elif choice == 1 and not live.robot.call(Trigger, "save_parameters").success:
            self.report.failures.append("save_parameters failed")
        elif choice == 2:
            live.robot.call(SetBool, "freeze", SetBool.Request(data=True))
            self._good(live)
            live.robot.call(SetBool, "freeze", SetBool.Request(data=False))
        elif choice == 3:
            live.process.send(signal.SIGSTOP)
            time.sleep(_STOPPED)
            live.process.send(signal.SIGCONT)
        self._good(live)
