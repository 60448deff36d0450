"""Robots and URDFs on this machine, and one robot from its YAML or URDF."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import friction_estimator
from friction_estimator.config import Config, config_from_parameters
from friction_estimator.config.robot import Coupling, combined, uncoupled
from friction_estimator.errors import ConfigError, RobotModelError, choices, file_errors
from friction_estimator.io.documents import read_bytes, read_yaml
from friction_estimator.io.node_parameters import NODE_PARAMETERS
from friction_estimator.robot.urdf import MAX_SIZE, parse_urdf
from friction_estimator.types import AnyPath, ShortRepr

if TYPE_CHECKING:
    from friction_estimator.estimation.estimator import Estimator

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


def robot_file(name_or_path: AnyPath) -> Path:
    """YAML file of a robot, by name or by path.

    Raises
    ------
    ConfigError
        When there is no such name or file; the message lists the names.
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
    """File that the parameter ``robot.urdf`` names.

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
    with file_errors(f"read the URDF {path}", RobotModelError):
        text = read_bytes(path, MAX_SIZE).decode("utf-8")
    parse_urdf(text, str(path))
    return text


_NODE_NAME = "friction_estimator"
"""Name of the node whose section of a parameter file is read; sections under wildcards are read too."""

_WILDCARDS = ("/**", "/*", "**", "*")
_SECTION = "ros__parameters"
_ROS_PARAMETERS = frozenset({"use_sim_time", "start_type_description_service", "qos_overrides"})
_IGNORED = _ROS_PARAMETERS | {name.split(".")[0] for name in NODE_PARAMETERS}
"""Sections that only running nodes use."""

_NO_OVERRIDES: Mapping[str, Any] = MappingProxyType({})


_URDF_SUFFIXES = (".urdf", ".xml")
_FIXED_BASE = {"observer": "momentum", "robot.fixed_base": True}
"""Parameters of a robot of which only the URDF is known."""


@dataclass(frozen=True, slots=True, repr=False)
class Robot(ShortRepr):
    """Configuration and URDF of one robot.

    Attributes
    ----------
    name : name of its file, without suffix
    config : validated configuration
    urdf_xml : text of the URDF; empty when the YAML names none, because it comes from ``robot_description``
    urdf_path : file of the URDF; None when the YAML names none
    """

    name: str
    config: Config
    urdf_xml: str
    urdf_path: Path | None

    def estimator(self) -> Estimator:
        """A live estimator of the robot, whose kernels are compiled: the first sample waits for nothing.

        Raises
        ------
        ConfigError
            When the robot names no URDF.
        RobotModelError
            When the URDF lacks a joint or a frame of the configuration.
        """
        # not above: reading a robot does not need the compiler of the kernels, whose import takes a second
        from friction_estimator.estimation.estimator import Estimator
        from friction_estimator.kernels.compiler import prepare

        estimator = Estimator(self.config, as_robot(self).urdf_xml)
        prepare()
        return estimator


def load_robot(name_or_path: AnyPath, overrides: Mapping[str, Any] = _NO_OVERRIDES) -> Robot:
    """Read a robot.

    Parameters
    ----------
    name_or_path : a name of ``config/robots``, or the path of a YAML file in the format of ROS parameter files, or the
        path of the URDF of something with a fixed base
    overrides : flat parameters that replace those of the file, e.g. ``{"observer": "momentum"}``

    Raises
    ------
    ConfigError
        When there is no such robot, the YAML is broken (line named) or a parameter is unknown or out of range.
    RobotModelError
        When its URDF is not found or not readable.

    Examples
    --------
    >>> import friction_estimator as fe
    >>> robot = fe.load_robot("suralp", {"observer": "momentum"})
    >>> robot.config.observer
    'momentum'
    """
    given = Path(name_or_path).expanduser()
    if given.suffix.lower() in _URDF_SUFFIXES:
        xml = read_urdf(given)
        return Robot(given.stem, config_from_parameters({**_FIXED_BASE, **overrides}), xml, given)
    path = robot_file(name_or_path)
    parameters = {**read_robot_parameters(path), **overrides}
    try:
        config = config_from_parameters(parameters, NODE_PARAMETERS)
    except ConfigError as error:
        replaced = f" (with {', '.join(overrides)} replaced)" if overrides else ""
        raise ConfigError(f"in {path}{replaced}: {error}") from None
    if not config.robot.urdf:
        return Robot(path.stem, config, "", None)
    folders = (path.parent, Path.cwd()) if "robot.urdf" not in overrides else (Path.cwd(), path.parent)
    urdf_path = find_urdf(config.robot.urdf, folders)
    return Robot(path.stem, config, read_urdf(urdf_path), urdf_path)


def as_robot(robot: AnyPath | Robot) -> Robot:
    """A robot with a URDF, of which name or path is given, or which is loaded already.

    Raises
    ------
    ConfigError
        When it is not found or names no URDF.
    """
    loaded = robot if isinstance(robot, Robot) else load_robot(robot)
    if not loaded.urdf_xml:
        raise ConfigError(f"the robot {loaded.name!r} names no URDF; set robot.urdf in its YAML")
    return loaded


def read_robot_parameters(path: Path) -> dict[str, Any]:
    """Flat dotted parameters of the estimator in a ROS parameter file.

    Sections under a wildcard (``/**``) and under the node's own name are merged, the later one wins, as in ROS. When
    there is only one section, its name does not matter. What only running nodes use (``use_sim_time``) is left out.

    Raises
    ------
    ConfigError
        When the file is not such a file.
    """
    parameters = read_node_parameters(path)
    return {key: value for key, value in parameters.items() if key.split(".")[0] not in _IGNORED}


def read_node_parameters(path: Path) -> dict[str, Any]:
    """Like :func:`read_robot_parameters`, and with the parameters that only running nodes use.

    Raises
    ------
    ConfigError
        When the file is not such a file.
    """
    document = read_yaml(path)
    sections = dict(_node_sections(document, "")) if isinstance(document, dict) else {}
    if not sections:
        raise ConfigError(
            f"{path} is not a ROS parameter file: expected the key '/**' or the name of a node, "
            f"and under it '{_SECTION}' with the parameters"
        )
    mine = [name for name in sections if name in _WILDCARDS or name.split("/")[-1] == _NODE_NAME]
    if not mine and len(sections) > 1:
        raise ConfigError(
            f"{path} has no section '/**' or '{_NODE_NAME}'; its sections are {choices(sections)}: rename one"
        )
    parameters: dict[str, Any] = {}
    for name in mine or sections:
        values = sections[name]
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: '{_SECTION}' of {name!r} must hold 'name: value' lines")
        parameters.update(_flatten(values, ""))
    return parameters


def _node_sections(document: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every ``ros__parameters`` with the name of its node, namespaces joined by a slash."""
    for key, value in document.items():
        if key == _SECTION:
            yield prefix, value if value is not None else {}
        elif isinstance(value, dict):
            yield from _node_sections(value, f"{prefix}/{key}" if prefix else str(key))


def _flatten(values: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def load_coupling(name_or_path: AnyPath) -> Coupling:
    """Motors that move several joints together: ``robot.coupling`` of a robot, or of a YAML that has nothing else.

    Raises
    ------
    ConfigError
        As :func:`load_robot`, and when there is no coupling.
    """
    coupling = load_robot(name_or_path).config.robot.coupling.coupling()
    if coupling is None:
        raise ConfigError(f"{name_or_path} has no robot.coupling: give its joints, motors and matrix")
    return coupling


def coupling_of_joints(coupling: Coupling, joint_names: Sequence[str]) -> Coupling:
    """Coupling of these joints (n): their coupled groups, and one motor for each other joint.

    Raises
    ------
    ConfigError
        When only some joints of a coupled group are given.
    """
    kept = [part for part in coupling.parts if set(part.joint_names) & set(joint_names)]
    missing = [name for part in kept for name in part.joint_names if name not in joint_names]
    if missing:
        raise ConfigError(
            f"{choices(missing)} shares motors with joints of the data, and is not among them: record it too, or leave "
            f"these out; there are {choices(joint_names)}"
        )
    coupled = {name for part in kept for name in part.joint_names}
    alone = [name for name in joint_names if name not in coupled]
    return combined([*kept, uncoupled(alone)] if alone else kept)
