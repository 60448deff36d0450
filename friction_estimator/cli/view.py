"""``view``: the topics of a running estimator in a browser, in Rerun or in Foxglove."""

from __future__ import annotations

import argparse

from friction_estimator.cli.arguments import add_robot_arguments, add_view_arguments, opened_view, robot_of
from friction_estimator.ros.spin import run as run_node
from friction_estimator.ros.view_node import ViewNode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``view`` to its parser."""
    add_robot_arguments(parser)
    add_view_arguments(parser)
    parser.set_defaults(view="web")


def run(arguments: argparse.Namespace) -> int:
    """Show until the process is ended."""
    robot = robot_of(arguments)
    with opened_view(arguments) as view:
        return run_node(lambda: ViewNode(robot, view), [], ViewNode.play) if view is not None else 1
