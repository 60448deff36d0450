"""Every robot of config/robots: does it move in simulation, and how well is its friction found?

    python -m benchmarks.robots

Robots that walk: 12 s with the sensors ``paper_std``; relative errors of the friction from 4 s on, mean and largest of
the joints that move. Arms: those of the Coulomb friction that is identified from a planned motion of 10 s with known
friction and noise. Takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

import friction_estimator as fe
from benchmarks.shared.command import command, make_parser
from benchmarks.shared.pages import DOCS, Page, add_page, number, table
from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.io.robot import Robot, as_robot, robot_names
from friction_estimator.metrics import joint_errors
from friction_estimator.robot.model import RobotModel
from friction_estimator.robot.urdf import parse_urdf

PAGE = DOCS / "results" / "robots.md"
_DURATION, _SETTLED = 12.0, 4.0
_MOVES = 0.05
"""Root mean square velocity from which a joint counts as one that moves [rad/s]."""
_COULOMB, _VISCOUS, _NOISE = 0.03, 0.03, 0.005
"""Friction and noise of an arm, as parts of the effort limit: Coulomb, viscous at the velocity limit, noise."""


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all robots, and fill the page."""
    parser = make_parser("robots", __doc__)
    add_page(parser, PAGE, "robots")
    page: Page = parser.parse_args(arguments).output
    heading = ("robot", "joints", "contacts", "in simulation", "error / friction", "largest", "within 2 sigma")
    notes: list[str] = []
    rows = [row_of_robot(as_robot(name), notes) for name in robot_names()]
    page.fill("robots", [*table(heading, rows), *notes])
    return 0


def row_of_robot(robot: Robot, notes: list[str]) -> list[object]:
    """Cells of one robot; why it does not move in simulation becomes a note."""
    config = robot.config
    model = RobotModel(config, robot.urdf_xml)
    points = sum(foot.contact == "point" for foot in config.feet)
    contacts = f"{points} points" if points else f"{len(config.feet)} soles" if config.feet else "bolted"
    cells: list[object] = [f"`{robot.name}`", len(model.joint_names), contacts]
    try:
        moves, relative, inside = arm(robot, model.joint_names) if config.robot.fixed_base else walk(robot)
    except FrictionEstimatorError as error:
        notes.append(f"- `{robot.name}` does not move in simulation: {error}.")
        return [*cells, "no", "–", "–", "–"]
    percent = [f"{number(100.0 * value, 1)} %" for value in (np.mean(relative), np.max(relative))]
    return [*cells, moves, *percent, f"{number(100.0 * inside, 0)} %"]


def walk(robot: Robot) -> tuple[str, np.ndarray, float]:
    """Errors of the moving joints by their friction, and the part of the samples within two sigma."""
    result = fe.replay(fe.simulate(robot, duration=_DURATION))
    where = (result.time >= _SETTLED)[:, None] & (np.sqrt(np.mean(result.velocity**2, axis=0)) > _MOVES)
    assert result.truth is not None
    errors = joint_errors(result.friction, result.truth, result.sigma, where)
    moving = errors.truth_rms > 0.0
    inside = np.abs(result.friction - result.truth) < 2.0 * result.sigma
    return "walks", errors.relative_rmse[moving], float(np.mean(inside[where & np.isfinite(result.truth)]))


def arm(robot: Robot, joints: tuple[str, ...]) -> tuple[str, np.ndarray, float]:
    """Errors of Coulomb and viscous friction by their true values, and the part of them within two sigma."""
    limits = {str(one.get("name")): one.find("limit") for one in parse_urdf(robot.urdf_xml).findall("joint")}
    effort, speed = (
        np.array([float(limit.get(key, "nan")) for joint in joints if (limit := limits[joint]) is not None])
        for key in ("effort", "velocity")
    )
    plan = fe.plan_excitation(robot, joints=joints, duration=10.0, seeds=1, max_acceleration=10.0)
    model = FixedBaseModel(robot.urdf_xml, plan.joint_names)
    true = np.stack((_COULOMB * effort, _VISCOUS * effort / speed), axis=1)
    friction = true[:, 0] * np.sign(plan.velocity) + true[:, 1] * plan.velocity
    noise = _NOISE * effort * np.random.default_rng(0).standard_normal(friction.shape)
    torque = model.torque(plan.position, plan.velocity, plan.acceleration) + friction + noise
    log = fe.JointLog(robot.name, plan.joint_names, plan.time, plan.position, effort=torque)
    found = fe.identify(log, robot, law="coulomb_viscous")
    error = np.abs(found.values[:, :2] - true)
    return "planned motion", error[:, 0] / true[:, 0], float(np.mean(error < 2.0 * found.sigma[:, :2]))


if __name__ == "__main__":
    sys.exit(main())
