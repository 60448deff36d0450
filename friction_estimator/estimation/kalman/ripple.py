"""Periodogram: whether the friction of the motors changes periodically with their positions, and how often a turn.

Gears with teeth have a ripple: friction times ``1 + a sin(k q) + b cos(k q)``, with a whole number k of ripples a
turn. The torque y of a window that the law does not explain then follows the law's torque F, for one k,

    y = F (a sin(k q) + b cos(k q)) + noise

The squares that each k explains, over those that it leaves, show which k is true (the periodogram of unevenly spaced
samples, Lomb 1976). Motors of a robot are alike: all decide together, and a ripple is in most of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.kernels.compiler import entry_point
from friction_estimator.kernels.records import buffered_zeros, record
from friction_estimator.laws.linear import MAX_RIPPLES
from friction_estimator.types import FloatArray, Indices, Matrix, Tensor, Vector

RIPPLE_TEST_INTERVAL = 1.0
"""Interval between two evaluations of the sums [s]."""
_BLOCK = 20
"""Windows of a motor that are added together: its sums then stay in the cache of the processor."""
_MAX_WINDOWS = 6000.0
"""Windows with a moving motor after which the search ends: a minute of walking."""
_MIN_SPEED = 0.02
"""Slower motors show nothing [rad/s]."""
_MAX_SIGMAS = 5.0
"""Torques that are not explained count up to this many of their standard deviations: impacts are larger."""
_MIN_PERIODS = 2.0
"""Number of periods that a motor must have moved through."""
_MIN_LOG_RATIO = 80.0
"""A ripple is found when the explained squares of all motors, in half variances of the rest, exceed this: the
log-likelihood ratio against no ripple. The number per turn is then right to about two, and more data correct it."""
_MIN_AMPLITUDE = 0.03
"""Smallest amplitude of a ripple, as a part of the friction. Other errors of the law explain less."""
_MIN_QUARTILE, _MAX_SPREAD = 0.7, 0.7
"""A ripple is similar in all motors: in three quarters of them its part of the friction is at least this many times the
part of all together, and the standard deviation of the parts is at most this many times their mean. A law that is wrong
at some positions looks like a ripple of a few motors, and coarse encoders like one of all sizes (0.77 and more of the
mean with 14 bits; a ripple of 30 % has 0.4 to 0.5)."""
_MIN_MOTORS = 4
"""Number of motors that must have moved through :data:`_MIN_PERIODS`: in fewer, an error of the law looks the same."""
_MAX_DIFFERENCE = 2
"""Largest difference from the number at the previous evaluation: what the first seconds show may vanish again."""
_MAX_CORRECTION, _MIN_GAIN, _MIN_RATIO = 8, 10.0, 1.01
"""Another number replaces the one in use if it is at most this far from it, and its log-likelihood exceeds this many
times that of the other by this."""


@record
class PeriodogramSums(NamedTuple):
    """Sums over all windows so far, of n motors; y and F in standard deviations of y."""

    # (n, _BLOCK, 3) sin q, cos q and F y of windows that are not in the next two sums yet, and their number (n,)
    block: Tensor
    block_size: Indices
    # (n, MAX_RIPPLES) of F y sin(k q) and of F y cos(k q)
    sines: Matrix
    cosines: Matrix
    # (n,) of y^2 and of F^2, and number of windows
    unexplained_squares: Vector
    friction_squares: Vector
    windows: Indices
    # (n,) of the positions [rad]
    lowest: Vector
    highest: Vector


@entry_point
def _add_to_periodogram(
    position: Vector,
    speed: Vector,
    regressor: Matrix,
    parameters: Matrix,
    unexplained: Matrix,
    first: int,
    stop: int,
    sums: PeriodogramSums,
) -> None:
    """Add a window to the sums, in place.

    Parameters
    ----------
    position, speed, regressor, parameters, unexplained : of :meth:`RippleSearch.add`
    first, stop : columns of the terms of a ripple in use
    """
    for motor in range(position.size):
        torque, variance, F = unexplained[0, motor], unexplained[1, motor], 0.0
        for j in range(parameters.shape[1]):
            part = regressor[motor, j] * parameters[motor, j]
            if first <= j < stop:
                torque += part
            else:
                F += part
        if not (abs(speed[motor]) > _MIN_SPEED and torque * torque < math.inf and variance > 0.0):
            continue
        sigma, block, count = math.sqrt(variance), sums.block[motor], sums.block_size[motor]
        y = min(max(torque / sigma, -_MAX_SIGMAS), _MAX_SIGMAS)
        F /= sigma
        block[count, 0], block[count, 1] = math.sin(position[motor]), math.cos(position[motor])
        block[count, 2] = F * y
        sums.unexplained_squares[motor] += y * y
        sums.friction_squares[motor] += F * F
        sums.lowest[motor] = min(sums.lowest[motor], position[motor])
        sums.highest[motor] = max(sums.highest[motor], position[motor])
        sums.windows[motor] += 1
        sums.block_size[motor] = (count + 1) % _BLOCK
        if count + 1 < _BLOCK:
            continue
        sines, cosines = sums.sines[motor], sums.cosines[motor]
        for w in range(_BLOCK):
            one_sine, one_cosine = block[w, 0], block[w, 1]
            sine, cosine = 0.0, block[w, 2]
            for k in range(MAX_RIPPLES):
                sine, cosine = sine * one_cosine + cosine * one_sine, cosine * one_cosine - sine * one_sine
                sines[k] += sine
                cosines[k] += cosine


class RippleSearch:
    """Periodogram over all windows so far, motor by motor and for every number of ripples per turn.

    Parameters
    ----------
    motors : n
    """

    def __init__(self, motors: int) -> None:
        n, ripples = motors, (motors, MAX_RIPPLES)
        self._buffer, self._sums = buffered_zeros(
            PeriodogramSums, block=(n, _BLOCK, 3), block_size=n, sines=ripples, cosines=ripples, unexplained_squares=n,
            friction_squares=n, windows=n, lowest=n, highest=n,
        )  # fmt: skip
        self._sums.lowest[:], self._sums.highest[:] = math.inf, -math.inf
        self._previous_best = -math.inf

    @property
    def is_over(self) -> bool:
        """True when a ripple would have been found by now."""
        return bool(self._sums.windows.max() > _MAX_WINDOWS)

    def add(
        self,
        position: FloatArray,
        speed: FloatArray,
        regressor: FloatArray,
        parameters: FloatArray,
        unexplained: FloatArray,
        ripple: slice,
    ) -> None:
        """Add a window.

        Parameters
        ----------
        position, speed : (n,) of the motors in its middle [rad], [rad/s]
        regressor, parameters : (n, p) of their laws
        unexplained : (2, n) what the laws do not explain [N m], and its variance; NaN where nothing was measured
        ripple : columns of the terms of a ripple in use: what they explain counts as not explained
        """
        of_law = position, speed, regressor, parameters, unexplained
        _add_to_periodogram(*of_law, ripple.start, ripple.stop, self._buffer)

    def visited(self) -> tuple[FloatArray, FloatArray]:
        """Middle and width (n,), (n,) of the positions of the motors [rad]."""
        sums = self._sums
        low, high = np.where(sums.windows > 0.0, (sums.lowest, sums.highest), 0.0)
        return 0.5 * (low + high), high - low

    def detect(self, known: int = 0) -> int:
        """Number of ripples per turn, zero while none is clear; to be called every :data:`RIPPLE_TEST_INTERVAL`.

        Parameters
        ----------
        known : number in use, which another one near it replaces when it is clearly better; 0: none
        """
        sums = self._sums
        unexplained, friction = sums.unexplained_squares, sums.friction_squares
        turns = self.visited()[1][:, None] / (2.0 * np.pi)
        shown = (np.arange(1, MAX_RIPPLES + 1) * turns > _MIN_PERIODS) & (unexplained * friction > 0.0)[:, None]
        squares = (sums.sines**2 + sums.cosines**2) * shown
        explained = squares / np.where(shown, 0.5 * friction[:, None], 1.0)
        noise_variance = (
            np.maximum(unexplained[:, None] - explained, 1e-3 * unexplained[:, None])
            / np.maximum(sums.windows, 1.0)[:, None]
        )
        ratios = 0.5 * explained / np.where(shown, noise_variance, 1.0)
        ratio = ratios.sum(axis=0)
        first, last = (max(known - _MAX_CORRECTION - 1, 0), known + _MAX_CORRECTION) if known else (0, MAX_RIPPLES)
        best = first + int(ratio[first:last].argmax())
        if known:
            return best + 1 if ratio[best] > max(_MIN_LOG_RATIO, _MIN_RATIO * ratio[known - 1] + _MIN_GAIN) else known
        shown_motors = shown[:, best]
        clear = ratio[best] > _MIN_LOG_RATIO and shown_motors.sum() >= _MIN_MOTORS
        if clear:
            squares, all_squares = explained[shown_motors, best], 0.5 * friction[shown_motors]
            part = math.sqrt(squares.sum() / all_squares.sum())
            parts = np.sqrt(squares / all_squares)
            alike = np.quantile(parts, 0.25) > _MIN_QUARTILE * part and parts.std() < _MAX_SPREAD * parts.mean()
            clear = part > _MIN_AMPLITUDE and alike
        before, self._previous_best = self._previous_best, best if clear else -math.inf
        return best + 1 if clear and abs(best - before) <= _MAX_DIFFERENCE else 0
