"""Whether the friction of the motors changes periodically with their positions, and how often in a turn.

Gears with teeth have a ripple: friction times ``1 + a sin(k q) + b cos(k q)``, with a whole number k of ripples a
turn. The torque y of a window that the law does not explain then follows the law's torque F, for one k,

    y = F (a sin(k q) + b cos(k q)) + noise

This least-squares problem is solved for every k: the squares that it explains, over those that it leaves, tell which
k is true (the periodogram of unevenly spaced samples, Lomb 1976). Motors of a robot are alike: all decide together.
"""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.types import FloatArray

MOST = 300
"""Largest number of ripples a turn: harmonic drives have two a turn of the motor."""
PERIOD = 1.0
"""Interval between two looks at the sums [s]."""
_MOVING = 0.02
"""Slower motors show nothing [rad/s]."""
_LARGEST = 5.0
"""Torques that are not explained count up to this many of their standard deviations: impacts are larger."""
_PERIODS = 2.0
"""Number of periods that a motor must have moved through."""
_CLEAR, _SURE = 150.0, 1.0
"""A ripple is found when the explained squares of all motors, in half variances of the rest, exceed the first, and
those of its neighbours by the second: the log-likelihood ratios against no ripple and another number a turn."""
_SMALL = 0.05
"""And when it is at least this part of the friction. Other errors of the law explain less."""


@kernel("V V V V V T M")
def add_window(
    position: FloatArray,
    speed: FloatArray,
    torque: FloatArray,
    missed: FloatArray,
    variance: FloatArray,
    sums: FloatArray,
    seen: FloatArray,
) -> None:
    """Add a window to the sums of :class:`RippleSearch`, in place; arguments as in :meth:`RippleSearch.add`."""
    for motor in range(position.size):
        if not (abs(speed[motor]) > _MOVING and missed[motor] * missed[motor] < math.inf and variance[motor] > 0.0):
            continue
        sigma = math.sqrt(variance[motor])
        F, y = torque[motor] / sigma, min(max(missed[motor] / sigma, -_LARGEST), _LARGEST)
        seen[motor, 0] += 1.0
        seen[motor, 1] += y * y
        seen[motor, 2] = min(seen[motor, 2], position[motor])
        seen[motor, 3] = max(seen[motor, 3], position[motor])
        one_sine, one_cosine = math.sin(position[motor]), math.cos(position[motor])
        sine, cosine = 0.0, F
        for k in range(sums.shape[1]):
            sine, cosine = sine * one_cosine + cosine * one_sine, cosine * one_cosine - sine * one_sine
            row = sums[motor, k]
            row[0] += sine * y
            row[1] += cosine * y
            row[2] += sine * sine
            row[3] += sine * cosine
            row[4] += cosine * cosine


class RippleSearch:
    """Sums of all windows so far, motor by motor and for every number of ripples a turn.

    Parameters
    ----------
    motors : n
    """

    def __init__(self, motors: int) -> None:
        self._sums = np.zeros((motors, MOST, 5))
        self._seen = np.zeros((motors, 4))
        self._seen[:, 2:] = math.inf, -math.inf

    def add(
        self, position: FloatArray, speed: FloatArray, torque: FloatArray, missed: FloatArray, variance: FloatArray
    ) -> None:
        """Add a window.

        Parameters
        ----------
        position, speed : (n,) of the motors in the middle of the window [rad], [rad/s]
        torque : (n,) of their laws [N m]
        missed, variance : (n,) what the laws do not explain and its variance; NaN where nothing was measured [N m]
        """
        add_window(position, speed, torque, missed, variance, self._sums, self._seen)

    def found(self) -> int:
        """Number of ripples a turn, zero while there is no clear one."""
        count, squares, low, high = self._seen.T
        sy, cy, ss, sc, cc = np.moveaxis(self._sums, 2, 0)
        determinant = ss * cc - sc * sc
        known = (determinant > 1e-6 * ss * cc) & (squares > 0.0)[:, None]
        known &= np.arange(1, MOST + 1) * (high - low)[:, None] > 2.0 * np.pi * _PERIODS
        explained = (cc * sy * sy - 2.0 * sc * sy * cy + ss * cy * cy) / np.where(known, determinant, 1.0)
        rest = np.maximum(squares[:, None] - explained, 1e-3 * squares[:, None]) / np.maximum(count, 1.0)[:, None]
        clear = np.where(known, 0.5 * explained / np.where(rest > 0.0, rest, 1.0), 0.0)
        ratio = np.pad(clear.sum(axis=0), 1)
        best = int(ratio.argmax())
        weight = np.where(known, ss + cc, 0.0)[:, best - 1].sum()
        part = math.sqrt(2.0 * np.where(known, explained, 0.0)[:, best - 1].sum() / weight) if weight > 0.0 else 0.0
        sure = ratio[best] > _CLEAR and ratio[best] - max(ratio[best - 1], ratio[best + 1]) > _SURE
        return best if sure and part > _SMALL else 0
