"""``replay BAG -o OUT``: the estimator over a recorded bag, as fast as it can."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress
from pathlib import Path

from friction_estimator.cli.arguments import (
    add_mob_net_arguments,
    add_robot_arguments,
    add_view_arguments,
    look_ahead,
    mob_net_estimator,
    opened_view,
    progress_bar,
    robot_of,
    warn,
)
from friction_estimator.config import OBSERVERS
from friction_estimator.errors import ConfigError
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.io.bags.replay import replay
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.views.estimate_view import EstimateView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``replay`` to its parser."""
    parser.add_argument("bag", type=Path, help="rosbag2 with joint states, IMU and foot wrenches (mcap or sqlite3)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    add_robot_arguments(parser)
    parser.add_argument(
        "--observer",
        "--method",
        choices=tuple(OBSERVERS),
        help="method that measures friction; when not given, that of the YAML of the robot",
    )
    parser.add_argument(
        "--smooth",
        type=look_ahead,
        nargs="?",
        const=SMOOTHING_LAG,
        metavar="SECONDS",
        help="fixed-lag smoothing: each estimate also uses this many seconds of later data, inf: all of it; "
        f"{SMOOTHING_LAG:g} s when no number is given; only with the observer kalman",
    )
    add_mob_net_arguments(parser)
    add_view_arguments(parser)
    parser.add_argument("--params", type=Path, help="parameter file with identified friction to start from")
    parser.add_argument(
        "--save-params", type=Path, help="parameter file to write at the end, with the identified friction"
    )
    parser.add_argument("--namespace", default="", help="namespace of the topics in the bag")
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the output")
    parser.add_argument("--copy-inputs", action="store_true", help="copy the sensor topics into the output too")
    parser.add_argument("--overwrite", action="store_true", help="replace an older bag of that name")


def run(arguments: argparse.Namespace) -> None:
    """Replay and write."""
    robot = robot_of(arguments, observer=arguments.observer)
    start = load_parameters(arguments.params) if arguments.params else None
    if arguments.mob_net is not None and arguments.smooth is not None:
        raise ConfigError("--mob-net and --smooth contradict each other: its external torque is not smoothed")
    estimator = mob_net_estimator(arguments, robot)
    with opened_view(arguments) as view, progress_bar("replaying") as progress:
        summary = replay(
            arguments.bag,
            arguments.output,
            robot.config,
            robot.urdf_xml,
            start=start,
            storage=arguments.storage,
            copy_inputs=arguments.copy_inputs,
            overwrite=arguments.overwrite,
            namespace=arguments.namespace,
            robot=robot.name,
            smooth=arguments.smooth,
            estimator=estimator,
            on_estimate=None if view is None else EstimateView(robot, view).show,
            progress=progress,
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
