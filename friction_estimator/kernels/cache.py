"""Where machine code is kept: a folder of the package if that can be written, else of the user's cache.

The cache of each kernel is a folder that is named by a digest of its source file, of those of all kernels that it calls
and of the constants in them, because numba does not notice a change in another file. When kernels are compiled, caches
that no process has used for weeks are removed: they are those of earlier versions.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from friction_estimator.kernels.records import UNBUFFERED, field_types, type_name

_PACKAGE = Path(__file__).resolve().parents[1]
_OWN_SOURCES = [str(path) for path in Path(__file__).parent.glob("*.py")]
_UNUSED_TIME = 28 * 24 * 3600.0
"""Caches of kernels that nobody has used for this long are removed [s]: two versions may be in use at once."""
_new: set[Path] = set()
"""Folders in which this process has made the cache of a kernel."""


def is_new() -> bool:
    """Whether a kernel that was imported since :func:`prepare` has no cache yet: compiling takes a minute or two."""
    return bool(_new)


def cache_folder(function: Callable[..., Any]) -> Path:
    """First folder for the machine code of a kernel that can be written: of the package, the user, a temporary one."""
    name = f"kernels-{_digest(list(_call_tree(function)))}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    for parent in (_PACKAGE / "__pycache__", user / "friction_estimator"):
        folder = parent / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = next(folder.rglob("*.nbi"), None) is None
            os.utime(folder)  # used now
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            _new.update({parent} if is_empty else ())
            return folder
    return _private_folder(Path(tempfile.gettempdir()) / f"friction_estimator-{os.getuid()}") / name


def remove_unused() -> None:
    """Remove the caches that no process has used lately, where this process has made new ones.

    A process that still needs one compiles again: numba makes missing folders anew.
    """
    while _new:
        for folder in _new.pop().glob("kernels-*"):
            try:
                unused = time.time() - folder.stat().st_mtime
            except OSError:  # another process has removed it
                continue
            if unused > _UNUSED_TIME:
                shutil.rmtree(folder, ignore_errors=True)


def _digest(functions: list[Callable[..., Any]]) -> str:
    """Digest of all that the machine code of a kernel follows from: of the functions that it calls, and itself."""
    sources = sorted({*(function.__code__.co_filename for function in functions), *_OWN_SOURCES})
    stamps = ((path, os.stat(path)) for path in sources)
    text = "".join(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in stamps)
    text += "".join(constant for function in functions for constant in _constants(function))
    annotations = (annotation for function in functions for annotation in function.__annotations__.values())
    text += "".join(_layout(type_name(annotation)) for annotation in annotations)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _call_tree(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function and all kernels that it calls, directly or not."""
    yield function
    for name in function.__code__.co_names:
        called: Any = function.__globals__.get(name)
        if hasattr(called, "py_func"):
            yield from _call_tree(called.py_func)


def _constants(function: Callable[..., Any]) -> list[str]:
    """Numbers and arrays of the module, or of other modules, that a function uses."""
    used = ((name, function.__globals__.get(name)) for name in function.__code__.co_names)
    values = ((name, getattr(value, "tolist", lambda value=value: value)()) for name, value in used)
    return [f"{name}={value!r}" for name, value in values if isinstance(value, (int, float, tuple, list))]


def _layout(kind: str) -> str:
    """Fields of a record, and of those among them; empty for other types."""
    layout = "".join(f"{kind}.{name}={field}{_layout(field)}" for name, field in field_types(kind).items())
    return f"unbuffered {layout}" if kind in UNBUFFERED else layout


def _private_folder(folder: Path) -> Path:
    """A folder that nobody else can write to, because machine code is loaded from it: this one, or a new one."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp())
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if private else Path(tempfile.mkdtemp())
