"""Friction laws of `identify`: those of ``--law``, else those that the robot's live node has."""

from __future__ import annotations

import argparse

from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.robot import Robot

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
