"""``export PARAMS.yaml --to FORMAT -o OUT``: identified friction for simulators and controllers."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.outputs import export
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    finite,
    given,
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export``."""
    parser.add_argument("params", type=Path, help="parameter file of `identify`, of the live node or of `replay`")
    parser.add_argument("--to", required=True, choices=tuple(FORMATS), help="format to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    add_options(parser, _EXPORT)
    for name, one in FORMATS.items():
        for option, text in one.options.items():
            parser.add_argument(f"--{option}", default=argparse.SUPPRESS, help=f"for {name}: {text}")


def run(arguments: argparse.Namespace) -> None:
    """Write the exported file; print its warnings and its path."""
    names = {option for one in FORMATS.values() for option in one.options}
    options = {name: value for name, value in vars(arguments).items() if name in names}
    options |= given(arguments, "model", "speed", "coupling")
    warnings = export(arguments.params, arguments.to, arguments.output, **options)
    for text in warnings:
        warn(text)
    print(arguments.output)
