"""``init``: the YAML of a new robot from its URDF and a bag, and a first check."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from friction_estimator.cli.arguments import output_console, progress_bar, warn
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import replay
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.new_robot import guess_robot
from friction_estimator.io.robot import Robot, as_robot, read_urdf
from friction_estimator.robot.model import RobotModel
from friction_estimator.tables import Column, make_table, number, terminal_table
from friction_estimator.types import FrictionEstimate

_CHECKED = 10.0
"""Length of the part of the bag that is estimated to check the YAML [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``init`` to its parser."""
    parser.add_argument("urdf", type=Path, help="URDF of the robot")
    parser.add_argument(
        "--bag", type=Path, help="rosbag2 of the robot: topics and frames are taken from it, and the YAML is checked"
    )
    parser.add_argument("--namespace", default="", help="namespace of the topics in the bag")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="ROBOT.yaml", help="file to write; when not given, named like the URDF"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an older file of that name")
    parser.add_argument("--yes", action="store_true", help="write the file without a question")


def run(arguments: argparse.Namespace) -> None:
    """Guess, ask, write, check."""
    urdf: Path = arguments.urdf.expanduser().resolve()
    output: Path = arguments.output or Path(f"{urdf.stem}.yaml")
    if output.exists() and not arguments.overwrite:
        raise ConfigError(f"{output} exists already: choose another name, or replace it (--overwrite)")
    bag = None if arguments.bag is None else BagReader(arguments.bag, arguments.namespace, _CHECKED)
    name = urdf.name if urdf.parent == output.resolve().parent else str(urdf)
    text = guess_robot(read_urdf(urdf), name, bag).yaml(output.stem)
    print(text)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"no terminal to ask on: give --yes to write {output}")
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

    with progress_bar(f"estimating the first {_CHECKED:g} s") as progress:
        summary = replay(
            bag, None, robot.config, robot.urdf_xml, on_estimate=keep, namespace=bag.namespace, progress=progress
        )
    columns = ("joint", Column("friction", "N m"), Column("sigma", "N m"))
    rows = zip(summary.joint_names, newest[0].friction.tolist(), newest[0].sigma.tolist(), strict=True)
    cells = ((joint, number(friction), number(sigma)) for joint, friction, sigma in rows)
    title = f"Newest of {summary.estimates} estimates from {bag.path.name}"
    output_console().print(terminal_table(make_table(title, columns, cells)))
    for finding in summary.warnings:
        warn(finding)
