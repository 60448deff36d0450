"""Reading rosbag2: mcap and sqlite3, split files, other topics inside, damaged ends."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from friction_estimator.errors import BagError, ConfigError, choices
from friction_estimator.io.documents import read_yaml
from friction_estimator.types import AnyPath

METADATA, INFORMATION = "metadata.yaml", "rosbag2_bagfile_information"
"""File of a bag that describes it, and the only key in this file."""
MCAP_END = b"\x0f\4" + bytes(11) + b"\2\x14" + bytes(27) + b"\x89MCAP0\r\n"
"""End of an MCAP without summary: empty records of the end of the data and of the file, and the signature."""


class BagMessage(NamedTuple):
    """One recorded message."""

    topic: str  # as in the bag, with its leading slash
    type: str  # `package/msg/Name`
    time_ns: int  # when it was recorded [ns]
    raw: bytes  # serialized


class BagReader:
    """One rosbag2, opened for reading.

    Parameters
    ----------
    path : folder of the bag, or one of its files
    namespace : of the topics; only needed when several robots are in one bag
    duration : messages recorded later than this after the first one are left out [s]

    Attributes
    ----------
    topics : message type by topic
    message_count : of all topics
    start_ns, end_ns : times of recording of the first and last message [ns]
    custom_data : texts that the writer stored with the messages
    damage : what of the bag could not be read, in one line; empty when it is whole
    namespace : as given

    Raises
    ------
    BagError
        When there is no bag, it is empty or nothing of it can be read.
    """

    def __init__(self, path: AnyPath, namespace: str = "", duration: float = math.inf) -> None:
        self.path = Path(path).expanduser()
        self.namespace = namespace
        self._storages = _open_storages(self.path)
        filled = [storage for storage in self._storages if storage.message_count]
        if not filled:
            raise BagError(f"the bag {self.path} is empty: record it while the drivers publish")
        self.topics: dict[str, str] = {}
        self.custom_data: dict[str, str] = {}
        for storage in self._storages:
            self.topics.update(storage.topics)
            self.custom_data.update(storage.custom_data)
        self.message_count = sum(storage.message_count for storage in filled)
        self.start_ns = min(storage.start_ns for storage in filled)
        self.end_ns = max(storage.end_ns for storage in filled)
        self._latest_ns = self.start_ns + 1e9 * duration
        self.damage = "; ".join(storage.damage for storage in self._storages if storage.damage)

    def find_topic(self, name: str, type_name: str = "") -> str | None:
        """Full name of a relative topic in this bag; None when it is not there.

        A topic in the given (or the root) namespace is preferred; otherwise the only topic that ends in the name is
        taken.

        Raises
        ------
        BagError
            When several topics could be meant, or the topic has another type.
        """
        namespace = self.namespace.strip("/")
        wanted = "/" + "/".join(part for part in (namespace, name.strip("/")) if part)
        found = wanted if wanted in self.topics else None
        if found is None and not namespace and not name.startswith("/"):
            found = self._only_ending(wanted)
        if found and type_name and self.topics[found] != type_name:
            raise BagError(
                f"topic {found} of {self.path} is a {self.topics[found]}, expected a {type_name}: give the name of "
                "another topic"
            )
        return found

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[BagMessage]:
        """Messages in recorded order.

        Parameters
        ----------
        topics : full names; None means all

        Notes
        -----
        When a file is damaged half-way, iteration goes on with the next file, and ``damage`` describes the damage.
        """
        wanted = frozenset(self.topics if topics is None else topics)
        for storage in self._storages:
            last = storage.start_ns
            try:
                for topic, type_name, time_ns, raw in storage.messages(wanted):
                    if not isinstance(raw, (bytes, memoryview)):  # SQLite keeps any type in any column
                        raise BagError(
                            f"a message on {topic} is stored as {type(raw).__name__}, not as bytes: copy the bag again"
                        )
                    if time_ns > self._latest_ns:
                        break
                    last = time_ns
                    yield BagMessage(topic, type_name, time_ns, raw)
            except Exception as error:  # the libraries let many kinds of errors through
                self._note_damage(error, last)

    def decode(self, message: BagMessage) -> Any:
        """Message object of one recorded message.

        Raises
        ------
        BagError
            When the bytes are not such a message.
        """
        try:
            return jazzy_typestore().deserialize_cdr(message.raw, message.type)
        except KeyError:
            raise BagError(
                f"topic {message.topic}: the message type {message.type} is not known: only those of ROS 2 "
                "Jazzy can be read"
            ) from None
        except Exception:  # as above
            seconds = (message.time_ns - self.start_ns) * 1e-9
            raise BagError(
                f"topic {message.topic}: the message at {seconds:.3f} s cannot be decoded: copy the bag again"
            ) from None

    def topic_list(self) -> str:
        """The topics with their types, for an error message."""
        return ", ".join(f"{topic} ({type_name})" for topic, type_name in sorted(self.topics.items()))

    def _only_ending(self, wanted: str) -> str | None:
        ending = [topic for topic in self.topics if topic.endswith(wanted)]
        if "/ground_truth/" not in wanted:  # .../ground_truth/base_state is not the estimated base_state
            ending = [topic for topic in ending if "/ground_truth/" not in topic]
        if len(ending) > 1:
            raise BagError(
                f"{self.path} has several topics {wanted!r}: {', '.join(sorted(ending))}; give a namespace, the part "
                f"before {wanted!r} (namespace=..., --namespace)"
            )
        return ending[0] if ending else None

    def _note_damage(self, error: Exception, last_ns: int) -> None:
        seconds = (last_ns - self.start_ns) * 1e-9
        note = f"{self.path} is damaged, reading ended at {seconds:.3f} s: {_reason(error)}"
        if note not in self.damage:
            self.damage = f"{self.damage}; {note}" if self.damage else note


_RawMessage = tuple[str, str, int, bytes]
"""Topic, message type, time of recording [ns] and serialized message."""

_SUFFIXES = (".mcap", ".db3")
_SIGNATURE = MCAP_END[-8:]
_MAX_RECORD = 1 << 30  # bytes of a record: a broken length asks for more


@dataclass(slots=True)
class _Storage:
    """A bag, or one file of a damaged bag."""

    topics: dict[str, str]  # message type by topic
    message_count: int = 0  # how many messages there are
    start_ns: int = 0  # time of recording of the first message [ns]; zero without messages
    end_ns: int = 0  # that of the last one
    custom_data: dict[str, str] = field(default_factory=dict)  # texts that the writer stored with the messages
    damage: str = ""  # what is wrong with it, empty when nothing is
    # messages of these topics, in recorded order
    messages: Callable[[frozenset[str]], Iterator[_RawMessage]] = lambda wanted: iter(())


def _whole(path: Path) -> _Storage:
    """An undamaged bag (folder with metadata.yaml) or storage file."""

    def messages(wanted: frozenset[str]) -> Iterator[_RawMessage]:
        with Reader(path) as reader:
            connections = [connection for connection in reader.connections if connection.topic in wanted]
            if not connections:
                return
            missing = sum(connection.msgcount for connection in connections)
            for connection, time_ns, raw in reader.messages(connections):
                missing -= 1
                yield connection.topic, connection.msgtype, time_ns, raw
        if missing > 0:  # the reader skips over broken records in silence
            raise BagError(f"{missing} messages are missing, their records are broken: copy the bag again")

    with Reader(path) as reader:
        files = getattr(reader.storage, "storages", [reader.storage])
        if any(isinstance(file, McapReader) and not file.chunks for file in files) and not reader.compression_mode:
            raise BagError("messages without an index are read in the order in which they were recorded")
        topics = {connection.topic: connection.msgtype for connection in reader.connections}
        count, custom = reader.message_count, dict(reader.storage.metadata.custom or {})
        start_ns, end_ns = (reader.start_time, reader.end_time - 1) if count else (0, 0)
        return _Storage(topics, count, start_ns, end_ns, custom, messages=messages)


def _unindexed_mcap(path: Path) -> _Storage:
    """All records before the first broken one of an MCAP file that has no index, or whose end is missing."""

    def records() -> Iterator[_RawMessage]:
        schemas: dict[int, str] = {}
        channels: dict[int, tuple[str, str]] = {}
        with path.open("rb") as stream:
            found = StreamReader(stream, record_size_limit=_MAX_RECORD).records
            while True:
                try:
                    record = next(found)
                except Exception:  # of many kinds: from here on the file is broken
                    return
                if isinstance(record, Schema):
                    schemas[record.id] = record.name
                elif isinstance(record, Channel):
                    channels[record.id] = record.topic, schemas.get(record.schema_id, "")
                elif isinstance(record, Message) and record.channel_id in channels:
                    yield (*channels[record.channel_id], record.log_time, record.data)

    storage, times = _Storage({}), list[int]()
    for topic, type_name, time_ns, _ in records():
        storage.topics[topic] = type_name
        times.append(time_ns)
    storage.messages = lambda wanted: (message for message in records() if message[0] in wanted)
    if times:
        storage.message_count, storage.start_ns, storage.end_ns = len(times), min(times), max(times)
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - len(MCAP_END), 0))
        end = stream.read()
    if end == MCAP_END or not end.endswith(_SIGNATURE):
        state = "was not written to its end, its writer was killed" if end == MCAP_END else "is cut off"
        storage.damage = f"{path} {state}: {len(times)} messages could be read"
        storage.damage += f", the last {(storage.end_ns - storage.start_ns) * 1e-9:.3f} s after the first"
    return storage


def _open_storages(path: Path) -> list[_Storage]:
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
        When there is no bag, a file of it is missing, or nothing of it can be read.
    """
    if not path.exists():
        raise BagError(f"there is no bag at {path}")
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise BagError(
            f"{path} is not a rosbag2: expected its folder, or a file ending in {' or '.join(_SUFFIXES)}; "
            "`identify` reads tables (.csv, .npz): save what another program wrote, such as a .mat, as one of them"
        )
    files = [path] if path.is_file() else storage_files(path)
    for file in files:
        _finish_transactions(file)
    try:
        return [_whole(path)]
    except Exception as error:  # the reader lets many kinds of errors through for damaged files
        reason = _reason(error)
    names, custom_data = _description(path)
    if missing := [name for name in names if not (path / name).exists()]:
        raise BagError(
            f"the bag {path} lacks {choices(missing)}, which its metadata.yaml names: copy them into the folder, or "
            "read the files that are there one by one"
        )
    if not files:
        raise BagError(f"{path} is not a rosbag2: it holds no .mcap or .db3 file") from None
    storages = [_open_file(file) for file in files]
    if not any(storage.message_count for storage in storages):
        damage = [storage.damage for storage in storages if storage.damage]
        raise BagError(f"no message of the bag {path} can be read: {'; '.join(damage) or reason}; copy the bag again")
    if path.is_dir() and not names and not any(storage.damage for storage in storages):
        storages[0].damage = f"{METADATA} of {path} is missing or damaged: its files were read one by one"
    storages[0].custom_data |= custom_data
    return storages


def _finish_transactions(file: Path) -> None:
    """Let SQLite complete or undo what a killed writer has begun; rosbags reads a database as it is."""
    if any(file.with_name(file.name + rest).exists() for rest in ("-journal", "-wal")):
        with suppress(sqlite3.Error), closing(sqlite3.connect(file)) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchall()


def _description(path: Path) -> tuple[list[str], dict[str, str]]:
    """Files and custom data that the metadata of a bag name; none where they cannot be read."""
    try:
        information = read_yaml(path / METADATA)[INFORMATION]
        return list(map(str, information["relative_file_paths"])), dict(information.get("custom_data") or {})
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError):
        return [], {}


def storage_files(folder: Path) -> list[Path]:
    """Storage files of a bag folder, in the order in which they were recorded (``_2`` before ``_10``)."""
    files = [file for file in folder.iterdir() if file.suffix in _SUFFIXES]
    return sorted(
        files, key=lambda file: [int(part) if part.isdigit() else 0 for part in re.split(r"(\d+)", file.stem)]
    )


def _open_file(path: Path) -> _Storage:
    try:
        return _whole(path)
    except Exception as error:  # as above
        if path.suffix == ".mcap":
            return _unindexed_mcap(path)
        return _Storage({}, damage=f"{path} is damaged and cannot be read: {_reason(error)}")


def _reason(error: Exception) -> str:
    """First line of the message of a library's error."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@lru_cache(maxsize=1)
def jazzy_typestore() -> Typestore:
    """Definitions of all messages of ROS 2 Jazzy."""
    return get_typestore(Stores.ROS2_JAZZY)
