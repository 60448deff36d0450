"""``export PARAMS.yaml --to FORMAT -o OUT`` and ``report BAG|PARAMS.yaml -o PAGE.html``: results for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import export, report
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_shared_options,
    finite,
    given,
    progress_bar,
    seconds,
    warn,
)
from friction_estimator.io.export import FORMATS

_EXPORT: OptionTable = {
    "--model": (
        Path,
        "model to change: " + "; ".join(f"for {name}, {one.model}" for name, one in FORMATS.items() if one.model),
    ),
    "--speed": (
        finite,
        "speed up to which Coulomb and viscous friction agree with the law [rad/s]; when not given, the velocities of "
        "the identification",
    ),
    "--coupling YAML": (Path, "motors that move several joints together: robot.coupling of this YAML"),
}
_REPORT: OptionTable = {
    "-o --output": (Path, "page to write", Path("report.html")),
    "--robot": (str, "robot of a bag that does not name its robot (name or YAML)"),
    "--after": (seconds, "leave the first seconds out of the tables, while filters settle [s]", 0.0),
}


def export_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``export``."""
    parser.add_argument("params", type=Path, help="parameter file of `identify`, of the live node or of `replay`")
    parser.add_argument("--to", required=True, choices=tuple(FORMATS), help="format to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    add_options(parser, _EXPORT)
    for name, one in FORMATS.items():
        for option, text in one.options.items():
            parser.add_argument(f"--{option}", default=argparse.SUPPRESS, help=f"for {name}: {text}")


def run_export(arguments: argparse.Namespace) -> None:
    """Export and print."""
    names = {option for one in FORMATS.values() for option in one.options}
    options = {name: value for name, value in vars(arguments).items() if name in names}
    options |= given(arguments, "model", "speed", "coupling")
    warnings = export(arguments.params, arguments.to, arguments.output, **options)
    for text in warnings:
        warn(text)
    print(arguments.output)


def report_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``report``."""
    parser.add_argument(
        "source",
        type=Path,
        metavar="BAG|PARAMS.yaml",
        help="rosbag2 with estimates (of `replay`, `demo` or a recorded live run), or parameter file of `identify`",
    )
    add_options(parser, _REPORT)
    add_shared_options(parser, "namespace")


def run_report(arguments: argparse.Namespace) -> None:
    """Read the source and write the page."""
    with progress_bar("writing the report") as progress:
        report(arguments.source, arguments.output, progress=progress, **given(arguments, "robot", "namespace", "after"))
    print(arguments.output)
