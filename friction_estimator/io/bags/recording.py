"""The outputs in a bag, as arrays."""

from __future__ import annotations

import os
from collections.abc import Callable

from friction_estimator.errors import BagError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.messages.description import RunDescription
from friction_estimator.messages.recording import RECORDED, Recording, RecordingBuilder
from friction_estimator.messages.topics import FRICTION


def read_recording(
    path: str | os.PathLike[str],
    namespace: str = "",
    description: RunDescription | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recording:
    """Read a bag with output topics: one of ``replay``, or of a recorded live run.

    Parameters
    ----------
    path : the bag
    namespace : of the topics
    description : used where the bag does not describe itself
    progress : called now and then with the number of messages done and of all

    Raises
    ------
    BagError
        When the bag cannot be read or holds no friction estimate.
    """
    reader = BagReader(path, namespace)
    found = {topic.name: reader.find_topic(topic.name, topic.type) for topic in RECORDED}
    if found[FRICTION.name] is None:
        raise BagError(
            f"the bag {reader.path} has no topic {FRICTION.name!r}; it has {reader.topic_list()}. "
            "Run `replay` on it first"
        )
    relative = {full: name for name, full in found.items() if full is not None}
    builder = RecordingBuilder()
    for done, message in enumerate(reader.messages(relative)):
        builder.add(relative[message.topic], message.time_ns, reader.decode(message))
        if progress is not None and done % 1000 == 0:
            progress(done, reader.message_count)
    own = RunDescription.from_custom_data(reader.custom_data)
    return builder.finish(own if own.robot or description is None else description)
