"""Where the files that ship with this package, and those of other ROS packages, lie on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import friction_estimator
from friction_estimator.errors import ConfigError, choices

PACKAGE = "friction_estimator"


@cache
def share_directory() -> Path:
    """Folder with ``config/``, ``launch/`` and ``urdf/`` of this package.

    The source tree or installation that the running code itself comes from is tried first, so that code and files
    never belong to two versions; then the ament index, then the Python prefix.

    Raises
    ------
    ConfigError
        When no such folder is found: the installation is incomplete.
    """
    package = Path(friction_estimator.__file__).resolve().parent
    candidates = [package.parent, *(parent / "share" / PACKAGE for parent in package.parents)]
    candidates += _shares(PACKAGE)
    for candidate in candidates:
        if (candidate / "config" / "robots").is_dir() and (candidate / "urdf").is_dir():
            return candidate
    raise ConfigError(
        f"the files of {PACKAGE} (config, urdf) are missing: looked beside {package}, in AMENT_PREFIX_PATH and in "
        f"{sys.prefix}/share; install the package anew"
    )


def package_share(package: str) -> Path:
    """Share folder of any ROS package, as in ``package://<package>/...``.

    Raises
    ------
    ConfigError
        When the package is not installed here.
    """
    if package == PACKAGE:
        return share_directory()
    for candidate in _shares(package):
        if candidate.is_dir():
            return candidate
    raise ConfigError(
        f"no package {package!r} on this machine: looked in AMENT_PREFIX_PATH, in {sys.prefix}/share and among the "
        "Python packages; source the workspace that holds it, install it, or give the path of the file"
    )


def robot_names() -> tuple[str, ...]:
    """Names of the robots that ship with this package: the files of ``config/robots`` without suffix."""
    return tuple(sorted(path.stem for path in _robot_directory().glob("*.yaml")))


def robot_file(name_or_path: str | os.PathLike[str]) -> Path:
    """YAML file of a robot, by name or by path.

    Raises
    ------
    ConfigError
        When it is neither; the message lists the names.
    """
    name = os.fspath(name_or_path)
    if name in robot_names():
        return _robot_directory() / f"{name}.yaml"
    path = Path(name).expanduser()
    if path.is_file():
        return path.resolve()
    raise ConfigError(
        f"no robot {name!r}: no such file, and the robots of {PACKAGE} are {choices(robot_names())}; "
        "give one of these names or the path of a YAML file"
    )


def _robot_directory() -> Path:
    return share_directory() / "config" / "robots"


def _shares(package: str) -> Iterator[Path]:
    """Folders where a ROS or pip installation would keep the files of a package."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix) / "share" / package
    yield Path(sys.prefix) / "share" / package
    for entry in sys.path:
        yield Path(entry) / "cmeel.prefix" / "share" / package  # where wheels made with cmeel keep their files
