"""``benchmark [BAG]``: what an estimate costs on this computer, and whether it holds the rate of the joint states."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from friction_estimator.cli.arguments import (
    add_robot_arguments,
    add_shared_options,
    print_table,
    progress_bar,
    robot_of,
)
from friction_estimator.errors import BagError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import recorded_inputs
from friction_estimator.kernels import compiler
from friction_estimator.messages.sensors import InputReader
from friction_estimator.tables import Column, make_table, number
from friction_estimator.types import FrictionEstimate

_UNTIMED = 2.0
"""First part of a bag, whose messages are used without a pause and are not timed [s]."""
_WALK_DURATION = 12.0
"""Duration of the simulated walk [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``benchmark``."""
    parser.add_argument("bag", type=Path, nargs="?", help="rosbag2 of the robot; without it a walk is simulated")
    add_robot_arguments(parser)
    add_shared_options(parser, "observer", "namespace")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Play the bag in real time into an estimator, and print what an estimate costs."""
    from friction_estimator.api.simulate import simulate  # MuJoCo is needed here only

    robot = robot_of(arguments, observer=arguments.observer)
    with tempfile.TemporaryDirectory(prefix="friction_estimator_benchmark_") as folder:
        bag = arguments.bag
        if bag is None:
            bag = Path(folder) / "walk"
            with progress_bar("simulating") as progress:
                simulate(robot, duration=_WALK_DURATION, progress=progress).save(bag)
        estimator = Estimator(robot.config, robot.urdf_xml)
        figures = _measure(estimator, BagReader(bag, arguments.namespace))
    if arguments.json:
        print(json.dumps({"robot": robot.name, "observer": robot.config.observer, **figures}, indent=2))
        return
    title = f"{robot.name}, {len(estimator.joint_names)} joints, observer {robot.config.observer}"
    rows = ((name, number(value)) for name, value in figures.items())
    print_table(make_table(title, ("", Column("measured")), rows))
    period = 1e3 / figures["joint states [Hz]"]
    late = figures["delay, p99 [ms]"] > period
    print(
        f"99 % of the estimates are ready {figures['delay, p99 [ms]']:.2f} ms after their joint state, "
        f"{'more' if late else 'less'} than its period of {period:.2f} ms: this computer "
        f"{'does not hold' if late else 'holds'} the rate. A node needs further time for its messages; `/diagnostics` "
        "shows it, status `load`."
    )


def _measure(estimator: Estimator, reader: BagReader) -> dict[str, float]:
    """Rate, CPU time and delay of the estimates, by name with unit.

    Between two messages the process sleeps as that of a robot does: the caches are then as cold as there.
    """
    inputs, _ = recorded_inputs(reader, estimator.config)
    by_topic = InputReader(estimator.config, estimator.joint_names).by_topic
    readers = {topic: by_topic[name] for name, topic in inputs.items()}
    compiler.prepare()
    estimates: list[FrictionEstimate] = []
    costs, delays, cost, begun, last = [], [], 0.0, 0.0, 0.0
    for message in reader.messages(readers):
        at = 1e-9 * (message.time_ns - reader.start_ns) - _UNTIMED
        if at >= 0.0:
            begun = begun or time.perf_counter() - at
            time.sleep(max(0.0, begun + at - time.perf_counter()))
        before, estimates = time.thread_time(), []
        with suppress(InputError):  # counted and left out by node and replay as well
            estimates = estimator.add(readers[message.topic](message.raw))
        cost += time.thread_time() - before
        if at < 0.0:
            cost = 0.0
        elif estimates:
            costs.append(cost / len(estimates))
            delays.append(time.perf_counter() - begun - at)
            cost, last = 0.0, at
    if not costs:
        raise BagError(f"{reader.path} gives no estimate later than {_UNTIMED:g} s: give a longer bag of walking")
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
