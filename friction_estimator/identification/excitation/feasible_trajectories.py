"""Every vector of numbers is a trajectory within the limits: what an optimiser without constraints needs."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from friction_estimator.identification.excitation.fourier_trajectory import FourierTrajectory, fourier_bases, rest_basis
from friction_estimator.identification.excitation.motion_limits import MotionLimits
from friction_estimator.types import FloatArray, IntArray

_GRID = 24  # samples in one period of the highest harmonic
_BETWEEN = 1.0 / np.cos(np.pi / _GRID)  # a peak between two samples is at most so much higher (Ehlich & Zeller 1964)


class FeasibleTrajectories:
    """Fourier series as large as the limits of each joint allow.

    The first variables give the shape of every joint's motion; its amplitude follows, as position range, velocity or
    acceleration comes to its limit. The last ones place what is left of the range: the mean position.

    Parameters
    ----------
    duration : of one period [s]
    harmonics : (L,)
    limits : of the joints

    Attributes
    ----------
    dimension : how many variables a trajectory has, n (2 L - 1)
    """

    def __init__(self, duration: float, harmonics: IntArray, limits: MotionLimits) -> None:
        self._duration, self._harmonics, self._limits = duration, harmonics, limits
        self._rest = rest_basis(harmonics)
        grid = np.linspace(0.0, duration, _GRID * int(harmonics[-1]), endpoint=False)
        self._bases = [basis @ self._rest for basis in fourier_bases(duration, harmonics, grid)]
        self._n = len(limits.joint_names)
        self.dimension = self._n * (self._rest.shape[1] + 1)

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Variables (dimension,) of a random trajectory; lower harmonics are larger, as in a walk through the range."""
        coefficients = generator.standard_normal((self._n, 2, self._harmonics.size)) / self._harmonics
        shapes = coefficients.reshape(self._n, -1) @ self._rest
        return np.hstack([shapes.ravel(), generator.standard_normal(self._n)])

    def trajectory(self, variables: FloatArray) -> FourierTrajectory:
        """The trajectory of these variables (dimension,), within the limits."""
        limits = self._limits
        shapes = variables[: -self._n].reshape(self._n, -1).T  # (2 L - 2, n)
        position, velocity, acceleration = (basis @ shapes for basis in self._bases)
        low, high = position.min(axis=0), position.max(axis=0)
        middle, half = 0.5 * (high + low), 0.5 * _BETWEEN * (high - low)
        room = limits.upper - limits.lower
        use = np.max(
            [
                2.0 * half / room,
                _BETWEEN * np.abs(velocity).max(axis=0) / limits.velocity,
                _BETWEEN * np.abs(acceleration).max(axis=0) / limits.acceleration,
            ],
            axis=0,
        )
        amplitude = 1.0 / np.maximum(use, np.finfo(float).tiny)
        rest = room - 2.0 * amplitude * half
        offset = limits.lower - amplitude * (middle - half) + rest * expit(variables[-self._n :])
        sine, cosine = np.split(((self._rest @ shapes) * amplitude).T, 2, axis=1)
        return FourierTrajectory(self._duration, self._harmonics, offset, sine, cosine)
