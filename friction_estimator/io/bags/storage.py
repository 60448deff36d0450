"""Opening what a recorder left behind: a whole bag, one file of a bag, or the readable part of a damaged one."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mcap.exceptions import McapError
from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from rosbags.rosbag2 import Reader

from friction_estimator.errors import BagError

RawMessage = tuple[str, str, int, bytes]
"""Topic, message type, time of recording [ns] and serialized message."""

_SUFFIXES = (".mcap", ".db3")


class Storage(Protocol):
    """Something that holds messages.

    Attributes
    ----------
    topics : message type by topic
    message_count : how many messages there are
    start_ns, end_ns : times of recording of the first and the last message [ns]; zero without messages
    custom_data : what the recorder wrote beside the messages
    damage : what is wrong with it, empty when nothing is
    """

    topics: dict[str, str]
    message_count: int
    start_ns: int
    end_ns: int
    custom_data: dict[str, str]
    damage: str

    def messages(self, wanted: frozenset[str]) -> Iterator[RawMessage]:
        """Messages of these topics, in recorded order."""
        ...


class WholeStorage:
    """An undamaged bag (folder with metadata.yaml) or one storage file of it."""

    damage = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        with Reader(path) as reader:
            self.topics = {connection.topic: connection.msgtype for connection in reader.connections}
            self.message_count = reader.message_count
            self.start_ns = reader.start_time if reader.message_count else 0
            self.end_ns = reader.end_time - 1 if reader.message_count else 0
            self.custom_data: dict[str, str] = dict(reader.storage.metadata.custom or {})

    def messages(self, wanted: frozenset[str]) -> Iterator[RawMessage]:
        """Messages of these topics, in recorded order."""
        with Reader(self._path) as reader:
            connections = [connection for connection in reader.connections if connection.topic in wanted]
            if not connections:
                return
            missing = sum(connection.msgcount for connection in connections)
            for connection, time_ns, raw in reader.messages(connections):
                missing -= 1
                yield connection.topic, connection.msgtype, time_ns, raw
        if missing > 0:  # the reader skips over broken records in silence
            raise BagError(f"{missing} messages are missing")


class DamagedMcap:
    """The readable part of an MCAP file whose end is missing: all records before the first broken one."""

    custom_data: dict[str, str] = {}

    def __init__(self, path: Path) -> None:
        self._path = path
        self.topics: dict[str, str] = {}
        self.message_count = self.start_ns = self.end_ns = 0
        for topic, type_name, time_ns, _ in self._records():
            self.topics[topic] = type_name
            self.start_ns = min(time_ns, self.start_ns) if self.message_count else time_ns
            self.end_ns = max(time_ns, self.end_ns)
            self.message_count += 1
        self.damage = f"{path} is cut off: {self.message_count} messages could be read"
        if self.message_count:
            self.damage += f", the last {(self.end_ns - self.start_ns) * 1e-9:.3f} s after the first"

    def messages(self, wanted: frozenset[str]) -> Iterator[RawMessage]:
        """Messages of these topics, in recorded order."""
        return (message for message in self._records() if message[0] in wanted)

    def _records(self) -> Iterator[RawMessage]:
        schemas: dict[int, str] = {}
        channels: dict[int, tuple[str, str]] = {}
        with self._path.open("rb") as stream:
            records = StreamReader(stream, record_size_limit=1 << 30).records
            while True:
                try:
                    record = next(records)
                except (
                    McapError,
                    StopIteration,
                    ValueError,
                    MemoryError,
                    struct.error,
                ):  # from here on the file is broken
                    return
                if isinstance(record, Schema):
                    schemas[record.id] = record.name
                elif isinstance(record, Channel):
                    channels[record.id] = record.topic, schemas.get(record.schema_id, "")
                elif isinstance(record, Message) and record.channel_id in channels:
                    topic, type_name = channels[record.channel_id]
                    yield topic, type_name, record.log_time, record.data


def open_storages(path: Path) -> list[Storage]:
    """Open a bag.

    Parameters
    ----------
    path : folder of a rosbag2, or one .mcap or .db3 file

    Returns
    -------
    One storage for a healthy bag; one for each file when the metadata or a file is damaged.

    Raises
    ------
    BagError
        When there is no bag, or nothing of it can be read.
    """
    if not path.exists():
        raise BagError(f"there is no bag at {path}")
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise BagError(f"{path} is not a rosbag2: expected its folder, or a file ending in {' or '.join(_SUFFIXES)}")
    try:
        return [WholeStorage(path)]
    except Exception as error:  # the reader lets many kinds of errors through for damaged files
        reason = _reason(error)
    files = [path] if path.is_file() else storage_files(path)
    if not files:
        raise BagError(f"{path} is not a rosbag2: it holds no .mcap or .db3 file") from None
    storages = [_open_file(file) for file in files]
    if not any(storage.message_count for storage in storages):
        damage = [storage.damage for storage in storages if storage.damage]
        raise BagError(f"no message of the bag {path} can be read: {'; '.join(damage) or reason}")
    if not any(storage.damage for storage in storages):
        storages[0].damage = f"metadata.yaml of {path} is missing or damaged: its files were read one by one"
    return storages


def storage_files(folder: Path) -> list[Path]:
    """Storage files of a bag folder, in the order in which they were recorded (``_2`` before ``_10``)."""
    files = [file for file in folder.iterdir() if file.suffix in _SUFFIXES]
    return sorted(
        files, key=lambda file: [int(part) if part.isdigit() else 0 for part in re.split(r"(\d+)", file.stem)]
    )


def _open_file(path: Path) -> Storage:
    try:
        return WholeStorage(path)
    except Exception as error:  # as above
        if path.suffix == ".mcap":
            return DamagedMcap(path)
        return _Unreadable(f"{path} is damaged and cannot be read: {_reason(error)}")


class _Unreadable:
    """A file of which nothing can be read."""

    message_count = start_ns = end_ns = 0

    def __init__(self, damage: str) -> None:
        self.topics: dict[str, str] = {}
        self.custom_data: dict[str, str] = {}
        self.damage = damage

    def messages(self, wanted: frozenset[str]) -> Iterator[RawMessage]:
        return iter(())


def _reason(error: Exception) -> str:
    """First line of what a library says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
