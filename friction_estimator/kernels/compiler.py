"""Decorators of the numerical kernels: numba compiles them, and without numba they run as plain Python.

A kernel that Python calls is an :func:`entry_point`. :func:`prepare` compiles it before the first sample, so that it is
never compiled in the middle of a run, for the types in its signature: the array types of
:mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, and records. All arrays are C-contiguous. A
:func:`kernel`, which only kernels call, is compiled with them for the types of each call.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from friction_estimator.kernels.buffer_views import COMPILED, NOT_COMPILED, numba, numba_type, viewer
from friction_estimator.kernels.cache import cache_folder, is_new, remove_unused
from friction_estimator.kernels.records import FLAT_TYPES, RECORDS, construction, flat_types, is_buffered, type_name

__all__ = ["COMPILED", "ENTRY_POINTS", "NOT_COMPILED", "entry_point", "is_new", "kernel", "prepare"]

Function = TypeVar("Function", bound=Callable[..., Any])
ENTRY_POINTS: list[tuple[Any, list[str]]] = []
"""Compiled functions that Python calls, and the types of their arguments, in the order of their definition."""
_prepared = 0
_LOG = logging.getLogger(__name__)
_LOG_PERIOD = 5.0
"""Time between two lines of progress [s]."""


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
    remove_unused()


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
    folder = cache_folder(source or function)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = before
