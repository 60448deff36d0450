"""Rows of the table of speeds: names, measurement and figures."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.speed.yardsticks import Walk, simulate
from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.kernels.compiler import COMPILED
from friction_estimator.ros.processes import core_count

Progress = Callable[[float, float], None]
"""Called repeatedly with the completed and the whole amount of work."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the benchmark.

    Attributes
    ----------
    function : ``module.function`` of this folder; the function takes a :class:`Run` and a progress callback
    description : what the row measures
    by_default : False for rows that run only when they are named
    """

    function: str
    description: str
    by_default: bool = True


ROWS: Mapping[str, Row] = {
    "calls": Row("steps.calls", "Python calls and kernel calls of a sample, from four raw samples to the estimate"),
    "kalman": Row("steps.kalman", "step of the observer kalman, 12 joints, against the floor; its p99"),
    "observers": Row("steps.observers", "steps of the observers fbse and momentum against the floor"),
    "joints": Row("steps.joints", "step of kalman with 29 joints (Unitree G1) against 12 joints"),
    "samples": Row("steps.samples", "raw sensor samples through synchronizer, checks and step against the floor"),
    "replay": Row("steps.replay", "replay of a 1 kHz bag: read, step, write"),
    "smooth": Row("steps.smooth", "the same with the fixed-lag smoother (replay --smooth)"),
    "node": Row("live.node", "node with 4 inputs at 1 kHz: CPU, lost samples, age of the estimates"),
    "fast": Row("live.fast", "node with 4 inputs at 2 kHz: lost samples, age of the estimates"),
    "split": Row("live.split", "base state and friction in two nodes: CPU, lost samples, age of the estimates"),
    "views": Row("live.views", "the node with each live view of its topics, and without"),
    "start": Row("live.start", "start of the node to its first estimate, compiled kernels in the cache"),
    "demo": Row("live.demo", "the demo: real time and CPU of all its processes"),
    "endurance": Row("steps.endurance", "many steps in one run: memory and step time"),
    "tests": Row("live.tests", "CPU time of README's test command; runs only when it is named", by_default=False),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Length of the measurements.

    Attributes
    ----------
    blocks : alternating blocks of 100 steps
    replay_seconds : duration of the replayed bag [s]
    node_seconds : measured time of the live node [s]
    demo_seconds : simulated time of the demo [s]
    steps : number of steps of the row endurance
    """

    blocks: int = 50
    replay_seconds: float = 10.0
    node_seconds: float = 60.0
    demo_seconds: float = 60.0
    steps: int = 20_000


class Run:
    """One run of the benchmark.

    Parameters
    ----------
    options : length of the measurements
    folder : for bags and logs
    """

    def __init__(self, options: Options, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self._walks: dict[tuple[str, str], Walk] = {}

    def walk(self, robot: str, scenario: str, samples: int) -> Walk:
        """Simulated walk with at least this number of samples; every row gets the same one.

        Raises
        ------
        FrictionEstimatorError
            When the robot is not found or cannot be simulated.
        """
        known = self._walks.get((robot, scenario))
        if known is None or len(known.samples) < samples:
            known = self._walks[robot, scenario] = simulate(robot, scenario, samples)
        return known


class BenchmarkError(FrictionEstimatorError):
    """A row could not be measured, or a command that it runs failed."""


class NotMeasurableError(FrictionEstimatorError):
    """A row cannot be measured here; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes
    ----------
    what : what was measured
    value : the number
    unit : unit of the number, empty for a ratio
    must, aim : values to reach, None where there are none
    at_least : True where more is better
    low, high : quartiles over the blocks or repetitions, None without repetition
    details : further numbers of the same measurement, by name with unit
    """

    what: str
    value: float
    unit: str = ""
    must: float | None = None
    aim: float | None = None
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def missed(self) -> bool:
        """True where the value is on the wrong side of ``must``."""
        if self.must is None:
            return False
        reached = self.value >= self.must if self.at_least else self.value <= self.must
        return not reached  # also for NaN


@dataclass(frozen=True, slots=True)
class RowResult:
    """Result of one row.

    Attributes
    ----------
    name : of the row
    figures : measured numbers
    skipped : why the row was not measured here, or empty
    failed : why the measurement failed, or empty
    """

    name: str
    figures: tuple[Figure, ...] = ()
    skipped: str = ""
    failed: str = ""


def measure(name: str, run: Run, progress: Progress) -> RowResult:
    """Measure one row; a missing requirement or a failure becomes text in the result, so that other rows still run."""
    module, function = ROWS[name].function.split(".")
    try:
        row = getattr(importlib.import_module(f"benchmarks.speed.{module}"), function)
        return RowResult(name, tuple(row(run, progress)))
    except NotMeasurableError as reason:
        return RowResult(name, skipped=str(reason))
    except ModuleNotFoundError as error:
        return RowResult(name, skipped=f"the Python package {(error.name or '').split('.')[0]!r} is not installed")
    except FrictionEstimatorError as error:
        return RowResult(name, failed=str(error))


def measured(figure: Figure) -> str:
    """Value with unit, and its quartiles."""
    unit = f" {figure.unit}" if figure.unit else ""
    between = "" if figure.low is None or figure.high is None else f" ({number(figure.low)} to {number(figure.high)})"
    return f"{number(figure.value)}{unit}{between}"


def target(figure: Figure, value: float | None) -> str:
    """Value to reach with unit and direction."""
    if value is None:
        return ""
    unit = f" {figure.unit}" if figure.unit else ""
    bound = "at least " if figure.at_least else "at most " if value else ""
    return f"{bound}{number(value)}{unit}"


def number(value: float) -> str:
    """Three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100.0 or value == round(value) else f"{value:.3g}"


def row(figure: Figure) -> tuple[str, str, str, str]:
    """Cells of a figure in the table: what, measured, must, aim."""
    value = f"**{measured(figure)}**" if figure.missed else measured(figure)
    details = "".join(f"; {name} {number(detail)}" for name, detail in figure.details.items())
    return figure.what, value + details, target(figure, figure.must), target(figure, figure.aim)


def describe_machine() -> dict[str, str]:
    """Processor, cores, versions of Python and NumPy, and whether kernels are compiled."""
    return {
        "processor": _processor(),
        "cores": str(core_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernels": "compiled" if COMPILED else "plain Python",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()
