"""State as data: arrays that belong together are one tuple, in Python and in compiled kernels alike.

    @arrays
    class State(NamedTuple):
        mean: Vector
        covariance: Matrix

    @kernel("State f8")
    def predict(state, dt): ...

:func:`allocate` makes such a tuple as named views of one buffer, so that a checkpoint is a copy of the buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from friction_estimator.types import FloatArray

Tuple = TypeVar("Tuple", bound=tuple[Any, ...])
KINDS: dict[str, Any] = {}
"""Classes of :func:`arrays` by their names."""


def arrays(kind: type[Tuple]) -> type[Tuple]:
    """Let kernels take this ``NamedTuple`` as one argument.

    Its annotations are the array types of :mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, or classes of
    this kind.
    """
    KINDS[kind.__name__] = kind
    return kind


def fields_of(name: str) -> dict[str, str]:
    """Type of every field of a class of :func:`arrays`; empty for other types."""
    annotations = KINDS[name].__annotations__ if name in KINDS else {}
    return {field: getattr(type, "__forward_arg__", str(type)) for field, type in annotations.items()}


def allocate(kind: type[Tuple], *shapes: int | tuple[int, ...]) -> tuple[FloatArray, Tuple]:
    """A contiguous buffer of zeros, and a tuple of its views with these shapes, one a field."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    buffer, ends = np.zeros(sum(sizes)), np.cumsum(sizes)
    views = (buffer[end - size : end].reshape(shape) for end, size, shape in zip(ends, sizes, shapes, strict=True))
    return buffer, kind(*views)
