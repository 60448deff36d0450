"""``benchmark [BAG]``: whether this computer estimates at the rate of the joint states."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from friction_estimator import compiled
from friction_estimator.api.simulate import simulate
from friction_estimator.cli.arguments import add_robot_arguments, output_console, progress_bar, robot_of
from friction_estimator.config import OBSERVERS
from friction_estimator.errors import BagError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import input_handlers, input_topics
from friction_estimator.tables import Column, make_table, number, terminal_table
from friction_estimator.types import FrictionEstimate

_WARM_UP = 2.0
"""First part of a bag, whose messages are used without a pause and are not timed [s]."""
_WALK = 12.0
"""Duration of the simulated walk [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``benchmark`` to its parser."""
    parser.add_argument("bag", type=Path, nargs="?", help="rosbag2 of the robot; without it a walk is simulated")
    add_robot_arguments(parser)
    parser.add_argument("--observer", choices=tuple(OBSERVERS), help="method that measures friction")
    parser.add_argument("--namespace", default="", help="namespace of the topics in the bag")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Play the bag in real time into an estimator, and print what an estimate costs."""
    robot = robot_of(arguments, observer=arguments.observer)
    with tempfile.TemporaryDirectory(prefix="friction_estimator_benchmark_") as folder:
        bag = arguments.bag
        if bag is None:
            bag = Path(folder) / "walk"
            with progress_bar("simulating") as progress:
                simulate(robot, duration=_WALK, progress=progress).save(bag)
        estimator = Estimator(robot.config, robot.urdf_xml)
        figures = _measure(estimator, BagReader(bag, arguments.namespace))
    if arguments.json:
        print(json.dumps({"robot": robot.name, "observer": robot.config.observer, **figures}, indent=2))
        return
    title = f"{robot.name}, {len(estimator.joint_names)} joints, observer {robot.config.observer}"
    rows = ((name, number(value)) for name, value in figures.items())
    console = output_console()
    console.print(terminal_table(make_table(title, ("", Column("measured")), rows)))
    period = 1e3 / figures["joint states [Hz]"]
    late = figures["delay, p99 [ms]"] > period
    console.print(
        f"99 % of the estimates are ready {figures['delay, p99 [ms]']:.2f} ms after their joint state, "
        f"{'more' if late else 'less'} than its period of {period:.2f} ms: this computer "
        f"{'does not hold' if late else 'holds'} the rate. A node needs further time for its messages; `/diagnostics` "
        "shows it, status `load`.",
        markup=False,
        soft_wrap=True,
    )


def _measure(estimator: Estimator, reader: BagReader) -> dict[str, float]:
    """Rate, CPU time and delay of the estimates, by name with unit.

    Between two messages the process sleeps as that of a robot does: the caches are then as cold as there.
    """
    inputs, _ = input_topics(reader, estimator.config)
    handlers = input_handlers(estimator, inputs, estimator.add_joints)
    compiled.prepare()
    estimates: list[FrictionEstimate] = []
    costs, delays, cost, begun, last = [], [], 0.0, 0.0, 0.0
    for message in reader.messages(handlers):
        at = 1e-9 * (message.time_ns - reader.start_ns) - _WARM_UP
        if at >= 0.0:
            begun = begun or time.perf_counter() - at
            time.sleep(max(0.0, begun + at - time.perf_counter()))
        before, estimates = time.thread_time(), []
        with suppress(InputError):  # counted and left out by node and replay as well
            estimates = handlers[message.topic](message.raw)
        cost += time.thread_time() - before
        if at < 0.0:
            cost = 0.0
        elif estimates:
            costs.append(cost / len(estimates))
            delays.append(time.perf_counter() - begun - at)
            cost, last = 0.0, at
    if not costs:
        raise BagError(f"{reader.path} gives no estimate later than {_WARM_UP:g} s: give a longer bag of walking")
    rate = len(costs) / max(last, 1e-9)
    return {
        "joint states [Hz]": rate,
        "CPU time of an estimate, median [us]": 1e6 * float(np.median(costs)),
        "CPU time of an estimate, p99 [us]": 1e6 * float(np.quantile(costs, 0.99)),
        "share of one core [%]": 100.0 * rate * float(np.mean(costs)),
        "delay, median [ms]": 1e3 * float(np.median(delays)),
        "delay, p99 [ms]": 1e3 * float(np.quantile(delays, 0.99)),
        "delay, largest [ms]": 1e3 * max(delays),
    }
