"""Options that several verbs share."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.files.robot import Robot, load_robot
from friction_estimator.files.yaml_document import parse_value


def add_robot_arguments(
    parser: argparse.ArgumentParser,
    default: str | None = "suralp",
    what: str = "name of a robot in config/robots, or the path of its YAML",
) -> None:
    """``--robot`` and ``--set``."""
    parser.add_argument("--robot", default=default, help=what)
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="replace one parameter of the robot, e.g. identifier.phases=all; may be repeated",
    )


def robot_of(arguments: argparse.Namespace, **overrides: Any) -> Robot:
    """Load the robot that was asked for; an override of None changes nothing."""
    given = {name: value for name, value in overrides.items() if value is not None}
    return load_robot(arguments.robot, {**given, **dict(arguments.settings)})


def warn(text: str) -> None:
    """One line on stderr."""
    print(f"friction_estimator: warning: {text}", file=sys.stderr)


def random_seed(text: str) -> int:
    """Type of an option that is a seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: a whole number from 0 on")
    return int(text)


def positive_seconds(text: str) -> float:
    """Type of an option that is a duration [s]."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, parse_value(value)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
