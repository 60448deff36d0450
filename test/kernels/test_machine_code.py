"""Claims about the files of machine code: whatever they hold, every start works, and no kernel is compiled twice."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from friction_estimator.kernels import compiler
from friction_estimator.kernels.buffer_views import viewer
from friction_estimator.kernels.records import RECORDS, to_buffer

event = pytest.importorskip("numba.core.event", reason="numba is not installed: nothing is compiled")

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from __future__ import annotations
from typing import NamedTuple

import numpy as np

from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import record
from friction_estimator.types import Vector

FACTOR = 2.0
NODES = np.array([1.0, 3.0])


@record
class Limits(NamedTuple):
    low: Vector
    high: Vector


@kernel
def scaled(x: float) -> float:
    return FACTOR * x


@entry_point
def step(x: float, limits: Limits) -> float:
    total = x * sum([scaled(node) for node in NODES])
    return min(max(total, limits.low[0]), limits.high[0])
"""
FUNCTIONS = 3
"""The kernel, the entry point, and what Python calls: each has a file."""


def start(source: str = SOURCE, file: str = "kernels.py") -> tuple[float, int]:
    """Import kernels and prepare them, as a process does that starts; a value, and the number of compiled functions."""
    module = ModuleType("tested_kernels")
    with pytest.MonkeyPatch.context() as patch, event.install_recorder("numba:compile") as recorder:
        patch.setitem(sys.modules, module.__name__, module)
        patch.setattr(compiler, "ENTRY_POINTS", [])
        patch.setattr(compiler, "_prepared", 0)
        patch.setitem(RECORDS, "Limits", None)
        viewer.cache_clear()
        exec(compile(source, file, "exec"), vars(module))
        compiler.prepare(lambda done, total: None)
        value = module.step(1.0, to_buffer(module.Limits(np.zeros(1), np.array([100.0]))))
        names = [one.data["dispatcher"].__name__ for _, one in recorder.buffer if one.is_start]
    return value, sum(name in ("scaled", "step") for name in names)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the machine code of the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache := tmp_path_factory.mktemp("compiled")))
        assert start() == (8.0, FUNCTIONS)
    return cache


@pytest.fixture
def cache(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which the kernels use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Path(shutil.copytree(compiled, tmp_path / "cache"))


def files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.code"))


def test_copies_of_the_same_source_share_machine_code_and_the_next_start_compiles_nothing(cache: Path) -> None:
    assert (
        start(file="elsewhere/kernels.py")
        == start("# moved\n" + SOURCE.replace("-> float:", '-> float:\n    """Moved."""'))
        == (8.0, 0)
    )


@pytest.mark.parametrize(
    ("before", "after", "value", "count"),
    [
        ("FACTOR = 2.0", "FACTOR = 3.0", 12.0, FUNCTIONS),
        ("FACTOR * x", "FACTOR * x + 1.0", 10.0, FUNCTIONS),
        ("[1.0, 3.0]", "[1.0, 4.0]", 10.0, FUNCTIONS - 1),
        ("(node) for", "(2.0 * node) for", 16.0, FUNCTIONS - 1),
        ("low: Vector\n    high: Vector", "high: Vector\n    low: Vector", 0.0, FUNCTIONS - 1),
    ],
)
def test_a_change_compiles_what_depends_on_it(cache: Path, before: str, after: str, value: float, count: int) -> None:
    assert start(SOURCE.replace(before, after)) == (value, count)
    assert start() == (8.0, 0)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow above 1 kB: the rest of what is written is lost, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@given(data=st.data())
@settings(max_examples=10)
def test_damaged_machine_code_is_compiled_again_whatever_the_damage(compiled: Path, data: st.DataObject) -> None:
    """Cut, overwritten or exchanged: it is never run, and the next start finds a good cache."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as name:
        patch.setenv("XDG_CACHE_HOME", name)
        shutil.copytree(compiled, name, dirs_exist_ok=True)
        path, other = data.draw(st.permutations(files(Path(name))))[:2]
        good = path.read_bytes()
        first = data.draw(st.integers(0, len(good) - 1))
        noise = data.draw(st.binary(min_size=1, max_size=64))
        kinds = (good[:first], good[:first] + noise + good[first + len(noise) :], noise, other.read_bytes())
        path.write_bytes(data.draw(st.sampled_from([one for one in kinds if one != good])))
        assert start()[0] == 8.0
        assert start() == (8.0, 0)


def _unreadable(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), _unreadable])
def test_damage_is_named_once_with_its_place(cache: Path, caplog: pytest.LogCaptureFixture, damage: Any) -> None:
    for path in files(cache):
        damage(path)
    assert [start(), start()] == [(8.0, FUNCTIONS), (8.0, 0)]
    (line,) = caplog.messages
    assert f"{cache}/friction_estimator/kernels is damaged" in line


def test_where_nothing_can_be_kept_every_start_compiles_and_one_sentence_names_folders_and_remedy(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in files(cache):
        path.unlink()
    with full_disk():
        assert [start(), start()] == 2 * [(8.0, FUNCTIONS)]
    (line,) = caplog.messages
    assert str(cache) in line and "File too large" in line and "XDG_CACHE_HOME" in line
    assert not [path for path in cache.rglob("*") if path.name != "lock" and path.is_file()]
    assert [start(), start()] == [(8.0, FUNCTIONS), (8.0, 0)]


def test_another_folder_is_used_where_the_cache_cannot_be_written_or_is_removed_in_mid_run(cache: Path) -> None:
    shutil.rmtree(cache)
    assert [start(), start()] == [(8.0, FUNCTIONS), (8.0, 0)]
    shutil.rmtree(cache)
    cache.write_text("no folder")
    assert [start(), start()] == [(8.0, FUNCTIONS), (8.0, 0)]
    assert len(files(cache.parent)) == FUNCTIONS


def test_machine_code_is_not_loaded_from_a_folder_that_others_can_write(tmp_path: Path) -> None:
    own, open_to_all, link = tmp_path / "own", tmp_path / "open", tmp_path / "link"
    assert compiler.is_private(own)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link.symlink_to(own)
    assert not compiler.is_private(open_to_all) and not compiler.is_private(link)


def test_files_that_were_not_used_for_weeks_are_removed_when_others_are_new(cache: Path) -> None:
    used, *_ = files(cache)
    assert used.name.startswith("scaled")
    unused, unfinished, recent = (used.with_name(name) for name in ("unused.code", "unfinished.code.7", "recent.code"))
    for path in (unused, unfinished, recent):
        path.touch()
    weeks_ago = time.time() - 35 * 24 * 3600.0
    for path in (unused, unfinished, used):
        os.utime(path, (weeks_ago, weeks_ago))
    assert start() == (8.0, 0) and unused.exists()  # nothing is new
    start(SOURCE.replace("(node) for", "(2.0 * node) for"))
    assert used.exists() and recent.exists()
    assert not unused.exists() and not unfinished.exists()


def other_start(before: str = "") -> subprocess.Popen[str]:
    """A start in another process, which prints the number of functions that it compiles."""
    code = f"from test.kernels.test_machine_code import *{before}\nprint(start()[1])"
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_at_once_compile_each_kernel_once_in_all(cache: Path) -> None:
    for path in files(cache):
        path.unlink()
    processes = [other_start() for _ in range(3)]
    assert sum(int(process.communicate()[0]) for process in processes) == FUNCTIONS


class Kill(event.Listener):
    """Kills the process when it begins to compile."""

    def on_start(self, event: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def on_end(self, event: Any) -> None: ...


def test_a_process_that_is_killed_while_it_compiles_keeps_nobody_waiting(cache: Path) -> None:
    for path in files(cache):
        path.unlink()
    killed = other_start("\nevent.register('numba:compile', Kill())")
    assert killed.wait() == -signal.SIGKILL
    assert start() == (8.0, FUNCTIONS)
