"""``simulate``: the walking biped, with sensors and ground truth, into a bag, or random walks into a data set."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from friction_estimator.api.simulate import make_simulator, simulated, write_simulation
from friction_estimator.cli.arguments import (
    add_robot_arguments,
    add_simulation_arguments,
    progress_bar,
    robot_of,
    warn,
    whole_number,
)
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.learning.walks import UNCERTAINTIES, RandomWalks, write_walks
from friction_estimator.ros.processes import core_count
from friction_estimator.simulation import PERIOD_NS

LONGEST_WALK = 20.0
"""Of a data set: each walk has its own gait, and one in which the robot falls is lost as a whole [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-o", "--output", type=Path, help="folder of the bag to write")
    target.add_argument(
        "--dataset",
        type=Path,
        metavar="FOLDER",
        help="write random walks as training data of MOB-Net instead; an interrupted data set is continued",
    )
    add_robot_arguments(parser)
    add_simulation_arguments(parser, duration=20.0)
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    parser.add_argument("--overwrite", action="store_true", help="replace an older bag of that name")
    walks = parser.add_argument_group("data sets", "Lim et al. 2024, sections 4.3 and 5.1")
    walks.add_argument(
        "--uncertainty",
        choices=UNCERTAINTIES,
        default="all",
        help="errors: none; sensor noise; sensor noise, friction and a nominal model that is 10 %% too light",
    )
    walks.add_argument(
        "--no-exploration",
        dest="exploration",
        action="store_false",
        help="no random torques: walks for tests",
    )
    walks.add_argument("--jobs", type=whole_number(1), default=core_count(), help="walks simulated at the same time")


def run(arguments: argparse.Namespace) -> None:
    """Simulate and write."""
    if arguments.dataset is not None:
        write_dataset(arguments)
        return
    robot, duration = robot_of(arguments), arguments.duration
    simulator, source = make_simulator(robot, arguments.scenario, duration, arguments.noise, arguments.seed)
    with progress_bar("simulating") as progress:
        samples, messages = write_simulation(
            arguments.output,
            simulated(simulator, duration, progress),
            robot,
            simulator.joint_names,
            source,
            arguments.storage,
            arguments.overwrite,
        )
    print(f"{arguments.output}: {samples * PERIOD_NS * 1e-9:.3f} s, {messages} messages")


def write_dataset(arguments: argparse.Namespace) -> None:
    """Random walks of together ``--duration``, the longest ones of :data:`LONGEST_WALK`."""
    length = min(arguments.duration, LONGEST_WALK)
    walks = RandomWalks(arguments.uncertainty, arguments.noise, arguments.seed, length, arguments.exploration)
    count = math.ceil(arguments.duration / length - 1e-9)
    with progress_bar("simulating walks") as progress:
        dataset = write_walks(arguments.dataset, robot_of(arguments), walks, count, arguments.jobs, progress)
    for shard in dataset.shards.values():
        if shard["reason"]:
            warn(f"{shard['source']} is left out: {shard['reason']}")
    print(f"{arguments.dataset}: {dataset.sample_count} samples")
