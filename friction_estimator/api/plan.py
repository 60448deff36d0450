"""``plan_excitation``: a motion that shows the parameters of an arm, to move along while recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from friction_estimator.errors import ConfigError, choices
from friction_estimator.identification import excitation
from friction_estimator.identification.excitation import ExcitationOptions, ExcitationPlan
from friction_estimator.identification.excitation_trajectory import LIGHT, limits_of_urdf, planned_joints
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.io.bags.writer import TRAJECTORY_TOPIC, write_trajectory_bag
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.io.table_files import write_trajectory_csv
from friction_estimator.robot.urdf import movable_joints, parse_urdf
from friction_estimator.types import AnyPath, Progress


def plan_excitation(
    robot: AnyPath | Robot,
    *,
    joints: Sequence[str] | None = None,
    max_velocity: float | None = None,
    max_acceleration: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> ExcitationPlan:
    """Plan a motion from which friction and inertia of a robot with a fixed base can be identified.

    Parameters
    ----------
    robot : path of a URDF, name or YAML of a robot with a fixed base, or a loaded robot
    joints : joints that move; None: all that carry a noticeable mass. The others stand still at zero
    max_velocity, max_acceleration : for all joints, below the limits of the URDF [rad/s, rad/s^2]
    progress : called with the amount of finished work, and with the whole
    options : fields of :class:`~friction_estimator.identification.excitation.ExcitationOptions`, e.g.
        ``duration=20.0``

    Returns
    -------
    ExcitationPlan
        Arrays ``time`` (N,), ``position``, ``velocity``, ``acceleration``, ``torque`` (N, n).

    Raises
    ------
    ConfigError
        When the robot walks, has no acceleration limit, or an option is unknown or out of range.
    """
    chosen = as_robot(robot)
    if not chosen.config.robot.fixed_base:
        raise ConfigError(
            f"the robot {chosen.name!r} walks: motions are planned for robots with a fixed base only, because nothing "
            "keeps this one from falling; give the URDF of an arm, or of a leg that hangs in a stand"
        )
    movable = movable_joints(parse_urdf(chosen.urdf_xml))
    names, light = (tuple(joints), ()) if joints else planned_joints(chosen.urdf_xml, movable)
    model = FixedBaseModel(chosen.urdf_xml, names)
    limits = limits_of_urdf(model, max_velocity, max_acceleration)
    plan = excitation.optimize_excitation(model, limits, _options(options), progress)
    if not light:
        return plan
    text = (
        f"joints that stand still: {', '.join(light)}; below {LIGHT:.1%} of the moving mass is behind them, as "
        "behind fingers"
    )
    return replace(plan, choices=(text, *plan.choices))


def write_plan(path: AnyPath, plan: ExcitationPlan, *, topic: str = TRAJECTORY_TOPIC, overwrite: bool = False) -> Path:
    """Write a plan as ``<path>.csv`` and as rosbag2 ``<path>`` with a JointTrajectory; return the path of the .csv.

    Raises
    ------
    ConfigError
        When bag or table exists already.
    """
    bag, table = plan_files(path, overwrite)
    write_trajectory_csv(table, plan)
    write_trajectory_bag(bag, plan, topic=topic, overwrite=overwrite)
    return table


def plan_files(path: AnyPath, overwrite: bool) -> tuple[Path, Path]:
    """Paths of the bag (a folder) and the table (.csv) of a plan, from the path of either of the two.

    Raises
    ------
    ConfigError
        When bag or table exists already, and ``overwrite`` is False.
    """
    given = Path(path)
    bag = given.with_suffix("") if given.suffix == ".csv" else given
    table = bag.with_name(f"{bag.name}.csv")
    for place in (bag, table):
        if place.exists() and not overwrite:
            raise ConfigError(
                f"{place} exists already: choose another name, or replace it (overwrite=True, --overwrite)"
            )
    return bag, table


def _options(given: dict[str, Any]) -> ExcitationOptions:
    unknown = set(given) - set(ExcitationOptions.__dataclass_fields__)
    if unknown:
        raise ConfigError(
            f"planning has no option {choices(unknown)}; there are {choices(ExcitationOptions.__dataclass_fields__)}"
        )
    return ExcitationOptions(**given)
