"""Robots of a fleet: which bag belongs to which robot, from a YAML.

robots:
unit_7:                            # serial number
robot: my_robot.yaml             # name in config/robots, or path from this file
bags: ["*/unit_7/*"]             # patterns of paths or URLs of its bags
unit_8:
robot: suralp
metadata: {vehicle: "8"}         # or custom data that its bags carry
namespace: robot8                # of its topics, where a bag has several
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from friction_estimator.api.replay import robot_of_bag
from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.documents import read_yaml
from friction_estimator.io.robot import Robot, as_robot, robot_names

ROBOTS_YAML = "fleet.yaml"
_KEYS = ("robot", "bags", "metadata", "namespace")


@dataclass(frozen=True, slots=True)
class FleetRobot:
    """One robot of a fleet.

    Attributes
    ----------
    serial : serial number
    robot : configuration and URDF
    bags : patterns of paths or URLs of its bags
    metadata : custom data that its bags carry; all of it must agree
    namespace : of the topics in its bags
    """

    serial: str
    robot: Robot
    bags: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    namespace: str = ""

    def owns(self, url: str, custom_data: Mapping[str, str]) -> bool:
        """Whether a bag is one of this robot's."""
        named = any(fnmatchcase(url, pattern) for pattern in self.bags)
        return named or bool(self.metadata) and all(custom_data.get(key) == value for key, value in self.metadata)

    @property
    def content_hash(self) -> str:
        """Hash of everything that the estimator takes from the robot."""
        text = f"{self.robot.name}\n{self.namespace}\n{self.robot.config!r}\n{self.robot.urdf_xml}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FleetRobots:
    """All robots of a fleet; without any, each bag names its robot, which is then also the serial number."""

    robots: tuple[FleetRobot, ...] = ()

    def owner(self, url: str, reader: BagReader) -> FleetRobot:
        """Robot of a bag.

        Raises
        ------
        ConfigError
            When none or several robots claim the bag, or it names none.
        """
        if not self.robots:
            name = robot_of_bag(reader)
            return FleetRobot(name, as_robot(name))
        owners = [robot for robot in self.robots if robot.owns(url, reader.custom_data)]
        if len(owners) != 1:
            claimed = f"several robots claim it: {choices(one.serial for one in owners)}" if owners else (
                f"no robot claims it; there are {choices(one.serial for one in self.robots)}"
            )  # fmt: skip
            raise ConfigError(f"{claimed}. Set 'bags' or 'metadata' in the YAML of the fleet")
        return owners[0]


def load_fleet_robots(path: str | os.PathLike[str]) -> FleetRobots:
    """Robots of a fleet from their YAML, or one robot by name or YAML for all bags.

    Raises
    ------
    ConfigError
        When the file is no such YAML, or a robot in it cannot be loaded.
    """
    if str(path) in robot_names():
        return _one_robot(path)
    source = Path(path).expanduser()
    document = read_yaml(source)
    entries = document.get("robots") if isinstance(document, Mapping) else None
    if entries is None:
        return _one_robot(path)
    if not isinstance(entries, Mapping) or not entries:
        raise ConfigError(f"{source}: 'robots' must hold one entry a serial number")
    loaded: dict[str, Robot] = {}
    return FleetRobots(tuple(_entry(source, str(serial), entry, loaded) for serial, entry in entries.items()))


def robots_near(places: Iterable[str | os.PathLike[str]]) -> Path | None:
    """The ``fleet.yaml`` in a folder of bags, or above it; None when there is none.

    Raises
    ------
    ConfigError
        When there are several.
    """
    found = {
        folder / ROBOTS_YAML
        for place in places
        for folder in (Path(place), Path(place).parent)
        if (folder / ROBOTS_YAML).is_file()
    }
    if len(found) > 1:
        raise ConfigError(f"several fleets: choose one of {choices(map(str, found))} (robots, --robots)")
    return next(iter(found), None)


def _one_robot(path: str | os.PathLike[str]) -> FleetRobots:
    robot = as_robot(path)
    return FleetRobots((FleetRobot(robot.name, robot, ("*",)),))


def _entry(source: Path, serial: str, entry: Any, loaded: dict[str, Robot]) -> FleetRobot:
    where = f"{source}: robot {serial!r}"
    if not isinstance(entry, Mapping) or set(entry) - set(_KEYS) or not isinstance(entry.get("robot"), str):
        raise ConfigError(f"{where} must hold 'robot' and may hold {choices(_KEYS[1:])}; it is {entry!r}")
    bags, metadata = entry.get("bags", []), entry.get("metadata", {})
    if not isinstance(bags, list) or not all(isinstance(pattern, str) for pattern in bags):
        raise ConfigError(f"{where}: 'bags' must be a list of patterns of bag paths, it is {bags!r}")
    if not isinstance(metadata, Mapping) or not (bags or metadata):
        raise ConfigError(f"{where} needs 'bags' (list of patterns) or 'metadata' (custom data of its bags)")
    name = entry["robot"]
    if name not in loaded:  # robots of one kind share one object, and travel to the workers once
        relative = source.parent / name
        try:
            loaded[name] = as_robot(relative if name not in robot_names() and relative.exists() else name)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    pairs = tuple((str(key), str(value)) for key, value in metadata.items())
    return FleetRobot(serial, loaded[name], tuple(bags), pairs, str(entry.get("namespace", "")))
