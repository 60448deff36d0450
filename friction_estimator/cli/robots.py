"""Verbs for a new robot: ``init`` writes its YAML, ``plan`` a motion; ``benchmark`` tests its computer."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from friction_estimator import compiled
from friction_estimator.api.plan import plan_excitation, plan_files, write_plan
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_robot_arguments,
    add_shared_options,
    finite,
    given,
    names_of,
    print_table,
    progress_bar,
    random_seed,
    robot_of,
    warn,
)
from friction_estimator.errors import BagError, ConfigError, InputError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.identification.excitation import ExcitationOptions
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.replay import recorded_inputs, replay_bag
from friction_estimator.io.bags.writer import TRAJECTORY_TOPIC
from friction_estimator.io.documents import write_atomically
from friction_estimator.io.new_robot import guess_robot
from friction_estimator.io.robot import Robot, as_robot, read_urdf
from friction_estimator.messages.sensors import InputReader
from friction_estimator.robot.model import RobotModel
from friction_estimator.tables import Column, make_table, number
from friction_estimator.types import FrictionEstimate

_CHECKED_TIME = 10.0
"""Length of the part of the bag that is estimated to check the YAML [s]."""
_UNTIMED = 2.0
"""First part of a bag, whose messages are used without a pause and are not timed [s]."""
_WALK_DURATION = 12.0
"""Duration of the simulated walk [s]."""
_DEFAULTS = ExcitationOptions()


_INIT: OptionTable = {
    "--bag": (Path, "rosbag2 of the robot: topics and frames are taken from it, and the YAML is checked"),
    "-o --output ROBOT.yaml": (Path, "file to write; when not given, named like the URDF"),
    "--yes": (True, "write the file without a question", False),
}


def init_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``init``."""
    parser.add_argument("urdf", type=Path, help="URDF of the robot")
    add_options(parser, _INIT)
    add_shared_options(parser, "namespace", "overwrite")


def run_init(arguments: argparse.Namespace) -> None:
    """Guess, ask, write, check."""
    urdf: Path = arguments.urdf.expanduser().resolve()
    output: Path = arguments.output or Path(f"{urdf.stem}.yaml")
    if output.exists() and not arguments.overwrite:
        raise ConfigError(f"{output} exists already: choose another name, or replace it (--overwrite)")
    bag = None if arguments.bag is None else BagReader(arguments.bag, arguments.namespace, _CHECKED_TIME)
    name = urdf.name if urdf.parent == output.resolve().parent else str(urdf)
    text = guess_robot(read_urdf(urdf), name, bag).yaml(output.stem)
    print(text)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"init asks before it writes {output}, and there is no terminal: add --yes")
        if input(f"write {output}? [y/N] ").strip().lower() not in ("y", "yes"):
            raise ConfigError(f"{output} is not written")
    write_atomically(output, text)
    robot = as_robot(output)
    joints = RobotModel(robot.config, robot.urdf_xml).joint_names
    print(f"{output}: friction of {len(joints)} joints")
    if bag is not None:
        _check(robot, bag)


def _check(robot: Robot, bag: BagReader) -> None:
    """Estimate the first seconds of the bag; print the findings, and the friction at their end."""
    newest: list[FrictionEstimate] = []

    def keep(estimate: FrictionEstimate) -> None:
        newest[:] = [estimate]

    with progress_bar(f"estimating the first {_CHECKED_TIME:g} s") as progress:
        summary = replay_bag(
            bag, None, robot.config, robot.urdf_xml, on_estimate=keep, namespace=bag.namespace, progress=progress
        )
    columns = ("joint", Column("friction", "N m"), Column("sigma", "N m"))
    rows = zip(summary.joint_names, newest[0].friction.tolist(), newest[0].sigma.tolist(), strict=True)
    cells = ((joint, number(friction), number(sigma)) for joint, friction, sigma in rows)
    title = f"Newest of {summary.estimates} estimates from {bag.path.name}"
    print_table(make_table(title, columns, cells))
    for finding in summary.warnings:
        warn(finding)


def benchmark_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``benchmark``."""
    parser.add_argument("bag", type=Path, nargs="?", help="rosbag2 of the robot; without it a walk is simulated")
    add_robot_arguments(parser)
    add_shared_options(parser, "observer", "namespace")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run_benchmark(arguments: argparse.Namespace) -> None:
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
    compiled.prepare()
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


_PLAN: OptionTable = {
    "--joints NAME,...": (names_of, "joints that move; when not given, all that carry a noticeable mass"),
    "--duration": (finite, "duration of the series [s]", _DEFAULTS.duration),
    "--bandwidth": (finite, "highest frequency of the series [Hz]", _DEFAULTS.bandwidth),
    "--harmonics": (int, "number of frequencies in the series", _DEFAULTS.harmonics),
    "--starts": (int, "number of starts of the search", _DEFAULTS.seeds),
    "--seed": (random_seed, "random seed of these starts", _DEFAULTS.seed),
    "--margin": (finite, "fraction of every limit that is used", _DEFAULTS.margin),
    "--max-velocity": (finite, "velocity limit of all joints, below those of the URDF [rad/s]"),
    "--max-acceleration": (finite, "acceleration limit of all joints; a URDF has none [rad/s^2]"),
    "--known-inertia": (True, "only friction will be identified", False),
    "--topic": (str, "topic of the trajectory in the bag", TRAJECTORY_TOPIC),
}
_PLANNING = (
    "joints", "max_velocity", "max_acceleration", "duration", "bandwidth", "harmonics", "seed", "margin",
    "known_inertia",
)  # fmt: skip
"""Options of ``plan`` that are keywords of :func:`plan_excitation`."""


def plan_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``plan``."""
    parser.add_argument("robot", help="URDF of something with a fixed base, or name or YAML of such a robot")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="writes OUT.csv, and the bag OUT with a trajectory_msgs/JointTrajectory",
    )
    add_options(parser, _PLAN)
    add_shared_options(parser, "overwrite")


def run_plan(arguments: argparse.Namespace) -> None:
    """Plan, write, print."""
    bag, table = plan_files(arguments.output, arguments.overwrite)
    with progress_bar("planning") as progress:
        keywords = given(arguments, *_PLANNING)
        plan = plan_excitation(arguments.robot, seeds=arguments.starts, progress=progress, **keywords)
    write_plan(arguments.output, plan, **given(arguments, "topic", "overwrite"))
    shrunk = np.exp(plan.planned.log_sigma - plan.random.log_sigma)
    print(f"- joints that move: {', '.join(plan.joint_names)}; --joints chooses others, and the rest stands at zero")
    for text in plan.choices:
        print(f"- {text}")
    print(f"- {len(plan.parameters)} parameters can be identified")
    start = ", ".join(f"{name} {value:.4f}" for name, value in zip(plan.joint_names, plan.position[0], strict=True))
    print(f"- move to the start first: {start}")
    print(f"duration          {plan.time[-1]:.2f} s")
    print(f"condition number  {plan.planned.condition:.1f}, random motion {plan.random.condition:.1f}")
    print(f"error bars        {shrunk:.2f} of those of random motion (geometric mean)")
    print(f"csv               {table}")
    print(f"bag               {bag}")
