"""How fast are step, replay, node and demo, compared with yardsticks of the same run?

    python -m benchmarks.speed [--only ROW ...]

Fills the table of docs/results/performance.md. Lines of rows that are not measured stay as they are. The live rows need
ROS 2, and use a random domain on this machine only. Takes ten minutes. Close other programs first: CPU times leave
pauses out, but replay, live rows and demo are measured in real time, and the row node runs four processes at once.

Floor: pinocchio's computeAllTerms and rnea, and getFrameJacobian and getFrameClassicalAcceleration of both soles,
    called from Python with the states of the same walk: what every estimator of this kind needs once a sample.
Step: one call of Pipeline.step on the built-in walk with the noise paper_std, after 2 s. Blocks of 100 steps alternate
    with blocks of 100 floors. CPU time of the thread, one thread of BLAS, no garbage collection of what was made at the
    start, as in the node. Ratio of the medians of a block; the table has the median over the blocks and its quartiles.
Calls: Python functions and kernels from four raw samples to the estimate, windows included, mean over 1,000 samples.
Joints: the same step for Unitree's G1 (29 joints; needs example-robot-data) and the built-in biped.
Raw samples: two wrenches, an IMU sample and a joint sample through Estimator.add_*. "With cold caches": 8 MiB of other
    data were written just before, as other processes do while the node sleeps.
Replay: duration of a 1 kHz bag over the time that reading, estimating and writing take. Median of three replays.
Node: a robot sends four topics at 1 kHz; the estimator node; a yardstick node that receives the same as serialized
    messages and publishes each joint state again; a listener to joint_friction, base_state and the yardstick node. Age:
    arrival of an estimate minus the stamp of its joint sample. Lost: no estimate has the stamp of a joint sample.
Split: the same with base state and friction in two nodes (graph:=split).
Start: from the start of the process to the arrival of the first estimate, with a robot that sends already. Median of
    five starts after a first one.
Demo: friction_estimator demo --headless as a process; CPU time of demo, simulator and estimator together.
Endurance: one walk without interruption, its last tenth against its first; less than 1 MiB more and ratios below 1.1
    count as no growth. --steps 1000000 measures the required 1,000 s.
Tests: CPU time of README's test command; only with --only tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shared.command import command, command_line, count, longer_than, make_parser
from benchmarks.shared.pages import DOCS, Page, add_page, table
from benchmarks.speed.rows import ROWS, BenchmarkError, Options, RowResult, Run, describe_machine, measure, row
from friction_estimator.cli.arguments import progress_bar
from friction_estimator.ros.processes import load_average

PAGE = DOCS / "results" / "performance.md"
PLACE = "benchmark"
_HEADING = ("what", "measured", "must", "aim")
_DEFAULTS = Options()


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("speed", __doc__)
    parser.epilog = "rows:\n" + "\n".join(f"  {name:10} {row.description}" for name, row in ROWS.items())
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="ROW", help="rows; without it all but tests")
    add_page(parser, PAGE, PLACE)
    parser.add_argument("--blocks", type=count, default=_DEFAULTS.blocks, help="alternating blocks of 100 steps")
    parser.add_argument("--steps", type=count, default=_DEFAULTS.steps, help="number of steps of the row endurance")
    for name, what in (("replay", "replayed bag"), ("node", "measured time of the live node"), ("demo", "demo")):
        default = getattr(_DEFAULTS, f"{name}_seconds")
        parser.add_argument(f"--{name}-seconds", type=longer_than(0.0), default=default, help=f"{what} [s]")
    return parser


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    chosen = options.only or [name for name, row in ROWS.items() if row.by_default]
    lengths = Options(options.blocks, options.replay_seconds, options.node_seconds, options.demo_seconds, options.steps)
    before, results = load_average(), []
    with tempfile.TemporaryDirectory(prefix="friction_estimator_speed_") as folder:
        work = Run(lengths, Path(folder))
        for name in (name for name in ROWS if name in chosen):
            with progress_bar(name) as progress:
                results.append(measure(name, work, progress))
    facts = describe_machine()
    fill(
        options.output,
        results,
        f"Measured by `{command_line('speed', arguments)}`.",
        f"Machine: {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, NumPy {facts['numpy']}, "
        f"numerical kernels: {facts['kernels']}.",
        f"Load average of the machine before the run {before:.2f}, after it {load_average():.2f}.",
    )
    print(options.output.path)
    if failures := [f"the row {result.name} failed: {result.failed}" for result in results if result.failed]:
        raise BenchmarkError("; ".join(failures))


def fill(page: Page, results: Sequence[RowResult], *facts: str) -> None:
    """Write the measured figures into the table of the page; lines of other figures stay."""
    old = [line.strip("| ").split(" | ") for line in page.lines(PLACE) if line.startswith("| ")][1:]
    now = {figure.what: row(figure) for result in results for figure in result.figures}
    earlier = [] if {cells[0] for cells in old} <= now.keys() else ["Lines of other rows are from earlier runs."]
    missing = [f"`{result.name}` is not measured: {result.skipped or result.failed}" for result in results]
    missing = [text for text, result in zip(missing, results, strict=True) if not result.figures]
    lines = {cells[0]: tuple(cells) for cells in old} | now
    page.fill(PLACE, [*table(_HEADING, lines.values()), *(f"- {fact}" for fact in (*facts, *earlier, *missing))])


if __name__ == "__main__":
    sys.exit(main())
