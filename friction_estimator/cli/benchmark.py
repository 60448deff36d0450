"""``benchmark``: speed of step, replay, node and demo, as ratios to yardsticks that are measured in the same run."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from friction_estimator.benchmark.rows import (
    ROWS,
    BenchmarkError,
    Options,
    RowResult,
    Run,
    describe_machine,
    fill,
    measure,
    measured,
    number,
    target,
)
from friction_estimator.cli.arguments import output_console, positive_seconds, progress_bar, warn, whole_number
from friction_estimator.io.documents import write_atomically
from friction_estimator.ros.processes import load_average
from friction_estimator.tables import Cell, Column, Table, terminal_table

_DEFAULTS = Options()


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the list of the rows as it is written, and shows defaults."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.formatter_class = _HelpFormatter
    listed = "\n".join(f"  {name:10} {row.description}" for name, row in ROWS.items())
    parser.description = f"{parser.description}\n\nrows:\n{listed}"
    parser.add_argument(
        "--only",
        nargs="+",
        choices=ROWS,
        metavar="ROW",
        default=argparse.SUPPRESS,
        help="measure these rows; without it all but tests",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--page",
        type=Path,
        default=argparse.SUPPRESS,
        help="also write the table into this Markdown page, between its markers",
    )
    parser.add_argument(
        "--blocks", type=whole_number(1), default=_DEFAULTS.blocks, help="alternating blocks of 100 steps"
    )
    for name, what in (("replay", "duration of the replayed bag"), ("node", "measured time of the live node")):
        default = getattr(_DEFAULTS, f"{name}_seconds")
        parser.add_argument(f"--{name}-seconds", type=positive_seconds, default=default, help=f"{what} [s]")
    parser.add_argument(
        "--demo-seconds", type=positive_seconds, default=_DEFAULTS.demo_seconds, help="simulated time of the demo [s]"
    )
    parser.add_argument(
        "--steps", type=whole_number(1), default=_DEFAULTS.steps, help="number of steps of the row endurance"
    )


def run(arguments: argparse.Namespace) -> None:
    """Measure, print, and fill the page."""
    path: Path | None = getattr(arguments, "page", None)
    if path is not None:  # a page without markers is refused before the work, not after it
        if not path.is_file():
            raise BenchmarkError(f"--page {path}: there is no such file; the table goes between the markers of a page")
        fill(path.read_text(encoding="utf-8"), (), ())
    options = Options(
        arguments.blocks, arguments.replay_seconds, arguments.node_seconds, arguments.demo_seconds, arguments.steps
    )
    chosen = getattr(arguments, "only", [name for name, row in ROWS.items() if row.by_default])
    names = [name for name in ROWS if name in chosen]
    facts = {"command": arguments.command, **describe_machine(), "load average before": f"{load_average():.2f}"}
    results = []
    with tempfile.TemporaryDirectory(prefix="friction_estimator_benchmark_") as folder:
        work = Run(options, Path(folder))
        for name in names:
            with progress_bar(name) as progress:
                results.append(measure(name, work, progress))
    facts["load average after"] = f"{load_average():.2f}"
    if arguments.json:
        print(json.dumps({"machine": facts, "rows": [result.to_json() for result in results]}, indent=2))
    else:
        _print(results, facts)
    if path is not None:
        write_atomically(path, fill(path.read_text(encoding="utf-8"), results, _sentences(facts)))
    for result in results:
        if result.skipped:
            warn(f"the row {result.name} is not measured: {result.skipped}")
    failures = [f"the row {result.name} failed: {result.failed}" for result in results if result.failed]
    if failures:
        raise BenchmarkError("; ".join(failures))


def _print(results: Sequence[RowResult], facts: dict[str, str]) -> None:
    """Table on stdout, and the machine below it."""
    console = output_console()
    console.print(terminal_table(_table(results)))
    for sentence in _sentences(facts):
        console.print(sentence.replace("`", ""), markup=False, soft_wrap=True)


def _table(results: Sequence[RowResult]) -> Table:
    rows = []
    for result in results:
        for figure in result.figures:
            value = Cell(measured(figure), "bad" if figure.missed else "good" if figure.must is not None else "")
            limits = (Cell(target(figure, limit)) for limit in (figure.must, figure.aim))
            rows.append((Cell(result.name), Cell(figure.what), value, *limits))
            for name, detail in figure.details.items():
                rows.append((Cell(""), Cell(f"  {name}"), Cell(number(detail)), Cell(""), Cell("")))
    columns = tuple(Column(heading, align="left") for heading in ("row", "what", "measured", "must", "aim"))
    return Table("Speed", columns, tuple(rows))


def _sentences(facts: dict[str, str]) -> list[str]:
    return [
        f"Measured by `{facts['command']}`.",
        f"Machine: {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, NumPy {facts['numpy']}, "
        f"numerical kernels: {facts['kernels']}.",
        f"Load average of the machine before the run {facts['load average before']}, after it "
        f"{facts['load average after']}.",
    ]
