"""Writing rosbag2, so that a killed process or a full disk leaves a readable bag; planned motions as a bag."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.errors import WriterError
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer
from rosbags.typesys.base import TypesysError

from friction_estimator.errors import BagError, choices
from friction_estimator.identification.joint_log import JointTrajectory
from friction_estimator.io.bags.reader import INFORMATION, MCAP_END, METADATA, jazzy_typestore
from friction_estimator.io.documents import lock, yaml_text
from friction_estimator.messages.cdr import NANOSECONDS, CdrWriter
from friction_estimator.types import AnyPath

_PLUGINS = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
STORAGES = tuple(_PLUGINS)
"""File formats of a rosbag2; the first is the default."""
LOCK = ".lock"
"""File in the folder of a bag that its writer locks, and removes when the bag is complete."""
_SAVE_PERIOD = 0.5
"""Longest time between two saves while messages come [s]; a save takes up to 10 ms."""
_VERSION = 9  # of the format of a rosbag2: that of ROS 2 Jazzy


class _McapFile:
    """The file of an MCAP: what has been saved of it is a whole MCAP without summary, also after a failed save."""

    def __init__(self, stream: BinaryIO) -> None:
        stream.flush()
        self._stream, self._saved, self._new = stream, stream.tell(), bytearray()

    def write(self, data: bytes | memoryview) -> int:
        self._new += data
        return len(data)

    def tell(self) -> int:
        return self._saved + len(self._new)

    def save(self, end: bytes = MCAP_END) -> None:
        """Write what is new and a new end behind the old end, and then over the old end, which needs no space."""
        descriptor, data, behind = self._stream.fileno(), memoryview(self._new + end), len(MCAP_END)
        try:
            _write_all(descriptor, data[behind:], self._saved + behind)
        except OSError:
            os.ftruncate(descriptor, self._saved + behind)
            raise
        _write_all(descriptor, data[:behind], self._saved)
        self._saved, self._new = self.tell(), bytearray()

    def close(self) -> None:
        """Write what is new, which has an end, and close the file."""
        self.save(b"")
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it was saved last."""
        self._stream.close()


def _write_all(descriptor: int, data: memoryview, at: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, at)
        data, at = data[count:], at + count


class _Mcap(McapWriter):
    """MCAP that can be saved at any time: the messages since the last save become a chunk."""

    bio: Any

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        self.bio = _McapFile(self.bio)

    def save(self) -> None:
        if self.chunk.msgs:
            self.close_chunk()
        self.bio.save()

    def abort(self) -> None:
        self.bio.abandon()


class _Sqlite(Sqlite3Writer):
    def save(self) -> None:
        self.conn.commit()


class _Writer(Writer):
    STORAGE_PLUGINS = {StoragePlugin.MCAP: _Mcap, StoragePlugin.SQLITE3: _Sqlite}


class BagWriter:
    """A context manager that writes one rosbag2, in its place from the first message on.

    At least twice a second while messages come the bag is saved, readable for every program. So a killed process or a
    full disk costs the messages of the last half second. After an error the bag is completed, too; without a message it
    is deleted. No other process can write a bag of that name meanwhile.

    Parameters
    ----------
    path : folder of the bag
    storage : one of :data:`STORAGES`
    custom_data : texts to store with the messages
    overwrite : delete an older bag of that name first

    Raises
    ------
    BagError
        When something else exists at the path, another process writes it, or it cannot be written.
    """

    def __init__(
        self,
        path: AnyPath,
        storage: str = "mcap",
        custom_data: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        if storage not in _PLUGINS:
            raise BagError(f"unknown storage {storage!r}; choose one of {choices(_PLUGINS)}")
        self.path = Path(path).expanduser()
        self.message_count = 0
        self._overwrite = overwrite
        self._custom_data = dict(custom_data or {})
        self._plugin = _PLUGINS[storage]
        self._connections: dict[tuple[str, str], Connection] = {}
        self._writer: Writer | None = None
        self._next_save = 0.0
        self._check_target()

    def __enter__(self) -> BagWriter:
        self._check_target()
        try:
            self._delete_older()
            writer = _Writer(self.path, version=_VERSION, storage_plugin=self._plugin)
        except (OSError, WriterError) as error:
            raise self._error(error) from None
        try:
            writer.open()  # makes the folder
            self._lock = lock(self.path / LOCK, create=True)
        except WriterError as error:
            raise self._error(error) from None
        except (OSError, sqlite3.Error) as error:
            shutil.rmtree(self.path, ignore_errors=True)
            raise self._error(error) from None
        self._writer, self._next_save = writer, time.monotonic() + _SAVE_PERIOD
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self.message_count and not issubclass(kind, KeyboardInterrupt):
            self.discard()
        writer, self._writer = self._writer, None
        if writer is None or writer.storage is None:
            return
        try:
            writer.storage.close(_VERSION, yaml_text(self._information(writer)).strip())
            self._write_metadata(writer)
        except (OSError, sqlite3.Error) as problem:
            writer.abort()
            if kind is None:
                raise self._error(problem) from None
        finally:
            (self.path / LOCK).unlink(missing_ok=True)
            os.close(self._lock)

    def discard(self) -> None:
        """Delete the bag: what is in it is of no use."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)

    def save(self, now: bool = True) -> None:
        """Make all messages that were written readable for others; ``now=False``: if the last time is long ago.

        Raises
        ------
        BagError
            When the bag is not open, or the disk refuses.
        """
        if not now and time.monotonic() < self._next_save:
            return
        if self._writer is None:
            raise BagError(f"the bag {self.path} is not open: write to it in its `with` block")
        try:
            self._writer.storage.save()
            self._write_metadata(self._writer)
        except (OSError, sqlite3.Error) as error:
            raise self._error(error) from None
        self._next_save = time.monotonic() + _SAVE_PERIOD

    def write_raw(self, topic: str, type_name: str, time_ns: int, raw: bytes | bytearray | memoryview) -> None:
        """Write a serialized message of this type to a topic, under the time of its recording [ns].

        Raises
        ------
        BagError
            When the bag is not open, the type is unknown, or the disk refuses.
        """
        if self._writer is None:
            raise BagError(f"the bag {self.path} is not open: write to it in its `with` block")
        connection = self._connections.get((topic, type_name))
        if connection is None:
            connection = self._connect(self._writer, topic, type_name)
        try:
            self._writer.write(connection, time_ns, raw)
        except sqlite3.Error as error:
            raise self._error(error) from None
        self.message_count += 1
        self.save(now=False)

    def add_topic(self, topic: str, type_name: str) -> None:
        """Announce a topic, so that it is in the bag even if no message comes."""
        if self._writer is not None and (topic, type_name) not in self._connections:
            self._connect(self._writer, topic, type_name)

    def _connect(self, writer: Writer, topic: str, type_name: str) -> Connection:
        name = "/" + topic.lstrip("/")
        try:
            connection = writer.add_connection(name, type_name, typestore=jazzy_typestore())
        except (KeyError, TypesysError, WriterError) as error:
            raise BagError(f"cannot write topic {name} of type {type_name}: {error}") from None
        self._connections[topic, type_name] = connection
        return connection

    def _check_target(self) -> None:
        if not self.path.exists():
            return
        state, is_bag = "exists already", (self.path / METADATA).is_file()
        if (self.path / LOCK).exists():
            try:
                os.close(lock(self.path / LOCK))
            except OSError as error:
                raise self._error(error) from None
            state, is_bag = "is kept, its writer was killed before the bag was complete, and it can be read", True
        if not (self._overwrite and is_bag):
            hint = "choose another name" + (", or replace it (overwrite=True, --overwrite)" if is_bag else "")
            raise BagError(f"{self.path} {state}; {hint}")

    def _delete_older(self) -> None:
        if self.path.exists():
            descriptor = lock(self.path / LOCK, create=True)
            shutil.rmtree(self.path)
            os.close(descriptor)

    def _error(self, problem: Exception) -> BagError:
        kept = "; the messages before that are kept" if self.message_count else ""
        return BagError(f"cannot write the bag {self.path}: {getattr(problem, 'strerror', None) or problem}{kept}")

    def _information(self, writer: Writer) -> dict[str, Any]:
        """Content of ``metadata.yaml`` so far."""
        file = writer.storage.path.name
        topics = [
            {
                "topic_metadata": {
                    "name": connection.topic,
                    "type": connection.msgtype,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [],
                    "type_description_hash": connection.digest,
                },
                "message_count": writer.counts[connection.id],
            }
            for connection in writer.connections
        ]
        times = {
            "starting_time": {"nanoseconds_since_epoch": writer.min_timestamp},
            "duration": {"nanoseconds": max(writer.max_timestamp - writer.min_timestamp, 0)},
            "message_count": self.message_count,
        }
        return {
            "version": _VERSION,
            "storage_identifier": self._plugin.name.lower(),
            "relative_file_paths": [file],
            **times,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": file, **times}],
            "custom_data": self._custom_data or None,
            "ros_distro": "rosbags",
        }

    def _write_metadata(self, writer: Writer) -> None:
        temporary = self.path / f".{METADATA}.tmp"
        try:
            temporary.write_text(yaml_text({INFORMATION: self._information(writer)}), encoding="utf-8")
            temporary.replace(self.path / METADATA)
        finally:
            temporary.unlink(missing_ok=True)


TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
TRAJECTORY_TOPIC = "joint_trajectory_controller/joint_trajectory"
"""Where the joint trajectory controller of ros2_control listens, unless it has another name."""


def write_trajectory_bag(
    path: AnyPath,
    trajectory: JointTrajectory,
    topic: str = TRAJECTORY_TOPIC,
    overwrite: bool = False,
) -> None:
    """Write one message, with a zero stamp: "start now" for a controller.

    Parameters
    ----------
    path : folder of the bag
    trajectory : what to write
    topic : of the message
    overwrite : replace an older bag of that name

    Raises
    ------
    BagError
        When something else exists at the path, or it cannot be written.
    """
    message = CdrWriter()
    message.header("")
    message.strings(trajectory.joint_names)
    message.pack("I", 4, trajectory.time.size)
    signals = trajectory.position, trajectory.velocity, trajectory.acceleration
    for instant, *arrays in zip(trajectory.time.tolist(), *(values.tolist() for values in signals), strict=True):
        for numbers in (*arrays, ()):  # no effort
            message.pack("I", 4, len(numbers))
            if numbers:
                message.pack(f"{len(numbers)}d", 8, *numbers)
        message.pack("iI", 4, *divmod(round(instant * NANOSECONDS), NANOSECONDS))
    with BagWriter(path, overwrite=overwrite) as writer:
        writer.write_raw(topic, TRAJECTORY, 0, message.buffer)
