"""The one decorator of the numerical kernels: numba compiles them, and without numba they run as plain Python.

A kernel that Python calls states the types of its arguments, so that it is compiled before the first sample and never
in the middle of a run. Small functions that only kernels call need no types::

    @kernel
    def product(A, B): ...

    @kernel("M M")
    def solve_positive(A, B): ...

The letters stand for C-contiguous arrays of ``float64`` with one (``V``), two (``M``) and three (``T``) axes,
``I``, ``IM``, ``IT`` for arrays of ``int64``, ``B``, ``BM`` for arrays of ``bool``; ``f8``, ``i8`` and ``b1`` are
scalars. Arrays that belong together travel as one argument: the name of a class of :mod:`friction_estimator.arrays`.

:func:`prepare` compiles the kernels of the modules imported so far, or loads them from the cache of an earlier run: a
folder of the package where that can be written, else of the user's cache. The cache of each kernel is named by a digest
of its source file, of those of all kernels that it calls and of the constants in them, because numba does not notice a
change in another file. When kernels are compiled, caches that no process has used for weeks are removed: they are those
of earlier versions.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from friction_estimator.arrays import KINDS, fields_of

numba: Any
try:
    import numba
    import numba.extending
except ImportError:  # an optional speed-up
    numba = None

COMPILED = numba is not None and not numba.config.DISABLE_JIT
"""True where kernels are machine code, False where they run as plain Python."""

if COMPILED:
    _TYPES = {
        "f8": numba.float64,
        "i8": numba.int64,
        "b1": numba.boolean,
        "V": numba.float64[::1],
        "M": numba.float64[:, ::1],
        "T": numba.float64[:, :, ::1],
        "I": numba.int64[::1],
        "IM": numba.int64[:, ::1],
        "IT": numba.int64[:, :, ::1],
        "B": numba.boolean[::1],
        "BM": numba.boolean[:, ::1],
    }
    _TYPES |= {
        word: _TYPES[letter]
        for word, letter in {
            "Vector": "V", "Matrix": "M", "Block": "T", "Indices": "I", "IndexTable": "IM", "IndexBlock": "IT",
            "Flags": "B", "FlagTable": "BM", "float": "f8", "int": "i8", "bool": "b1",
        }.items()
    }  # fmt: skip

NOT_COMPILED = "" if COMPILED else "numba is not installed" if numba is None else "NUMBA_DISABLE_JIT is set"
"""Why kernels run as plain Python; empty where they are compiled."""

KERNELS: list[tuple[Any, str]] = []
"""Kernels that state their types, and these, in the order of their definition."""
_prepared = 0
_unchecked: list[UncheckedKernel] = []

_UNUSED = 28 * 24 * 3600.0
"""Caches of kernels that nobody has used for this long are removed [s]: two versions may be in use at once."""
_LOG = logging.getLogger(__name__)
_LOG_PERIOD = 5.0
"""Time between two lines of progress [s]."""
_grown: set[Path] = set()
"""Folders in which this process has made the cache of a kernel."""


class UncheckedKernel:
    """A kernel of the hot path: after its first call Python calls it without a look at the types of its arguments.

    That look costs more than handing the arrays over. Arguments must come from the package itself: tests check their
    types, because there kernels are prepared as final, and the first call of every process does. A kernel whose first
    arguments were of other types stays a checked one. Other kernels call it as any kernel.
    """

    __slots__ = ("__call__", "dispatcher", "py_func")  # what is called is a slot: no Python function is in between

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher, self.py_func = dispatcher, dispatcher.py_func
        self.__call__: Callable[..., Any] = dispatcher

    def stop_checking(self) -> None:
        """Check the types of the next call only."""
        self.__call__ = self._check_once

    def _check_once(self, *arguments: Any) -> Any:
        result = self.dispatcher(*arguments)
        first, *others = self.dispatcher.overloads.values()
        self.__call__ = self.dispatcher if others else first.entry_point
        return result


if COMPILED:

    @numba.extending.typeof_impl.register(UncheckedKernel)
    def _type_of_kernel(kernel: UncheckedKernel, context: Any) -> Any:
        return numba.types.Dispatcher(kernel.dispatcher)


def kernel(types: str | Callable[..., Any], unchecked: bool = False) -> Any:
    """Decorate a kernel: ``@kernel("V M f8")`` when Python calls it, ``@kernel`` when only other kernels do.

    Parameters
    ----------
    unchecked : see :class:`UncheckedKernel`
    """
    if not isinstance(types, str):
        return _compiled(types) if COMPILED else types

    def decorate(function: Callable[..., Any]) -> Any:
        if not COMPILED:
            return function
        dispatcher = _compiled(function)
        KERNELS.append((dispatcher, types))
        if not unchecked:
            return dispatcher
        _unchecked.append(UncheckedKernel(dispatcher))
        return _unchecked[-1]

    return decorate


def prepare(progress: Callable[[int, int], None] | None = None, final: bool = False) -> None:
    """Compile the kernels of all modules imported so far, or load them from the cache.

    Where a cache is new and this process has no other threads, several processes compile, and the log has the progress.

    Parameters
    ----------
    progress : called with the number of kernels that are ready, and of all, whenever one more is ready; in this process
    final : calls with arrays of another kind are an error (TypeError) and not compiled, which would take seconds
    """
    global _prepared
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    if progress is None and alone and is_new():
        _fill_cache(os.cpu_count() or 1)
    while _prepared < len(KERNELS):
        _compile(*KERNELS[_prepared])
        if final:
            KERNELS[_prepared][0].disable_compile()
        _prepared += 1
        if progress is not None:
            progress(_prepared, len(KERNELS))
    while _unchecked and not final:
        _unchecked.pop().stop_checking()
    while _grown:
        _remove_unused(_grown.pop())


def is_new() -> bool:
    """Whether a kernel imported since the last :func:`prepare` has no cache: compiling takes a minute or two."""
    return bool(_grown)


def _fill_cache(processes: int) -> None:
    """Compile the kernels of all modules imported so far into the cache, in forks of this process.

    What a fork could not compile, :func:`prepare` will: there the error is raised.
    """
    context = multiprocessing.get_context("fork")
    taken = context.Value("i", 0)

    def work() -> None:
        while True:
            with taken.get_lock():
                number, taken.value = taken.value, taken.value + 1
            if number >= len(KERNELS):
                return
            _compile(*KERNELS[number])

    workers = [context.Process(target=work, daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive():
            worker.join(_LOG_PERIOD)
            share = max(taken.value - processes, 0) / len(KERNELS)
            _LOG.warning("compiling the numerical kernels, once: %.0f %%", 100.0 * share)


def _compile(dispatcher: Any, types: str) -> None:
    dispatcher.compile(tuple(_type(name) for name in types.split()))


def _type(name: str) -> Any:
    """Type of an argument: a letter, or a class of :func:`~friction_estimator.arrays.arrays`."""
    if name not in _TYPES:
        fields = [_type(kind) for kind in fields_of(name).values()]
        _TYPES[name] = numba.types.BaseTuple.from_types(fields, KINDS[name])
    return _TYPES[name]


def _compiled(function: Callable[..., Any]) -> Any:
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_cache_folder(_call_tree(function)))
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before


def _call_tree(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """A function and all kernels that it calls, directly or not."""
    called: list[Any] = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [function, *(inner for other in called if hasattr(other, "py_func") for inner in _call_tree(other.py_func))]


def _constants(function: Callable[..., Any]) -> list[str]:
    """Numbers and arrays of the module, or of other modules, that a function uses."""
    used = ((name, function.__globals__.get(name)) for name in function.__code__.co_names)
    values = ((name, getattr(value, "tolist", lambda value=value: value)()) for name, value in used)
    return [f"{name}={value!r}" for name, value in values if isinstance(value, (int, float, tuple, list))]


def _layout(name: str) -> str:
    """Fields of a class of :mod:`friction_estimator.arrays`, and of those among them; empty for other types."""
    return "".join(f"{name}.{field}={kind}{_layout(kind)}" for field, kind in fields_of(name).items())


def _cache_folder(functions: list[Callable[..., Any]]) -> Path:
    """First folder that can be written: of the package, of the user's cache, a temporary one."""
    sources = sorted({function.__code__.co_filename for function in functions})
    stamps = ((path, os.stat(path)) for path in sources)
    text = "".join(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in stamps)
    text += "".join(constant for function in functions for constant in _constants(function))
    text += "".join(_layout(name) for function in functions for name in function.__annotations__.values())
    name = f"kernels-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    package = Path(__file__).resolve().parent
    for parent in (package / "__pycache__", user / "friction_estimator"):
        folder = parent / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_new = next(folder.rglob("*.nbi"), None) is None
            os.utime(folder)  # used now
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            _grown.update({parent} if is_new else ())
            return folder
    return _private_folder(Path(tempfile.gettempdir()) / f"friction_estimator-{os.getuid()}") / name


def _remove_unused(parent: Path) -> None:
    """Remove the caches of kernels that no process has used lately.

    A process that still needs one compiles again: numba makes missing folders anew.
    """
    for folder in parent.glob("kernels-*"):
        try:
            unused = time.time() - folder.stat().st_mtime
        except OSError:  # another process has removed it
            continue
        if unused > _UNUSED:
            shutil.rmtree(folder, ignore_errors=True)


def _private_folder(folder: Path) -> Path:
    """A folder that nobody else can write to, because machine code is loaded from it: this one, or a new one."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp())
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if private else Path(tempfile.mkdtemp())
