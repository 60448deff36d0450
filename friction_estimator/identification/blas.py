"""Number of threads of the BLAS behind numpy and scipy: on the small matrices of identification more cost only time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_SYMBOLS = [f"{name}_{{}}_num_threads{end}" for name in ("openblas", "scipy_openblas") for end in ("", "64_")]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let every loaded OpenBLAS have one thread meanwhile; other libraries keep theirs."""
    before = blas_threads()
    try:
        for library, symbol, _ in before:
            getattr(library, symbol.format("set"))(1)
        yield
    finally:
        for library, symbol, threads in before:
            getattr(library, symbol.format("set"))(threads)


def blas_threads() -> list[tuple[ctypes.CDLL, str, int]]:
    """Every loaded OpenBLAS, the name of its function without get or set, and its number of threads."""
    lines = _MAPS.read_text().splitlines() if _MAPS.exists() else []
    paths = sorted({line.split(maxsplit=5)[-1] for line in lines if "blas" in line and ".so" in line})
    libraries = [ctypes.CDLL(path) for path in paths if Path(path).exists()]
    return [
        (library, symbol, int(getattr(library, symbol.format("get"))()))
        for library in libraries
        for symbol in _SYMBOLS
        if hasattr(library, symbol.format("get"))
    ]
