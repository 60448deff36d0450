"""``plan ROBOT -o OUT``: a motion of an arm that shows its friction and inertia, to move along while recording."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator.api.plan import plan_excitation, plan_files, write_plan
from friction_estimator.cli.arguments import finite, names_of, progress_bar, random_seed
from friction_estimator.identification.excitation import ExcitationOptions
from friction_estimator.io.bags.writer import TRAJECTORY_TOPIC

_DEFAULTS = ExcitationOptions()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plan`` to its parser."""
    parser.add_argument("robot", help="URDF of something with a fixed base, or name or YAML of such a robot")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="writes OUT.csv, and the bag OUT with a trajectory_msgs/JointTrajectory",
    )
    parser.add_argument(
        "--joints",
        type=names_of,
        metavar="NAME,...",
        help="joints that move; when not given, all that carry a noticeable mass",
    )
    parser.add_argument("--duration", type=finite, default=_DEFAULTS.duration, help="duration of the series [s]")
    parser.add_argument("--bandwidth", type=finite, default=_DEFAULTS.bandwidth, help="highest frequency of it [Hz]")
    parser.add_argument("--harmonics", type=int, default=_DEFAULTS.harmonics, help="number of its frequencies")
    parser.add_argument("--starts", type=int, default=_DEFAULTS.seeds, help="number of starts of the search")
    parser.add_argument("--seed", type=random_seed, default=_DEFAULTS.seed, help="random seed of these starts")
    parser.add_argument("--margin", type=finite, default=_DEFAULTS.margin, help="fraction of every limit that is used")
    parser.add_argument(
        "--max-velocity", type=finite, help="velocity limit of all joints, below those of the URDF [rad/s]"
    )
    parser.add_argument(
        "--max-acceleration", type=finite, help="acceleration limit of all joints; a URDF has none [rad/s^2]"
    )
    parser.add_argument("--known-inertia", action="store_true", help="only friction will be identified")
    parser.add_argument("--topic", default=TRAJECTORY_TOPIC, help="topic of the trajectory in the bag")
    parser.add_argument("--overwrite", action="store_true", help="replace an older plan")


def run(arguments: argparse.Namespace) -> None:
    """Plan, write, print."""
    bag, table = plan_files(arguments.output, arguments.overwrite)
    with progress_bar("planning") as progress:
        plan = plan_excitation(
            arguments.robot,
            joints=arguments.joints,
            max_velocity=arguments.max_velocity,
            max_acceleration=arguments.max_acceleration,
            progress=progress,
            duration=arguments.duration,
            bandwidth=arguments.bandwidth,
            harmonics=arguments.harmonics,
            seeds=arguments.starts,
            seed=arguments.seed,
            margin=arguments.margin,
            known_inertia=arguments.known_inertia,
        )
    write_plan(arguments.output, plan, topic=arguments.topic, overwrite=arguments.overwrite)
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
