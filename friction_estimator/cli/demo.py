"""``demo``: the biped walks in simulation, the estimator runs live over ROS 2; a bag and a report stay."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from friction_estimator.cli.arguments import add_robot_arguments, positive_seconds, random_seed, robot_of, warn
from friction_estimator.cli.demo_view import LATE, PlainView, TableView
from friction_estimator.cli.progress import progress_bar
from friction_estimator.config import OBSERVER_NAMES
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.recording import read_recording
from friction_estimator.io.node_parameters import MAX_LEAD
from friction_estimator.io.resources import robot_file
from friction_estimator.io.robot import Robot
from friction_estimator.messages.description import RunDescription
from friction_estimator.messages.recording import Recording
from friction_estimator.reports.recording import write_report
from friction_estimator.reports.recording_tables import error_table
from friction_estimator.ros.live_run import LiveRun, LiveRunOptions
from friction_estimator.ros.live_state import LiveState
from friction_estimator.ros.processes import core_count, environment, load_average
from friction_estimator.ros.spin import run as run_node
from friction_estimator.simulation import noise_names, scenario_names
from friction_estimator.tables import terminal_table

_SETTLED = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--duration", type=positive_seconds, default=30.0, help="simulated time [s]")
    parser.add_argument(
        "-o", "--output", type=Path, default=argparse.SUPPRESS, help="folder for bag, report and logs; else demo_<time>"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an older run in that folder")
    parser.add_argument("--headless", action="store_true", help="plain lines instead of the live table")
    add_robot_arguments(parser)
    parser.add_argument("--observer", choices=OBSERVER_NAMES, help="method that measures friction")
    parser.add_argument("--scenario", choices=scenario_names(), default="walk", help="motion of the robot")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="sensor noise level")
    parser.add_argument("--seed", type=random_seed, default=0, help="random seed of the sensor noise")


def run(arguments: argparse.Namespace) -> None:
    """Walk, estimate, record, report."""
    robot = robot_of(arguments, observer=arguments.observer)
    if robot.urdf_path is None:
        raise ConfigError(f"the robot {arguments.robot!r} names no URDF to simulate; set robot.urdf in its YAML")
    if not robot.config.has_friction:
        raise ConfigError("the demo shows friction: leave out stages: base_state")
    output = getattr(arguments, "output", None) or Path(time.strftime("demo_%Y%m%d_%H%M%S"))
    if (output / "run").exists() and not arguments.overwrite:
        raise ConfigError(f"{output} holds a run already: choose another folder, or give --overwrite")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {output}: {error.strerror}") from None
    state = _live(_options(arguments, robot, output), arguments)
    bag, page = output / "run", output / "report.html"
    with progress_bar("reading") as progress:
        recording = read_recording(bag, progress=progress)
    with progress_bar("drawing"):
        write_report(page, recording, title=f"{arguments.scenario}, sensors {arguments.noise}", after=_SETTLED)
    _summary(state, recording, arguments.headless)
    print(f"bag     {bag}\nreport  {page}")


def _options(arguments: argparse.Namespace, robot: Robot, output: Path) -> LiveRunOptions:
    overrides = dict(arguments.settings)
    if arguments.observer:
        overrides["observer"] = arguments.observer
    source = f"live simulation of {arguments.scenario!r}, sensors {arguments.noise!r}, seed {arguments.seed}"
    description = RunDescription.of(robot.config, robot.urdf_xml, Path(arguments.robot).stem, source)
    simulation = {
        "scenario": arguments.scenario,
        "noise": arguments.noise,
        "seed": arguments.seed,
        "duration": arguments.duration,
        "wait_for_subscribers": 2,  # estimator and recorder
        "max_lead": MAX_LEAD,
    }
    return LiveRunOptions(
        robot, robot_file(arguments.robot), overrides, simulation, output, description.to_custom_data()
    )


def _live(options: LiveRunOptions, arguments: argparse.Namespace) -> LiveState:
    """Run the processes in a ROS domain of their own, on this machine only."""
    os.environ.update(environment())
    plain = arguments.headless or not sys.stderr.isatty()
    live: list[LiveRun] = []
    with PlainView(arguments.duration) if plain else TableView(arguments.duration) as view:

        def make() -> LiveRun:
            live.append(LiveRun(options, view))
            return live[0]

        code = run_node(make, [], LiveRun.play)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on Ctrl-C means what it always means
    state = live[0].state if live else None
    if state is None:  # a process failed, or somebody interrupted the start
        raise SystemExit(code or 1)
    return state


def _load(state: LiveState) -> str:
    """Delay of the simulation, and cores that the processes used."""
    delay = f"delay of the simulation against real time {state.behind:.2f} s"
    if not state.cores:
        return delay
    parts = ", ".join(f"{name} {cores:.2f}" for name, cores in state.cores.items())
    return f"{delay}; cores used: {parts}, together {sum(state.cores.values()):.2f} of {core_count()}"


def _summary(state: LiveState, recording: Recording, plain: bool) -> None:
    """Counts and errors, on stdout."""
    console = Console(highlight=False, width=100 if plain else None)
    lost = state.sent - state.estimates
    console.print(
        f"joint states sent {state.sent}, received {state.received}, estimated {state.estimates}, lost {lost}"
    )
    console.print(_load(state), soft_wrap=True)
    if lost:
        warn(f"{lost} joint states were lost")
    if state.behind >= LATE:
        warn(
            f"the simulation fell {state.behind:.1f} s behind real time, {state.waited:.1f} s of this while it waited "
            f"for the estimator: end other programs, or choose a cheaper observer; the load average is "
            f"{load_average():.1f} on {core_count()} cores"
        )
    table = error_table(recording, _SETTLED)
    if table is not None:
        console.print(terminal_table(table))
