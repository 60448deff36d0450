"""``validate PARAMS.yaml DATA...``: how well an identification predicts other recordings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from friction_estimator.api.validate import validate
from friction_estimator.cli.arguments import add_robot_arguments, names_of, once, payload, progress_bar, robot_of, warn
from friction_estimator.reports.identification_tables import score_table
from friction_estimator.tables import terminal_table

_WIDTH = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("params", type=Path, metavar="PARAMS.yaml", help="parameter file of `identify`")
    parser.add_argument(
        "data", type=Path, nargs="+", metavar="DATA", help="recordings as for `identify` that took no part in it"
    )
    parser.add_argument("--report", type=Path, metavar="PAGE.html", help="page of figures and tables to write")
    add_robot_arguments(parser, None, "URDF of something with a fixed base, or name or YAML of any robot")
    parser.add_argument("--joints", type=names_of, metavar="NAME,...", help="only these joints, in this order")
    parser.add_argument("--namespace", default="", help="namespace of the topics in bags")
    parser.add_argument(
        "--payload",
        type=payload,
        action="append",
        default=[],
        metavar="EXPERIMENT=FRAME:MASS,X,Y,Z[,IXX,IYY,IZZ,IXY,IXZ,IYZ]",
        help="body that was fixed to a frame of the URDF in one experiment; may be repeated",
    )
    parser.add_argument("--coupling", type=Path, metavar="YAML", help="motors that move several joints together")


def run(arguments: argparse.Namespace) -> None:
    """Validate and print."""
    result = validate(
        arguments.params,
        arguments.data,
        None if arguments.robot is None else robot_of(arguments),
        coupling=arguments.coupling,
        payloads=once("payload", arguments.payload),
        joints=arguments.joints,
        namespace=arguments.namespace,
        stage=progress_bar,
        warn=warn,
    )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(terminal_table(score_table(result.scores)))
    for text in result.verdicts:
        console.print(f"- {text}", markup=False, soft_wrap=True)
    if arguments.report is not None:
        with progress_bar("drawing"):
            result.report(arguments.report, f"{arguments.params.stem} on {', '.join(d.name for d in arguments.data)}")
        print(f"report      {arguments.report}")
