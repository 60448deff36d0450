"""What people see while the demo runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from friction_estimator.ros.live_state import LiveState

_LINE_PERIOD = 2.0

LATE = 0.1
"""From this delay on a view shows that the simulation is behind real time [s]."""


class PlainView:
    """One line every two seconds, for logs and pipes.

    Parameters
    ----------
    duration : simulated time of the whole run [s]
    """

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._next = 0.0
        self._console = Console(stderr=True, highlight=False)

    def __enter__(self) -> PlainView:
        self._console.print("starting simulator and estimator")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, state: LiveState) -> None:
        """Print a line when it is time."""
        now = time.monotonic()
        if now < self._next or not state.estimates:
            return
        self._next = now + _LINE_PERIOD
        errors = [abs(f - t) for f, t in zip(state.friction, state.truth, strict=True) if not math.isnan(f - t)]
        worst = f", largest error now {max(errors):.2f} N m" if errors else ""
        self._console.print(
            f"{state.elapsed:6.1f} of {self._duration:.0f} s  {state.estimates} estimates of {state.joint_samples} "
            f"joint states, {state.phase}{worst}",
            soft_wrap=True,
        )


class TableView:
    """A live table with one row a joint, and a progress bar.

    Parameters
    ----------
    duration : simulated time of the whole run [s]
    """

    def __init__(self, duration: float) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.1f} of {task.total:.0f} s"),
            console=self._console,
        )
        self._task = self._progress.add_task("starting simulator and estimator", total=duration)
        self._live = Live(self._progress, console=self._console, refresh_per_second=4, auto_refresh=False)

    def __enter__(self) -> TableView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, state: LiveState) -> None:
        """Draw anew."""
        if state.estimates:
            self._progress.update(self._task, completed=state.elapsed, description=state.phase.replace("_", " "))
        self._live.update(Group(_table(state), self._footer(state), self._progress), refresh=True)

    def _footer(self, state: LiveState) -> str:
        parts = [f"{state.joint_samples} joint states, {state.estimates} estimates"]
        parts += [f"latency {state.latency}"] if state.latency else []
        parts += [f"{state.behind:.1f} s behind real time"] if state.behind >= LATE else []
        return "; ".join(parts)


def _table(state: LiveState) -> Table:
    table = Table(title="joint friction, live", title_justify="left", expand=False)
    table.add_column("joint")
    for heading in ("friction\nN m", "truth\nN m", "error\nN m", "F_c\nN m", "F_v\nN m s/rad"):
        table.add_column(heading, justify="right")
    table.add_column("source")
    for i, name in enumerate(state.joint_names):
        friction, truth = float(state.friction[i]), float(state.truth[i])
        measured = state.measured[i] > 0.5
        table.add_row(
            name,
            _number(friction),
            _number(truth),
            _number(friction - truth),
            _number(float(state.coulomb[i])),
            _number(float(state.viscous[i])),
            "measured" if measured else "model",
            style="" if measured else "yellow",
        )
    return table


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"
