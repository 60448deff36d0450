"""Time derivatives of sampled signals by local polynomials, and the window of past frames that they need.

A polynomial is fitted to a window of samples and differentiated at one instant of it (Egle 2021, eqs. 6.2, 6.3 and
7.1-7.8). Two samples and a straight line are the backward difference (eq. 6.3), three samples and a parabola at their
middle the central one (eq. 6.2), more are the Savitzky-Golay filter. The stamps need not be equally spaced. Where the
derivative is that of an earlier instant, :class:`DelayLine` keeps the frames since then.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, SensorFrame


@dataclass(frozen=True, slots=True)
class DerivativeWeights:
    """Weights of the samples of a window in a derivative."""

    values: FloatArray  # (L,) `derivative = values @ samples`
    middle: int  # index of the sample at the instant of the derivative
    relative_error: float  # of the derivative of a sinusoid: what smoothing takes away and causality delays


def derivative_weights(times: FloatArray, order: int, derivative: int) -> FloatArray:
    """Weights (L,) of the samples in the derivative of the fitted polynomial at time zero (eqs. 7.3, 7.5).

    Parameters
    ----------
    times : (L,) of the samples, relative to the instant of the derivative [s]
    order : of the polynomial, below L
    derivative : which one, at most ``order``
    """
    scale = float(np.abs(times).max())
    T = np.vander(times / scale, order + 1, increasing=True)
    return np.asarray(np.linalg.pinv(T)[derivative] * math.factorial(derivative) / scale**derivative)


def _derivative_error(times: FloatArray, weights: FloatArray, derivative: int, frequency: float) -> float:
    """Relative error of the derivative of a sinusoid of this frequency [Hz]; the rest as above."""
    if frequency == 0.0:
        return 0.0
    s = 2j * math.pi * frequency
    return float(abs(weights @ np.exp(s * times) / s**derivative - 1.0))


class Differentiator:
    """Weights of a moving window, computed anew only where the spacing of the stamps changes.

    Parameters
    ----------
    order : of the polynomial
    derivative : which one
    frequency : for which ``relative_error`` is computed [Hz]
    """

    def __init__(self, order: int, derivative: int, frequency: float) -> None:
        self._order = order
        self._derivative = derivative
        self._frequency = frequency
        self._times = np.empty(0)
        self._weights = DerivativeWeights(np.empty(0), 0, 0.0)

    def weights(self, times: FloatArray) -> DerivativeWeights:
        """Weights for samples at these times (L,), zero at the instant of the derivative [s]."""
        if times.size != self._times.size or np.abs(times - self._times).max() > 1e-9:
            values = derivative_weights(times, self._order, self._derivative)
            error = _derivative_error(times, values, self._derivative, self._frequency)
            self._weights = DerivativeWeights(values, int(np.abs(times).argmin()), error)
            self._times = times
        return self._weights


@dataclass(frozen=True, slots=True)
class Instant:
    """One frame with the results of the stages before friction."""

    time: float  # since the restart [s]
    frame: SensorFrame
    attitude: Attitude
    phase: ContactPhase
    dynamics: Dynamics


class DelayLine:
    """Keeps what a window of samples about a delayed instant needs, and delays other signals alike.

    Parameters
    ----------
    before, after : samples of the window on both sides of the delayed instant
    look_ahead : the delayed instant is at least this much older than the newest one [s]

    Attributes
    ----------
    delay : samples from the delayed instant to the newest one
    """

    def __init__(self, before: int, after: int, look_ahead: float) -> None:
        self._before = before
        self._after = after
        self._look_ahead = look_ahead
        self.reset()

    def reset(self) -> None:
        """Empty the line."""
        self._instants: deque[Instant] = deque()
        self._signals: deque[FloatArray] = deque()
        self.delay = self._after

    def push(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> None:
        """Add the newest frame; drop what no window needs any more."""
        instants = self._instants
        time = instants[-1].time + frame.dt if instants else 0.0
        instants.append(Instant(time, frame, attitude, phase, dynamics))
        middle, last = self._before, len(instants) - 1
        while middle < last - self._after and instants[middle + 1].time <= time - self._look_ahead + 1e-9:
            instants.popleft()
            last -= 1
        self.delay = max(self._after, last - middle)

    @property
    def ready(self) -> bool:
        """True once the window is full and the delayed instant old enough."""
        instants = self._instants
        if len(instants) <= self._before + self._after:
            return False
        return instants[-1].time - instants[self._before].time >= self._look_ahead - 1e-9

    @property
    def delayed(self) -> Instant:
        """The instant that the window is about; only when ``ready``."""
        return self._instants[self._before]

    @property
    def age(self) -> float:
        """From the beginning of the window to the newest frame [s]."""
        return self._instants[-1].time - self._instants[0].time

    @property
    def lag(self) -> float:
        """From the delayed instant to the newest frame [s]; only when ``ready``."""
        return self._instants[-1].time - self.delayed.time

    def window(self) -> tuple[FloatArray, list[SensorFrame]]:
        """Times relative to the delayed instant (L,) [s], and frames, of the window; only when ``ready``."""
        instants = [self._instants[k] for k in range(self._before + self._after + 1)]
        now = self.delayed.time
        return np.array([instant.time - now for instant in instants]), [instant.frame for instant in instants]

    def filter(self, signal: FloatArray) -> FloatArray:
        """The signal as it was at the delayed instant; the oldest known one while the line fills up."""
        self._signals.append(signal)
        while len(self._signals) > self.delay + 1:
            self._signals.popleft()
        return self._signals[0]
