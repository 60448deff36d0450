"""Everything that can go wrong in friction_estimator, under one root.

A message names what was wrong, what was expected and, where there is a choice, names the valid choices.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

_Entry = TypeVar("_Entry")


class FrictionEstimatorError(Exception):
    """Root of all errors raised on purpose by this package."""


class ConfigError(FrictionEstimatorError):
    """A parameter is unknown, missing, of the wrong type or out of range."""


class RobotModelError(FrictionEstimatorError):
    """The URDF cannot be read, or a joint, frame or foot is not in it."""


class InputError(FrictionEstimatorError):
    """A sensor message cannot be used: wrong length, missing joint, NaN, wrong frame."""


class BagError(FrictionEstimatorError):
    """A rosbag2 is missing, empty, truncated, or lacks a needed topic."""


class SimulationError(FrictionEstimatorError):
    """The simulated robot fell, or a scenario or noise level is unknown."""


class LearningError(FrictionEstimatorError):
    """A data set or a model cannot be read, or belongs to another robot."""


class MissingPackageError(FrictionEstimatorError, ImportError):
    """A Python package of an extra is not installed."""


_PACKAGES = {"pinocchio": "pin", "rclpy": "ros-rclpy", "rerun": "rerun-sdk", "foxglove": "foxglove-sdk"}
"""Names of packages that differ from that of their module."""
_REQUIREMENT = re.compile(r"(?P<package>[^;]*?) *;.*extra == ['\"](?P<extra>\w+)['\"].*")


def missing_package(error: ModuleNotFoundError) -> str:
    """One line with the command that installs the packages of the extra that has a missing one."""
    from importlib import metadata

    name = (error.name or "").split(".")[0]
    package = _PACKAGES.get(name, name)
    wanted = [_REQUIREMENT.fullmatch(line) for line in metadata.requires("friction_estimator") or ()]
    extras = [(found["extra"], found["package"]) for found in wanted if found]
    extra = next((extra for extra, line in extras if re.split(r"[^\w-]", line)[0] == package), None)
    if extra is None:
        raise error
    needed = " ".join(f"'{line}'" for other, line in extras if other == extra)
    return f"the Python package {name!r} is missing: {sys.executable} -m pip install {needed}"


@contextmanager
def extra_packages() -> Iterator[None]:
    """Turn a failed import of a package of an extra in a ``with`` block into an error that names its remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(missing_package(error)) from None


@contextmanager
def located(place: object) -> Iterator[None]:
    """Put ``place``, such as a file name, in front of the messages of errors of this package in a ``with`` block."""
    try:
        yield
    except FrictionEstimatorError as error:
        raise type(error)(f"{place}: {error}") from None


@contextmanager
def file_errors(action: str, kind: type[FrictionEstimatorError] = ConfigError) -> Iterator[None]:
    """Turn an ``OSError`` in a ``with`` block into an error such as ``cannot write the report x.html: No space left``.

    Parameters
    ----------
    action : what cannot be done, e.g. ``write the report x.html``
    kind : class of the error
    """
    try:
        yield
    except OSError as error:
        raise kind(f"cannot {action}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise kind(f"cannot {action}: it is not a UTF-8 text") from None


_MAX_NAMES, _MAX_NAME_LENGTH = 60, 100
"""Names that a message lists at most, and characters of each: a topic may hold thousands, and diagnostics repeat it."""


def choices(names: Iterable[str]) -> str:
    """List names for an error message, sorted and quoted; of very many the first ones and the number of the others."""
    listed = sorted(names)
    more = len(listed) - _MAX_NAMES
    text = ", ".join(repr(name[:_MAX_NAME_LENGTH]) for name in listed[:_MAX_NAMES])
    return f"{text} and {more} more" if more > 0 else text or "(none)"


def lookup(
    table: Mapping[str, _Entry], name: str, what: str, kind: type[FrictionEstimatorError] = ConfigError
) -> _Entry:
    """Entry ``name`` of a table; where there is none, an error that lists the names of all entries is raised.

    Parameters
    ----------
    what : kind of the entries in words, e.g. ``friction law``
    kind : class of the error
    """
    if name not in table:
        raise kind(f"unknown {what} {name!r}; the {what.split()[-1]}s are {choices(table)}")
    return table[name]
