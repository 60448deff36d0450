"""``fleet replay|identify|drift``: many bags and many robots on Dask, and friction over months."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from rich.console import Console

from friction_estimator import fleet
from friction_estimator.cli.arguments import look_ahead, output_console, positive, progress_bar, whole_number
from friction_estimator.cli.main import HelpFormatter
from friction_estimator.estimation.smoothing import SMOOTHING_LAG
from friction_estimator.fleet.page import drift_table
from friction_estimator.fleet.wear import LOWER, UNKNOWN, WORN
from friction_estimator.identification.methods import METHODS
from friction_estimator.tables import make_table, percent, terminal_table

WORN_CODE = 3
"""Exit code of ``fleet drift`` when a joint is worn: 1 and 2 mean that there is no result."""
_WIDTH = 160
_ROWS = 40
"""Joints in the table on the terminal, the worst ones."""


def fleet_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``fleet``."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    replay = _action(actions, "replay", "run the live estimator over many bags; one Parquet row a bag and joint")
    _add_run_options(replay)
    replay.add_argument(
        "--smooth",
        type=look_ahead,
        nargs="?",
        const=SMOOTHING_LAG,
        metavar="SECONDS",
        help=f"fixed-lag smoothing, as of the verb replay; {SMOOTHING_LAG:g} s when no number is given",
    )
    replay.add_argument("--reports", action="store_true", help="also write an HTML report of every bag, 3 MB each")
    identify = _action(actions, "identify", "identify friction from each of many bags; one Parquet row a bag and joint")
    _add_run_options(identify)
    identify.add_argument("--method", choices=tuple(METHODS), help="when not given, the first that the data allow")
    identify.add_argument("--law", help="friction law of all joints; when not given, that of the robot's live node")
    drift = _action(actions, "drift", "compare the friction of every joint over time; exit code 3 when one is worn")
    drift.add_argument("tables", nargs="+", metavar="FOLDER", help="output folders or URLs of fleet replay or identify")
    drift.add_argument("-o", "--output", type=Path, metavar="PAGE.html", help="page to write, with figures")
    drift.add_argument(
        "--since", type=_since, metavar="DATE", help="leave out earlier bags: 2026-01-31, or 60d for the last 60 days"
    )
    drift.add_argument(
        "--threshold",
        type=positive,
        default=0.1,
        help="growth of friction from which on a joint is worn, 0.1: 10 %%",
    )


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        formatter_class=HelpFormatter,
    )
    return made


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bags", nargs="+", metavar="BAGS", help="paths, globs or URLs of bags, or of folders below which bags are"
    )
    parser.add_argument("-o", "--output", default="friction", metavar="FOLDER", help="folder or URL of the results")
    parser.add_argument(
        "--robots",
        type=Path,
        metavar="YAML",
        help="serial number and robot of each bag; or one robot, by name or YAML, for all bags; when not given, "
        "fleet.yaml in the folder of the bags, else each bag names its robot",
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler; when not given, a cluster on this machine is started"
    )
    parser.add_argument(
        "--workers",
        type=whole_number(1, "a number of processes: "),
        help="processes of the cluster here, one a core by default",
    )


def _since(text: str) -> datetime:
    if text.endswith("d") and text[:-1].isdecimal():
        return datetime.now(UTC) - timedelta(days=int(text[:-1]))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-01-31, nor days such as 60d") from None


def run_fleet(arguments: argparse.Namespace) -> int:
    """Run one of the actions; the exit code."""
    return _drift(arguments) if arguments.action == "drift" else _run_bags(arguments)


def _drift(arguments: argparse.Namespace) -> int:
    """Print verdicts and table, and write the page."""
    found = fleet.drift(arguments.tables, since=arguments.since, threshold=arguments.threshold, page=arguments.output)
    console = output_console(_WIDTH)
    console.print(terminal_table(drift_table(found.joints[:_ROWS])))
    for joint in found.joints:
        if joint.state in (WORN, LOWER):
            console.print(f"{joint.name}: {joint.verdict}", markup=False, soft_wrap=True)
    worn, joints = len(found.worn), len(found.joints)
    few = sum(joint.state == UNKNOWN for joint in found.joints)
    print(
        f"{worn} of {joints} joints are worn: their friction has grown by more than {percent(arguments.threshold)}"
        + (f"; {few} have too few days" if few else "")
    )
    return WORN_CODE if found.worn else 0


def _run_bags(arguments: argparse.Namespace) -> int:
    """Run, print a summary and the failures; the exit code."""
    options = {name: getattr(arguments, name) for name in ("output", "scheduler", "workers")}
    work: Callable[..., fleet.FleetRun]
    if arguments.action == "replay":
        work, options = fleet.replay, {**options, "smooth": arguments.smooth, "reports": arguments.reports}
    else:
        work, options = fleet.identify, {**options, "method": arguments.method, "law": arguments.law}
    for name in ("core", "client", "nanny", "scheduler", "worker"):  # what concerns the user is in the results
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    with progress_bar(arguments.action) as bar:

        def announce(address: str) -> None:
            print(f"Dask's dashboard, where bokeh is installed: {address}", file=sys.stderr)

        done = work(arguments.bags, arguments.robots, progress=partial(_show, bar), announce=announce, **options)
    if done.failed:
        table = make_table("Bags that failed", ("bag", "reason"), ((one.bag, one.reason) for one in done.failed))
        Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH).print(terminal_table(table))
    print(
        f"{done.output}/{arguments.action}: {len(done.finished)} bags finished, {len(done.skipped)} were finished "
        f"before, {len(done.failed)} failed"
    )
    return 1 if done.failed else 0


def _show(bar: Callable[..., None], result: fleet.BagResult, done: int, total: int) -> None:
    """Progress by the size of the bags, and the newest of them."""
    bar(done, total, f"{result.status} {PurePath(result.bag).name}")
