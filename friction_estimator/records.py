"""State as data: arrays that belong together are one tuple, in Python and in compiled kernels alike.

    @record
    class State(NamedTuple):
        mean: Vector
        covariance: Matrix

    @entry_point
    def predict(state: State, dt: float) -> None: ...

    buffer, state = pack(State(np.zeros(3), np.eye(3)))
    predict(buffer, 0.1)

:func:`pack` makes the arrays views of one buffer. Python hands that buffer to a kernel, which cuts it into the tuple
again: one array costs less than many. A checkpoint is a copy of the buffer. The arrays of an :func:`unbuffered_record`
stay where they are, and Python hands them over one after another.

A buffer begins with the number of its class, which the kernel checks, and with the shapes of its arrays.

:class:`Brief` keeps the ``repr`` of dataclasses with large arrays short.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from friction_estimator.types import FloatArray

Tuple = TypeVar("Tuple", bound=tuple[Any, ...])
KINDS: dict[str, Any] = {}
"""Classes of :func:`record` by their names."""
UNBUFFERED: set[str] = set()
"""Names of those of :func:`unbuffered_record`."""
FIELD_TYPES: dict[str, tuple[str, int]] = {
    "Vector": ("float64", 1), "Matrix": ("float64", 2), "Tensor": ("float64", 3), "Indices": ("int64", 1),
    "IndexMatrix": ("int64", 2), "IndexTensor": ("int64", 3), "Flags": ("bool", 1), "FlagMatrix": ("bool", 2),
    "float": ("float64", 0), "int": ("int64", 0), "bool": ("bool", 0),
}  # fmt: skip
"""Type of the numbers, and number of axes, of what a field may be."""
_SLOT = 8
"""Size of a number in a buffer [bytes]. Flags take one byte each, scalars a whole slot."""


def record(kind: type[Tuple]) -> type[Tuple]:
    """Let kernels take this ``NamedTuple`` as one argument.

    Its annotations are the array types of :mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, or classes of
    this kind.
    """
    KINDS[kind.__name__] = kind
    return kind


def unbuffered_record(kind: type[Tuple]) -> type[Tuple]:
    """Let kernels take this ``NamedTuple`` as one argument; Python hands over its fields, ``predict(*inputs, dt)``."""
    UNBUFFERED.add(kind.__name__)
    return record(kind)


def type_name(annotation: Any) -> str:
    """Name of a type, which may be an annotation that is not evaluated."""
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))


def fields_of(name: str) -> dict[str, str]:
    """Type of every field of a class of :func:`record`; empty for other types."""
    annotations = KINDS[name].__annotations__ if name in KINDS else {}
    return {field: type_name(annotation) for field, annotation in annotations.items()}


@functools.cache
def leaves_of(name: str) -> list[str]:
    """Types of all arrays and scalars of a class of :func:`record`, with those of the classes among its fields."""
    fields = fields_of(name)
    return [leaf for field in fields.values() for leaf in leaves_of(field)] if fields else [name]


@functools.cache
def number_of(name: str) -> float:
    """Number of a class of :func:`record`: another one for another name, or other types of the fields."""
    return float(zlib.crc32(f"{name} {leaves_of(name)}".encode()))


@functools.cache
def _first_slot(name: str) -> int:
    """Slot of a buffer at which the fields of a class of :func:`record` begin."""
    return 1 + sum(FIELD_TYPES[leaf][1] for leaf in leaves_of(name))


def viewer_of(name: str, cuts: dict[str, str], space: dict[str, Any]) -> Callable[[FloatArray], Any]:
    """Function that cuts a buffer of :func:`pack` into its tuple.

    Parameters
    ----------
    name : of a class of :func:`record`
    cuts : expressions of ``buffer``, ``start`` and the lengths ``{}`` of the axes, by the types of fields: views
    space : of the names in these expressions
    """
    leaves = leaves_of(name)
    at, lines = 1, [f"if buffer.size == 0 or buffer[0] != {number_of(name)}:"]
    lines.append(f"    raise TypeError('the buffer is not one of the class {name}')")
    lines.append(f"start = {_first_slot(name)}")
    for number, leaf in enumerate(leaves):
        kind, axes = FIELD_TYPES[leaf]
        sizes = [f"int(buffer[{at + axis}])" for axis in range(axes)]
        names = [f"n{number}_{axis}" for axis in range(axes)]
        lines += [f"{one} = {size}" for one, size in zip(names, sizes, strict=True)]
        if axes:
            lines.append(f"f{number} = {cuts[leaf].format(', '.join(names))}")
            slots = " * ".join(names)
            lines.append(f"start += ({slots} + {_SLOT - 1}) // {_SLOT}" if kind == "bool" else f"start += {slots}")
        else:
            scalar = {"float64": "float", "int64": "int", "bool": "bool"}[kind]
            lines += [f"f{number} = {scalar}(buffer[start])", "start += 1"]
        at += axes
    variables, classes = (f"f{number}" for number in range(len(leaves))), dict[str, Any]()
    lines.append(f"return {construction(name, variables, classes)}")
    space = {**space, **classes, "__name__": __name__}
    function = f"view_{name}_{number_of(name):.0f}"  # machine code of kernels in caches is linked by such names
    exec(f"def {function}(buffer):\n    " + "\n    ".join(lines), space)
    view: Callable[[FloatArray], Any] = space[function]
    return view


def construction(name: str, variables: Iterator[str], classes: dict[str, Any]) -> str:
    """Expression that makes a class of :func:`record` from variables of :func:`leaves_of`; notes the classes in it."""
    if name not in KINDS:
        return next(variables)
    classes[name] = KINDS[name]
    return f"{name}({', '.join(construction(field, variables, classes) for field in fields_of(name).values())})"


def view(kind: type[Tuple], buffer: FloatArray) -> Tuple:
    """The tuple of the views of a buffer that :func:`pack` has made.

    Raises
    ------
    TypeError
        When it is the buffer of another class.
    """
    name = kind.__name__
    result: Tuple = _cutter(name, buffer[: _first_slot(name)].tobytes())(buffer)
    return result


@functools.cache
def _cutter(name: str, header: bytes) -> Callable[[FloatArray], Any]:
    """What :func:`view` does with all buffers of a class that have this header, so the same shapes."""
    numbers = np.frombuffer(header)
    if numbers.size == 0 or numbers[0] != number_of(name):
        raise TypeError(f"the buffer is not one of the class {name}")
    shapes, slot, cuts = iter(numbers[1:].astype(int).tolist()), numbers.size, list[str]()
    for leaf in leaves_of(name):
        kind, axes = FIELD_TYPES[leaf]
        shape = tuple(next(shapes) for _ in range(axes))
        cuts.append(f"ndarray({shape}, {kind}, buffer, {_SLOT * slot})" if axes else f"{leaf}(buffer[{slot}])")
        slot += math.ceil(math.prod(shape) / _SLOT) if axes and kind == "bool" else math.prod(shape)
    space: dict[str, Any] = {"ndarray": np.ndarray, "float64": np.dtype("float64"), "int64": np.dtype("int64")}
    cut: Callable[[FloatArray], Any] = eval(f"lambda buffer: {construction(name, iter(cuts), space)}", space)
    return cut


def packed(values: tuple[Any, ...]) -> FloatArray:
    """A buffer with these values.

    Raises
    ------
    TypeError
        When an array has not the number of axes that its field has.
    """
    name = type(values).__name__
    header, data = [number_of(name)], list[Any]()
    for leaf, kind in zip(leaves(values), leaves_of(name), strict=True):
        dtype, axes = FIELD_TYPES[kind]
        flat, shape = np.asarray(leaf, dtype if axes else float), np.shape(leaf)
        if len(shape) != axes:
            raise TypeError(f"an array of {name} has {len(shape)} axes; {kind} has {axes}")
        header += shape
        if flat.dtype == bool:
            flat = np.concatenate((flat.ravel(), np.zeros(-flat.size % _SLOT, bool)))
        data.append(flat.ravel().view(float))
    return np.concatenate((header, *data))


def pack(values: Tuple) -> tuple[FloatArray, Tuple]:
    """A buffer with these values, see :func:`packed`, and the tuple of its views."""
    buffer = packed(values)
    return buffer, view(type(values), buffer)


def allocate(kind: type[Tuple], *shapes: int | tuple[int, ...]) -> tuple[FloatArray, Tuple]:
    """Buffer and tuple of zeros with these shapes, one a field."""
    return pack(kind(*(np.zeros(shape) for shape in shapes)))


class RecordTemplate(Generic[Tuple]):
    """Makes records of one class and shape.

    Parameters
    ----------
    example : tuple of arrays; its values are those of new ones

    Attributes
    ----------
    buffer : with the values of the example
    places : shape, type and first byte of every field
    """

    def __init__(self, example: Tuple) -> None:
        self.kind = type(example)
        self.buffer, views = pack(example)
        first = self.buffer.ctypes.data
        self.places = {
            name: (one.shape, one.dtype, one.ctypes.data - first)
            for name, one in zip(fields_of(self.kind.__name__), views, strict=True)
        }

    def new(self) -> Any:
        """A record with these values."""
        return Record(self.buffer.copy(), self)

    def slots(self, name: str) -> slice:
        """Where the numbers of a field are in the buffer."""
        shape, _, at = self.places[name]
        return slice(at // _SLOT, at // _SLOT + math.prod(shape))


class Record:
    """A buffer that stands for its tuple; a field becomes a view of the buffer when it is read.

    Most fields of ``Attitude`` and ``Dynamics`` are read by kernels alone, from the buffer. With views of all fields a
    median step of the built-in walk takes 3 to 4 us more: 2 to 3 % with the observer kalman, 7 % with momentum.

    Attributes
    ----------
    buffer : of the tuple
    template : that has made it
    """

    __slots__ = ("buffer", "template")

    def __init__(self, buffer: FloatArray, template: RecordTemplate[Any]) -> None:
        self.buffer, self.template = buffer, template

    def __getattr__(self, name: str) -> Any:
        if name not in self.template.places:
            return getattr(view(self.template.kind, self.buffer), name)
        shape, kind, at = self.template.places[name]
        return np.ndarray(shape, kind, self.buffer, at)

    def __iter__(self) -> Iterator[Any]:
        return iter(view(self.template.kind, self.buffer))

    def __reduce__(self) -> Any:
        return self.template.kind, tuple(self)


def leaves(values: tuple[Any, ...]) -> Iterator[Any]:
    """Arrays and scalars of a tuple, with those of the tuples among its fields."""
    for value in values:
        if isinstance(value, tuple):
            yield from leaves(value)
        else:
            yield value


def set_scalars(kind: type[Any], buffer: FloatArray, *values: float) -> None:
    """Set the first fields of a buffer of :func:`pack`, which are scalars."""
    start = _first_slot(kind.__name__)
    buffer[start : start + len(values)] = values


def buffer_of(values: tuple[Any, ...] | Record | FloatArray) -> FloatArray:
    """Buffer of a tuple of arrays: the one whose views they are, or else a new one with their values."""
    if isinstance(values, Record):
        return values.buffer
    if not isinstance(values, tuple):
        return values
    if not isinstance(values[0], np.ndarray):
        return packed(values)
    buffer = values[0].base
    for value in values:
        if value.base is not buffer:
            return packed(values)
    if buffer is None or buffer.ndim != 1 or buffer[0] != number_of(type(values).__name__):
        return packed(values)
    return buffer


class Brief:
    """Base of dataclasses with large fields, whose ``repr`` has the shapes of arrays and the first letters of texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        names = getattr(self, "__dataclass_fields__", ())
        shown = (f"{name}={_brief(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(shown)})"


_LETTERS, _ITEMS = 40, 4
"""Letters of a text, and items of a list, that a short ``repr`` shows."""


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, (tuple, list, dict)) and len(value) > _ITEMS:
        return f"<{len(value)} items>"
    text = repr(value)
    short = isinstance(value, Brief) or len(text) <= _LETTERS
    return text if short else f"<{type(value).__name__} {text[:_LETTERS]}...>"
