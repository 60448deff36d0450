"""Faults one after the other in a stream of messages, and what an estimator made of each of them.

Stream ─► readings with faults ─► driver (estimator, replay, node) ─► estimates ─► score ─► Outcome ─► shortcomings
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.faults.matrix import Fault
from benchmarks.faults.readings import PERIOD, Reading, Walk
from friction_estimator.types import FloatArray, IntArray, JointSample

WINDOW = 0.5
"""Errors are averaged over this time [s]."""
_STEP = 1.5
"""Duration of a step of the gait [s]."""
AS_BEFORE = 1.3
"""The error is as before when its moving RMS is at most this multiple of its largest one before the fault."""
SIGMAS = 3.0
COVERAGE = 0.95
"""Share of the errors that must be within three sigma, unless a status warns."""
LEVELS = ("OK", "WARN", "ERROR", "STALE")


class Stream:
    """Messages of a walk, good and faulty, as long as they are wanted.

    Parameters
    ----------
    walk : that is repeated without end
    seed : of the faults
    start_ns : stamp of the first instant [ns]
    """

    def __init__(self, walk: Walk, seed: int, start_ns: int) -> None:
        self._walk, self._start_ns = walk, start_ns
        self._rng = np.random.default_rng(seed)
        self._offset_ns = 0
        self.index = 0

    def good(self, seconds: float) -> list[Reading]:
        """Messages of the next instants, without faults."""
        count = round(seconds / PERIOD)
        self.index += count
        readings = self._walk.readings(self.index - count, count, self._start_ns)
        return [reading.shifted(self._offset_ns) for reading in readings] if self._offset_ns else readings

    def faulty(self, fault: Fault, seconds: float, after: float) -> tuple[list[Reading], Window]:
        """Messages with a fault for some seconds, and good ones after it."""
        first = self.index
        during, good = self.good(seconds), self.good(after)
        end, last_ns = self.index - round(after / PERIOD), good[-1].stamp_ns
        during, good = fault.change(during, good, self._rng)
        self._offset_ns += good[-1].stamp_ns - last_ns
        readings = sorted([*during, *good], key=lambda reading: reading.arrival_ns)
        return readings, Window(fault, first, end, self.index)


@dataclass(frozen=True, slots=True)
class Window:
    """Instants of a fault.

    Attributes
    ----------
    fault : row of the table
    first, end : instants of the fault
    last : end of the good instants after it
    """

    fault: Fault
    first: int
    end: int
    last: int


@dataclass(slots=True)
class Estimates:
    """What a driver got.

    Attributes
    ----------
    stamps : of the estimates, in the order of their arrival [ns]
    friction, sigma : one array (n,) an estimate [N m]
    texts : (status, level, text) seen while the fault lasted; the level is empty outside of the node
    refused : messages that were refused, by their reason
    errors : unhandled exceptions, and exit codes that are not zero
    """

    stamps: list[int] = field(default_factory=list)
    friction: list[FloatArray] = field(default_factory=list)
    sigma: list[FloatArray] = field(default_factory=list)
    texts: set[tuple[str, str, str]] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        """Count a refused message."""
        self.refused[reason] = self.refused.get(reason, 0) + 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row as it was measured.

    Attributes
    ----------
    name, driver : row of the table, and what ran it
    estimates : number of estimates in the fault
    not_finite : share of the joints' estimates in the fault that are NaN or infinite, or whose sigma is
    error : RMS error in the fault [N m]
    ratio : of this error to that before the fault
    within : share of the errors in the fault and after it that are within three sigma
    recovery : good data until the error was as before [s]; NaN if it was not
    shown : status and text that showed the fault
    errors : unhandled exceptions, and whatever else no fault may cause
    shortcomings : expectations that were not met, in words
    """

    name: str
    driver: str
    estimates: int
    not_finite: float
    error: float
    ratio: float
    within: float
    recovery: float
    shown: str
    errors: tuple[str, ...] = ()
    shortcomings: tuple[str, ...] = ()

    def but(self, shortcomings: Sequence[str]) -> Outcome:
        """Copy with more shortcomings."""
        return replace(self, shortcomings=(*self.shortcomings, *shortcomings))


class Scorer:
    """Errors of estimates against the true friction."""

    def __init__(self) -> None:
        self.before = math.nan
        """Largest moving RMS error of good data [N m]."""

    def errors(self, readings: Sequence[Reading], estimates: Estimates) -> tuple[IntArray, FloatArray, FloatArray]:
        """Instants (m,), errors (m, n) and sigma (m, n) of the estimates that belong to these messages."""
        of = {reading.stamp_ns: reading for reading in readings if isinstance(reading.sample, JointSample)}
        rows = [row for row, stamp in enumerate(estimates.stamps) if stamp in of]
        measured = [of[estimates.stamps[row]] for row in rows]
        instants = np.array([reading.index for reading in measured], dtype=np.intp)
        n = readings[0].friction.size
        truth = np.array([reading.friction for reading in measured]).reshape(-1, n)
        friction = np.array([estimates.friction[row] for row in rows]).reshape(-1, n)
        return instants, friction - truth, np.array([estimates.sigma[row] for row in rows]).reshape(-1, n)

    def learn(self, readings: Sequence[Reading], estimates: Estimates) -> None:
        """Measure the error of good data, over the last step of the gait."""
        instants, errors, _ = self.errors(readings, estimates)
        late = errors[instants > instants[-1] - round(_STEP / PERIOD)]
        self.before = float(moving_rms(late).max())

    def outcome(self, window: Window, driver: str, readings: Sequence[Reading], estimates: Estimates) -> Outcome:
        """Score a fault, and compare it with its row of the table."""
        fault = window.fault
        instants, errors, sigma = self.errors(readings, estimates)
        during, after = (instants >= window.first) & (instants < window.end), instants >= window.end
        finite = np.isfinite(errors) & np.isfinite(sigma)
        error = _rms(errors[during][finite[during]])
        inside = (np.abs(errors) <= SIGMAS * sigma)[finite & (instants >= window.first)[:, None]]
        measured = Outcome(
            name=fault.name,
            driver=driver,
            estimates=int(during.sum()),
            not_finite=float(1.0 - finite[during].mean()) if during.any() else math.nan,
            error=error,
            ratio=error / self.before,
            within=float(inside.mean()) if inside.size else math.nan,
            recovery=self._recovery(window, instants[after], errors[after]),
            shown=_shown(fault, driver, estimates),
            errors=tuple(estimates.errors),
        )
        return _judged(fault, measured, bool(finite[after].all()))

    def _recovery(self, window: Window, instants: IntArray, errors: FloatArray) -> float:
        """Time after the fault until the moving RMS error stays as before [s]; NaN without an end."""
        count = round(WINDOW / PERIOD)
        if instants.size < count or instants[-1] < window.last - count or not np.isfinite(errors[-count:]).all():
            return math.nan
        rms = moving_rms(errors)
        bad = np.flatnonzero(~(rms <= AS_BEFORE * self.before))  # a window that begins here is not as before
        if not bad.size:
            return max(0.0, PERIOD * float(instants[0] - window.end - 1))
        if bad[-1] == rms.size - 1:
            return math.nan
        return PERIOD * float(instants[bad[-1] + 1] - window.end)


def moving_rms(errors: FloatArray) -> FloatArray:
    """RMS over all joints of errors (m, n) in all intervals of :data:`WINDOW`, by the first instant."""
    count = min(round(WINDOW / PERIOD), len(errors))
    total = np.concatenate([[0.0], np.cumsum(np.mean(errors**2, axis=1))])
    return np.asarray(np.sqrt((total[count:] - total[:-count]) / count))


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2))) if errors.size else math.nan


def _shown(fault: Fault, driver: str, estimates: Estimates) -> str:
    """Text that names the fault, empty when there is none."""
    found = [(status, level, text) for status, level, text in estimates.texts]
    found += [("refused", "ERROR", reason) for reason in estimates.refused]
    for status, level, text in sorted(found):
        in_words = all(word.lower() in text.lower() for word in fault.words)
        in_place = driver != "node" or (status == fault.status and LEVELS.index(level) >= LEVELS.index(fault.level))
        if fault.status and in_words and in_place:
            return text
    return ""


def _judged(fault: Fault, outcome: Outcome, finite_after: bool) -> Outcome:
    missed = list(outcome.errors)
    if fault.status and not outcome.shown:
        missed.append(f"`{fault.status}` does not name {', '.join(fault.words)}")
    if fault.friction == "estimated" and not outcome.not_finite <= 0.0:
        missed.append("no estimate" if not outcome.estimates else f"{100 * outcome.not_finite:.0f} % not finite")
    if fault.friction == "NaN" and outcome.not_finite < 1.0:
        missed.append("friction is not NaN")
    if fault.friction != "NaN" and outcome.ratio > fault.error:
        missed.append(f"the error is {outcome.ratio:.1f} times that before")
    if outcome.within < COVERAGE and not outcome.shown:
        missed.append(f"only {100 * outcome.within:.0f} % within three sigma, in silence")
    if not finite_after:
        missed.append("not finite after the fault")
    if not outcome.recovery <= fault.recovery:
        after = f"after {outcome.recovery:.1f} s" if math.isfinite(outcome.recovery) else "not"
        missed.append(f"recovered {after}")
    return outcome.but(missed)


Show = Callable[[Outcome], None]
"""Called with every outcome as soon as it is there."""
