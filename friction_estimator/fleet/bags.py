"""Bags of a fleet, and what a worker does with one of them: replay it and write one row per joint.

The estimator is recursive: each estimate follows from the one before. So a bag is one task, however long it is.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import friction_estimator
from friction_estimator.api.replay import robot_of_bag
from friction_estimator.errors import BagError, ConfigError, FrictionEstimatorError, file_errors
from friction_estimator.io.bags.reader import METADATA, BagMessage, BagReader
from friction_estimator.io.bags.replay import replay_bag
from friction_estimator.io.bags.writer import LOCK
from friction_estimator.io.documents import is_in_use, write_atomically
from friction_estimator.io.robot import Robot, as_robot
from friction_estimator.types import AnyPath, FrictionEstimate

FINISHED, DONE_BEFORE, FAILED = "finished", "done before", "failed"
"""States of a bag after a run."""
ROWS = "rows"
"""Folder, in that of the output, of the Parquet files."""
SCHEMA = pa.schema(
    {
        **dict.fromkeys(("serial", "robot", "joint", "bag"), pa.string()),
        "start": pa.timestamp("us"),
        **dict.fromkeys(("duration", "temperature", "coulomb", "coulomb_sigma", "viscous"), pa.float64()),
        **dict.fromkeys(("viscous_sigma", "coulomb_viscous_covariance", "slow", "fast"), pa.float64()),
        "usable": pa.bool_(),
        **dict.fromkeys(("reason", "warnings", "version"), pa.string()),
    }
)
"""Columns of the table; docs/guides/fleets.md describes them."""
_SERIAL = "serial"  # custom data of a bag with the serial number of its robot
_TEMPERATURE = "sensor_msgs/msg/Temperature"
_SUFFIXES = (".mcap", ".db3")
_MADE_WITH = b"friction_estimator"  # entry of a Parquet file: what its rows follow from


@dataclass(frozen=True, slots=True)
class BagResult:
    """Outcome of one bag in a run."""

    bag: Path  # its folder or its only file
    state: str  # `finished`, `done before` or `failed`
    reason: str = ""  # why it failed
    rows: Path | None = None  # file of its rows; None when it failed


@dataclass(frozen=True, slots=True)
class BagTask:
    """What is done with every bag of a run."""

    output: Path  # folder of the results
    robot: Robot | None = None  # of all bags; None: each bag names its own
    smooth: float | None = None  # fixed-lag smoothing: seconds of later data that each estimate uses; None: as live
    namespace: str = ""  # of the topics in the bags
    version: str = friction_estimator.__version__  # of the process that started the run

    def process(self, bag: Path) -> BagResult:
        """Replay a bag and write its rows; where that fails, the result has the reason."""
        try:
            return self._process(bag)
        except (FrictionEstimatorError, OSError) as error:
            return BagResult(bag, FAILED, str(error))
        finally:
            gc.collect()  # a bag leaves 2 MB of estimator in reference cycles

    def _process(self, bag: Path) -> BagResult:
        if self.version != friction_estimator.__version__:
            raise ConfigError(
                f"its worker has friction_estimator {friction_estimator.__version__}, the run {self.version}: install "
                "one version on all machines"
            )
        reader = BagReader(bag, self.namespace)
        robot = self.robot or as_robot(robot_of_bag(reader))
        serial = reader.custom_data.get(_SERIAL) or bag.parent.name
        start = datetime.fromtimestamp(reader.start_ns * 1e-9, UTC).replace(tzinfo=None)
        # the same recording has the same name wherever it lies; the date comes first: no library reads hidden files
        name = f"{start:%Y-%m-%d_%H-%M-%S-%f}_{reader.message_count}_{quote(serial, safe='')}.parquet"
        rows = self.output / ROWS / name
        made_with = json.dumps(
            {
                "robot": hashlib.sha256(f"{robot.name} {robot.config!r} {robot.urdf_xml}".encode()).hexdigest(),
                "smooth": self.smooth,
                "namespace": self.namespace,
                "version": self.version,
            }
        )
        if _made_with(rows) == made_with.encode():
            return BagResult(bag, DONE_BEFORE, rows=rows)
        common = {
            "serial": serial,
            "robot": robot.name,
            "bag": str(bag),
            "start": start,
            "duration": (reader.end_ns - reader.start_ns) * 1e-9,
            "version": self.version,
        }
        joints = ({**common, **joint} for joint in self._joints(reader, robot))
        known = [{name: value for name, value in row.items() if value == value} for row in joints]  # NaN: null
        table = pa.Table.from_pylist(known, SCHEMA)
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata({_MADE_WITH: made_with}), sink, compression="zstd")
        with file_errors(f"write {rows}"):
            write_atomically(rows, sink.getvalue().to_pybytes())
        return BagResult(bag, FINISHED, rows=rows)

    def _joints(self, reader: BagReader, robot: Robot) -> list[dict[str, Any]]:
        """Columns of each joint that follow from the messages."""
        newest: deque[FrictionEstimate] = deque(maxlen=1)
        warmth: list[float] = []

        def note_temperature(message: BagMessage) -> None:
            warmth.append(reader.decode(message).temperature)

        summary = replay_bag(
            reader,
            None,
            robot.config,
            robot.urdf_xml,
            on_estimate=newest.append,
            on_message=dict.fromkeys(self._temperature_topics(reader), note_temperature),
            robot=robot.name,
            smooth=self.smooth,
        )
        law = newest[0].law
        known = [value for value in warmth if np.isfinite(value)]
        return [
            {
                "joint": one.joint,
                "temperature": float(np.mean(known)) if known else None,
                "coulomb": law.coulomb[k],
                "coulomb_sigma": law.coulomb_sigma[k],
                "viscous": law.viscous[k],
                "viscous_sigma": law.viscous_sigma[k],
                "coulomb_viscous_covariance": law.coulomb_viscous_covariance[k],
                "slow": law.velocity_range[k, 0],
                "fast": law.velocity_range[k, 1],
                "usable": not (summary.health.sensors_wrong or one.kinds),
                "reason": one.text,
                "warnings": "; ".join(summary.warnings),
            }
            for k, one in enumerate(summary.diagnoses)
        ]

    def _temperature_topics(self, reader: BagReader) -> list[str]:
        """The topic ``temperature`` of the robot, or the only one of its type."""
        found = [topic for topic, kind in reader.topics.items() if kind == _TEMPERATURE]
        end = "/".join(("", *filter(None, (self.namespace.strip("/"), "temperature"))))
        return [topic for topic in found if topic.endswith(end)][:1] or (found if len(found) == 1 else [])


def _made_with(rows: Path) -> bytes:
    """What the rows of a file follow from; empty where there is no such file."""
    try:
        return (pq.read_schema(rows).metadata or {}).get(_MADE_WITH, b"")
    except (OSError, pa.ArrowInvalid):
        return b""


def find_bags(places: Iterable[AnyPath]) -> list[Path]:
    """All bags at and below some paths, each once, the largest first.

    A folder with ``metadata.yaml`` is one bag; any other storage file is one bag. Hidden folders are left out. So are
    bags that a process of this machine is still writing.

    Raises
    ------
    BagError
        When there is no bag at one of the paths.
    """
    sizes: dict[Path, int] = {}
    for place in places:
        path = Path(os.path.abspath(Path(place).expanduser()))
        files = [path] if path.is_file() else [file for file in path.rglob("*") if not _is_hidden(file, path)]
        found = {file.parent if (file.parent / METADATA).exists() else file for file in files if _is_of_bag(file)}
        if not found:
            raise BagError(f"there is no bag at {path}: no folder with {METADATA} and no .mcap or .db3 file")
        for bag in found:
            if not is_in_use((bag if bag.is_dir() else bag.parent) / LOCK):
                sizes[bag] = sum(file.stat().st_size for file in (bag.iterdir() if bag.is_dir() else [bag]))
    return sorted(sizes, key=lambda bag: (-sizes[bag], bag))


def _is_hidden(file: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(below).parts)


def _is_of_bag(file: Path) -> bool:
    return file.name == METADATA or file.suffix in _SUFFIXES
