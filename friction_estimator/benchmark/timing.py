"""Comparison of calls by their CPU time, in blocks that alternate, so that other load slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypedDict

import numpy as np

from friction_estimator.types import FloatArray

STEPS = 100
"""Calls in one block: ten windows of the observer kalman."""


class Spread(TypedDict):
    """Median and quartiles, as keyword arguments of a figure."""

    value: float
    low: float
    high: float


@contextmanager
def as_in_node() -> Iterator[None]:
    """Let the garbage collector leave out all objects that exist now, as in the estimator node."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def interleave(
    cases: Mapping[str, Callable[[int], object]], blocks: int, progress: Callable[[float, float], None]
) -> dict[str, FloatArray]:
    """CPU time of the cases in turn, a block of calls each.

    CPU time leaves out the pauses in which other processes run; the longer a call, the more of them it meets.

    Parameters
    ----------
    cases : functions of the number of the call, which counts up from 0
    blocks : how often each case has its turn

    Returns
    -------
    (blocks, STEPS) CPU times of the calls of each case, the cost of reading the clock taken off [s]
    """
    times = {name: np.full((blocks, STEPS), np.nan) for name in cases}  # written now: memory may not grow meanwhile
    clock = time.thread_time
    with as_in_node():
        for block in range(blocks):
            cost = np.median([clock() - clock() for _ in range(STEPS)])
            for name, call in cases.items():
                durations = times[name][block]
                for k in range(STEPS):
                    before = clock()
                    call(block * STEPS + k)
                    durations[k] = clock() - before
                durations += cost  # a negative number
            progress(block + 1, blocks)
    return times


def spread(values: FloatArray) -> Spread:
    """Median and quartiles."""
    low, value, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return {"value": value, "low": low, "high": high}


def ratio(durations: FloatArray, yardstick: FloatArray) -> Spread:
    """Ratio of the medians of two cases (blocks, STEPS): median and quartiles over the blocks."""
    return spread(np.median(durations, axis=1) / np.median(yardstick, axis=1))


def microseconds(durations: FloatArray) -> float:
    """Median [us]."""
    return float(1e6 * np.median(durations))
