"""How compiled code finds the arrays of a record in its buffer, see :mod:`friction_estimator.kernels.records`.

numba compiles a function that reads the shapes at the start of the buffer and makes an array of each part behind them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from friction_estimator.kernels.records import (
    FLAT_TYPES,
    RECORDS,
    SLOT,
    class_number,
    construction,
    first_slot,
    flat_types,
    from_buffer,
)

numba: Any
try:
    import numba
    import numba.extending
    from numba.np.arrayobj import make_array, populate_array
except ImportError:  # an optional speed-up
    numba = None

COMPILED = numba is not None and not numba.config.DISABLE_JIT
"""True where kernels are machine code, False where they run as plain Python."""

NOT_COMPILED = "" if COMPILED else "numba is not installed" if numba is None else "NUMBA_DISABLE_JIT is set"
"""Why kernels run as plain Python; empty where they are compiled."""


def numba_type(name: str) -> Any:
    """Type of numba for an array or a scalar."""
    kind, axes = FLAT_TYPES[name]
    scalar = numba.from_dtype(np.dtype(kind))
    return numba.types.Array(scalar, axes, "C") if axes else scalar


def _part(name: str) -> Any:
    """Function for kernels that views a part of a buffer as an array of this type.

    The view does not count as a reference to the buffer, which the caller of the kernel holds.
    """
    view = numba_type(name)

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

    def part1(context: Any, buffer: Any, start: Any, n: Any) -> Any:
        return view(buffer, start, n), generate

    def part2(context: Any, buffer: Any, start: Any, n: Any, m: Any) -> Any:
        return view(buffer, start, n, m), generate

    def part3(context: Any, buffer: Any, start: Any, n: Any, m: Any, length: Any) -> Any:
        return view(buffer, start, n, m, length), generate

    return numba.extending.intrinsic((part1, part2, part3)[view.ndim - 1])


_PARTS = {name: _part(name) for name, (_, axes) in FLAT_TYPES.items() if axes and COMPILED}
"""Functions for kernels that view a part of a buffer, by the types of arrays."""


@functools.cache
def viewer(name: str) -> Any:
    """Function for kernels that makes the record of a buffer."""
    return numba.njit(_any_shape_viewer(name)) if COMPILED else functools.partial(from_buffer, RECORDS[name])


def _any_shape_viewer(name: str) -> Callable[[Any], Any]:
    """The same in Python, for numba to compile: it reads the shapes of the arrays from the header of each buffer."""
    flat, shape_slot = flat_types(name), 1
    lines = [f"if buffer.size == 0 or buffer[0] != {class_number(name)}:"]
    lines.append(f"    raise TypeError('the buffer is not one of the class {name}')")
    lines.append(f"start = {first_slot(name)}")
    for number, one in enumerate(flat):
        kind, axes = FLAT_TYPES[one]
        if axes:
            lengths = [f"n{number}_{axis}" for axis in range(axes)]
            lines += [f"{length} = int(buffer[{shape_slot + axis}])" for axis, length in enumerate(lengths)]
            lines.append(f"f{number} = {one}(buffer, start, {', '.join(lengths)})")
            size = " * ".join(lengths)
            lines.append(f"start += ({size} + {SLOT - 1}) // {SLOT}" if kind == "bool" else f"start += {size}")
        else:
            lines += [f"f{number} = {one}(buffer[start])", "start += 1"]
        shape_slot += axes
    space = {"__name__": __name__, **_PARTS}
    lines.append(f"return {construction(name, (f'f{number}' for number in range(len(flat))), space)}")
    function = f"view_{name}_{class_number(name):.0f}"  # machine code of kernels in caches is linked by such names
    exec(f"def {function}(buffer):\n    " + "\n    ".join(lines), space)
    result: Callable[[Any], Any] = space[function]
    return result
