"""``view``: the topics of a running estimator in a browser, in Rerun or in Foxglove."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    robot_of,
    warn,
    whole_number,
)
from friction_estimator.errors import ConfigError
from friction_estimator.views.live_view import VIEWS, LiveView, make_display

_VIEW: OptionTable = {
    "--view": (tuple(VIEWS), "show the robot with its friction: web is a page for any browser and needs nothing else"),
    "--view-port": (
        whole_number(0, "a port: "),
        "port of the view on this machine; over ssh, forward it with `ssh -L`; 0: a free one",
        8765,
    ),
    "--view-file FILE.rrd": (Path, "with --view rerun: write a recording, open no port"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``view``."""
    add_robot_arguments(parser)
    add_view_arguments(parser)
    parser.set_defaults(view="web")


def run(arguments: argparse.Namespace) -> int:
    """Show the topics of the estimator until the process is ended."""
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
    """The view that ``--view`` names, its address printed on stderr; None without this option.

    Raises
    ------
    ConfigError
        When ``--view-file`` is given for another view than Rerun.
    """
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
