"""``report BAG -o report.html``: figures and errors on one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.cli.arguments import seconds
from friction_estimator.cli.progress import progress_bar
from friction_estimator.errors import ConfigError
from friction_estimator.io.bags.recording import read_recording
from friction_estimator.io.robot import load_robot
from friction_estimator.messages.description import RunDescription
from friction_estimator.report.recording import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("bag", type=Path, help="rosbag2 of `replay`, or of a recorded live run")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="page to write")
    parser.add_argument("--robot", help="robot of a bag that does not name it itself (name or YAML)")
    parser.add_argument("--namespace", default="", help="of the topics in the bag")
    parser.add_argument(
        "--after", type=seconds, default=0.0, help="leave the first seconds out of the tables, while filters settle"
    )


def run(arguments: argparse.Namespace) -> None:
    """Read and write."""
    description = _description(arguments.robot) if arguments.robot else None
    with progress_bar("reading") as progress:
        recording = read_recording(arguments.bag, arguments.namespace, description, progress)
    with progress_bar("drawing"):
        write_report(arguments.output, recording, title=arguments.bag.name, after=arguments.after)
    print(arguments.output)


def _description(name: str) -> RunDescription:
    robot = load_robot(name)
    if not robot.urdf_xml:
        raise ConfigError(f"the robot {name!r} names no URDF; set robot.urdf in its YAML")
    return RunDescription.of(robot.config, robot.urdf_xml, Path(name).stem, "")
