"""Documents on disk: YAML as the ROS parameter parser reads it, and files that only this process writes.

The kernel ends a lock with its process, however that ends, so a killed process is never in the way.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import yaml

from friction_estimator.errors import ConfigError, file_errors
from friction_estimator.types import AnyPath

_MAX_BYTES = 32_000_000
"""Largest YAML file; an identification of 30 joints has 4 MB, nearly all of it in texts."""
_MAX_NODES = 500_000
"""Values and keys of a YAML file: reading takes a few seconds then."""
_MAX_DEPTH = 50  # levels of a YAML file: the parser calls itself at each of them
_INT64_LIMIT = 2**63
"""Whole numbers of ROS parameters are smaller."""
_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "seq", "map"))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # compiled where it is there
    """Safe loader that refuses a key given twice. Unlike plain PyYAML it reads ``1e-4`` as a number and dates as text.

    Like the parser of ROS parameter files it takes no aliases.
    """

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Number or truth value; one that its tag does not allow is an error of YAML."""
        kind = node.tag.removeprefix(_TAG)
        try:
            value = getattr(self, f"construct_yaml_{kind}")(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            value = None
        if value is None or (kind == "int" and not -_INT64_LIMIT <= value < _INT64_LIMIT):
            wanted = {"int": "a whole number of 64 bits", "float": "a number", "bool": "true or false"}[kind]
            raise yaml.constructor.ConstructorError(
                None, None, f"{_cut(node.value)!r} is not {wanted}", node.start_mark
            )
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain name", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


for _kind in ("int", "float", "bool"):
    _Loader.add_constructor(_TAG + _kind, _Loader.construct_number)
_Loader.add_implicit_resolver(
    f"{_TAG}float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class Lines(list[str]):
    """Sentences for :func:`yaml_text`, which writes each of them on a line."""


class TextBlock(str):
    """Text of several lines that is written line by line, without quotes."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Safe dumper for :class:`Lines` and :class:`TextBlock` too, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    TextBlock, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)
_Dumper.add_representer(
    Lines, lambda dumper, lines: dumper.represent_sequence("tag:yaml.org,2002:seq", lines, flow_style=False)
)


def yaml_text(document: Mapping[str, Any]) -> str:
    """YAML of plain types, :class:`Lines` and :class:`TextBlock`: numbers to the bit, innermost lists on one line."""
    return yaml.dump(
        dict(document), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10**6, allow_unicode=True
    )


def nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of mappings; every dot in a name opens a level.

    The parser of ROS 2 would else put the keys that follow a dotted one on the wrong level.
    """
    tree: dict[str, Any] = {}
    for name, value in parameters.items():
        *sections, last = name.split(".")
        level = tree
        for section in sections:
            level = level.setdefault(section, {})
        level[last] = value
    return tree


def read_yaml(path: Path) -> Any:
    """Contents of a YAML file.

    Raises
    ------
    ConfigError
        When the file cannot be read, is too large or is not YAML of numbers, texts, lists and mappings without
        aliases; the message names the line.
    """
    with file_errors(f"read {path}"):
        text = read_bytes(path, _MAX_BYTES).decode("utf-8")
    try:
        return _load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}") from None


def read_bytes(path: Path, most: int) -> bytes:
    """Content of a file.

    Raises
    ------
    OSError
        When it cannot be read, or has more than ``most`` bytes.
    """
    refuse_pipe(path)
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most / 1e6:g} MB")
    return content


def refuse_pipe(path: Path) -> None:
    """Refuse a named pipe, which waits for its other end, perhaps for ever; those of the shell are below ``/dev``.

    Raises
    ------
    OSError
        When the path is a pipe.
    """
    if path.is_fifo() and not str(path).startswith(("/dev/", "/proc/")):
        raise OSError(errno.EINVAL, "it is a pipe; a file is needed")


def _load(text: str) -> Any:
    """Document of a YAML whose size and depth are bounded. Raises YAMLError otherwise."""
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=_Loader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        tag = getattr(event, "tag", None)
        problems = {
            "aliases (*name) are not read: write the value out": isinstance(event, yaml.AliasEvent),
            f"more than {_MAX_DEPTH} levels": depth > _MAX_DEPTH,
            f"more than {_MAX_NODES} values": nodes > _MAX_NODES,
            f"the tag {tag} is not read": tag is not None and tag not in _TAGS,
        }
        for problem, found in problems.items():
            if found:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
    return yaml.load(text, Loader=_Loader)


def parse_value(text: str) -> Any:
    """Value of one parameter written as in a YAML file, e.g. ``"1e-4"``, ``"true"`` or ``"[l_foot, r_foot]"``.

    Raises
    ------
    ConfigError
        When it is not YAML.
    """
    try:
        return _load(text)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise ConfigError(f"{_cut(text)!r} is not valid YAML: {_where(error)}") from None


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of file systems that have no locks, such as some network drives: nobody else can lock there either."""


def lock(place: Path, create: bool = False) -> int:
    """Lock a file until the descriptor that is returned is closed, or this process ends.

    Raises
    ------
    OSError
        When another process has locked it, with the id of that process; or when it cannot be opened.
    """
    while True:
        access = os.O_RDWR if create or os.access(place, os.W_OK) else os.O_RDONLY
        descriptor = os.open(place, access | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o644)
        try:
            _lock_open_file(descriptor)
            if _is_open(place, [descriptor]):
                return descriptor
        except BlockingIOError:
            reason = f"it is in use by {_owner(descriptor)}, which writes it: end that process, or choose another name"
            os.close(descriptor)
            raise OSError(errno.EBUSY, reason) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # somebody has removed or replaced the file since it was opened


def _lock_open_file(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def is_in_use(place: Path) -> bool:
    """Whether somebody has locked a file."""
    try:
        os.close(lock(place))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _is_open(place: Path, descriptors: list[int]) -> bool:
    """Whether one of these descriptors is of the file that has this name now."""
    with suppress(FileNotFoundError, NotADirectoryError):
        now = os.stat(place, follow_symlinks=False)
        return any(os.path.samestat(now, os.fstat(descriptor)) for descriptor in descriptors)
    return False


def _owner(descriptor: int) -> str:
    """The process that has locked a file, in words; its id is not known here if it runs in another container."""
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            _, kind, _, _, process, locked, *_ = line.replace("-> ", "").split()
            if (kind, locked) == ("FLOCK", place):
                return f"process {process}"
    return "another process"


class OutputFile:
    """A file that no other :class:`OutputFile` writes until :meth:`close`, whatever name or link leads to it.

    The file itself is locked, and each new one that replaces it. Where there is no file yet, its name is locked
    with a hidden file, ``.NAME.lock``, until the file is there.

    Parameters
    ----------
    path : of the file; a symbolic link stays, and the file that it leads to is written. What is no file, such as
        ``/dev/stdout``, is written to as it is

    Raises
    ------
    OSError
        When another process writes the file, or its folder cannot be made.
    """

    def __init__(self, path: AnyPath) -> None:
        self._path = Path(path)
        self._locks: list[int] = []
        self._hold()

    def replace(self, content: str | bytes, original: Path | None = None) -> None:
        """Replace the file: at every moment it is the complete old or the complete new one.

        The new file has owner and permissions of the old one.

        Parameters
        ----------
        content : a text is written in UTF-8; its line ends stay
        original : file of which the content is a copy; a new file gets its owner and permissions

        Raises
        ------
        OSError
            When it cannot be written, or another process writes it by now; the old file is still there then.
        """
        data = content.encode() if isinstance(content, str) else content
        target = self._hold()
        if target.exists() and not target.is_file():
            refuse_pipe(target)
            target.write_bytes(data)
            return
        # of a random name, and never an existing file or link: others may write to the folder
        temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        self._locks.append(descriptor)
        try:
            _lock_open_file(descriptor)
            old = target if target.exists() else original
            if old is not None:
                _keep_owner(old.stat(), descriptor)
            with open(descriptor, "wb", closefd=False) as stream:
                stream.write(data)
            os.fsync(descriptor)
            temporary.replace(target)
            self._unlock_name(target)
        finally:
            temporary.unlink(missing_ok=True)
            self._unlock_removed()
        folder = os.open(target.parent, os.O_RDONLY)  # the rename itself must reach the disk too
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Let other processes write the file."""
        self._unlock_name(Path(os.path.realpath(self._path)))
        while self._locks:
            os.close(self._locks.pop())

    def _hold(self) -> Path:
        """Lock the file that the path leads to now, or its name where there is none; return where it is."""
        while True:
            target = Path(os.path.realpath(self._path))
            target.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(target.parent, os.W_OK):
                raise PermissionError(errno.EACCES, f"the folder {target.parent} cannot be written")
            if target.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.exists() and not target.is_file():
                return target
            is_new = not target.exists()
            place = self._name_lock(target) if is_new else target
            if not _is_open(place, self._locks):
                with suppress(FileNotFoundError):  # it has been removed meanwhile
                    self._locks.append(lock(place, create=is_new))
            elif is_new != target.exists():
                return target

    def _unlock_name(self, target: Path) -> None:
        if _is_open(place := self._name_lock(target), self._locks):
            place.unlink()

    def _unlock_removed(self) -> None:
        """Unlock files without a name; one that was replaced but has other names (hard links) stays locked."""
        for descriptor in self._locks[:]:
            if not os.fstat(descriptor).st_nlink:
                self._locks.remove(descriptor)
                os.close(descriptor)

    @staticmethod
    def _name_lock(target: Path) -> Path:
        return target.with_name(f".{target.name[:100]}.lock")


def write_atomically(target: Path, content: str | bytes, original: Path | None = None) -> None:
    """Replace a file once; see :meth:`OutputFile.replace`."""
    with closing(OutputFile(target)) as file:
        file.replace(content, original)


def _keep_owner(old: os.stat_result, descriptor: int) -> None:
    """Give an open file owner and permissions of another one, as far as this user may."""
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
