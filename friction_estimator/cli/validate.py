"""``validate PARAMS.yaml DATA...``: how well an identification predicts other recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.validate import validate
from friction_estimator.cli.arguments import (
    add_recording_arguments,
    output_console,
    positive,
    progress_bar,
    recording_keywords,
)
from friction_estimator.reports.identification_tables import rollout_table, score_table
from friction_estimator.tables import terminal_table

FAILED_CODE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``validate`` to its parser."""
    parser.add_argument("params", type=Path, metavar="PARAMS.yaml", help="parameter file of `identify`")
    parser.add_argument(
        "data", type=Path, nargs="+", metavar="DATA", help="recordings as for `identify` that took no part in it"
    )
    parser.add_argument("--report", type=Path, metavar="PAGE.html", help="page of figures and tables to write")
    parser.add_argument(
        "--rollout", action="store_true", help="simulate the robot under the recorded commands, too, with MuJoCo"
    )
    parser.add_argument(
        "--max-error",
        type=positive,
        metavar="PERCENT",
        help=f"exit code {FAILED_CODE} when the error of a joint is larger than this share of its torque, or not known",
    )
    add_recording_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Validate and print; the exit code."""
    result = validate(arguments.params, arguments.data, rollout=arguments.rollout, **recording_keywords(arguments))
    console = output_console()
    console.print(terminal_table(score_table(result.scores)))
    if result.rollouts:
        console.print(terminal_table(rollout_table(result.rollouts)))
    for text in result.verdicts:
        console.print(f"- {text}", markup=False, soft_wrap=True)
    if arguments.report is not None:
        with progress_bar("drawing"):
            result.report(arguments.report, f"{arguments.params.stem} on {', '.join(d.name for d in arguments.data)}")
        print(f"report      {arguments.report}")
    if arguments.max_error is None:
        return 0
    limit = 0.01 * arguments.max_error
    wrong = [score.joint for score in result.scores if not score.samples or not score.relative_error <= limit]
    if wrong:
        console.print(f"- the error is larger than {arguments.max_error:g} %, or not known: {', '.join(wrong)}")
    return FAILED_CODE if wrong else 0
