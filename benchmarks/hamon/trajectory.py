"""Sinusoidal and trapezoidal velocities over the whole range of the joint (Hamon et al. 2010, §IV.B)."""

from __future__ import annotations

import numpy as np

from friction_estimator.types import FloatArray

PERIOD = 4e-3
"""Of the controller and the recording [s]."""
RANGE = 2.4
"""Of the joint, both ways [rad]."""
PEAKS = (0.01, 0.03, 0.08, 0.2, 0.5, 1.2)
"""Peak velocities [rad/s]."""
ACCELERATION = 4.0
"""[rad/s^2]"""
_SHARE = 0.6
"""Round trips grow with this power of the velocity, so the time at a velocity falls with its power of -0.4."""


def reference_motion(slowest: float = PEAKS[0]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Positions, velocities, accelerations of one experiment, (K,) each; slower peaks than told are left out."""
    peaks = [peak for peak in PEAKS if peak >= slowest]
    passes: list[FloatArray] = []
    for peak in peaks:
        for trip in range(round((peak / peaks[0]) ** _SHARE)):
            speed = (_sinusoid if trip % 2 else _trapezoid)(peak)
            passes += [speed, -speed]
    speed = np.concatenate(passes)
    return np.cumsum(speed) * PERIOD - RANGE, speed, np.gradient(speed, PERIOD)


def _sinusoid(peak: float) -> FloatArray:
    """From rest at one end to rest at the other, velocity half a period of a sine."""
    duration = np.pi * RANGE / peak
    return _whole(peak * np.sin(np.pi * np.arange(0.0, duration, PERIOD) / duration))


def _trapezoid(peak: float) -> FloatArray:
    """From rest to rest at constant speed, with constant accelerations."""
    rise = np.arange(0.0, max(peak / ACCELERATION, 0.05), PERIOD)
    hold = np.ones(round((2.0 * RANGE / peak - rise[-1]) / PERIOD))
    ramp = rise / rise[-1]
    return _whole(peak * np.concatenate((ramp, hold, ramp[::-1])))


def _whole(speed: FloatArray) -> FloatArray:
    """The same shape over exactly the range."""
    return np.asarray(speed * 2.0 * RANGE / (speed.sum() * PERIOD))
