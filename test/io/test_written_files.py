"""Claims about files that are written: permissions and links stay, and planted links are never followed."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import secrets
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from friction_estimator.io.documents import OutputFile, write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, permissions: int) -> None:
    path = tmp_path / "friction.yaml"
    path.write_text("old")
    path.chmod(permissions)
    write_atomically(path, "new")
    assert (path.read_text(), mode(path)) == ("new", permissions)


def test_a_copy_has_the_permissions_of_its_original(tmp_path: Path) -> None:
    original = tmp_path / "friction.yaml"
    original.write_text("secret")
    original.chmod(0o600)
    write_atomically(tmp_path / "friction.previous.yaml", "secret", original)
    assert mode(tmp_path / "friction.previous.yaml") == 0o600


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "friction.yaml", "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "friction.yaml") == 0o640


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "robots").mkdir()
    target, link = tmp_path / "robots" / "friction.yaml", tmp_path / "friction.yaml"
    link.symlink_to(target)
    for text in ("new", "newer"):  # first the target is missing, then it is there
        write_atomically(link, text)
        assert link.is_symlink() and target.read_text() == text
    assert os.listdir(target.parent) == ["friction.yaml"]


def test_a_circle_of_links_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_atomically(tmp_path / "a", "text")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and (tmp_path / "a").is_symlink()


def test_a_planted_link_in_place_of_the_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda count: "guessed")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".friction.yaml.guessed.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "friction.yaml", "text")
    assert victim.read_text() == "precious"


def test_names_of_temporary_files_cannot_be_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def look(descriptor: int) -> None:
        names.extend(name for name in os.listdir(tmp_path) if name.endswith(".tmp"))

    monkeypatch.setattr(os, "fsync", look)
    for text in ("a", "b"):
        write_atomically(tmp_path / "friction.yaml", text)
    assert len(set(names)) == 2 and all(len(name) > 30 for name in names)


def test_bytes_are_written_as_they_are_and_line_ends_of_a_text_stay(tmp_path: Path) -> None:
    for content in (b"\x00\r\n\xff", "a\r\nb\n"):
        write_atomically(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == (content if isinstance(content, bytes) else content.encode())


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".yaml")
    write_atomically(path, "text")
    assert path.read_text() == "text"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write_atomically(link, "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


NAMES = ("file", "symbolic_link", "link_of_link", "hard_link")
"""Names that lead to one file."""
HOLD = """
import sys
from friction_estimator.io.documents import OutputFile
file = OutputFile(sys.argv[1])
print("open", flush=True)
for line in sys.stdin:
    file.replace(line)
    print("replaced", flush=True)
"""


@contextmanager
def other_writer(path: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """Id of another process that has opened an output file, and a function that lets it replace the file."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None and process.stdout.readline() == "open\n"

        def replace() -> None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("written by the other\n")
            process.stdin.flush()
            assert process.stdout.readline() == "replaced\n"

        yield process.pid, replace
        process.kill()


@pytest.mark.parametrize("opened", NAMES)
def test_a_file_that_a_process_writes_is_refused_by_each_of_its_names(tmp_path: Path, opened: str) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "symbolic_link").symlink_to("file")
    (tmp_path / "link_of_link").symlink_to(tmp_path / "symbolic_link")
    os.link(tmp_path / "file", tmp_path / "hard_link")
    with other_writer(tmp_path / opened) as (process, replace):
        for _ in range(3):
            for name in NAMES:
                with pytest.raises(OSError, match=f"in use by process {process}, which writes it: "):
                    write_atomically(tmp_path / name, "new")
            replace()
    for name in NAMES:  # a killed process is not in the way
        write_atomically(tmp_path / name, name)
        assert (tmp_path / name).read_text() == name
    assert sorted(os.listdir(tmp_path)) == sorted(NAMES)


def test_a_file_that_is_not_there_yet_has_one_writer(tmp_path: Path) -> None:
    with other_writer(tmp_path / "new") as (process, replace):
        for _ in range(2):
            with pytest.raises(OSError, match=f"in use by process {process}"):
                OutputFile(tmp_path / "new")
            replace()
    write_atomically(tmp_path / "new", "mine")
    assert os.listdir(tmp_path) == ["new"]


def test_who_removes_a_lock_or_the_file_does_not_let_a_second_writer_overwrite_the_first(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with closing(OutputFile(path)) as first:
        (tmp_path / ".file.lock").unlink()
        with closing(OutputFile(path)) as second:
            second.replace("second")
            with pytest.raises(OSError, match=f"in use by process {os.getpid()}"):
                first.replace("first")
        first.replace("first")
        path.unlink()
        with closing(OutputFile(path)) as second, pytest.raises(OSError, match="in use by process"):
            first.replace("first")
        first.replace("first again")
    assert path.read_text() == "first again" and os.listdir(tmp_path) == ["file"]


def test_a_file_system_without_locks_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for text in ("new", "newer"):
        write_atomically(tmp_path / "file", text)
        assert (tmp_path / "file").read_text() == text and os.listdir(tmp_path) == ["file"]


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path, (soft, hard) = tmp_path / "file", resource.getrlimit(resource.RLIMIT_FSIZE)
    for before in ("", "old"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                write_atomically(path, 20_000 * "x")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert os.listdir(tmp_path) == (["file"] if before else [])
        write_atomically(path, "old")
        assert path.read_text() == "old"
