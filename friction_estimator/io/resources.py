"""Where files lie on this machine: robots and URDFs of this package and of other ROS packages; checks of a URDF."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import friction_estimator
from friction_estimator.errors import ConfigError, RobotModelError, choices
from friction_estimator.io.documents import read_bytes
from friction_estimator.robot.urdf import MAX_SIZE, parse_urdf

PACKAGE = "friction_estimator"
_WHEELS = ("example-robot-data",)
"""Packages with URDFs of ``config/robots`` that pip installs (extra ``robots`` of setup.py)."""


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
        f"the files of {PACKAGE} (config, urdf) are missing: looked next to {package}, in AMENT_PREFIX_PATH and in "
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
    if package in _WHEELS:
        remedy = f"install it with `{Path(sys.executable).name} -m pip install {package}`"
    else:
        remedy = "source the ROS workspace that holds it, install it, or give the path of the file"
    raise ConfigError(
        f"no package {package!r} on this machine: looked in AMENT_PREFIX_PATH, in {sys.prefix}/share and among the "
        f"Python packages; {remedy}"
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


_PACKAGE_SCHEME = "package://"


def find_urdf(urdf: str, folders: tuple[Path, ...] = ()) -> Path:
    """File that ``robot.urdf`` means.

    Parameters
    ----------
    urdf : an absolute path, ``package://<package>/<path>``, a path relative to one of ``folders`` (for example the
        folder of the YAML file), or the name of a file in ``urdf/`` of this package
    folders : where a relative path starts, tried in this order

    Raises
    ------
    RobotModelError
        When there is no such file; the message lists the folders that were searched.
    """
    if urdf.startswith(_PACKAGE_SCHEME):
        package, _, inside = urdf[len(_PACKAGE_SCHEME) :].partition("/")
        candidates = [package_share(package) / inside]
    else:
        shipped = share_directory() / "urdf"
        candidates = [folder / Path(urdf).expanduser() for folder in (*folders, shipped)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    looked = ", ".join(dict.fromkeys(str(candidate) for candidate in candidates))
    names = [path.name for path in (share_directory() / "urdf").glob("*.urdf")]
    raise RobotModelError(f"no URDF {urdf!r}: looked for {looked}; the URDF files of this package are {choices(names)}")


def read_urdf(path: Path) -> str:
    """Text of a URDF, after a check that it is well-formed XML with a ``<robot>`` root.

    Raises
    ------
    RobotModelError
        When it cannot be read or is not a URDF; the message names file and line.
    """
    try:
        text = read_bytes(path, MAX_SIZE).decode("utf-8")
    except OSError as error:
        raise RobotModelError(f"cannot read the URDF {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RobotModelError(f"cannot read the URDF {path}: it is not a UTF-8 text") from None
    parse_urdf(text, str(path))
    return text
