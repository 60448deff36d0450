"""``simulate``: the walking biped, with sensors and ground truth, into a bag."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.simulate import make_simulator, simulated, write_simulation
from friction_estimator.cli.arguments import (
    add_robot_arguments,
    add_simulation_arguments,
    progress_bar,
    robot_of,
)
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.simulation import PERIOD_NS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``simulate`` to its parser."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    add_robot_arguments(parser)
    add_simulation_arguments(parser, duration=20.0)
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    parser.add_argument("--overwrite", action="store_true", help="replace an older bag of that name")


def run(arguments: argparse.Namespace) -> None:
    """Simulate and write."""
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
