"""``plan ROBOT -o OUT``: a motion that shows friction and inertia of an arm, to move along while recording."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator.api.plan import plan_excitation, plan_files, write_plan
from friction_estimator.cli.arguments import (
    OptionTable,
    add_options,
    add_shared_options,
    finite,
    given,
    names_of,
    progress_bar,
    random_seed,
)
from friction_estimator.identification.excitation import ExcitationOptions
from friction_estimator.io.bags.writer import TRAJECTORY_TOPIC

_DEFAULTS = ExcitationOptions()
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plan``."""
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


def run(arguments: argparse.Namespace) -> None:
    """Plan a motion, write it as a bag and a table, and print its quality."""
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
