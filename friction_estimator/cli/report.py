"""``report BAG|PARAMS.yaml -o PAGE.html``: a page of figures and tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import report
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_shared_options,
    given,
    progress_bar,
    seconds,
)

_REPORT: OptionTable = {
    "-o --output": (Path, "page to write", Path("report.html")),
    "--robot": (str, "robot of a bag that does not name its robot (name or YAML)"),
    "--after": (seconds, "leave the first seconds out of the tables, while filters settle [s]", 0.0),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``report``."""
    parser.add_argument(
        "source",
        type=Path,
        metavar="BAG|PARAMS.yaml",
        help="rosbag2 with estimates (of `replay`, `demo` or a recorded live run), or parameter file of `identify`",
    )
    add_options(parser, _REPORT)
    add_shared_options(parser, "namespace")


def run(arguments: argparse.Namespace) -> None:
    """Read the source and write the page."""
    with progress_bar("writing the report") as progress:
        report(arguments.source, arguments.output, progress=progress, **given(arguments, "robot", "namespace", "after"))
    print(arguments.output)
