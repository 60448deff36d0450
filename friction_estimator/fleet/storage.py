"""Files of a fleet: recorded bags, found by path, glob or URL, and the friction table that is made of them.

The table has one Parquet row per bag and joint, one file per bag, one folder per month.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from friction_estimator.errors import BagError, ConfigError
from friction_estimator.io.bags.reader import METADATA
from friction_estimator.io.bags.writer import LOCK
from friction_estimator.io.documents import is_in_use, write_atomically

_STORAGE = (".mcap", ".db3")
_READ_BYTES = 1 << 20  # of a file at a time
_CHECKSUMS = ("md5Hash", "content_md5", "checksum", "ETag", "etag")
"""Names under which object stores keep a checksum of a file; those of the content alone first."""


@dataclass(frozen=True, slots=True)
class Bag:
    """One recorded bag."""

    url: str  # absolute path or URL of its folder or its only file
    size: int  # of its files [byte]


def filesystem(url: str) -> tuple[Any, str]:
    """File system of a path or URL (fsspec), and the path in it.

    Raises
    ------
    ConfigError
        When no installed package reads such URLs.
    """
    try:
        fs, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"cannot read {url}: {error}; install the fsspec package of its protocol (s3fs for s3://, gcsfs for "
            "gs://), or give the path of a local folder"
        ) from None
    fs.invalidate_cache()  # workers of a cluster live longer than what is in the store
    return fs, path


def find_bags(sources: Iterable[str]) -> tuple[Bag, ...]:
    """All bags below paths, globs or URLs, each once, the largest first.

    A folder with ``metadata.yaml`` is one bag; any other storage file is one bag. Hidden folders are left out, and bags
    that a process of this machine is still writing.

    Raises
    ------
    BagError
        When there is no bag at one of the sources.
    ConfigError
        When no installed package reads such URLs.
    """
    found: dict[str, Bag] = {}
    for source in sources:
        fs, path = filesystem(source)
        places = fs.glob(path) if any(letter in path for letter in "*?[") else [path]
        bags = [bag for place in places for bag in _bags_below(fs, place)]
        if not bags:
            raise BagError(f"there is no bag at {source}: no folder with {METADATA} and no .mcap or .db3 file")
        found.update((bag.url, bag) for bag in bags)
    return tuple(sorted(found.values(), key=lambda bag: (-bag.size, bag.url)))


def _bags_below(fs: Any, place: str) -> Iterator[Bag]:
    files = {
        path: int(info.get("size") or 0)
        for path, info in fs.find(place, detail=True).items()
        if not any(part.startswith(".") for part in PurePosixPath(path).relative_to(PurePosixPath(place)).parts)
    }
    folders = {str(PurePosixPath(path).parent) for path in files if PurePosixPath(path).name == METADATA}
    sizes: dict[str, int] = dict.fromkeys(folders, 0)
    for path, size in files.items():
        parent = str(PurePosixPath(path).parent)
        if parent in folders and path != place:
            sizes[parent] += size
        elif path.endswith(_STORAGE):
            sizes[path] = size
    local = isinstance(fs, LocalFileSystem)
    for path, size in sizes.items():
        if not (local and is_in_use(Path(path if path in folders else PurePosixPath(path).parent) / LOCK)):
            yield Bag(path if local else fs.unstrip_protocol(path), size)


def content_hash(url: str) -> str:
    """Hash of the content of a bag, whatever its name.

    For remote files the checksum that their store keeps is used where there is one; any other file is read.
    """
    fs, path = filesystem(url)
    digest = hashlib.sha256()  # in hardware on most processors
    for name, info in sorted(fs.find(path, detail=True).items()):
        known = next((str(info[key]) for key in _CHECKSUMS if info.get(key)), None)
        if known is not None:
            digest.update(known.encode())
            continue
        with fs.open(name, "rb") as stream:
            while block := stream.read(_READ_BYTES):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def local_copy(url: str, folder: str | None = None) -> Iterator[Path]:
    """Path of a bag on this machine. A remote bag is copied, and the copy deleted at the end.

    A worker never holds more than one copy. What a killed worker leaves is in its own scratch folder, which Dask
    deletes.

    Parameters
    ----------
    url : of the bag
    folder : in which the copy is made; None: the folder for temporary files
    """
    fs, path = filesystem(url)
    if isinstance(fs, LocalFileSystem):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="bag_", dir=folder) as scratch:
        origin = PurePosixPath(path)
        target = Path(scratch) / origin.name
        for name in fs.find(path):
            place = target / PurePosixPath(name).relative_to(origin)
            place.parent.mkdir(parents=True, exist_ok=True)
            fs.get_file(name, str(place))
        if not target.exists():
            raise BagError(f"there is no bag at {url} any more: leave the bags in place until the run has ended")
        yield target


_KINDS = ("replay", "identify")
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
    ("usable", pa.bool_(), "False where a sensor was wrong or silent at the end, or the law was still new"),
    ("diagnosis", pa.string(), "why the friction of the joint is not usable, or problems of the recording"),
    ("report", pa.string(), "path of the bag's report in the output folder, null where there is none"),
    ("bag", pa.string(), "path or URL of the bag"),
    ("bag_hash", pa.string(), "hash of the bag's content"),
    ("version", pa.string(), "version of friction_estimator"),
)
SCHEMA = pa.schema([pa.field(name, kind, metadata={"description": text}) for name, kind, text in _FIELDS])


def row_file(kind: str, start: datetime, name: str) -> str:
    """Path, relative to the output folder, of the Parquet file with the rows of one bag."""
    return f"{kind}/month={start:%Y-%m}/{name}.parquet"


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
    folder, file : output folder, and path in it by :func:`row_file`
    columns : a value per joint by column, or one for all joints; NaN and missing columns become null
    settings : robot, version and options, by which :func:`is_finished` recognises the rows
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
        When there is no row, a file is no such table, or a folder has rows of both kinds.
    """
    tables = []
    for folder in folders:
        fs, place = filesystem(folder)
        kinds = [name for name in _KINDS if fs.isdir(f"{place}/{name}")]
        if len(kinds) > 1:
            raise ConfigError(f"{folder} has rows of {' and '.join(_KINDS)}: give {folder}/{_KINDS[0]}, or the other")
        root = f"{place}/{kinds[0]}" if kinds else place
        output = folder.rstrip("/")
        if not kinds and PurePosixPath(output).name in _KINDS:
            output = output.rpartition("/")[0]
        files = sorted(path for path in fs.find(root) if path.endswith(".parquet"))
        recent = None if since is None else ds.field("start") >= pa.scalar(since, SCHEMA.field("start").type)
        try:
            rows = ds.dataset(files, SCHEMA, format="parquet", filesystem=fs).to_table(filter=recent)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ConfigError(
                f"{folder} holds a file that is no friction table: {error}; give a folder of `fleet`"
            ) from None
        reports = pc.binary_join_element_wise(output, rows["report"], "/")
        tables.append(rows.set_column(SCHEMA.get_field_index("report"), SCHEMA.field("report"), reports))
    rows = pa.concat_tables(tables)
    if not rows.num_rows:
        places = ", ".join(folders)
        if since is None:
            raise ConfigError(f"there is no friction in {places}: run `fleet replay` first")
        raise ConfigError(f"there is no friction since {since:%Y-%m-%d} in {places}: choose an earlier day")
    return rows.sort_by([("serial", "ascending"), ("joint", "ascending"), ("start", "ascending")])
