"""``simulate``, ``replay`` and ``view``: bags of the walking biped, the estimator over a bag, and a live view."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    add_shared_options,
    add_simulation_arguments,
    add_smooth_option,
    given,
    mob_net_estimator,
    progress_bar,
    robot_of,
    warn,
    whole_number,
)
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.views.live_view import VIEWS, EstimateView, LiveView, make_display

_VIEW: OptionTable = {
    "--view": (tuple(VIEWS), "show the robot with its friction: web is a page for any browser and needs nothing else"),
    "--view-port": (
        whole_number(0, "a port: "),
        "port of the view on this machine; over ssh, forward it with `ssh -L`; 0: a free one",
        8765,
    ),
    "--view-file FILE.rrd": (Path, "with --view rerun: write a recording, open no port"),
}


def simulate_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``simulate``."""
    add_robot_arguments(parser)
    add_simulation_arguments(parser, duration=20.0)
    _add_output_options(parser)


def run_simulate(arguments: argparse.Namespace) -> None:
    """Simulate and write."""
    from friction_estimator.api.simulate import make_simulator, simulated, write_simulation
    from friction_estimator.simulation import PERIOD_NS

    robot, duration = robot_of(arguments), arguments.duration
    simulator, source = make_simulator(robot, arguments.scenario, duration, arguments.noise, arguments.seed)
    with progress_bar("simulating") as progress:
        samples, messages = write_simulation(
            arguments.output,
            simulated(simulator, duration, progress),
            robot,
            simulator.joint_names,
            source,
            **given(arguments, "storage", "overwrite"),
        )
    print(f"{arguments.output}: {samples * PERIOD_NS * 1e-9:.3f} s, {messages} messages")


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    add_shared_options(parser, "overwrite")


def replay_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``replay``."""
    parser.add_argument("bag", type=Path, help="rosbag2 with joint states, IMU and foot wrenches (mcap or sqlite3)")
    add_robot_arguments(parser)
    add_smooth_option(parser)
    add_view_arguments(parser)
    add_shared_options(parser, "mob_net", "observer", "params", "namespace")
    options: OptionTable = {
        "--save-params": (Path, "parameter file to write at the end, with the identified friction"),
        "--copy-inputs": (True, "copy the sensor topics into the output too", False),
    }
    add_options(parser, options)
    _add_output_options(parser)


def run_replay(arguments: argparse.Namespace) -> None:
    """Replay and write."""
    robot = robot_of(arguments, observer=arguments.observer)
    start = load_parameters(arguments.params) if arguments.params else None
    if arguments.mob_net is not None and arguments.smooth is not None:
        raise ConfigError("--mob-net and --smooth contradict each other: its external torque is not smoothed")
    estimator = mob_net_estimator(arguments, robot)
    with opened_view(arguments) as view, progress_bar("replaying") as progress:
        summary = replay_bag(
            arguments.bag,
            arguments.output,
            robot.config,
            robot.urdf_xml,
            start=start,
            robot=robot.name,
            estimator=estimator,
            on_estimate=None if view is None else EstimateView(robot, view).show,
            progress=progress,
            **given(arguments, "storage", "copy_inputs", "overwrite", "namespace", "smooth"),
        )
        if view is not None and view.display.keeps and arguments.view_file is None:
            print("the view stays open until Ctrl-C", file=sys.stderr, flush=True)
            with suppress(KeyboardInterrupt):
                signal.pause()
    if arguments.save_params:
        save_parameters(arguments.save_params, summary.identified)
    for text in summary.warnings:
        warn(text)
    print(f"{arguments.output}: {summary.estimates} estimates")


def view_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``view``."""
    add_robot_arguments(parser)
    add_view_arguments(parser)
    parser.set_defaults(view="web")


def run_view(arguments: argparse.Namespace) -> int:
    """Show until the process is ended."""
    from friction_estimator.ros.live_run import ViewNode
    from friction_estimator.ros.spin import run as run_node

    robot = robot_of(arguments)
    with opened_view(arguments) as view:
        return run_node(lambda: ViewNode(robot, view), [], ViewNode.play) if view is not None else 1


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--view``, ``--view-port`` and ``--view-file``, which :func:`opened_view` reads."""
    add_options(parser, _VIEW)


@contextmanager
def opened_view(arguments: argparse.Namespace) -> Iterator[LiveView | None]:
    """The view that was asked for, with its address on stderr; None without ``--view``."""
    if arguments.view is None:
        if arguments.view_file is not None:
            raise ConfigError("--view-file needs --view rerun")
        yield None
        return
    with LiveView(make_display(arguments.view, arguments.view_port, arguments.view_file)) as view:
        print(f"view    {view.display.address}", file=sys.stderr, flush=True)
        yield view
    if view.dropped:
        warn(f"the view was too slow for {view.dropped} frames, which it did not draw; the estimates are complete")
