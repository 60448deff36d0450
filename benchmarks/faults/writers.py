"""Faults of what is written: writers of bags that are killed, that are not alone, and that run out of disk."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from benchmarks.faults.live import TIME_OUT, NodeError, NodeProcess
from benchmarks.faults.matrix import ProcessFault, Wrong
from benchmarks.faults.node import FaultyRobot
from benchmarks.faults.readings import Walk
from benchmarks.faults.streams import SECOND
from friction_estimator.api.simulate import simulate
from friction_estimator.errors import BagError
from friction_estimator.io.bags.reader import BagReader

_LOST = 1.0
"""Longest part of a recording that a killed recorder may lose [s]."""
_ROOM = 300_000
"""Space that is left on the disk when it begins to fill [byte]."""
_PIECE = 4000  # readings that are published before the walk begins anew


def writer_faults() -> list[ProcessFault]:
    """All rows."""
    faults: dict[str, tuple[str, str, Callable[[_Start, Walk, Path], Wrong]]] = {
        "killed": (
            "SIGKILL while it writes, and a start with the same name",
            "every reader opens what was saved; the second start is refused, and nothing is deleted",
            _killed,
        ),
        "second": (
            "a second process with the same name",
            "the second is refused with the id of the first, which loses nothing",
            _second,
        ),
        "disk_full": (
            "the disk is full",
            "exit code 1, one line; every reader opens what was saved",
            _full,
        ),
    }
    return [
        ProcessFault(f"{name}_{fault}", f"{name}: {what}", expected, partial(run, start))
        for name, start in (("recorder", _recorder), ("simulate", _simulate), ("replay", _replay))
        for fault, (what, expected, run) in faults.items()
    ]


class _Command(NodeProcess):
    """A verb of the command line as a process."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self.log = folder / f"{words[0]}_{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "friction_estimator", *map(str, words)]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


_Start = Callable[[Walk, Path, Path], NodeProcess]
"""Starts a writer: walk, folder, and the bag that it writes."""


def _recorder(walk: Walk, folder: Path, bag: Path) -> NodeProcess:
    return NodeProcess(folder, f"record_to:={bag}", executable="recorder_node")


def _simulate(walk: Walk, folder: Path, bag: Path) -> NodeProcess:
    return _Command(folder, "simulate", "-o", bag, "--duration", "600")


def _replay(walk: Walk, folder: Path, bag: Path) -> NodeProcess:
    source = folder / "walk"
    if not source.exists():
        simulate("suralp", duration=20.0).save(source)
    return _Command(folder, "replay", source, "-o", bag, "--robot", "suralp", "--copy-inputs")


@contextmanager
def _robot(walk: Walk) -> Iterator[None]:
    """A robot that walks meanwhile."""
    over = threading.Event()

    def publish() -> None:
        with closing(FaultyRobot(walk)) as robot:
            while not over.is_set():
                readings = walk.readings(0, _PIECE, time.time_ns())
                shift = time.monotonic_ns() - readings[0].arrival_ns
                for reading in readings:
                    over.wait(max(1e-9 * (shift + reading.arrival_ns - time.monotonic_ns()), 0.0))
                    if over.is_set():
                        return
                    robot.publish(reading)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _read(bag: Path) -> int:
    """Number of messages that can be read in a bag; zero where there is none yet."""
    try:
        return sum(1 for _ in BagReader(bag).messages())
    except BagError:
        return 0


def _unread(bag: Path, count: int) -> Wrong:
    """What the readers of rosbags and MCAP do not find."""
    with Reader(bag) as reader:
        found = {"rosbags": sum(1 for _ in reader.messages())}
    for file in bag.glob("*.mcap"):
        with file.open("rb") as stream:
            found["mcap"] = sum(1 for _ in make_reader(stream).iter_messages())
    return [f"{reader} reads {number} of {count} messages" for reader, number in found.items() if number != count]


@contextmanager
def _writing(start: _Start, walk: Walk, folder: Path, bag: Path) -> Iterator[NodeProcess]:
    """A writer that has saved messages."""
    with _robot(walk), closing(start(walk, folder, bag)) as writer:
        give_up = time.monotonic() + 2.0 * TIME_OUT
        while not _read(bag):
            if writer.process.poll() is not None or time.monotonic() > give_up:
                raise NodeError(f"nothing is written: {writer.output[-1000:]}")
            time.sleep(0.1)
        yield writer


def _refused(start: _Start, walk: Walk, folder: Path, bag: Path, word: str) -> Wrong:
    """Whether another writer of this bag ends with exit code 1 and one line that has a word."""
    with closing(start(walk, folder, bag)) as other:
        code = other.wait()
        return _one_line(code, other.output, word)


def _one_line(code: int, output: str, word: str) -> Wrong:
    lines = [line for line in output.splitlines() if "error: " in line]
    wrong = [] if code == 1 else [f"exit code {code}"]
    wrong += ["a traceback"] if "Traceback" in output else []
    return wrong + ([] if len(lines) == 1 and word in lines[0] else [f"no line with {word!r}: {lines}"])


def _killed(start: _Start, walk: Walk, folder: Path) -> Wrong:
    bag = folder / "bag"
    with _writing(start, walk, folder, bag) as writer:
        time.sleep(2.3)
        saved = _read(bag)
        killed_ns = time.time_ns()
        writer.end(signal.SIGKILL)
        left = _read(bag)
        wrong = [] if left >= saved else [f"{saved} messages were saved, {left} are left"]
        lost = (killed_ns - BagReader(bag).end_ns) / SECOND
        wrong += [f"the last {lost:.2f} s are lost"] if start is _recorder and lost > _LOST else []
        wrong += _refused(start, walk, folder, bag, "was killed")
    return [*wrong, *_unread(bag, left), *([] if _read(bag) == left else ["the second start changed it"])]


def _second(start: _Start, walk: Walk, folder: Path) -> Wrong:
    bag = folder / "bag"
    with _writing(start, walk, folder, bag) as writer:
        before = _read(bag)
        wrong = _refused(start, walk, folder, bag, f"process {writer.process.pid}")
        writer.end(signal.SIGINT)
    left = _read(bag)
    return [*wrong, *_unread(bag, left), *([] if left >= before else [f"of {before} messages {left} are left"])]


def _full(start: _Start, walk: Walk, folder: Path) -> Wrong:
    bag = folder / "bag"
    with _writing(start, walk, folder, bag) as writer:
        before, size = _read(bag), max(file.stat().st_size for file in bag.iterdir()) + _ROOM
        resource.prlimit(writer.process.pid, resource.RLIMIT_FSIZE, (size, size))
        wrong = _one_line(writer.wait(), writer.output, "the messages before that are kept")
    left = _read(bag)
    return [*wrong, *_unread(bag, left), *([] if left >= before else [f"of {before} messages {left} are left"])]
