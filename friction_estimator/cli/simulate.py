"""``simulate -o BAG``: a bag of the walking biped, with ground truth."""

from __future__ import annotations

import argparse

from friction_estimator.cli.arguments import (
    add_output_options,
    add_robot_arguments,
    add_simulation_arguments,
    given,
    progress_bar,
    robot_of,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``simulate``."""
    add_robot_arguments(parser)
    add_simulation_arguments(parser, duration=20.0)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Simulate a walk, and write it as a bag."""
    from friction_estimator.api.simulate import make_simulator, simulated, write_simulation
    from friction_estimator.simulation import PERIOD_NS

    robot, duration = robot_of(arguments), arguments.duration
    simulator, source = make_simulator(robot, arguments.scenario, duration, arguments.noise, arguments.seed)
    with progress_bar("simulating") as progress:
        samples, messages = write_simulation(
            arguments.output,
            simulated(simulator, duration, progress),
            robot,
            simulator.joint_names,
            source,
            **given(arguments, "storage", "overwrite"),
        )
    print(f"{arguments.output}: {samples * PERIOD_NS * 1e-9:.3f} s, {messages} messages")
