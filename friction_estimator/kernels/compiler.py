"""Decorators of the numerical kernels: numba compiles them, and without numba they run as plain Python.

A kernel that Python calls is an :func:`entry_point`. :func:`prepare` compiles it before the first sample, so that it is
never compiled in the middle of a run, for the types in its signature: the array types of
:mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, and records. All arrays are C-contiguous. A
:func:`kernel`, which only kernels call, is compiled with them for the types of each call.

Machine code is in the user's cache: one file for each kernel and the types of its arguments. Its name has a digest of
all that the machine code follows from, by content: the kernel and those that it calls, their constants, the records
among their types, Python, numba and the processor. So copies of the package share their files, and a change needs new
ones. A file begins with a checksum: what is damaged is compiled again. While a process compiles a kernel, others that
need it wait, and load what it has written.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import logging
import multiprocessing
import os
import pickle
import stat
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from friction_estimator.kernels import buffer_views
from friction_estimator.kernels.buffer_views import COMPILED, NOT_COMPILED, numba, numba_type, viewer
from friction_estimator.kernels.records import (
    FLAT_TYPES,
    RECORDS,
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
_PACKAGE = __name__.partition(".")[0]
_SUFFIX = ".code"
_CHECKSUM_SIZE = 32
_UNUSED_TIME = 28 * 24 * 3600.0
"""Files that nobody has used for this long are removed [s]: several versions may be in use at once."""
_PATIENCE = 60.0
"""Longest wait for the process that compiles a kernel, which may be stopped [s]: then it is compiled twice."""
_POLL = 0.05
"""Time between two looks at whether another process is ready [s]."""
_GENERATOR = hashlib.sha256(Path(buffer_views.__file__).read_bytes()).digest()
"""Of the code that finds the arrays of records in their buffers."""


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
        return RecordEntryPoint(_compiled(entry), inner, function)

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
    if (new := is_new()) and progress is None and alone:
        _fill_cache(os.cpu_count() or 1)
    while _prepared < len(ENTRY_POINTS):
        _compile(*ENTRY_POINTS[_prepared])
        if final:
            ENTRY_POINTS[_prepared][0].disable_compile()
        _prepared += 1
        if progress is not None:
            progress(_prepared, len(ENTRY_POINTS))
    if new:
        _remove_unused()


def _fill_cache(processes: int) -> None:
    """Compile the kernels of all modules imported so far into the cache, in forks of this process.

    What a fork could not compile, :func:`prepare` will: there the error is raised, and warnings are logged.
    """
    context = multiprocessing.get_context("fork")
    taken = context.Value("i", 0)

    def work() -> None:
        logging.disable()
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
    try:
        dispatcher.compile(tuple(map(numba_type, types)))
    finally:
        _unlock()  # after an error, too


def _handed_over(kind: str) -> list[str]:
    """Types of what Python hands over for an argument of this type."""
    return ["Vector"] if is_buffered(kind) else flat_types(kind)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Let numba compile a function for the types of each call."""
    options["error_model"] = "numpy"
    dispatcher = numba.njit(**options)(function)
    dispatcher._cache = MachineCode(function, options)
    return dispatcher


def is_new() -> bool:
    """Whether a kernel that was imported since :func:`prepare` must be compiled: all take a minute or two."""
    return not all(
        dispatcher._cache.exists(tuple(map(numba_type, types)), dispatcher.targetctx)
        for dispatcher, types in ENTRY_POINTS[_prepared:]
    )


class MachineCode:
    """The cache of one kernel; numba calls ``load_overload`` and ``save_overload``.

    Parameters
    ----------
    function : that is compiled
    options : of numba for this function
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    def exists(self, types: tuple[Any, ...], context: Any) -> bool:
        """Whether there is machine code for arguments of these types."""
        return _read(self._name(types, context)) is not None

    def load_overload(self, types: tuple[Any, ...], context: Any) -> Any:
        """Machine code for arguments of these types; None locks the kernel, and this process compiles it."""
        context.refresh()
        name = self._name(types, context)
        code = _read(name)
        if code is None:
            _lock(name)
            code = _read(name)  # what the process has written that had the lock
            if code is None:
                return None
            _unlock(name)
        try:
            return numba.core.compiler.CompileResult._rebuild(context, *pickle.loads(code))
        except (ImportError, AttributeError):  # of a module that was there when this was compiled
            _lock(name)
            return None

    def save_overload(self, types: tuple[Any, ...], result: Any) -> None:
        """Keep what this process has compiled."""
        name = self._name(types, result.target_context)
        if not result.library.has_dynamic_globals:  # else there are addresses of this process in it
            _write(name, numba.core.serialize.dumps(result._reduce()))
        _unlock(name)

    def _name(self, types: tuple[Any, ...], context: Any) -> str:
        versions = sys.implementation.cache_tag, numba.__version__, context.codegen().magic_tuple()
        text = repr((_digest(self._function), self._options, types, versions))
        return f"{self._function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:32]}{_SUFFIX}"


@functools.cache
def _digest(function: Callable[..., Any]) -> str:
    """Digest of what a kernel computes: its code and that of all kernels that it may call, without comments."""
    waiting, parts = [function], dict[str, Any]()
    while waiting:
        one = waiting.pop()
        name = f"{one.__module__}.{one.__qualname__}"
        if name not in parts:
            used, kernels = _used(one)
            parts[name] = used
            waiting += kernels
    return hashlib.sha256(repr((_GENERATOR, list(parts.items()))).encode()).hexdigest()


def _used(function: Callable[..., Any]) -> tuple[list[Any], list[Callable[..., Any]]]:
    """What a function takes from its code and its module, and the kernels among that; fields may have their names."""
    parts, kernels = list[Any]([function.__defaults__]), list[Callable[..., Any]]()
    for code in _with_inner(function.__code__):
        values = [one for one in code.co_consts if one != function.__doc__ and not isinstance(one, CodeType)]
        known = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        kernels += [value.py_func for value in known if hasattr(value, "py_func")]
        values += [_content(value) for value in known if not hasattr(value, "py_func")]
        parts.append((code.co_code, code.co_names, code.co_varnames, values))
    parts += [_layout(type_name(annotation)) for annotation in function.__annotations__.values()]
    return parts, kernels


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _with_inner(value)


def _content(value: Any) -> str:
    """What machine code takes from a name of the module that is no kernel: a library, a record or a constant."""
    if isinstance(value, ModuleType):
        return value.__name__
    return _layout(value.__name__) if isinstance(value, type) else repr(getattr(value, "tolist", lambda: value)())


def _layout(kind: str) -> str:
    """Module and fields of a record, and of those among them; of another type its name."""
    module = getattr(RECORDS.get(kind), "__module__", "")
    return f"{module} {kind}({', '.join(f'{name}: {_layout(field)}' for name, field in field_types(kind).items())})"


def _folders() -> list[Path]:
    """Folders for machine code, the best one first; none that others can write, because what is in them is run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    temporary = Path(os.environ.get("TMPDIR") or "/tmp")
    folders = cache / _PACKAGE / "kernels", temporary / f"{_PACKAGE}-{os.getuid()}"
    return [folder for folder in folders if folder.is_absolute() and is_private(folder)]


def is_private(folder: Path) -> bool:
    """Whether nobody else can write into a folder, which is made if it does not exist."""
    try:
        folder.mkdir(0o755, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022


def _read(name: str) -> memoryview | None:
    """Machine code of this name; None where no folder has it undamaged."""
    damaged: Path | None = None
    for folder in _folders():
        try:
            content = memoryview((folder / name).read_bytes())
        except FileNotFoundError:
            continue
        except OSError:
            content = memoryview(b"")
        code = content[_CHECKSUM_SIZE:]
        if content[:_CHECKSUM_SIZE] == _checksum(name, code):
            with suppress(OSError):  # of another user
                os.utime(folder / name)
            return code
        damaged = folder
    if damaged is not None:
        _warn(f"machine code in {damaged} is damaged: it is compiled again; check the disk if this comes back")
    return None


def _write(name: str, code: bytes) -> None:
    """Keep machine code in the first folder that takes it."""
    reasons = list[str]()
    for folder in _folders():
        new = folder / f"{name}.{os.getpid()}"
        try:
            new.write_bytes(_checksum(name, code) + code)
            new.replace(folder / name)
            return
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
            with suppress(OSError):
                new.unlink()
    _warn(
        f"machine code of the numerical kernels cannot be kept ({'; '.join(reasons) or 'no folder for it'}), and every "
        "start compiles it again: set XDG_CACHE_HOME to a folder that can be written"
    )


def _checksum(name: str, code: bytes | memoryview) -> bytes:
    """Checksum of a file and its name."""
    checksum = hashlib.sha256(name.encode())
    checksum.update(code)
    return checksum.digest()


@functools.cache
def _warn(text: str) -> None:
    """Log a warning once, not once for each kernel."""
    _LOG.warning(text)


@functools.cache
def _lock_file() -> int:
    """File whose bytes are locked, one for each kernel; such locks end with their process."""
    return os.open(_folders()[0] / "lock", os.O_RDWR | os.O_CREAT, 0o600)


def _lock(name: str) -> None:
    """Wait until no other process compiles this kernel; where files cannot be locked, do not."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, zlib.crc32(name.encode()))
            return
        except BlockingIOError:
            time.sleep(_POLL)
        except (OSError, IndexError):
            return


def _unlock(name: str = "") -> None:
    """Let other processes compile this kernel, or all."""
    with suppress(OSError, IndexError):
        fcntl.lockf(_lock_file(), fcntl.LOCK_UN, *((1, zlib.crc32(name.encode())) if name else ()))


def _remove_unused() -> None:
    """Remove files that no process has used for weeks: they are those of earlier versions."""
    for folder in _folders():
        for path in folder.glob(f"*{_SUFFIX}*"):
            with suppress(OSError):  # another process has removed it
                if time.time() - path.stat().st_mtime > _UNUSED_TIME:
                    path.unlink()
