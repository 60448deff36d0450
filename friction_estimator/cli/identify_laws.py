"""Friction laws of `identify`: those of ``--law``, else those that the robot's live node has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase

from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.robot import Robot
from friction_estimator.laws import make_law

DEFAULT_LAW = "coulomb_viscous"


def laws_of(arguments: argparse.Namespace, robot: Robot | None) -> tuple[str, tuple[str, ...]]:
    """Law of all joints, and exceptions ``JOINT=LAW``: of ``--law``, else those that the robot's live node has."""
    common = [entry for entry in arguments.law if "=" not in entry]
    if len(common) > 1:
        raise ConfigError(f"--law names {choices(common)} for all joints: one of them, others as JOINT=LAW")
    live = DEFAULT_LAW if robot is None else robot.config.friction_law
    if arguments.law or robot is None:
        return (common[0] if common else live), tuple(entry for entry in arguments.law if "=" in entry)
    return live, robot.config.identifier.joint_laws


def law_in_words(arguments: argparse.Namespace, robot: Robot | None) -> str:
    """Why this law, in a sentence; empty when it was told."""
    if arguments.law:
        return ""
    law, _ = laws_of(arguments, robot)
    return f"law {law}: " + ("the simplest one" if robot is None else "what the live node takes for this robot")


def law_of_each(law: str, exceptions: Sequence[str], joint_names: Sequence[str]) -> tuple[str, ...]:
    """One law a joint (n), nonlinear ones too.

    Raises
    ------
    ConfigError
        When a law is unknown, or a pattern matches no joint.
    """
    names = [law] * len(joint_names)
    for entry in exceptions:
        pattern, _, special = (part.strip() for part in entry.partition("="))
        rows = [row for row, joint in enumerate(joint_names) if fnmatchcase(joint, pattern)]
        if not rows:
            raise ConfigError(f"the law {entry!r}: no joint or motor is called so; there are {choices(joint_names)}")
        for row in rows:
            names[row] = special
    for name in names:
        make_law(name)
    return tuple(names)
