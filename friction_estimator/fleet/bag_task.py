"""What a worker does with one bag: find its robot, estimate friction, write one row a joint.

The estimator is recursive: each estimate follows from the one before. So a bag is one task, however long it is.
"""

from __future__ import annotations

import gc
import hashlib
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import friction_estimator
from friction_estimator.api.identify import identify
from friction_estimator.api.outputs import report
from friction_estimator.errors import BagError, FrictionEstimatorError
from friction_estimator.fleet.robots import FleetRobot, FleetRobots
from friction_estimator.fleet.sources import content_hash, local_copy
from friction_estimator.fleet.table import is_finished, row_file, write_bytes, write_rows
from friction_estimator.identification.linear_problem import rms
from friction_estimator.io.bags import replay as bags
from friction_estimator.io.bags.reader import BagMessage, BagReader
from friction_estimator.laws import make_law
from friction_estimator.laws.law import torque_gradient
from friction_estimator.types import FloatArray, FrictionEstimate

FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"

_TEMPERATURE = "sensor_msgs/msg/Temperature"
_RMS_STRIDE = 10  # friction changes slowly against the sample rate: every tenth sample gives the same RMS
_VOID = frozenset({"excitation", "identification", "passivity"})
"""Problems with which F_c and F_v are not those of the joint."""
_LINE_POINTS = 20  # speeds at which a line is fitted to a law
_LINE = "coulomb", "viscous", "coulomb_sigma", "viscous_sigma", "coulomb_viscous_covariance"


@dataclass(frozen=True, slots=True)
class Settings:
    """How every bag of a run is treated.

    Attributes
    ----------
    method : ``replay`` or ``identify``
    output : folder or URL of the results
    smooth : fixed-lag smoothing of ``replay``: seconds of later data that each estimate uses; None: as live
    identification, law : method and friction law of ``identify``; None: chosen from data and robot
    reports : also write an HTML report of every bag
    """

    method: str
    output: str
    smooth: float | None = None
    identification: str | None = None
    law: str | None = None
    reports: bool = False


@dataclass(frozen=True, slots=True)
class BagResult:
    """Outcome of one bag.

    Attributes
    ----------
    bag : path or URL
    status : ``finished``, ``skipped`` (an earlier run has finished it) or ``failed``
    reason : why it failed
    rows : path or URL of its rows, empty when it failed
    seconds : how long the worker needed [s]
    """

    bag: str
    status: str
    reason: str = ""
    rows: str = ""
    seconds: float = 0.0


def process_bag(url: str, robots: FleetRobots, settings: Settings, scratch: str | None = None) -> BagResult:
    """Estimate the friction in one bag and write its rows; a bag that cannot be used is a result, too.

    Parameters
    ----------
    url : of the bag
    robots : of the fleet
    settings : of the run
    scratch : folder for the copy of a remote bag; None: that for temporary files
    """
    started = time.perf_counter()
    try:
        status, rows = _process(url, robots, settings, scratch)
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


def _process(url: str, robots: FleetRobots, settings: Settings, scratch: str | None) -> tuple[str, str]:
    digest = content_hash(url)
    with local_copy(url, scratch) as path:
        reader = BagReader(path)
        owner = robots.owner(url, reader)
        reader.namespace = owner.namespace
        start = datetime.fromtimestamp(reader.start_ns * 1e-9, UTC).replace(tzinfo=None)
        identity = f"{digest} {owner.serial} {settings.method}"
        name = hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()
        file = row_file(settings.method, start, name)
        target = f"{settings.output.rstrip('/')}/{file}"
        made_with = {key: str(value) for key, value in asdict(settings).items() if key != "output"}
        made_with |= {"robot": owner.content_hash, "version": friction_estimator.__version__}
        if is_finished(target, made_with):
            return SKIPPED, target
        page = f"reports/{name}.html" if settings.reports else None
        thermometer = _Thermometer(reader)
        columns = _replayed(reader, owner, settings, page, thermometer) if settings.method == "replay" else (
            _identified(reader, owner, settings, thermometer)
        )  # fmt: skip
        common = {
            "serial": owner.serial,
            "robot": owner.robot.name,
            "start": start,
            "duration": (reader.end_ns - reader.start_ns) * 1e-9,
            "temperature": thermometer.mean,
            "report": page,
            "bag": url,
            "bag_hash": digest,
            "version": friction_estimator.__version__,
        }
        write_rows(settings.output, file, {**common, **columns}, made_with)
    return FINISHED, target


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


def _replayed(
    reader: BagReader, owner: FleetRobot, settings: Settings, page: str | None, thermometer: _Thermometer
) -> dict[str, Any]:
    """Columns of the table from the live estimator: a value a joint, or one for all."""
    tally, robot = _Tally(), owner.robot
    with tempfile.TemporaryDirectory() if page is not None else nullcontext() as folder:
        out = None if folder is None else Path(folder) / "estimates"
        summary = bags.replay(
            reader,
            out,
            robot.config,
            robot.urdf_xml,
            on_estimate=tally.add,
            on_message=dict.fromkeys(thermometer.topics, thermometer.add),
            robot=robot.name,
            smooth=settings.smooth,
            freeze=False,
        )
        if folder is not None and page is not None:
            made = Path(folder) / "report.html"
            report(str(out), made, title=f"{owner.serial}, {reader.path.name}")
            write_bytes(settings.output, page, made.read_bytes())
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
        "usable": [not (health.sensors_wrong or _VOID & set(one.kinds)) for one in summary.diagnoses],
        "diagnosis": ["; ".join(map(str, (one, *general))) for one in summary.diagnoses],
    }


def _identified(reader: BagReader, owner: FleetRobot, settings: Settings, thermometer: _Thermometer) -> dict[str, Any]:
    """Columns of the table from an offline identification; of motors, where motors move several joints."""
    method, namespace = settings.identification, owner.namespace
    found = identify(reader.path, owner.robot, method=method, law=settings.law, namespace=namespace)
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
        **dict(zip(_LINE, lines.T, strict=True)),
        "slow": ranges[:, 0],
        "fast": ranges[:, 1],
        "friction_rms": size,
        "samples": friction.samples.astype(int),
        "usable": np.isfinite(lines[:, 0]),
        "diagnosis": "; ".join(found.warnings),
    }


def _line(law: Any, values: FloatArray, covariance: FloatArray, slow: float, fast: float) -> FloatArray:
    """Values (5,) of :data:`_LINE`: the least-squares line through a law between two speeds; NaN where unknown."""
    if not (np.isfinite([slow, fast]).all() and np.isfinite(values).all()):
        return np.full(len(_LINE), np.nan)
    speeds = np.linspace(slow, fast, _LINE_POINTS)
    no_load = np.zeros(_LINE_POINTS)
    to_line = np.linalg.pinv(np.column_stack((np.ones(_LINE_POINTS), speeds)))
    slope = to_line @ torque_gradient(law, values, speeds, no_load)
    spread = slope @ covariance @ slope.T
    sigma = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    return np.array([*to_line @ law.torque(values[None, :], speeds, no_load), *sigma, spread[0, 1]])
