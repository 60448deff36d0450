"""``simulate -o BAG``: the walking biped, with sensors and ground truth, into a bag."""

from __future__ import annotations

import argparse
from pathlib import Path

from friction_estimator.api.simulate import make_simulator, simulated, write_simulation
from friction_estimator.cli.arguments import add_robot_arguments, positive_seconds, progress_bar, random_seed, robot_of
from friction_estimator.io.bags.writer import STORAGES
from friction_estimator.simulation import PERIOD_NS, noise_names, scenario_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bag to write")
    add_robot_arguments(parser)
    parser.add_argument("--scenario", choices=scenario_names(), default="walk", help="motion of the robot")
    parser.add_argument("--noise", choices=noise_names(), default="paper_std", help="sensor noise level")
    parser.add_argument("--duration", type=positive_seconds, default=20.0, help="simulated time [s]")
    parser.add_argument(
        "--seed", type=random_seed, default=0, help="random seed of the sensor noise; the same seed gives the same bag"
    )
    parser.add_argument("--storage", choices=STORAGES, default=STORAGES[0], help="file format of the bag")
    parser.add_argument("--overwrite", action="store_true", help="replace an older bag of that name")
    parser.add_argument(
        "--fleet",
        type=_fleet,
        metavar="ROBOTSxDAYS",
        help="write a folder with the bags of a fleet instead: so many robots, for so many days one walk a day of at "
        "most DURATION, with wear, a maintenance, the temperature of the day and two broken bags",
    )


def _fleet(text: str) -> tuple[int, int]:
    robots, _, days = text.partition("x")
    if not (robots.isdecimal() and days.isdecimal() and int(robots) and int(days)):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ROBOTSxDAYS, such as 3x10")
    return int(robots), int(days)


def run(arguments: argparse.Namespace) -> None:
    """Simulate and write."""
    robot, duration = robot_of(arguments), arguments.duration
    if arguments.fleet is not None:
        from friction_estimator.fleet.simulated import FleetPlan, simulate_fleet

        with progress_bar("simulating") as progress:
            robots, days = arguments.fleet
            plan = FleetPlan(robots, days, duration, arguments.seed)
            count = simulate_fleet(arguments.output, robot, plan, progress)
        print(f"{arguments.output}: {count} bags, two of them broken, and fleet.yaml")
        return
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
