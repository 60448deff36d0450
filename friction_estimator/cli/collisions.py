"""``collisions BAG...``: thresholds of normal walking, or the collisions that they show."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from friction_estimator.cli.arguments import (
    add_robot_arguments,
    add_shared_options,
    mob_net_estimator,
    print_table,
    progress_bar,
    robot_of,
    warn,
)
from friction_estimator.collision.detector import (
    Collision,
    CollisionDetector,
    ThresholdLearner,
    Thresholds,
    load_thresholds,
    torque_source,
)
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.parameters import load_parameters, save_parameters
from friction_estimator.io.robot import Robot
from friction_estimator.kernels import compiler
from friction_estimator.laws.identified import IdentifiedParameters
from friction_estimator.learning.external_torque import MobNetEstimate, base_wrench
from friction_estimator.messages.recording import Recording
from friction_estimator.robot.model import RobotModel
from friction_estimator.tables import Column, Table, make_table, number
from friction_estimator.types import FloatArray, FrictionEstimate

if TYPE_CHECKING:
    from friction_estimator.simulation import Scenario

_NORMAL_WALK_DURATION, _IDENTIFICATION_TIME = 40.0, 20.0
"""Length of the walk that shows the thresholds, and of its part in which the friction is identified [s]."""
_DETECTED_WITHIN = 0.1
"""A detection this long after the end of a push belongs to it [s]."""


@dataclass(slots=True)
class Found:
    """A collision in a bag, and the largest force on the base while it lasts, which only MOB-Net gives."""

    bag: Path
    seconds: float
    collision: Collision
    force: FloatArray | None = None

    def note(self, wrench: FloatArray | None) -> None:
        """Keep the force of a wrench (6,) on the base [N, N m] if it is larger than before."""
        if wrench is not None and (
            self.force is None or np.dot(wrench[:3], wrench[:3]) > np.dot(self.force, self.force)
        ):
            self.force = wrench[:3]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``collisions``."""
    parser.add_argument("bags", type=Path, nargs="+", help="rosbags with joint states, IMU and foot wrenches")
    parser.add_argument("--thresholds", type=Path, required=True, help="YAML of the thresholds")
    parser.add_argument(
        "--learn", action="store_true", help="write the thresholds: the bags are normal walking without a collision"
    )
    add_robot_arguments(parser)
    add_shared_options(parser, "mob_net", "params", "namespace")


def run(arguments: argparse.Namespace) -> None:
    """Replay bags; learn collision thresholds from them, or detect and print collisions."""
    robot = robot_of(arguments)
    source = torque_source(robot.config, arguments.mob_net, arguments.mob_net_fused)
    start = load_parameters(arguments.params) if arguments.params else None
    replay_one = partial(_replay, arguments, robot, start)
    work = _learn if arguments.learn else _detect
    work(arguments, RobotModel(robot.config, robot.urdf_xml), source, replay_one)


_ReplayOne = Callable[[Path, Callable[[FrictionEstimate], Any]], None]
"""Function that hands every estimate of a bag to another one."""


def _learn(arguments: argparse.Namespace, model: RobotModel, source: str, replay_one: _ReplayOne) -> None:
    """Write and print the thresholds above which normal walking does not stay."""
    learner = ThresholdLearner(model)
    for bag in arguments.bags:
        replay_one(bag, learner.step)
    thresholds = learner.thresholds(source, with_sigma=arguments.mob_net is not None)
    thresholds.save(arguments.thresholds)
    print_table(_threshold_table(thresholds))
    print(f"thresholds written to {arguments.thresholds}")


def _detect(arguments: argparse.Namespace, model: RobotModel, source: str, replay_one: _ReplayOne) -> None:
    """Print the collisions in the bags."""
    thresholds = load_thresholds(arguments.thresholds)
    thresholds.check(model.joint_names, source)
    detector, found = CollisionDetector(model, thresholds), list[Found]()
    for bag in arguments.bags:
        replay_one(bag, _finder(bag, detector, found))
    print_table(_found_table(found))
    print(f"{len(found)} collision{'s' * (len(found) != 1)}")


def _finder(bag: Path, detector: CollisionDetector, found: list[Found]) -> Callable[[FrictionEstimate], None]:
    """Function that adds the collisions in the estimates of a bag."""
    start_ns: int | None = None

    def use(estimate: FrictionEstimate) -> None:
        nonlocal start_ns
        start_ns = estimate.stamp_ns if start_ns is None else start_ns
        seconds = 1e-9 * (estimate.stamp_ns - start_ns)
        found.extend(Found(bag, seconds, collision) for collision in detector.step(estimate))
        if detector.hit and isinstance(estimate, MobNetEstimate):
            found[-1].note(base_wrench(estimate.whole_body))

    return use


def _replay(
    arguments: argparse.Namespace,
    robot: Robot,
    start: IdentifiedParameters | None,
    bag: Path,
    use: Callable[[FrictionEstimate], Any],
) -> None:
    """Hand every estimate of a bag to a function."""
    estimator = mob_net_estimator(arguments, robot) or Estimator(robot.config, robot.urdf_xml)
    with progress_bar(f"reading {bag.name}") as progress:
        summary = replay_bag(
            bag,
            None,
            robot.config,
            robot.urdf_xml,
            on_estimate=use,
            start=start,
            namespace=arguments.namespace,
            estimator=estimator,
            progress=progress,
        )
    for text in summary.warnings:
        warn(f"{bag}: {text}")


def _threshold_table(thresholds: Thresholds) -> Table:
    """Thresholds of every joint."""
    groups = ("in the air", "in contact")
    columns = [Column(name, "N m", group) for group in groups for name in ("external torque", "sigma")]
    rows = zip(thresholds.joint_names, thresholds.values.reshape(4, -1).T.tolist(), strict=True)
    return make_table("Collision thresholds", ("joint", *columns), ((name, *map(number, of)) for name, of in rows))


def _found_table(found: list[Found]) -> Table:
    """One row a collision."""
    texts = ("bag", "limb", "joint", "signal", "state")
    columns: list[str | Column] = [*texts, Column("time", "s"), Column("value", "N m")]
    with_force = any(one.force is not None for one in found)
    columns += [Column(f"force {axis}", "N", "largest, in base axes") for axis in "xyz" if with_force]
    rows = []
    for one in found:
        hit = one.collision
        values = [one.bag.name, hit.limb, hit.joint, hit.signal, "in contact" if hit.in_contact else "in the air"]
        values += [f"{one.seconds:.3f}", f"{number(hit.value)} (above {number(hit.threshold)})"]
        if with_force:
            values += ["", "", ""] if one.force is None else [f"{value:.0f}" for value in one.force.tolist()]
        rows.append(values)
    return make_table("Collisions", columns, rows)


def learn_thresholds(robot: Robot, noise: str, seed: int, folder: Path) -> dict[str, object]:
    """Simulate a walk, identify its friction and learn thresholds from it.

    Parameters
    ----------
    robot : that can walk with the built-in gait
    noise, seed : sensor noise level, and random seed of the noise
    folder : where ``collision_thresholds.yaml`` and ``friction.yaml`` are written

    Returns
    -------
    Parameters of the node that name these files.
    """
    from friction_estimator.api.simulate import make_simulator, simulated

    config = robot.config
    simulator, _ = make_simulator(robot, "walk", _NORMAL_WALK_DURATION, noise, seed)
    estimator = Estimator(config, robot.urdf_xml)
    learner = ThresholdLearner(RobotModel(config, robot.urdf_xml))
    with progress_bar("walking normally, for the thresholds") as progress:
        compiler.prepare()
        for sample in simulated(simulator, _NORMAL_WALK_DURATION, progress):
            for reading in sample.readings:
                for estimate in estimator.add(reading):
                    if simulator.time > _IDENTIFICATION_TIME:
                        learner.step(estimate)
    thresholds, friction = folder / "collision_thresholds.yaml", folder / "friction.yaml"
    learner.thresholds(torque_source(config, None), with_sigma=False).save(thresholds)
    save_parameters(friction, estimator.identified)
    return {"collision_thresholds": str(thresholds), "identified_parameters": str(friction)}


def push_table(recording: Recording, scenario: Scenario) -> Table:
    """Table of the pushes of a scenario with the collision detected for each, and of collisions without a push."""
    columns = (Column("time", "s"), "link", Column("force", "N"), Column("delay", "ms"))
    rows, others = list[tuple[str, ...]](), list(recording.collisions)
    for push in scenario.pushes:
        end = push.start + push.duration + _DETECTED_WITHIN
        hits = [one for one in others if push.start <= one.time <= end]
        others = [one for one in others if one not in hits]
        delay, joint = (f"{1e3 * (hits[0].time - push.start):.0f}", hits[0].joint) if hits else ("not detected", "")
        rows.append((f"{push.start:.3f}", push.target, f"{math.hypot(*push.force):.0f}", delay, joint))
    rows += [(f"{one.time:.3f}", "no push", "", "", one.joint) for one in others]
    return make_table("Pushes and detected collisions", (*columns, "joint"), rows)
