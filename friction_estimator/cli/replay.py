"""``replay BAG -o OUT``: the estimator over a bag."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_output_options,
    add_robot_arguments,
    add_shared_options,
    add_smooth_option,
    given,
    mob_net_estimator,
    progress_bar,
    robot_of,
    warn,
)
from friction_estimator.cli.view import add_view_arguments, opened_view
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.views.live_view import EstimateView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``replay``."""
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
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Replay the bag, and write the estimates as a bag."""
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
