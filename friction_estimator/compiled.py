"""The one decorator of the numerical kernels: numba compiles them, and without numba they run as plain Python.

A kernel that Python calls states the types of its arguments, so that it is compiled before the first sample and never
in the middle of a run. Small functions that only kernels call need no types::

    @kernel
    def product(A, B): ...

    @kernel("M M")
    def solve_positive(A, B): ...

The letters stand for C-contiguous arrays of ``float64`` with one (``V``), two (``M``) and three (``T``) axes,
``I``, ``IM``, ``IT`` for arrays of ``int64``, ``B``, ``BM`` for arrays of ``bool``; ``f8``, ``i8`` and ``b1`` are
scalars. Arrays that belong together travel as one argument, a class of :mod:`friction_estimator.records`: ``[State]``
where Python hands over the buffer of such a tuple (0.15 us, where the ten arrays of ``Dynamics`` cost 0.85 us),
``(State)`` where it hands over its fields.

:func:`prepare` compiles the kernels of the modules imported so far, or loads them from the cache of an earlier run: a
folder of the package where that can be written, else of the user's cache. The cache of each kernel is named by a digest
of its source file, of those of all kernels that it calls and of the constants in them, because numba does not notice a
change in another file. When kernels are compiled, caches that no process has used for weeks are removed: they are those
of earlier versions.
"""

from __future__ import annotations

import functools
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

import numpy as np

from friction_estimator.records import FIELD_TYPES, KINDS, construction, fields_of, leaves_of, view, viewer_of

numba: Any
try:
    import numba
    import numba.extending
    from numba.np.arrayobj import make_array, populate_array
except ImportError:  # an optional speed-up
    numba = None

COMPILED = numba is not None and not numba.config.DISABLE_JIT
"""True where kernels are machine code, False where they run as plain Python."""

_LETTERS = {
    "V": "Vector", "M": "Matrix", "T": "Tensor", "I": "Indices", "IM": "IndexMatrix", "IT": "IndexTensor", "B": "Flags",
    "BM": "FlagMatrix", "f8": "float", "i8": "int", "b1": "bool",
}  # fmt: skip

NOT_COMPILED = "" if COMPILED else "numba is not installed" if numba is None else "NUMBA_DISABLE_JIT is set"
"""Why kernels run as plain Python; empty where they are compiled."""

KERNELS: list[tuple[Any, str]] = []
"""Kernels that state their types, and these, in the order of their definition."""
_prepared = 0

_UNUSED_TIME = 28 * 24 * 3600.0
"""Caches of kernels that nobody has used for this long are removed [s]: two versions may be in use at once."""
_LOG = logging.getLogger(__name__)
_LOG_PERIOD = 5.0
"""Time between two lines of progress [s]."""
_grown: set[Path] = set()
"""Folders in which this process has made the cache of a kernel."""


class Entry:
    """What Python calls where a kernel takes tuples: a function of their buffers.

    Attributes
    ----------
    kernel : of the tuples, what other kernels call
    py_func : the function that was decorated
    """

    __slots__ = ("__call__", "kernel", "py_func")  # what is called is a slot: no Python function is in between

    def __init__(self, call: Callable[..., Any], kernel: Any, py_func: Callable[..., Any]) -> None:
        self.__call__: Callable[..., Any] = call
        self.kernel, self.py_func = kernel, py_func


if COMPILED:

    def _type(name: str) -> Any:
        """Type for kernels of a letter or of a field."""
        kind, axes = FIELD_TYPES[_LETTERS.get(name, name)]
        scalar = numba.from_dtype(np.dtype(kind))
        return numba.types.Array(scalar, axes, "C") if axes else scalar

    def _cut(name: str) -> Any:
        """Function for kernels that views a part of a buffer as an array of this type.

        The view does not count as a reference to the buffer, which the caller of the kernel holds.
        """
        view = _type(name)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            buffer, start, *shape = arguments
            memory = make_array(signature.args[0])(context, builder, buffer).data
            array = make_array(view)(context, builder)
            size = context.get_constant(numba.intp, context.get_abi_sizeof(context.get_data_type(view.dtype)))
            strides = [size]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            data = builder.bitcast(builder.gep(memory, [start]), array.data.type)
            populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
            return array._getvalue()

        def cut1(context: Any, buffer: Any, start: Any, n: Any) -> Any:
            return view(buffer, start, n), generate

        def cut2(context: Any, buffer: Any, start: Any, n: Any, m: Any) -> Any:
            return view(buffer, start, n, m), generate

        def cut3(context: Any, buffer: Any, start: Any, n: Any, m: Any, length: Any) -> Any:
            return view(buffer, start, n, m, length), generate

        return numba.extending.intrinsic((cut1, cut2, cut3)[view.ndim - 1])

    _SPACE = {name: _cut(name) for name, (_, axes) in FIELD_TYPES.items() if axes}
    _CUTS = {name: f"{name}(buffer, start, {{}})" for name in _SPACE}

    @numba.extending.typeof_impl.register(Entry)
    def _type_of_kernel(entry: Entry, context: Any) -> Any:
        return numba.types.Dispatcher(entry.kernel)


def _entry(function: Callable[..., Any], words: list[str]) -> Entry:
    """Function of buffers and arrays that calls a kernel with the tuples that they make."""
    names, values, space = list[str](), list[str](), dict[str, Any]()
    for word in words:
        kind, first = word.strip("[]()"), len(names)
        names += [f"a{first + number}" for number in range(len(_arguments(word)))]
        if word[0] == "[":
            values.append(f"{kind}({names[first]})")
            space[kind] = _viewer(kind)
        else:
            values.append(construction(kind, iter(names[first:]), space))
    only_kernels_call: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    space["kernel"] = inner = _compiled(function, **only_kernels_call) if COMPILED else function
    code = f"def {function.__name__}({', '.join(names)}): return kernel({', '.join(values)})"
    exec(compile(code, function.__code__.co_filename, "exec"), space)
    entry = space[function.__name__]
    entry.__module__, entry.__qualname__ = function.__module__, f"{function.__qualname__}_of_buffers"
    if COMPILED:
        return Entry(_compiled(entry, function), inner, function)

    def call(*arguments: Any) -> Any:
        """Call from Python, or from another kernel with tuples."""
        tuples = any(isinstance(one, tuple) for one in arguments)
        return function(*arguments) if tuples else entry(*arguments)

    return Entry(call, function, function)


def kernel(types: str | Callable[..., Any]) -> Any:
    """Decorate a kernel: ``@kernel("V M f8")`` when Python calls it, ``@kernel`` when only other kernels do.

    Python hands over the buffer of a tuple whose class is in brackets, ``[State]``, and one array after another of a
    tuple whose class is in parentheses, ``(State)``; other kernels hand over the tuple.
    """
    if not isinstance(types, str):
        return _compiled(types) if COMPILED else types

    def decorate(function: Callable[..., Any]) -> Any:
        words = types.split()
        takes_tuples = any(word[0] in "[(" for word in words)
        if not (COMPILED or takes_tuples):
            return function
        result = _entry(function, words) if takes_tuples else _compiled(function)
        if COMPILED:
            KERNELS.append((result.__call__ if takes_tuples else result, types))
        return result

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
    dispatcher.compile(tuple(_type(name) for word in types.split() for name in _arguments(word)))


def _arguments(word: str) -> list[str]:
    """Types of what Python hands over for a word of a kernel's types."""
    if word[0] == "[":
        return ["V"]
    return leaves_of(word.strip("()"))


@functools.cache
def _viewer(name: str) -> Any:
    """Function for kernels that cuts a buffer into its tuple."""
    return numba.njit(viewer_of(name, _CUTS, _SPACE)) if COMPILED else functools.partial(view, KINDS[name])


def _compiled(function: Callable[..., Any], source: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function; its cache is that of ``source``."""
    folder = _cache_folder(_call_tree(source or function))
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, error_model="numpy", **options)(function)
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
    """Fields of a class of :mod:`friction_estimator.records`, and of those among them; empty for other types."""
    return "".join(f"{name}.{field}={kind}{_layout(kind)}" for field, kind in fields_of(name).items())


def _cache_folder(functions: list[Callable[..., Any]]) -> Path:
    """First folder that can be written: of the package, of the user's cache, a temporary one."""
    own = _entry, viewer_of
    sources = sorted({function.__code__.co_filename for function in (*functions, *own)})
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
        if unused > _UNUSED_TIME:
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
