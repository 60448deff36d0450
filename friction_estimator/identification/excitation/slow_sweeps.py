"""Constant low velocities in both directions, which a Fourier series only runs through."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BPoly

from friction_estimator.types import FloatArray


def slow_sweeps(
    start: FloatArray, velocities: FloatArray, dwell: float, ramp: float, time: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Away from ``start`` and back again at each velocity in turn, at rest at both ends, jerk finite.

    Between plateaus of constant velocity lie ramps: polynomials of fifth degree, so that position, velocity and
    acceleration have no jumps.

    Parameters
    ----------
    start : (n,) positions [rad or m]
    velocities : (levels, n) plateaus, their sign is the first direction [rad/s or m/s]
    dwell : duration of a plateau [s]
    ramp : duration of a change from rest to a plateau [s]
    time : (N,) from the start on [s]

    Returns
    -------
    position, velocity, acceleration : (N, n)
    """
    knots, states = [0.0], [np.array([start, 0.0 * start, 0.0 * start])]
    for speed in velocities:
        away = start + ramp / 2.0 * speed
        far = away + dwell * speed
        for duration, position, velocity in (
            (ramp, away, speed),
            (dwell, far, speed),
            (2.0 * ramp, far, -speed),
            (dwell, away, -speed),
            (ramp, start, 0.0 * speed),
        ):
            knots.append(knots[-1] + duration)
            states.append(np.array([position, velocity, 0.0 * speed]))
    curve = BPoly.from_derivatives(knots, np.array(states))
    return curve(time), curve.derivative(1)(time), curve.derivative(2)(time)


def sweep_duration(levels: int, dwell: float, ramp: float) -> float:
    """How long the sweeps take [s]."""
    return levels * (2.0 * dwell + 4.0 * ramp)


def sweep_reach(speed: FloatArray, dwell: float, ramp: float) -> FloatArray:
    """How far a sweep goes away from its start: plateau, and the ramps on both sides of it [rad or m]."""
    return np.abs(speed) * (dwell + 1.125 * ramp)
