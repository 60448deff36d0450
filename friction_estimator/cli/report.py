"""``report BAG -o report.html`` and ``report PARAMS.yaml -o report.html``: figures and errors on one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import report
from friction_estimator.cli.arguments import progress_bar, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``report`` to its parser."""
    parser.add_argument(
        "source",
        type=Path,
        metavar="BAG|PARAMS.yaml",
        help="rosbag2 with estimates (of `replay`, `demo` or a recorded live run), or parameter file of `identify`",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="page to write")
    parser.add_argument("--robot", help="robot of a bag that does not name its robot (name or YAML)")
    parser.add_argument("--namespace", default="", help="namespace of the topics in the bag")
    parser.add_argument(
        "--after", type=seconds, default=0.0, help="leave the first seconds out of the tables, while filters settle [s]"
    )


def run(arguments: argparse.Namespace) -> None:
    """Read the source and write the page."""
    with progress_bar("writing the report") as progress:
        report(
            arguments.source,
            arguments.output,
            robot=arguments.robot,
            namespace=arguments.namespace,
            after=arguments.after,
            progress=progress,
        )
    print(arguments.output)
