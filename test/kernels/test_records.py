"""Claims about records and their buffers, in Python and in kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import (
    RecordTemplate,
    buffer_of,
    buffered,
    buffered_zeros,
    from_buffer,
    record,
    to_buffer,
    unbuffered_record,
)
from friction_estimator.types import Flags, Indices, Matrix, Vector


@unbuffered_record
class Sized(NamedTuple):
    values: Indices
    size: int


@record
class Pair(NamedTuple):
    first: Vector
    second: Matrix
    flags: Flags
    counts: bool
    inner: Sized


@record
class Ends(NamedTuple):
    first: Vector
    last: Vector


@entry_point
def scaled_sum(pair: Pair, factor: float, sized: Sized) -> float:
    pair.second[0, 1] = factor * (pair.first[0] + pair.second[0, 0]) if pair.counts and pair.flags[2] else sized.size
    return pair.second.sum() + sized.values.sum()


def test_a_kernel_cuts_the_buffer_of_a_tuple_and_refuses_another():
    flags, inner = np.array([False, False, True]), Sized(np.arange(2), 3)
    buffer, pair = buffered(Pair(np.array([1.0, 2.0]), np.array([[4.0, 0.0]]), flags, True, inner))
    assert scaled_sum(buffer, 2.0, np.arange(3), 3) == 4.0 + 10.0 + 3.0
    assert pair.second[0, 1] == 10.0 and pair.inner.size == 3 and pair.flags.tolist() == flags.tolist()
    with pytest.raises(TypeError, match="class Pair"):
        scaled_sum(to_buffer(inner), 2.0, np.arange(3), 3)


def test_a_buffer_is_that_of_a_tuple_only_while_all_arrays_are_its_views():
    buffer, one = buffered_zeros(Ends, first=2, last=3)
    assert buffer_of(one) is buffer
    moved = one._replace(last=np.ones(3))
    np.testing.assert_array_equal(from_buffer(Ends, buffer_of(moved)).last, 1.0)
    new = RecordTemplate(moved).new()
    assert buffer_of(new) is new.buffer and len(list(new)) == 2 and new.last.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="Vector has 1"):
        to_buffer(Ends(np.zeros((1, 2)), np.zeros(3)))
