"""Claims about bags whose writer is killed, runs out of disk, or is not the only one: what was saved can be read."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from benchmarks.faults.live import TIME_OUT
from friction_estimator.errors import BagError
from friction_estimator.io.bags.reader import BagReader
from friction_estimator.io.bags.writer import STORAGES, BagWriter

TYPE = "std_msgs/msg/String"
WRITER = """
import sys
from friction_estimator.io.bags.writer import BagWriter
with BagWriter(sys.argv[1], sys.argv[2], {"key": "value"}) as writer:
    print("open", flush=True)
    for line in sys.stdin:
        for k in range(int(line)):
            writer.write_raw("a" if k % 3 else "b", "std_msgs/msg/String", 1000 + writer.message_count, bytes(100))
        writer.save()
        print(writer.message_count, flush=True)
"""


@contextmanager
def writing(folder: Path, storage: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has opened a bag, and writes as many messages as it is sent."""
    command = [sys.executable, "-c", WRITER, str(folder), storage]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


def write(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{count}\n")
    process.stdin.flush()


def written(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def times(bag: Path) -> list[int]:
    """Times of all messages, which are the same for the readers of this package, of rosbags and of mcap."""
    found = [message.time_ns for message in BagReader(bag).messages()]
    with Reader(bag) as reader:
        assert [time_ns for _, time_ns, _ in reader.messages()] == found
    for file in bag.glob("*.mcap"):
        with file.open("rb") as stream:
            assert [message.log_time for _, _, message in make_reader(stream).iter_messages()] == found
    return found


@pytest.mark.parametrize("storage", STORAGES)
def test_a_killed_process_leaves_all_that_was_saved_readable_for_every_reader(tmp_path: Path, storage: str) -> None:
    bag = tmp_path / "bag"
    with writing(bag, storage) as process:
        for count in (3, 40):
            write(process, count)
            total = written(process)
            assert times(bag) == [1000 + k for k in range(total)]  # while the other process writes, too
            with pytest.raises(BagError, match=f"bag: it is in use by process {process.pid}, which writes it: end"):
                BagWriter(bag, overwrite=True)
        process.kill()
    assert times(bag) == [1000 + k for k in range(43)] and BagReader(bag).custom_data == {"key": "value"}
    with pytest.raises(BagError, match="bag is kept, its writer was killed .* another name, or replace it"):
        BagWriter(bag)
    assert len(times(bag)) == 43
    with BagWriter(bag, storage, overwrite=True) as writer:
        writer.write_raw("a", TYPE, 7, b"")
    assert times(bag) == [7] and BagReader(bag).damage == "" and not list(bag.glob(".*"))


@pytest.mark.parametrize("storage", STORAGES)
def test_at_whatever_moment_a_process_is_killed_what_was_saved_before_can_be_read(tmp_path: Path, storage: str) -> None:
    rng = np.random.default_rng(0)
    for k in range(8):
        reads, writes = os.pipe()
        if not (child := os.fork()):
            try:
                with BagWriter(tmp_path / f"bag_{k}", storage) as writer:
                    while True:
                        for _ in range(50):  # 1.5 MB: a save takes a millisecond or more
                            writer.write_raw("a", TYPE, writer.message_count, bytes(30_000))
                        writer.save()
                        os.write(writes, b"%d\n" % writer.message_count)
            finally:
                os._exit(1)
        os.close(writes)
        with open(reads, "rb") as stream:
            saved = int(stream.readline())
            time.sleep(0.02 * rng.random())
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            saved = max([saved, *map(int, stream.read().split())])
        found = [message.time_ns for message in BagReader(tmp_path / f"bag_{k}").messages()]
        assert len(found) >= saved and found == list(range(len(found)))


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file of this process can be larger [byte]."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@settings(max_examples=20, deadline=None)
@given(st.integers(100, 90_000), st.integers(0, 20_000), st.sampled_from(STORAGES))
def test_on_a_full_disk_every_message_that_was_saved_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, space: int, size: int, storage: str
) -> None:
    bag, saved = tmp_path_factory.mktemp("full") / "bag", 0
    with disk_of(space), pytest.raises(BagError, match="cannot write the bag"), BagWriter(bag, storage) as writer:
        for k in range(4_000):
            writer.write_raw("a", TYPE, k, bytes(size))
            if k % 10 == 9:
                writer.save()
                saved = k + 1
    if saved:
        assert times(bag)[:saved] == list(range(saved))
        assert [path.name for path in bag.glob(".*")] == []


@pytest.mark.parametrize("storage", STORAGES)
def test_a_bag_that_cannot_be_completed_keeps_what_was_saved(tmp_path: Path, storage: str) -> None:
    bag = tmp_path / "bag"
    with pytest.raises(BagError, match="the messages before that are kept"), BagWriter(bag, storage) as writer:
        for k in range(100):
            writer.write_raw("a", TYPE, k, bytes(1000))
        writer.save()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        try:
            writer.__exit__(None, None, None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert times(bag) == list(range(100))


def test_messages_are_saved_while_they_come_without_being_asked(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        deadline = time.monotonic() + TIME_OUT
        while not (tmp_path / "bag" / "metadata.yaml").exists():
            assert time.monotonic() < deadline
            writer.write_raw("a", TYPE, writer.message_count, b"")
        assert len(times(tmp_path / "bag")) == writer.message_count
