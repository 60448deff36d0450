"""``export PARAMS.yaml --to FORMAT -o OUT``: identified friction for simulators, controllers and firmware."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import export
from friction_estimator.cli.arguments import finite, warn
from friction_estimator.io.export import export_formats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export`` to its parser."""
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


def run(arguments: argparse.Namespace) -> None:
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
