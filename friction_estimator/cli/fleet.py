"""``fleet [BAGS...] -o FOLDER``: many bags of many robots on Dask, and which joints wear."""

from __future__ import annotations

import argparse
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_shared_options,
    add_smooth_option,
    given,
    output_console,
    positive,
    progress_bar,
    warn,
    whole_number,
)
from friction_estimator.errors import ConfigError
from friction_estimator.fleet.bags import DONE_BEFORE, FAILED, FINISHED
from friction_estimator.fleet.page import trend_table
from friction_estimator.fleet.run import PAGE, replay_fleet
from friction_estimator.fleet.wear import LOWER, WORN
from friction_estimator.tables import percent, terminal_table

_WORN_CODE = 3
"""Exit code when a joint is worn."""
_MAX_ROWS = 40
"""Joints in the table on the terminal, those that change most."""


def _since(text: str) -> datetime:
    if text.endswith("d") and text[:-1].isdecimal():
        return datetime.now(UTC) - timedelta(days=int(text[:-1]))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-01-31, nor days such as 60d") from None


_OPTIONS: OptionTable = {
    "--robot": (str, "name or YAML of the robot of all bags; when not given, each bag names its own"),
    "-o --output FOLDER": (Path, "folder of the table (rows/*.parquet) and of the page (fleet.html)", Path("friction")),
    "--since DATE": (_since, "the trends leave out earlier bags: 2026-01-31, or 60d for the last 60 days"),
    "--threshold": (positive, "growth of friction from which on a joint is worn, 0.1: 10 %%", 0.1),
    "--scheduler ADDRESS": (str, "Dask scheduler; when not given, a cluster on this machine is started"),
    "--workers": (whole_number(1, "a number of processes: "), "processes of the cluster here, one a core by default"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fleet``."""
    parser.add_argument(
        "bags", nargs="*", metavar="BAGS", help="bags, or folders below which bags are; none: only the page is made"
    )
    add_smooth_option(parser)
    add_shared_options(parser, "namespace")
    add_options(parser, _OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Replay the bags, write the page, and print failures and trends; the exit code."""
    for name in ("core", "client", "nanny", "scheduler", "worker"):  # what concerns the user is in the results
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    options = given(arguments, "output", "smooth", "namespace", "since", "threshold", "scheduler", "workers")
    with progress_bar("replaying") as progress:
        done = replay_fleet(arguments.bags, arguments.robot, progress=progress, **options)
    for one in done.bags_that(FAILED):
        warn(f"{one.bag}: {one.reason}")
    if arguments.bags:
        counts = [len(done.bags_that(state)) for state in (FINISHED, DONE_BEFORE, FAILED)]
        print("{} bags finished, {} were finished before, {} failed".format(*counts))
    if not done.joints:
        raise ConfigError(
            f"no friction in {arguments.output} can be used: its columns 'reason' and 'warnings' have why"
        )
    output_console().print(terminal_table(trend_table(done.joints[:_MAX_ROWS])))
    for joint in done.joints:
        if joint.state in (WORN, LOWER):
            print(f"{joint.name}: {joint.verdict}")
    print(
        f"{arguments.output / PAGE}: {len(done.worn)} of {len(done.joints)} joints are worn: their friction has grown "
        f"by more than {percent(arguments.threshold)}"
    )
    return _WORN_CODE if done.worn else 1 if done.bags_that(FAILED) else 0
