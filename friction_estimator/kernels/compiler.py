"""Decorators of the numerical kernels: numba compiles them, and without numba they run as plain Python.

A kernel that Python calls is an :func:`entry_point`. :func:`prepare` compiles it before the first sample, so that it is
never compiled in the middle of a run, for the types in its signature: the array types of
:mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, and records. All arrays are C-contiguous. A
:func:`kernel`, which only kernels call, is compiled with them for the types of each call.

Machine code is kept in a folder of the package if that can be written, else of the user's cache. The cache of each
kernel is a folder that is named by a digest of its source file, of those of all kernels that it calls and of the
constants in them, because numba does not notice a change in another file. When kernels are compiled, caches that no
process has used for weeks are removed: they are those of earlier versions.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from friction_estimator.kernels.buffer_views import COMPILED, NOT_COMPILED, numba, numba_type, viewer
from friction_estimator.kernels.records import (
    FLAT_TYPES,
    RECORDS,
    UNBUFFERED,
    construction,
    field_types,
    flat_types,
    is_buffered,
    type_name,
)

__all__ = ["COMPILED", "ENTRY_POINTS", "NOT_COMPILED", "entry_point", "is_new", "kernel", "prepare"]

Function = TypeVar("Function", bound=Callable[..., Any])
ENTRY_POINTS: list[tuple[Any, list[str]]] = []
"""Compiled functions that Python calls, and the types of their arguments, in the order of their definition."""
_prepared = 0
_LOG = logging.getLogger(__name__)
_LOG_PERIOD = 5.0
"""Time between two lines of progress [s]."""
_PACKAGE = Path(__file__).resolve().parents[1]
_OWN_SOURCES = [str(path) for path in Path(__file__).parent.glob("*.py")]
_UNUSED_TIME = 28 * 24 * 3600.0
"""Caches of kernels that nobody has used for this long are removed [s]: two versions may be in use at once."""
_new: set[Path] = set()
"""Folders in which this process has made the cache of a kernel."""


class RecordEntryPoint:
    """What Python calls where a kernel takes records: a function of their buffers.

    Attributes
    ----------
    kernel : of the records, what other kernels call
    py_func : the function that was decorated
    """

    __slots__ = ("__call__", "kernel", "py_func")  # what is called is a slot: no Python function is in between

    def __init__(self, call: Callable[..., Any], kernel: Any, py_func: Callable[..., Any]) -> None:
        self.__call__: Callable[..., Any] = call
        self.kernel, self.py_func = kernel, py_func


if COMPILED:

    @numba.extending.typeof_impl.register(RecordEntryPoint)
    def _type_of_kernel(entry: RecordEntryPoint, context: Any) -> Any:
        return numba.types.Dispatcher(entry.kernel)


def _record_entry_point(function: Callable[..., Any], types: list[str]) -> RecordEntryPoint:
    """Function of buffers and arrays that calls a kernel with the records that they make."""
    names, values, space = list[str](), list[str](), dict[str, Any]()
    for kind in types:
        first = len(names)
        names += [f"a{first + number}" for number in range(len(_handed_over(kind)))]
        if is_buffered(kind):
            values.append(f"{kind}({names[first]})")
            space[kind] = viewer(kind)
        else:
            values.append(construction(kind, iter(names[first:]), space))
    only_kernels_call: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    space["kernel"] = inner = _compiled(function, **only_kernels_call) if COMPILED else function
    code = f"def {function.__name__}({', '.join(names)}): return kernel({', '.join(values)})"
    exec(compile(code, function.__code__.co_filename, "exec"), space)
    entry = space[function.__name__]
    entry.__module__, entry.__qualname__ = function.__module__, f"{function.__qualname__}_of_buffers"
    if COMPILED:
        return RecordEntryPoint(_compiled(entry, function), inner, function)

    def call(*arguments: Any) -> Any:
        """Call from Python, or from another kernel with records."""
        records = any(isinstance(one, tuple) for one in arguments)
        return function(*arguments) if records else entry(*arguments)

    return RecordEntryPoint(call, function, function)


def kernel(function: Function) -> Function:
    """Decorate a kernel that only other kernels call."""
    result: Function = _compiled(function) if COMPILED else function
    return result


def entry_point(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that Python calls, and other kernels may.

    Raises
    ------
    TypeError
        When the type of an argument is neither a record nor one of the array types and scalars of :data:`FLAT_TYPES`.
    """
    types = _argument_types(function)
    takes_records = any(kind in RECORDS for kind in types)
    if not (COMPILED or takes_records):
        return function
    result = _record_entry_point(function, types) if takes_records else _compiled(function)
    if COMPILED:
        dispatcher = result.__call__ if takes_records else result
        ENTRY_POINTS.append((dispatcher, [one for kind in types for one in _handed_over(kind)]))
    return result


def _argument_types(function: Callable[..., Any]) -> list[str]:
    """Names of the types in the signature of an entry point."""
    types = list[str]()
    for argument in function.__code__.co_varnames[: function.__code__.co_argcount]:
        kind = type_name(function.__annotations__.get(argument, "unknown"))
        if kind not in FLAT_TYPES and kind not in RECORDS:
            raise TypeError(
                f"entry point {function.__module__}.{function.__qualname__}: the type of the argument {argument} is "
                f"{kind}, and must be a record or one of {', '.join(FLAT_TYPES)}"
            )
        types.append(kind)
    return types


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
    while _prepared < len(ENTRY_POINTS):
        _compile(*ENTRY_POINTS[_prepared])
        if final:
            ENTRY_POINTS[_prepared][0].disable_compile()
        _prepared += 1
        if progress is not None:
            progress(_prepared, len(ENTRY_POINTS))
    _remove_unused()


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
            if number >= len(ENTRY_POINTS):
                return
            _compile(*ENTRY_POINTS[number])

    workers = [context.Process(target=work, daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive():
            worker.join(_LOG_PERIOD)
            share = max(taken.value - processes, 0) / len(ENTRY_POINTS)
            _LOG.warning("compiling the numerical kernels, once: %.0f %%", 100.0 * share)


def _compile(dispatcher: Any, types: list[str]) -> None:
    dispatcher.compile(tuple(map(numba_type, types)))


def _handed_over(kind: str) -> list[str]:
    """Types of what Python hands over for an argument of this type."""
    return ["Vector"] if is_buffered(kind) else flat_types(kind)


def _compiled(function: Callable[..., Any], source: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function; its cache is that of ``source``."""
    folder = _cache_folder(source or function)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def is_new() -> bool:
    """Whether a kernel that was imported since :func:`prepare` has no cache yet: compiling takes a minute or two."""
    return bool(_new)


def _cache_folder(function: Callable[..., Any]) -> Path:
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


def _remove_unused() -> None:
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
