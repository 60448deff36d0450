"""Time derivatives of sampled signals by local polynomials (Egle 2021, eqs. 6.2, 6.3 and 7.1-7.8).

A polynomial is fitted to a window of samples and differentiated at one instant of it. Two samples and a straight line
are the backward difference (eq. 6.3), three samples and a parabola at their middle the central one (eq. 6.2), more are
the Savitzky-Golay filter. The stamps need not be equally spaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from friction_estimator.types import FloatArray


@dataclass(frozen=True, slots=True)
class DerivativeWeights:
    """How a derivative follows from the samples of a window.

    Attributes
    ----------
    values : (L,) ``derivative = values @ samples``
    middle : index of the sample at the instant of the derivative
    missed : relative error of the derivative of a sinusoid: what smoothing takes away and causality delays
    """

    values: FloatArray
    middle: int
    missed: float


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


def missed_part(times: FloatArray, weights: FloatArray, derivative: int, frequency: float) -> float:
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
    frequency : for which ``missed`` is computed [Hz]
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
            missed = missed_part(times, values, self._derivative, self._frequency)
            self._weights = DerivativeWeights(values, int(np.abs(times).argmin()), missed)
            self._times = times
        return self._weights
