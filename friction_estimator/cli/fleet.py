"""``fleet replay|identify|drift``: many bags and many robots on Dask, and friction over months."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePath

from rich.console import Console

from friction_estimator import fleet
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_smooth_option,
    given,
    output_console,
    positive,
    progress_bar,
    whole_number,
)
from friction_estimator.cli.main import add_command
from friction_estimator.fleet.page import drift_table
from friction_estimator.fleet.wear import LOWER, TOO_FEW_DAYS, WORN
from friction_estimator.identification.methods import METHODS
from friction_estimator.tables import make_table, percent, terminal_table

_WORN_CODE = 3
"""Exit code of ``fleet drift`` when a joint is worn: 1 and 2 mean that there is no result."""
_LINE_WIDTH = 160  # of tables where the output is no terminal: paths of bags are long
_MAX_ROWS = 40
"""Joints in the table on the terminal, the worst ones."""


def _since(text: str) -> datetime:
    if text.endswith("d") and text[:-1].isdecimal():
        return datetime.now(UTC) - timedelta(days=int(text[:-1]))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-01-31, nor days such as 60d") from None


_RUN: OptionTable = {
    "-o --output FOLDER": (str, "folder or URL of the results", "friction"),
    "--robots YAML": (
        Path,
        "serial number and robot of each bag; or one robot, by name or YAML, for all bags; when not given, fleet.yaml "
        "in the folder of the bags, else each bag names its robot",
    ),
    "--scheduler ADDRESS": (str, "Dask scheduler; when not given, a cluster on this machine is started"),
    "--workers": (whole_number(1, "a number of processes: "), "processes of the cluster here, one a core by default"),
}
_REPLAY: OptionTable = {"--reports": (True, "also write an HTML report of every bag, 3 MB each", False)}
_IDENTIFY: OptionTable = {
    "--method": (tuple(METHODS), "identification method; when not given, the first that the data allow"),
    "--law": (str, "friction law of all joints; when not given, that of the robot's live node"),
}
_DRIFT: OptionTable = {
    "-o --output PAGE.html": (Path, "page to write, with figures"),
    "--since DATE": (_since, "leave out earlier bags: 2026-01-31, or 60d for the last 60 days"),
    "--threshold": (positive, "growth of friction from which on a joint is worn, 0.1: 10 %%", 0.1),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fleet``."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    replay = add_command(actions, "replay", "run the live estimator over many bags; one Parquet row per bag and joint")
    add_smooth_option(replay)
    identify = add_command(
        actions, "identify", "identify friction from each of many bags; one Parquet row per bag and joint"
    )
    for run, options in ((replay, _REPLAY), (identify, _IDENTIFY)):
        run.add_argument(
            "bags", nargs="+", metavar="BAGS", help="paths, globs or URLs of bags, or of folders below which bags are"
        )
        add_options(run, {**_RUN, **options})
    drift = add_command(actions, "drift", "compare the friction of every joint over time; exit code 3 when one is worn")
    drift.add_argument("tables", nargs="+", metavar="FOLDER", help="output folders or URLs of fleet replay or identify")
    add_options(drift, _DRIFT)


def run(arguments: argparse.Namespace) -> int:
    """Run the action ``replay``, ``identify`` or ``drift``; return the exit code."""
    return _drift(arguments) if arguments.action == "drift" else _run_bags(arguments)


def _drift(arguments: argparse.Namespace) -> int:
    """Print verdicts and table, and write the page."""
    found = fleet.drift(arguments.tables, since=arguments.since, threshold=arguments.threshold, page=arguments.output)
    console = output_console(_LINE_WIDTH)
    console.print(terminal_table(drift_table(found.joints[:_MAX_ROWS])))
    for joint in found.joints:
        if joint.state in (WORN, LOWER):
            console.print(f"{joint.name}: {joint.verdict}", markup=False, soft_wrap=True)
    worn, joints = len(found.worn), len(found.joints)
    few = sum(joint.state == TOO_FEW_DAYS for joint in found.joints)
    print(
        f"{worn} of {joints} joints are worn: their friction has grown by more than {percent(arguments.threshold)}"
        + (f"; {few} have too few days" if few else "")
    )
    return _WORN_CODE if found.worn else 0


def _run_bags(arguments: argparse.Namespace) -> int:
    """Run, print a summary and the failures; the exit code."""
    work: Callable[..., fleet.FleetRun] = fleet.replay if arguments.action == "replay" else fleet.identify
    own = ("smooth", "reports") if arguments.action == "replay" else ("method", "law")
    options = given(arguments, "output", "scheduler", "workers", *own)
    for name in ("core", "client", "nanny", "scheduler", "worker"):  # what concerns the user is in the results
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    with progress_bar(arguments.action) as bar:

        def announce(address: str) -> None:
            print(f"Dask's dashboard, where bokeh is installed: {address}", file=sys.stderr)

        done = work(arguments.bags, arguments.robots, progress=partial(_show, bar), announce=announce, **options)
    if done.failed:
        table = make_table("Bags that failed", ("bag", "reason"), ((one.bag, one.reason) for one in done.failed))
        Console(stderr=True, width=None if sys.stderr.isatty() else _LINE_WIDTH).print(terminal_table(table))
    print(
        f"{done.output}/{arguments.action}: {len(done.finished)} bags finished, {len(done.skipped)} were finished "
        f"before, {len(done.failed)} failed"
    )
    return 1 if done.failed else 0


def _show(bar: Callable[..., None], result: fleet.BagResult, done: int, total: int) -> None:
    """Progress by the size of the bags, and the newest of them."""
    bar(done, total, f"{result.status} {PurePath(result.bag).name}")
