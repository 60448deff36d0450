"""Parts of the data: ranges of a quantity that hold as many samples each, and halves made of alternating stretches."""

from __future__ import annotations

import numpy as np

from friction_estimator.types import FloatArray, IntArray

_STRETCHES = 20
"""Many enough that both halves have seen the same motions, few enough that a push lies in one of them."""


def equal_ranges(values: FloatArray, number: int) -> IntArray:
    """Range (N,) that every value (N,) lies in, 0 for the smallest ones; ranges hold as many values each."""
    return np.asarray(np.argsort(np.argsort(values, kind="stable")) * number // values.size)


def alternating_halves(instant: IntArray) -> IntArray:
    """Half of the data, 0 or 1, of every sample (N,): twenty stretches of time belong to one and the other by turns.

    What recurs is in both halves, what happened once is in one.

    Parameters
    ----------
    instant : (N,) number of the instant of every sample
    """
    return np.asarray((instant - instant.min()) * _STRETCHES // (int(np.ptp(instant)) + 1) % 2)
