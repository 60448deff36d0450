"""Whether static friction shows in data: it is the friction of samples that are slower than the Stribeck velocity."""

from __future__ import annotations

import numpy as np

from friction_estimator.core.types import FloatArray

SLOW_SAMPLES = 20
"""Fewer samples within one Stribeck velocity of standstill do not show a static friction: ``exp(|dq| / v_s)`` makes
thousands of newton metres of faster ones."""


def shows_static(velocity: FloatArray, stribeck_velocity: float) -> bool:
    """Whether enough of these velocities (r,) are slower than the Stribeck velocity [rad/s]."""
    return bool(np.count_nonzero(np.abs(velocity) < stribeck_velocity) >= SLOW_SAMPLES)
