"""Writing rosbag2: an interrupted run leaves a readable bag or nothing; planned motions as a bag."""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.typesys.base import TypesysError

from friction_estimator.errors import BagError, choices
from friction_estimator.identification.joint_log import JointTrajectory
from friction_estimator.io.bags.reader import jazzy_typestore
from friction_estimator.messages.cdr import NANOSECONDS, CdrWriter
from friction_estimator.types import AnyPath

_PLUGINS = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
STORAGES = tuple(_PLUGINS)
"""File formats of a rosbag2; the first is the default."""


class BagWriter:
    """A context manager that writes one rosbag2.

    The bag is written in a hidden folder of a random name next to its final path and moved there at the end. Ctrl-C
    ends it early, readable; any other error leaves nothing. Folders of killed runs are deleted.

    Parameters
    ----------
    path : folder of the bag
    storage : one of :data:`STORAGES`
    custom_data : texts to store with the messages
    overwrite : replace an older bag of that name

    Raises
    ------
    BagError
        When something else exists at the path, or it cannot be written.
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
        self._workshop = Path()
        self._check_target()

    def __enter__(self) -> BagWriter:
        try:
            self._make_workshop()
            self._writer = Writer(self._workshop / self.path.name, version=9, storage_plugin=self._plugin)
            for key, value in self._custom_data.items():
                self._writer.set_custom_data(key, value)
            self._writer.open()
        except (OSError, WriterError) as error:
            raise BagError(f"cannot write the bag {self.path}: {error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            if kind is None or issubclass(kind, KeyboardInterrupt):
                writer.close()
                self._move()
            else:
                writer.abort()
        except OSError as problem:
            raise BagError(f"cannot write the bag {self.path}: {problem}") from None
        finally:
            shutil.rmtree(self._workshop, ignore_errors=True)

    def _make_workshop(self) -> None:
        parent, begin, end = self.path.parent, f".{self.path.name[:100]}.", ".partial"
        parent.mkdir(parents=True, exist_ok=True)
        for old in parent.glob(f"{glob.escape(begin)}????????{end}"):
            shutil.rmtree(old, ignore_errors=True)  # a link is left alone
        self._workshop = Path(tempfile.mkdtemp(end, begin, parent))

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
        except OSError as error:
            raise BagError(f"cannot write the bag {self.path}: {error}") from None
        self.message_count += 1

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
        is_bag = (self.path / "metadata.yaml").is_file()
        if not (self._overwrite and is_bag):
            hint = "choose another name" + (", or replace it (overwrite=True, --overwrite)" if is_bag else "")
            raise BagError(f"{self.path} exists already; {hint}")

    def _move(self) -> None:
        self._check_target()
        if self.path.exists():
            shutil.rmtree(self.path)
        (self._workshop / self.path.name).rename(self.path)


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
    for time, *arrays in zip(trajectory.time.tolist(), *(values.tolist() for values in signals), strict=True):
        for numbers in (*arrays, ()):  # no effort
            message.pack("I", 4, len(numbers))
            if numbers:
                message.pack(f"{len(numbers)}d", 8, *numbers)
        message.pack("iI", 4, *divmod(round(time * NANOSECONDS), NANOSECONDS))
    with BagWriter(path, overwrite=overwrite) as writer:
        writer.write_raw(topic, TRAJECTORY, 0, message.buffer)
