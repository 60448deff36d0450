"""The friction table of a fleet: one Parquet row a bag and joint, one file a bag, one folder a month."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from friction_estimator.errors import ConfigError
from friction_estimator.fleet.sources import filesystem
from friction_estimator.io.documents import write_atomically

METHODS = ("replay", "identify")
"""Kinds of rows; each has a separate folder, because their friction must not be compared."""
_SETTINGS = b"friction_estimator"

_FIELDS = (
    ("serial", pa.string(), "serial number of the robot"),
    ("robot", pa.string(), "name of the robot's configuration"),
    ("joint", pa.string(), "name of the joint"),
    ("start", pa.timestamp("us"), "time of the first message, UTC"),
    ("duration", pa.float64(), "from the first to the last message [s]"),
    ("temperature", pa.float64(), "mean over the bag [degree Celsius], null where none was recorded"),
    ("law", pa.string(), "friction law that was identified"),
    ("coulomb", pa.float64(), "F_c of the line through the law [N m]"),
    ("coulomb_sigma", pa.float64(), "its standard deviation [N m]"),
    ("viscous", pa.float64(), "F_v of the line through the law [N m s/rad]"),
    ("viscous_sigma", pa.float64(), "its standard deviation [N m s/rad]"),
    ("coulomb_viscous_covariance", pa.float64(), "covariance of the two [(N m)^2 s/rad]"),
    ("slow", pa.float64(), "slow end of the joint's speeds in motion [rad/s]"),
    ("fast", pa.float64(), "fast end of these speeds [rad/s]"),
    ("friction_rms", pa.float64(), "RMS of the friction torque [N m]"),
    ("samples", pa.int64(), "joint samples or measurements behind the result"),
    ("rejected", pa.int64(), "messages of the bag that were refused, null where they are not counted"),
    ("usable", pa.bool_(), "False where the diagnosis voids the friction"),
    ("diagnosis", pa.string(), "problems of the joint, or of the recording"),
    ("report", pa.string(), "path of the bag's report in the output folder, null where there is none"),
    ("bag", pa.string(), "path or URL of the bag"),
    ("bag_hash", pa.string(), "hash of the bag's content"),
    ("version", pa.string(), "version of friction_estimator"),
)
SCHEMA = pa.schema([pa.field(name, kind, metadata={"description": text}) for name, kind, text in _FIELDS])
COLUMNS = {name: text for name, _, text in _FIELDS}
"""Description of every column."""


def row_file(method: str, start: datetime, name: str) -> str:
    """File of the rows of one bag in the output folder."""
    return f"{method}/month={start:%Y-%m}/{name}.parquet"


def is_finished(path: str, settings: Mapping[str, str]) -> bool:
    """Whether a bag has rows that were made with these settings (robot, version, options)."""
    fs, place = filesystem(path)
    try:
        with fs.open(place, "rb") as stream:
            found = pq.read_schema(stream).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return False
    return found.get(_SETTINGS) == _text(settings)


def write_rows(folder: str, file: str, columns: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Write the rows of one bag: at every moment the old file, the new file or none is there, whole.

    Parameters
    ----------
    columns : a value a joint by column, or one for all joints; NaN and missing columns become null
    """
    count = len(columns["joint"])
    arrays = []
    for field in SCHEMA:
        value = columns.get(field.name)
        values = value if isinstance(value, (tuple, list, np.ndarray)) else [value] * count
        arrays.append(pa.array(values, field.type, from_pandas=True))
    table = pa.Table.from_arrays(arrays, schema=SCHEMA).replace_schema_metadata({_SETTINGS: _text(settings)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_bytes(folder, file, sink.getvalue().to_pybytes())


def write_bytes(folder: str, file: str, content: bytes) -> None:
    """Write a file as a whole: by renaming in a file system, in one request to an object store.

    What a killed process leaves lies in the output folder itself, where no library looks for rows.
    """
    fs, root = filesystem(folder)
    place = f"{root.rstrip('/')}/{file}"
    if isinstance(fs, LocalFileSystem):
        write_atomically(Path(place), content, scratch=Path(root))
        return
    fs.makedirs(str(PurePosixPath(place).parent), exist_ok=True)
    fs.pipe_file(place, content)


def _text(settings: Mapping[str, str]) -> bytes:
    return json.dumps(dict(settings), sort_keys=True).encode()


def read_table(folders: Sequence[str], since: datetime | None = None) -> pa.Table:
    """All rows of friction tables, by serial number, joint and start; ``report`` is a whole path or URL.

    Parameters
    ----------
    folders : output folders of ``fleet replay`` or ``fleet identify``, or their folders ``replay`` or ``identify``
    since : earlier bags are left out (UTC, without time zone)

    Raises
    ------
    ConfigError
        When there is no row, a file is no such table, or a folder has rows of both methods.
    """
    tables = []
    for folder in folders:
        fs, place = filesystem(folder)
        method = [name for name in METHODS if fs.isdir(f"{place}/{name}")]
        if len(method) > 1:
            raise ConfigError(f"{folder} has rows of {' and '.join(METHODS)}: give {folder}/{METHODS[0]}, or the other")
        root = f"{place}/{method[0]}" if method else place
        output = folder.rstrip("/")
        if not method and PurePosixPath(output).name in METHODS:
            output = output.rpartition("/")[0]
        files = sorted(path for path in fs.find(root) if path.endswith(".parquet"))
        recent = None if since is None else ds.field("start") >= pa.scalar(since, SCHEMA.field("start").type)
        try:
            rows = ds.dataset(files, SCHEMA, format="parquet", filesystem=fs).to_table(filter=recent)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ConfigError(f"{folder} holds a file that is no friction table: {error}") from None
        reports = pc.binary_join_element_wise(output, rows["report"], "/")
        tables.append(rows.set_column(SCHEMA.get_field_index("report"), SCHEMA.field("report"), reports))
    rows = pa.concat_tables(tables)
    if not rows.num_rows:
        places = ", ".join(folders)
        if since is None:
            raise ConfigError(f"there is no friction in {places}: run `fleet replay` first")
        raise ConfigError(f"there is no friction since {since:%Y-%m-%d} in {places}: choose an earlier day")
    return rows.sort_by([("serial", "ascending"), ("joint", "ascending"), ("start", "ascending")])
