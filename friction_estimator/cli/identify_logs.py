"""Experiments of `identify`: logs of the same joints from bags and tables, with their payloads."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from friction_estimator.cli.arguments import warn
from friction_estimator.cli.identify_coupling import couplings_of, places_of_motors
from friction_estimator.cli.identify_robot import common_joints, movable_joints, robot_of_bag
from friction_estimator.cli.progress import progress_bar
from friction_estimator.errors import InputError, choices
from friction_estimator.identification.joint_log import JointLog, Payload
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.recording import JOINT_STATES, joint_log_from_bag
from friction_estimator.io.joint_log import SUFFIXES, joint_log_from_table
from friction_estimator.io.robot import Robot, load_robot


@dataclass(frozen=True, slots=True)
class Experiments:
    """What is identified from.

    Attributes
    ----------
    logs : one a file, with payloads, all of the same joints
    robot : that was named, or that a bag names; None when there is none
    notes : what was decided on the way, in sentences
    """

    logs: tuple[JointLog, ...]
    robot: Robot | None
    notes: tuple[str, ...]


def read_experiments(arguments: argparse.Namespace, robot: Robot | None) -> Experiments:
    """Read every file.

    Raises
    ------
    FrictionEstimatorError
        When a file cannot be read, or a payload belongs to none of them.
    """
    notes: list[str] = []
    logs = []
    for path in arguments.data:
        log, found = _read(path, arguments, robot, notes)
        robot = robot or found
        logs.append(log)
    logs = _selected(_named_apart(arguments.data, logs), arguments, robot, notes)
    return Experiments(tuple(_loaded(logs, arguments.payload)), robot, tuple(notes))


def is_table(path: Path) -> bool:
    """Whether a file is a table of numbers; everything else is taken for a bag."""
    return path.suffix.lower() in SUFFIXES


def _read(
    path: Path, arguments: argparse.Namespace, robot: Robot | None, notes: list[str]
) -> tuple[JointLog, Robot | None]:
    """One log, and the robot that the bag names where none was given."""
    if is_table(path):
        only = arguments.joints
        if only is None and robot is not None and len(movable_joints(robot.urdf_xml)) == 1:
            only = movable_joints(robot.urdf_xml)  # bare columns are those of the only joint
        return joint_log_from_table(path, only, places_of_motors(couplings_of(arguments, robot))), None
    topic = robot.config.output.joint_states_topic if robot is not None else JOINT_STATES
    reader = BagReader(path, arguments.namespace)
    if reader.damage:
        warn(reader.damage)
    with progress_bar(f"reading {path.name}") as progress:
        log = joint_log_from_bag(path, topic, arguments.joints, namespace=arguments.namespace, progress=progress)
    name = robot_of_bag(reader.custom_data) if robot is None else None
    if name is None:
        return log, None
    notes.append(f"{path.name} says that it is of the robot {name!r}: taken, as --robot names no other")
    return log, load_robot(name, dict(arguments.settings))


def _named_apart(paths: Sequence[Path], logs: Sequence[JointLog]) -> list[JointLog]:
    """Logs whose files have the same name are called by folder and name."""
    parts = [[*path.expanduser().absolute().parts[:-1], log.name] for path, log in zip(paths, logs, strict=True)]
    names = [log.name for log in logs]
    depth = 1
    while len(set(names)) < len(names) and depth < max(map(len, parts)):
        depth += 1
        names = [
            "/".join(part[-depth:]) if names.count(name) > 1 else name for part, name in zip(parts, names, strict=True)
        ]
    if len(set(names)) < len(names):
        raise InputError("the same file was given twice: every experiment counts once")
    return [replace(log, name=name) for log, name in zip(logs, names, strict=True)]


def _selected(
    logs: Sequence[JointLog], arguments: argparse.Namespace, robot: Robot | None, notes: list[str]
) -> list[JointLog]:
    """The same joints of every log: those that all of them and the robot have."""
    names = arguments.joints or _common(logs)
    if robot is not None:
        names = common_joints(names, robot.urdf_xml, logs[0].name)
        missing = [name for name in movable_joints(robot.urdf_xml) if name not in names]
        if missing and robot.config.robot.fixed_base:
            warn(f"the robot's joints {choices(missing)} are not in the data: they are taken to stand still at zero")
    left_out = {name for log in logs for name in log.joint_names} - set(names)
    if left_out:
        notes.append(f"joints that not every file and the robot have are left out: {', '.join(sorted(left_out))}")
    return [log.select(names) for log in logs]


def _common(logs: Sequence[JointLog]) -> tuple[str, ...]:
    """Joints that all logs have."""
    names = logs[0].joint_names
    for log in logs[1:]:
        names = tuple(name for name in names if name in log.joint_names)
    if not names:
        raise InputError("the files have no joint in common: identify them one by one")
    return names


def _loaded(logs: Sequence[JointLog], payloads: Sequence[tuple[str, Payload]]) -> list[JointLog]:
    """Logs with the payloads of ``--payload``."""
    names = [log.name for log in logs]
    unknown = [experiment for experiment, _ in payloads if experiment not in names]
    if unknown:
        raise InputError(f"--payload names the experiment {choices(unknown)}; the experiments are {choices(names)}")
    twice = [experiment for experiment, _ in payloads if [name for name, _ in payloads].count(experiment) > 1]
    if twice:
        raise InputError(f"--payload is given twice for the experiment {choices(set(twice))}: one body each")
    carried = dict(payloads)
    return [replace(log, payload=carried.get(log.name, log.payload)) for log in logs]
