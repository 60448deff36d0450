"""``identify --plan OUT``: what to move before recording."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from friction_estimator.cli.arguments import finite, random_seed
from friction_estimator.cli.identify_robot import identified_robot, movable_joints
from friction_estimator.cli.progress import progress_bar
from friction_estimator.errors import ConfigError
from friction_estimator.identification.excitation.motion_limits import LIGHT, limits_of_urdf, planned_joints
from friction_estimator.identification.excitation.planner import (
    CRITERIA,
    ExcitationOptions,
    ExcitationPlan,
    plan_excitation,
)
from friction_estimator.identification.rigid_body.fixed_base_model import FixedBaseModel
from friction_estimator.io.bags.writer import TRAJECTORY_TOPIC, write_trajectory_bag
from friction_estimator.io.joint_log import write_trajectory_csv
from friction_estimator.io.robot import Robot

_DEFAULTS = ExcitationOptions()


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of planning."""
    group = parser.add_argument_group("planning")
    group.add_argument(
        "--plan",
        type=Path,
        metavar="OUT",
        help="plan a motion that shows the parameters: OUT.csv, and the bag OUT with a trajectory_msgs/JointTrajectory",
    )
    group.add_argument("--duration", type=finite, default=_DEFAULTS.duration, help="of the Fourier series [s]")
    group.add_argument("--bandwidth", type=finite, default=_DEFAULTS.bandwidth, help="its highest frequency [Hz]")
    group.add_argument("--harmonics", type=int, default=_DEFAULTS.harmonics, help="how many frequencies it has")
    group.add_argument("--criterion", choices=CRITERIA, default=_DEFAULTS.criterion, help="what is minimised")
    group.add_argument("--starts", type=int, default=_DEFAULTS.seeds, help="how often the search starts anew")
    group.add_argument("--seed", type=random_seed, default=_DEFAULTS.seed, help="of these starts")
    group.add_argument("--margin", type=finite, default=_DEFAULTS.margin, help="fraction of every limit that is used")
    group.add_argument("--max-velocity", type=finite, help="for all joints, below the limits of the URDF [rad/s]")
    group.add_argument("--max-acceleration", type=finite, help="for all joints; a URDF has none [rad/s^2]")
    group.add_argument("--topic", default=TRAJECTORY_TOPIC, help="of the trajectory in the bag")
    group.add_argument("--overwrite", action="store_true", help="replace an older plan")


def run_plan(arguments: argparse.Namespace) -> None:
    """Plan and write."""
    robot = identified_robot(arguments)
    if robot is None:
        raise ConfigError("planning needs the robot: say --robot with the path of its URDF")
    _check_fixed(robot, arguments.robot)
    names, light = _joints(arguments.joints, robot.urdf_xml)
    limits = limits_of_urdf(robot.urdf_xml, names, arguments.max_velocity, arguments.max_acceleration)
    options = ExcitationOptions(
        duration=arguments.duration,
        bandwidth=arguments.bandwidth,
        harmonics=arguments.harmonics,
        criterion=arguments.criterion,
        seeds=arguments.starts,
        seed=arguments.seed,
        margin=arguments.margin,
        known_inertia=arguments.known_inertia,
    )
    bag = arguments.plan.with_suffix("") if arguments.plan.suffix == ".csv" else arguments.plan
    table = bag.with_name(f"{bag.name}.csv")
    for place in (bag, table):
        if place.exists() and not arguments.overwrite:
            raise ConfigError(f"{place} exists already: choose another name, or say --overwrite")
    with progress_bar("planning") as progress:
        plan = plan_excitation(FixedBaseModel(robot.urdf_xml, names), limits, options, progress)
    write_trajectory_csv(table, plan)
    write_trajectory_bag(bag, plan, topic=arguments.topic, overwrite=arguments.overwrite)
    _tell(plan, light, bag, table)


def _joints(wanted: tuple[str, ...] | None, urdf_xml: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints that move, and those that were left out without being asked."""
    return (wanted, ()) if wanted else planned_joints(urdf_xml, movable_joints(urdf_xml))


def _check_fixed(robot: Robot, name: str) -> None:
    if not robot.config.robot.fixed_base:
        raise ConfigError(
            f"the robot {name!r} walks: motions are planned for robots with a fixed base only, because nobody keeps "
            "this one from falling; give the URDF of an arm, or of a leg that hangs in a stand"
        )


def _tell(plan: ExcitationPlan, light: tuple[str, ...], bag: Path, table: Path) -> None:
    shrunk = np.exp(plan.planned.log_sigma - plan.random.log_sigma)
    print(f"- moved: {', '.join(plan.joint_names)}; --joints chooses others, and the rest stands at zero")
    if light:
        print(
            f"- not moved: {', '.join(light)}; below {LIGHT:.1%} of the moving mass is behind them, as behind fingers"
        )
    for text in plan.choices:
        print(f"- {text}")
    print(f"- {len(plan.parameters)} parameters can be told apart")
    start = ", ".join(f"{name} {value:.4f}" for name, value in zip(plan.joint_names, plan.position[0], strict=True))
    print(f"- move to the start first: {start}")
    print(f"duration          {plan.time[-1]:.2f} s")
    print(f"condition number  {plan.planned.condition:.1f}, random motion {plan.random.condition:.1f}")
    print(f"error bars        {shrunk:.2f} of those of random motion (geometric mean)")
    print(f"csv               {table}")
    print(f"bag               {bag}")
