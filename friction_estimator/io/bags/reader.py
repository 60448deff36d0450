"""Reading rosbag2: mcap and sqlite3, split files, other topics inside, damaged ends."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from friction_estimator.errors import BagError
from friction_estimator.io.bags.message_types import jazzy_typestore
from friction_estimator.io.bags.storage import open_storages


class BagMessage(NamedTuple):
    """One recorded message.

    Attributes
    ----------
    topic : as in the bag, with its leading slash
    type : ``package/msg/Name``
    time_ns : when it was recorded [ns]
    raw : serialized
    """

    topic: str
    type: str
    time_ns: int
    raw: bytes


class BagReader:
    """One rosbag2, opened for reading.

    Parameters
    ----------
    path : folder of the bag, or one of its files
    namespace : of the topics; only needed when several robots are in one bag

    Attributes
    ----------
    topics : message type by topic
    message_count : of all topics
    start_ns, end_ns : times of recording of the first and last message [ns]
    custom_data : texts that the writer left beside the messages
    damage : what of the bag could not be read, in one line; empty when it is whole

    Raises
    ------
    BagError
        When there is no bag, it is empty or nothing of it can be read.
    """

    def __init__(self, path: str | os.PathLike[str], namespace: str = "") -> None:
        self.path = Path(path).expanduser()
        self._namespace = namespace.strip("/")
        self._storages = open_storages(self.path)
        filled = [storage for storage in self._storages if storage.message_count]
        if not filled:
            raise BagError(f"the bag {self.path} is empty")
        self.topics: dict[str, str] = {}
        self.custom_data: dict[str, str] = {}
        for storage in self._storages:
            self.topics.update(storage.topics)
            self.custom_data.update(storage.custom_data)
        self.message_count = sum(storage.message_count for storage in filled)
        self.start_ns = min(storage.start_ns for storage in filled)
        self.end_ns = max(storage.end_ns for storage in filled)
        self.damage = "; ".join(storage.damage for storage in self._storages if storage.damage)

    def find_topic(self, name: str, type_name: str = "") -> str | None:
        """Full name of a relative topic in this bag; None when it is not there.

        A topic in the asked (or the root) namespace is preferred; without one, the only topic that ends in the name.

        Raises
        ------
        BagError
            When several topics could be meant, or the topic has another type.
        """
        wanted = "/" + "/".join(part for part in (self._namespace, name.strip("/")) if part)
        found = wanted if wanted in self.topics else None
        if found is None and not self._namespace and not name.startswith("/"):
            found = self._only_ending(wanted)
        if found and type_name and self.topics[found] != type_name:
            raise BagError(f"topic {found} of {self.path} is a {self.topics[found]}, expected a {type_name}")
        return found

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[BagMessage]:
        """Messages in recorded order.

        Parameters
        ----------
        topics : full names; None means all

        Notes
        -----
        When a file turns out to be damaged half-way, iteration goes on with the next file and ``damage`` says so.
        """
        wanted = frozenset(self.topics if topics is None else topics)
        for storage in self._storages:
            last = storage.start_ns
            try:
                for topic, type_name, time_ns, raw in storage.messages(wanted):
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
            raise BagError(f"topic {message.topic}: the message type {message.type} is not known") from None
        except Exception:  # as above
            seconds = (message.time_ns - self.start_ns) * 1e-9
            raise BagError(f"topic {message.topic}: the message at {seconds:.3f} s cannot be decoded") from None

    def topic_list(self) -> str:
        """The topics with their types, for an error message."""
        return ", ".join(f"{topic} ({type_name})" for topic, type_name in sorted(self.topics.items()))

    def _only_ending(self, wanted: str) -> str | None:
        ending = [topic for topic in self.topics if topic.endswith(wanted)]
        if "/ground_truth/" not in wanted:  # .../ground_truth/base_state is not the estimated base_state
            ending = [topic for topic in ending if "/ground_truth/" not in topic]
        if len(ending) > 1:
            raise BagError(f"{self.path} has several topics {wanted!r}: {', '.join(sorted(ending))}; give a namespace")
        return ending[0] if ending else None

    def _note_damage(self, error: Exception, last_ns: int) -> None:
        seconds = (last_ns - self.start_ns) * 1e-9
        text = (str(error).splitlines() or [type(error).__name__])[0]
        note = f"{self.path} is damaged, reading ended at {seconds:.3f} s: {text}"
        if note not in self.damage:
            self.damage = f"{self.damage}; {note}" if self.damage else note
