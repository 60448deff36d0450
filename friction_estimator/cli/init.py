"""``init URDF``: write the YAML of a new robot, with feet, IMU and topics guessed from its URDF and a bag."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_shared_options,
    print_table,
    progress_bar,
    warn,
)
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.new_robot import guess_robot
from friction_estimator.io.robot import Robot, as_robot, read_urdf
from friction_estimator.robot.model import RobotModel
from friction_estimator.tables import Column, make_table, number
from friction_estimator.types import FrictionEstimate

_CHECKED_TIME = 10.0
"""Length of the part of the bag that is estimated to check the YAML [s]."""
_INIT: OptionTable = {
    "--bag": (Path, "rosbag2 of the robot: topics and frames are taken from it, and the YAML is checked"),
    "-o --output ROBOT.yaml": (Path, "file to write; when not given, named like the URDF"),
    "--yes": (True, "write the file without a question", False),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``init``."""
    parser.add_argument("urdf", type=Path, help="URDF of the robot")
    add_options(parser, _INIT)
    add_shared_options(parser, "namespace", "overwrite")


def run(arguments: argparse.Namespace) -> None:
    """Guess the YAML of a robot, ask before it is written, write it, and check that it can be used."""
    urdf: Path = arguments.urdf.expanduser().resolve()
    output: Path = arguments.output or Path(f"{urdf.stem}.yaml")
    if output.exists() and not arguments.overwrite:
        raise ConfigError(f"{output} exists already: choose another name, or replace it (--overwrite)")
    bag = None if arguments.bag is None else BagReader(arguments.bag, arguments.namespace, _CHECKED_TIME)
    name = urdf.name if urdf.parent == output.resolve().parent else str(urdf)
    text = guess_robot(read_urdf(urdf), name, bag).yaml(output.stem)
    print(text)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"init asks before it writes {output}, and there is no terminal: add --yes")
        if input(f"write {output}? [y/N] ").strip().lower() not in ("y", "yes"):
            raise ConfigError(f"{output} is not written")
    write_atomically(output, text)
    robot = as_robot(output)
    joints = RobotModel(robot.config, robot.urdf_xml).joint_names
    print(f"{output}: friction of {len(joints)} joints")
    if bag is not None:
        _check(robot, bag)


def _check(robot: Robot, bag: BagReader) -> None:
    """Estimate the first seconds of the bag; print the findings, and the friction at their end."""
    newest: list[FrictionEstimate] = []

    def keep(estimate: FrictionEstimate) -> None:
        newest[:] = [estimate]

    with progress_bar(f"estimating the first {_CHECKED_TIME:g} s") as progress:
        summary = replay_bag(
            bag, None, robot.config, robot.urdf_xml, on_estimate=keep, namespace=bag.namespace, progress=progress
        )
    columns = ("joint", Column("friction", "N m"), Column("sigma", "N m"))
    rows = zip(summary.joint_names, newest[0].friction.tolist(), newest[0].sigma.tolist(), strict=True)
    cells = ((joint, number(friction), number(sigma)) for joint, friction, sigma in rows)
    title = f"Newest of {summary.estimates} estimates from {bag.path.name}"
    print_table(make_table(title, columns, cells))
    for finding in summary.warnings:
        warn(finding)
