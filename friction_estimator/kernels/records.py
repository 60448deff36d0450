"""Records: arrays that belong together are one named tuple, in Python and in compiled kernels alike.

The *buffer* of a record is one array with the values of all its fields. The arrays of a record that was made from a
buffer are views of it, so that a kernel that gets the buffer changes the record. A checkpoint is a copy of the buffer.

=========================  ===========================================================
:func:`to_buffer`          a new buffer with the values of a record
:func:`from_buffer`        the record whose arrays are views of a buffer
:func:`buffered`           both: a new buffer with the values of a record, and its record
:func:`buffered_zeros`     the same for a record of zeros, from the shapes of its arrays
:func:`buffer_of`          the buffer of a record that was made from one
:class:`RecordTemplate`    makes many records of one shape
=========================  ===========================================================

A buffer begins with the number of its class, which the kernel checks, and with the shapes of its arrays. A record may
have records among its fields; *flat* are its arrays and scalars with theirs, in the order of the buffer.
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
RECORDS: dict[str, Any] = {}
"""Classes of :func:`record` and :func:`unbuffered_record` by their names."""
UNBUFFERED: set[str] = set()
"""Names of those of :func:`unbuffered_record`."""
FLAT_TYPES: dict[str, tuple[str, int]] = {
    "Vector": ("float64", 1), "Matrix": ("float64", 2), "Tensor": ("float64", 3), "Indices": ("int64", 1),
    "IndexMatrix": ("int64", 2), "IndexTensor": ("int64", 3), "Flags": ("bool", 1), "FlagMatrix": ("bool", 2),
    "float": ("float64", 0), "int": ("int64", 0), "bool": ("bool", 0),
}  # fmt: skip
"""Type of the numbers, and number of axes, of arrays and scalars."""
SLOT = 8
"""Size of a number in a buffer [bytes]. Flags take one byte each, scalars a whole slot."""


def record(kind: type[Tuple]) -> type[Tuple]:
    """Let kernels take this ``NamedTuple`` as one argument; Python hands over its buffer.

    Its annotations are the array types of :mod:`friction_estimator.types`, ``float``, ``int``, ``bool``, or records.
    """
    RECORDS[kind.__name__] = kind
    return kind


def unbuffered_record(kind: type[Tuple]) -> type[Tuple]:
    """Let kernels take this ``NamedTuple`` as one argument; Python hands over its fields, ``step(*inputs, dt)``.

    For arrays that other objects own: to copy them into a buffer would cost more than to hand them over.
    """
    UNBUFFERED.add(kind.__name__)
    return record(kind)


def is_buffered(name: str) -> bool:
    """Whether this is the name of a record whose buffer Python hands over."""
    return name in RECORDS and name not in UNBUFFERED


def type_name(annotation: Any) -> str:
    """Name of a type, which may be an annotation that is not evaluated."""
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))


def field_types(name: str) -> dict[str, str]:
    """Names of the types of the fields of a record; empty for other types."""
    annotations = RECORDS[name].__annotations__ if name in RECORDS else {}
    return {field: type_name(annotation) for field, annotation in annotations.items()}


@functools.cache
def flat_types(name: str) -> list[str]:
    """Names of the types of the flat fields of a record; of another type itself."""
    fields = field_types(name)
    return [flat for field in fields.values() for flat in flat_types(field)] if fields else [name]


@functools.cache
def class_number(name: str) -> float:
    """Number of a record class: another one for another name, or other types of the fields."""
    return float(zlib.crc32(f"{name} {flat_types(name)}".encode()))


@functools.cache
def first_slot(name: str) -> int:
    """Slot of a buffer at which the fields of a record class begin."""
    return 1 + sum(FLAT_TYPES[flat][1] for flat in flat_types(name))


def construction(name: str, values: Iterator[str], classes: dict[str, Any]) -> str:
    """Code that makes a record from the expressions of its flat fields; notes the classes in it."""
    if name not in RECORDS:
        return next(values)
    classes[name] = RECORDS[name]
    return f"{name}({', '.join(construction(field, values, classes) for field in field_types(name).values())})"


def flatten(values: tuple[Any, ...]) -> Iterator[Any]:
    """Flat fields of a record."""
    for value in values:
        if isinstance(value, tuple):
            yield from flatten(value)
        else:
            yield value


def to_buffer(values: tuple[Any, ...]) -> FloatArray:
    """A new buffer with the values of a record.

    Raises
    ------
    TypeError
        When an array has not the number of axes that its field has.
    """
    name = type(values).__name__
    header, data = [class_number(name)], list[Any]()
    for value, kind in zip(flatten(values), flat_types(name), strict=True):
        dtype, axes = FLAT_TYPES[kind]
        flat, shape = np.asarray(value, dtype if axes else float), np.shape(value)
        if len(shape) != axes:
            raise TypeError(f"an array of {name} has {len(shape)} axes; {kind} has {axes}")
        header += shape
        if flat.dtype == bool:
            flat = np.concatenate((flat.ravel(), np.zeros(-flat.size % SLOT, bool)))
        data.append(flat.ravel().view(float))
    return np.concatenate((header, *data))


def from_buffer(kind: type[Tuple], buffer: FloatArray) -> Tuple:
    """The record whose arrays are views of a buffer.

    Raises
    ------
    TypeError
        When it is the buffer of another class.
    """
    name = kind.__name__
    result: Tuple = _fixed_shape_viewer(name, buffer[: first_slot(name)].tobytes())(buffer)
    return result


@functools.cache
def _fixed_shape_viewer(name: str, header: bytes) -> Callable[[FloatArray], Any]:
    """Function that makes the record of a buffer with this header: all arrays have the shapes in it."""
    numbers = np.frombuffer(header)
    if numbers.size == 0 or numbers[0] != class_number(name):
        raise TypeError(f"the buffer is not one of the class {name}")
    shapes, slot, values = iter(numbers[1:].astype(int).tolist()), numbers.size, list[str]()
    for flat in flat_types(name):
        kind, axes = FLAT_TYPES[flat]
        shape = tuple(next(shapes) for _ in range(axes))
        values.append(f"ndarray({shape}, {kind}, buffer, {SLOT * slot})" if axes else f"{flat}(buffer[{slot}])")
        slot += math.ceil(math.prod(shape) / SLOT) if axes and kind == "bool" else math.prod(shape)
    space: dict[str, Any] = {"ndarray": np.ndarray, "float64": np.dtype("float64"), "int64": np.dtype("int64")}
    viewer: Callable[[FloatArray], Any] = eval(f"lambda buffer: {construction(name, iter(values), space)}", space)
    return viewer


def buffered(values: Tuple) -> tuple[FloatArray, Tuple]:
    """A new buffer with the values of a record, and the record of its views."""
    buffer = to_buffer(values)
    return buffer, from_buffer(type(values), buffer)


def zeros(kind: type[Tuple], **fields: Any) -> Tuple:
    """A record of zeros.

    Parameters
    ----------
    fields : shape of each array, an int or a tuple, and each record that is a field; scalars are zero
    """
    types = field_types(kind.__name__)
    scalars = {field: 0 for field, name in types.items() if FLAT_TYPES.get(name, ("", 1))[1] == 0}
    arrays = {field: np.zeros(shape) for field, shape in fields.items() if types.get(field) in FLAT_TYPES}
    return kind(**{**scalars, **fields, **arrays})


def buffered_zeros(kind: type[Tuple], **fields: Any) -> tuple[FloatArray, Tuple]:
    """Buffer and record of :func:`zeros`."""
    return buffered(zeros(kind, **fields))


def buffer_of(values: tuple[Any, ...] | LazyRecord | FloatArray) -> FloatArray:
    """Buffer of a record: its own where its arrays are views of one, else a new one; a buffer is returned as it is."""
    if isinstance(values, LazyRecord):
        return values.buffer
    if not isinstance(values, tuple):
        return values
    buffer = getattr(values[0], "base", None)
    if buffer is None or any(getattr(value, "base", None) is not buffer for value in values):
        return to_buffer(values)
    is_its_own = buffer.ndim == 1 and buffer[0] == class_number(type(values).__name__)
    return buffer if is_its_own else to_buffer(values)


def set_scalars(kind: type[Any], buffer: FloatArray, *values: float) -> None:
    """Set the first fields of a buffer, which are scalars."""
    start = first_slot(kind.__name__)
    buffer[start : start + len(values)] = values


class RecordTemplate(Generic[Tuple]):
    """Makes records of one class and shape.

    Parameters
    ----------
    example : record; its values are those of new ones

    Attributes
    ----------
    buffer : with the values of the example
    fields : shape, type and first byte of every field that is an array
    """

    def __init__(self, example: Tuple) -> None:
        self.kind = type(example)
        self.buffer, views = buffered(example)
        first = self.buffer.ctypes.data
        self.fields = {
            name: (one.shape, one.dtype, one.ctypes.data - first)
            for name, one in zip(field_types(self.kind.__name__), views, strict=True)
            if isinstance(one, np.ndarray)
        }

    def new(self) -> Any:
        """New record with the values of the example."""
        return LazyRecord(self.buffer.copy(), self)

    def slots(self, name: str) -> slice:
        """Where the numbers of a field are in the buffer."""
        shape, _, start = self.fields[name]
        return slice(start // SLOT, start // SLOT + math.prod(shape))


class LazyRecord:
    """A buffer that stands for its record; a field becomes a view of the buffer when it is read.

    Most fields of ``Attitude`` and ``Dynamics`` are read by kernels alone, from the buffer. With views of all fields a
    median step of the built-in walk takes 3 to 4 us more: 2 to 3 % with the observer kalman, 7 % with momentum.

    Attributes
    ----------
    buffer : of the record
    template : that has made it
    """

    __slots__ = ("buffer", "template")

    def __init__(self, buffer: FloatArray, template: RecordTemplate[Any]) -> None:
        self.buffer, self.template = buffer, template

    def __getattr__(self, name: str) -> Any:
        if name not in self.template.fields:
            return getattr(from_buffer(self.template.kind, self.buffer), name)
        shape, kind, start = self.template.fields[name]
        return np.ndarray(shape, kind, self.buffer, start)

    def __iter__(self) -> Iterator[Any]:
        return iter(from_buffer(self.template.kind, self.buffer))

    def __reduce__(self) -> Any:
        return self.template.kind, tuple(self)
