"""Robots of a fleet, and what a worker does with one bag: find its robot, estimate friction, write one row per joint.

The estimator is recursive: each estimate follows from the one before. So a bag is one task, however long it is.
"""

from __future__ import annotations

import gc
import hashlib
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import friction_estimator
from friction_estimator.api.identify import identify
from friction_estimator.api.outputs import report
from friction_estimator.api.replay import robot_of_bag
from friction_estimator.errors import BagError, ConfigError, FrictionEstimatorError, choices
from friction_estimator.fleet.storage import content_hash, is_finished, local_copy, row_file, write_bytes, write_rows
from friction_estimator.identification.linear_problem import rms
from friction_estimator.io.bags.reader import BagMessage, BagReader
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.documents import read_yaml
from friction_estimator.io.robot import Robot, as_robot, robot_names
from friction_estimator.laws import make_law
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import AnyPath, FloatArray, FrictionEstimate

ROBOTS_YAML = "fleet.yaml"
_KEYS = ("robot", "bags", "metadata", "namespace")


@dataclass(frozen=True, slots=True)
class FleetRobot:
    """One robot of a fleet, and how its bags are recognised."""

    serial: str  # serial number
    robot: Robot  # configuration and URDF
    bags: tuple[str, ...] = ()  # patterns of paths or URLs of its bags
    metadata: Mapping[str, str] = field(default_factory=dict)  # custom data that its bags carry; all of it must agree
    namespace: str = ""  # of the topics in its bags

    def owns(self, url: str, custom_data: Mapping[str, str]) -> bool:
        """Whether the URL or the custom data of a bag match what the YAML of the fleet has for this robot."""
        named = any(fnmatchcase(url, pattern) for pattern in self.bags)
        return named or bool(self.metadata) and self.metadata.items() <= custom_data.items()

    @property
    def content_hash(self) -> str:
        """Hash of everything that the estimator takes from the robot."""
        text = f"{self.robot.name}\n{self.namespace}\n{self.robot.config!r}\n{self.robot.urdf_xml}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _owner_of(robots: Sequence[FleetRobot], url: str, reader: BagReader) -> FleetRobot:
    """Robot of a bag. Without any robot, the bag names it, and its name is also the serial number.

    Raises
    ------
    ConfigError
        When none or several robots claim the bag, or it names none.
    """
    if not robots:
        name = robot_of_bag(reader)
        return FleetRobot(name, as_robot(name))
    owners = [robot for robot in robots if robot.owns(url, reader.custom_data)]
    if len(owners) != 1:
        claimed = f"several robots claim it: {choices(one.serial for one in owners)}" if owners else (
            f"no robot claims it; there are {choices(one.serial for one in robots)}"
        )  # fmt: skip
        raise ConfigError(f"{claimed}. Set 'bags' or 'metadata' in the YAML of the fleet")
    return owners[0]


def load_fleet_robots(path: AnyPath) -> tuple[FleetRobot, ...]:
    """Robots of a fleet from their YAML, or one robot by name or YAML for all bags.

    ::

        robots:
          unit_7:                          # serial number
            robot: my_robot.yaml           # name in config/robots, or path from this file
            bags: ["*/unit_7/*"]           # patterns of paths or URLs of its bags
          unit_8:
            robot: suralp
            metadata: {vehicle: "8"}       # or custom data that its bags carry
            namespace: robot8              # of its topics, where a bag has several

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
    return tuple(_entry(source, str(serial), entry, loaded) for serial, entry in entries.items())


def robots_near(places: Iterable[AnyPath]) -> Path | None:
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
        found_files = choices(map(str, found))
        raise ConfigError(f"several folders have a fleet.yaml: choose one of {found_files} (robots, --robots)")
    return next(iter(found), None)


def _one_robot(path: AnyPath) -> tuple[FleetRobot, ...]:
    robot = as_robot(path)
    return (FleetRobot(robot.name, robot, ("*",)),)


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
    owned = {str(key): str(value) for key, value in metadata.items()}
    return FleetRobot(serial, loaded[name], tuple(bags), owned, str(entry.get("namespace", "")))


FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"

_TEMPERATURE = "sensor_msgs/msg/Temperature"
_RMS_STRIDE = 10  # friction changes slowly against the sample rate: every tenth sample gives the same RMS
_LINE_POINTS = 20  # speeds at which a line is fitted to a law
_LINE_COLUMNS = "coulomb", "viscous", "coulomb_sigma", "viscous_sigma", "coulomb_viscous_covariance"


@dataclass(frozen=True, slots=True)
class BagResult:
    """Outcome of one bag in a run: finished, skipped or failed, with the reason."""

    bag: str  # path or URL
    status: str  # `finished`, `skipped` (an earlier run has finished it) or `failed`
    reason: str = ""  # why it failed
    rows: str = ""  # path or URL of its rows, empty when it failed
    seconds: float = 0.0  # how long the worker needed [s]


class _Thermometer:
    """Mean of the topic ``temperature``, or of the only topic of its type [degree Celsius]."""

    def __init__(self, reader: BagReader) -> None:
        self._reader = reader
        there = [topic for topic, kind in reader.topics.items() if kind == _TEMPERATURE]
        wanted = "/" + "/".join(part for part in (reader.namespace.strip("/"), "temperature") if part)
        self.topics = [wanted] if wanted in there else there if len(there) == 1 else []
        self._sum, self._count = 0.0, 0

    def add(self, message: BagMessage) -> None:
        value = self._reader.decode(message).temperature
        if np.isfinite(value):
            self._sum += value
            self._count += 1

    @property
    def mean(self) -> float | None:
        return self._sum / self._count if self._count else None


class _Tally:
    """What is kept of the estimates of a bag: the newest one, and the sum of the squared friction."""

    def __init__(self) -> None:
        self.newest: FrictionEstimate | None = None
        self._count, self._used = 0, 0
        self._squares: FloatArray = np.zeros(1)

    def add(self, estimate: FrictionEstimate) -> None:
        self.newest = estimate
        self._count += 1
        if self._count % _RMS_STRIDE == 0 and np.isfinite(estimate.friction).all():
            self._squares = self._squares + estimate.friction**2
            self._used += 1

    @property
    def rms(self) -> FloatArray:
        return np.sqrt(self._squares / self._used) if self._used else np.full(self._squares.shape, np.nan)


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """Run the live estimator over a bag."""

    kind: ClassVar = "replay"  # of the rows
    output: str  # folder or URL of the results
    smooth: float | None = None  # fixed-lag smoothing: seconds of later data that each estimate uses; None: as live
    reports: bool = False  # also write an HTML report of every bag

    def columns(self, reader: BagReader, owner: FleetRobot, thermometer: _Thermometer, name: str) -> dict[str, Any]:
        """Columns of a bag's rows: a value per joint, or one for all; ``name`` is that of row file and report."""
        tally, robot = _Tally(), owner.robot
        page = f"reports/{name}.html" if self.reports else None
        with tempfile.TemporaryDirectory() if page is not None else nullcontext() as folder:
            out = None if folder is None else Path(folder) / "estimates"
            summary = replay_bag(
                reader,
                out,
                robot.config,
                robot.urdf_xml,
                on_estimate=tally.add,
                on_message=dict.fromkeys(thermometer.topics, thermometer.add),
                robot=robot.name,
                smooth=self.smooth,
            )
            if folder is not None and page is not None:
                made = Path(folder) / "report.html"
                report(str(out), made, title=f"{owner.serial}, {reader.path.name}")
                write_bytes(self.output, page, made.read_bytes())
        if tally.newest is None:
            raise BagError(f"no estimate could be made from {reader.path}")
        law, health = tally.newest.law, summary.health
        general = [*health.findings, *summary.missing, *([summary.damage] if summary.damage else [])]
        return {
            "joint": summary.joint_names,
            "law": summary.identified.law_names,
            "coulomb": law.coulomb,
            "coulomb_sigma": law.coulomb_sigma,
            "viscous": law.viscous,
            "viscous_sigma": law.viscous_sigma,
            "coulomb_viscous_covariance": law.coulomb_viscous_covariance,
            "slow": law.velocity_range[:, 0],
            "fast": law.velocity_range[:, 1],
            "friction_rms": np.broadcast_to(tally.rms, len(summary.joint_names)),
            "samples": summary.estimates,
            "rejected": sum(count for count, _ in summary.refused.values()),
            "usable": [not (health.sensors_wrong or one.reason) for one in summary.diagnoses],
            "diagnosis": ["; ".join(map(str, (one, *general))) for one in summary.diagnoses],
            "report": page,
        }


@dataclass(frozen=True, slots=True)
class IdentifyTask:
    """Identify the friction from a bag offline."""

    kind: ClassVar = "identify"  # of the rows
    output: str  # folder or URL of the results
    method: str | None = None  # identification method; None: the first one that data and robot allow
    law: str | None = None  # friction law of all joints; None: that of the robot's live node

    def columns(self, reader: BagReader, owner: FleetRobot, thermometer: _Thermometer, _name: str) -> dict[str, Any]:
        """Columns of a bag's rows: a value per joint, or per motor where motors move several joints."""
        found = identify(reader.path, owner.robot, method=self.method, law=self.law, namespace=owner.namespace)
        for message in reader.messages(thermometer.topics):
            thermometer.add(message)
        friction, measured = found.friction, {one.joint: one for one in found.samples}
        n = len(friction.joint_names)
        ranges = np.full((n, 2), np.nan) if friction.velocity_range is None else friction.velocity_range
        size, lines = np.full(n, np.nan), np.full((n, 5), np.nan)
        for k, joint in enumerate(friction.joint_names):
            law = make_law(friction.law_names[k])
            p = len(law.parameter_names)
            lines[k] = _line(law, friction.values[k, :p], friction.covariance[k, :p, :p], *ranges[k])
            if joint in measured:
                size[k] = rms(measured[joint].friction[measured[joint].used])
        return {
            "joint": friction.joint_names,
            "law": friction.law_names,
            **dict(zip(_LINE_COLUMNS, lines.T, strict=True)),
            "slow": ranges[:, 0],
            "fast": ranges[:, 1],
            "friction_rms": size,
            "samples": friction.samples.astype(int),
            "usable": np.isfinite(lines[:, 0]),
            "diagnosis": "; ".join(found.warnings),
        }


BagTask = ReplayTask | IdentifyTask
"""What every worker does with each bag of a run."""


def _line(law: Any, values: FloatArray, covariance: FloatArray, slow: float, fast: float) -> FloatArray:
    """Values of :data:`_LINE_COLUMNS`: least-squares line through a law between two speeds; NaN where unknown."""
    if not (np.isfinite([slow, fast]).all() and np.isfinite(values).all()):
        return np.full(len(_LINE_COLUMNS), np.nan)
    speeds = np.linspace(slow, fast, _LINE_POINTS)
    no_load = np.zeros(_LINE_POINTS)
    to_line = np.linalg.pinv(np.column_stack((np.ones(_LINE_POINTS), speeds)))
    slope = to_line @ torque_gradient(law, values, speeds, no_load)
    spread = slope @ covariance @ slope.T
    sigma = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    return np.array([*to_line @ law.torque(values[None, :], speeds, no_load), *sigma, spread[0, 1]])


def process_bag(url: str, robots: Sequence[FleetRobot], task: BagTask, scratch: str | None = None) -> BagResult:
    """Estimate the friction in one bag and write its rows; for a bag that cannot be used, the result has the reason.

    Parameters
    ----------
    url : of the bag
    robots : of the fleet, see :func:`_owner_of`
    task : what is done with every bag of the run
    scratch : folder for the copy of a remote bag; None: that for temporary files
    """
    started = time.perf_counter()
    try:
        status, rows = _process(url, robots, task, scratch)
        return BagResult(url, status, rows=rows, seconds=time.perf_counter() - started)
    except FrictionEstimatorError as error:
        return BagResult(url, FAILED, str(error), seconds=time.perf_counter() - started)
    finally:  # each bag leaves 2 MB of estimator in reference cycles
        gc.collect()
        _freeze_libraries()


@cache
def _freeze_libraries() -> None:
    """Keep the garbage collector from what is loaded: to search it takes 0.1 s, and would be done after every bag."""
    gc.freeze()


def _process(url: str, robots: Sequence[FleetRobot], task: BagTask, scratch: str | None) -> tuple[str, str]:
    digest = content_hash(url)
    with local_copy(url, scratch) as path:
        reader = BagReader(path)
        owner = _owner_of(robots, url, reader)
        reader.namespace = owner.namespace
        start = datetime.fromtimestamp(reader.start_ns * 1e-9, UTC).replace(tzinfo=None)
        name = hashlib.blake2b(f"{digest} {owner.serial} {task.kind}".encode(), digest_size=12).hexdigest()
        file = row_file(task.kind, start, name)
        target = f"{task.output.rstrip('/')}/{file}"
        made_with = {key: str(value) for key, value in asdict(task).items() if key != "output"}
        made_with |= {"robot": owner.content_hash, "version": friction_estimator.__version__}
        if is_finished(target, made_with):
            return SKIPPED, target
        thermometer = _Thermometer(reader)
        columns = task.columns(reader, owner, thermometer, name)
        common = {
            "serial": owner.serial,
            "robot": owner.robot.name,
            "start": start,
            "duration": (reader.end_ns - reader.start_ns) * 1e-9,
            "temperature": thermometer.mean,
            "bag": url,
            "bag_hash": digest,
            "version": friction_estimator.__version__,
        }
        write_rows(task.output, file, {**common, **columns}, made_with)
    return FINISHED, target
