"""``validate PARAMS.yaml DATA...``: an identification on recordings that took no part in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.validate import validate
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    positive,
    print_table,
    progress_bar,
)
from friction_estimator.cli.identify import add_recording_options, recording_keywords
from friction_estimator.reports.identification_tables import (
    rollout_table,
    score_table,
)

_FAILED_CODE = 3
"""Exit code of ``validate`` when an error is too large: 1 and 2 mean that there is no result."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``validate``."""
    parser.add_argument("params", type=Path, metavar="PARAMS.yaml", help="parameter file of `identify`")
    parser.add_argument(
        "data", type=Path, nargs="+", metavar="DATA", help="recordings as for `identify` that took no part in it"
    )
    options: OptionTable = {
        "--rollout": (True, "simulate the robot under the recorded commands, too, with MuJoCo", False),
        "--max-error PERCENT": (
            positive,
            f"exit code {_FAILED_CODE} when the error of a joint is larger than this share of its torque, or not known",
        ),
    }
    add_options(parser, options)
    add_recording_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Apply the identification to the recordings, print the errors, and return the exit code."""
    result = validate(arguments.params, arguments.data, rollout=arguments.rollout, **recording_keywords(arguments))
    print_table(score_table(result.scores))
    if result.rollouts:
        print_table(rollout_table(result.rollouts))
    for text in result.verdicts:
        print(f"- {text}")
    if arguments.report is not None:
        with progress_bar("drawing"):
            result.report(arguments.report, f"{arguments.params.stem} on {', '.join(d.name for d in arguments.data)}")
        print(f"report      {arguments.report}")
    if arguments.max_error is None:
        return 0
    limit = 0.01 * arguments.max_error
    wrong = [score.joint for score in result.scores if not score.samples or not score.relative_error <= limit]
    if wrong:
        print(f"- the error is larger than {arguments.max_error:g} %, or not known: {', '.join(wrong)}")
    return _FAILED_CODE if wrong else 0
