"""What a law leaves of friction although it depends on the velocity: the law has another shape than the friction."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.regression.parts import alternating_halves, equal_ranges
from friction_estimator.types import FloatArray

_BINS = 24
_SAMPLES_OF_A_BIN = 15
"""Less data have fewer bins."""
_FEW = 4
"""Samples that a bin needs in either half of the data to count."""


def without_velocity(velocity: FloatArray, residual: FloatArray) -> FloatArray:
    """The residual (N,) less its mean in bins of the velocity: what is left is no function of it.

    Parameters
    ----------
    velocity, residual : (N,); bins hold as many samples each
    """
    bins = equal_ranges(velocity, max(min(_BINS, velocity.size // _SAMPLES_OF_A_BIN), 1))
    return np.asarray(residual - (np.bincount(bins, residual) / np.bincount(bins))[bins])


def velocity_dependent_rms(velocity: FloatArray, residual: FloatArray) -> float:
    """RMS of the part of a residual that is a function of the velocity, zero where noise explains it [N m].

    Two halves of the data, made of alternating stretches of time, have their own mean residual in every bin of the
    velocity. What depends on the velocity is the same in both, and noise is not: the mean of their products is the
    variance that they share, without the noise of the means.

    Parameters
    ----------
    velocity, residual : (N,) in the order of time; bins hold as many samples each
    """
    number = min(_BINS, velocity.size // _SAMPLES_OF_A_BIN)
    if number < 2:
        return 0.0
    bins = equal_ranges(velocity, number)
    half = alternating_halves(np.arange(velocity.size))
    count, total = (
        np.stack([np.bincount(bins[half == k], what[half == k], minlength=number) for k in (0, 1)])
        for what in (np.ones_like(residual), residual)
    )
    seen = count.min(axis=0) >= _FEW
    if not seen.any():
        return 0.0
    means = total[:, seen] / count[:, seen]
    return float(np.sqrt(max(np.average(means[0] * means[1], weights=count[:, seen].sum(axis=0)), 0.0)))
