"""``export PARAMS.yaml --to FORMAT -o OUT`` and ``report BAG|PARAMS.yaml -o PAGE.html``: results for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import export, report
from friction_estimator.cli.arguments import add_shared_options, finite, progress_bar, seconds, warn
from friction_estimator.io.export import export_formats


def export_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``export``."""
    parser.add_argument("params", type=Path, help="parameter file of `identify`, of the live node or of `replay`")
    parser.add_argument("--to", required=True, choices=[one.name for one in export_formats()], help="format to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    parser.add_argument(
        "--model",
        type=Path,
        help="for urdf and drake: the URDF to change; for mjcf: an MJCF, or a URDF; for gazebo: an SDF, or a URDF",
    )
    parser.add_argument(
        "--speed",
        type=finite,
        help="speed up to which Coulomb and viscous friction agree with the law [rad/s]; when not given, the "
        "velocities of the identification",
    )
    parser.add_argument(
        "--coupling",
        type=Path,
        metavar="YAML",
        help="motors that move several joints together, as for `identify`",
    )
    for one in export_formats():
        for option in one.options:
            text = f"for {one.name}: {option.description} (default: {option.default})"
            parser.add_argument(f"--{option.name}", default=argparse.SUPPRESS, help=text)


def run_export(arguments: argparse.Namespace) -> None:
    """Export and print."""
    names = {option.name for one in export_formats() for option in one.options}
    warnings = export(
        arguments.params,
        arguments.to,
        arguments.output,
        model=arguments.model,
        speed=arguments.speed,
        coupling=arguments.coupling,
        **{name: value for name, value in vars(arguments).items() if name in names},
    )
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
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="page to write")
    parser.add_argument("--robot", help="robot of a bag that does not name its robot (name or YAML)")
    add_shared_options(parser, "namespace")
    parser.add_argument(
        "--after", type=seconds, default=0.0, help="leave the first seconds out of the tables, while filters settle [s]"
    )


def run_report(arguments: argparse.Namespace) -> None:
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
