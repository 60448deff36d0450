"""``demo``: the biped walks in simulation, the estimator runs live over ROS 2; a bag and a report stay."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    add_shared_options,
    add_simulation_arguments,
    given,
    print_table,
    progress_bar,
    robot_of,
    warn,
)
from friction_estimator.cli.collisions import learn_thresholds, push_table
from friction_estimator.cli.view import add_view_arguments, opened_view
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.arrays import read_recording
from friction_estimator.io.node_parameters import MAX_LEAD
from friction_estimator.io.robot import Robot, robot_file
from friction_estimator.kernels import compiler
from friction_estimator.messages.recording import Recording, RunDescription
from friction_estimator.reports.recording_page import recording_page
from friction_estimator.reports.recording_tables import error_table
from friction_estimator.ros.executables import on_end_signals
from friction_estimator.ros.live_run import LiveRun, LiveState, StateView
from friction_estimator.ros.processes import core_count, environment, load_average
from friction_estimator.ros.spin import run as run_node
from friction_estimator.simulation import Scenario, make_scenario
from friction_estimator.tables import Cell, Column, Table, make_table, terminal_table

_COLLISIONS = "collisions"
_SETTLING_TIME = 2.0
"""The tables of the report leave this time at the start out [s]."""
_OPTIONS: OptionTable = {
    "-o --output": (Path, "folder for bag, report and logs; else demo_<time>"),
    "--headless": (True, "plain lines instead of the live table"),
    "--collisions": (
        True,
        "hit knees and ankles of the walking robot and detect it; the thresholds come from a walk before the run",
    ),
    "--react": (True, "with --collisions: the robot steps back after the first one, and stands"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    add_options(parser, _OPTIONS)
    add_robot_arguments(parser)
    add_view_arguments(parser)
    add_shared_options(parser, "observer", "overwrite")
    add_simulation_arguments(parser, duration=30.0)


def run(arguments: argparse.Namespace) -> None:
    """Simulate a walk, estimate its friction live over ROS 2, record a bag, and write a report."""
    robot = robot_of(arguments, observer=arguments.observer)
    if not robot.config.has_friction:
        raise ConfigError("the demo shows friction, and stages is base_state: set it to all")
    output = arguments.output or Path(time.strftime("demo_%Y%m%d_%H%M%S"))
    if (output / "run").exists() and not arguments.overwrite:
        raise ConfigError(f"{output} holds a run already: choose another folder, or replace it (--overwrite)")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {output}: {error.strerror}") from None
    if arguments.collisions and arguments.scenario not in ("walk", _COLLISIONS):
        raise ConfigError(f"--collisions plays the scenario {_COLLISIONS}: leave out --scenario {arguments.scenario}")
    if arguments.react and not arguments.collisions:
        raise ConfigError("--react steps back after collisions: give --collisions, too")
    arguments.scenario = _COLLISIONS if arguments.collisions else arguments.scenario
    if compiler.is_new():  # else the estimator compiles, and nothing shows how far it is
        compiler.prepare()
    state = _live(arguments, robot, output)
    bag, page = output / "run", output / "report.html"
    with progress_bar("reading") as progress:
        recording = read_recording(bag, progress=progress)
    with progress_bar("drawing"):
        recording_page(recording, f"{arguments.scenario}, sensors {arguments.noise}", _SETTLING_TIME).write(page)
    _summary(state, recording, make_scenario(arguments.scenario, arguments.duration))
    print(f"bag     {bag}\nreport  {page}")


def _live(arguments: argparse.Namespace, robot: Robot, output: Path) -> LiveState:
    """Run the processes in a separate ROS domain, on this machine only."""
    os.environ.update(environment())
    simulation = {
        **given(arguments, "scenario", "noise", "seed", "duration"),
        "wait_for_subscribers": 2,  # estimator and recorder
        "max_lead": MAX_LEAD,
    }
    estimator: dict[str, object] = {"inputs_reliable": True}
    if arguments.collisions:
        estimator |= learn_thresholds(robot, arguments.noise, arguments.seed + 1, output)
    if arguments.react:
        estimator |= {"collision_reaction": "rewind"}
    own = {"estimator": estimator, "simulation": simulation}
    nodes = {name: _node_arguments(arguments, robot, parameters) for name, parameters in own.items()}
    source = f"live simulation of {arguments.scenario!r}, sensors {arguments.noise!r}, seed {arguments.seed}"
    description = RunDescription.from_config(robot.config, robot.urdf_xml, Path(arguments.robot).stem, source)
    plain = arguments.headless or not sys.stderr.isatty()
    live: list[LiveRun] = []
    with (
        opened_view(arguments) as web,
        _PlainView(arguments.duration) if plain else _TableView(arguments.duration) as view,
    ):
        views = (view,) if web is None else (view, StateView(robot, web))

        def make() -> LiveRun:
            texts = description.to_custom_data()
            live.append(LiveRun(robot.config, nodes, output, texts, arguments.overwrite, views))
            return live[0]

        code = run_node(make, [], LiveRun.play)
    on_end_signals(signal.default_int_handler)  # from here on Ctrl-C means what it always means
    state = live[0].state if live else None
    if state is None:  # a process failed, or somebody interrupted the start
        raise SystemExit(code or 1)
    return state


def _node_arguments(arguments: argparse.Namespace, robot: Robot, own: Mapping[str, object]) -> list[str]:
    """Command line of a node: YAML of the robot, what the options of the demo replace in it, and its own parameters."""
    parameters = {**dict(arguments.settings), "robot.urdf": str(robot.urdf_path), **own}
    if arguments.observer:
        parameters["observer"] = arguments.observer
    words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={json.dumps(value)}")]
    return ["--ros-args", "--params-file", str(robot_file(arguments.robot)), *words]


def _load(state: LiveState) -> str:
    """Delay of the simulation, and cores that the processes used."""
    delay = f"delay of the simulation against real time {state.behind:.2f} s"
    if not state.cores:
        return delay
    parts = ", ".join(f"{name} {cores:.2f}" for name, cores in state.cores.items())
    return f"{delay}; cores used: {parts}, together {sum(state.cores.values()):.2f} of {core_count()}"


def _summary(state: LiveState, recording: Recording, scenario: Scenario) -> None:
    """Print samples that were sent and lost, CPU load, and the errors of a finished demo."""
    lost = state.sent - state.estimates
    print(f"joint states sent {state.sent}, received {state.received}, estimated {state.estimates}, lost {lost}")
    print(_load(state))
    if lost:
        warn(f"{lost} joint states were lost")
    if state.behind >= _SHOWN_DELAY:
        warn(
            f"the simulation fell {state.behind:.1f} s behind real time, {state.waited:.1f} s of this while it waited "
            f"for the estimator: end other programs, or choose a cheaper observer; the load average is "
            f"{load_average():.1f} on {core_count()} cores"
        )
    for table in (error_table(recording, _SETTLING_TIME), push_table(recording, scenario) if scenario.pushes else None):
        if table is not None:
            print_table(table)


_SHOWN_COLLISIONS = 3
"""Newest collisions below the live table."""

_SHOWN_DELAY = 0.1
"""From this delay on a view shows that the simulation is behind real time [s]."""


class _PlainView:
    """One line every two seconds, for logs and pipes.

    Parameters
    ----------
    duration : simulated time of the whole run [s]
    """

    period = 2.0

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._collisions = 0

    def __enter__(self) -> _PlainView:
        self._print("starting simulator and estimator")
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, state: LiveState) -> None:
        """Print a line; nothing before the first estimate."""
        if not state.estimates:
            return
        for text in state.collisions[self._collisions :]:
            self._print(text)
        self._collisions = len(state.collisions)
        errors = [abs(f - t) for f, t in zip(state.friction, state.truth, strict=True) if not math.isnan(f - t)]
        worst = f", largest error now {max(errors):.2f} N m" if errors else ""
        self._print(
            f"{state.elapsed:6.1f} of {self._duration:.0f} s  {state.estimates} estimates of {state.joint_samples} "
            f"joint states, {state.phase}{worst}"
        )

    @staticmethod
    def _print(text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _TableView:
    """A live table with one row per joint, and a progress bar.

    Parameters
    ----------
    duration : simulated time of the whole run [s]
    """

    period = 0.25

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

    def __enter__(self) -> _TableView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, state: LiveState) -> None:
        """Draw anew."""
        if state.estimates:
            self._progress.update(self._task, completed=state.elapsed, description=state.phase.replace("_", " "))
        collisions = state.collisions[-_SHOWN_COLLISIONS:]
        self._live.update(
            Group(terminal_table(_table(state)), *collisions, self._footer(state), self._progress), refresh=True
        )

    def _footer(self, state: LiveState) -> str:
        parts = [f"{state.joint_samples} joint states, {state.estimates} estimates"]
        parts += [f"latency {state.latency}"] if state.latency else []
        parts += [f"{state.behind:.1f} s behind real time"] if state.behind >= _SHOWN_DELAY else []
        return "; ".join(parts)


def _table(state: LiveState) -> Table:
    columns = (Column(name, "N m") for name in ("friction", "truth", "error", "F_c"))
    numbers = (state.friction, state.truth, state.friction - state.truth, state.coulomb, state.viscous)
    rows = []
    for name, measured, *values in zip(state.joint_names, state.measured > 0.5, *numbers, strict=True):
        texts = (name, *("" if math.isnan(value) else f"{value:.2f}" for value in values))
        rows.append([Cell(text, "" if measured else "fair") for text in (*texts, "measured" if measured else "model")])
    return make_table("joint friction, live", ("joint", *columns, Column("F_v", "N m s/rad"), "source"), rows)
