"""Band-limited periodic trajectories that start and end at rest (Swevers et al. 1997)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space

from friction_estimator.errors import ConfigError
from friction_estimator.types import FloatArray, IntArray

MINIMUM_HARMONICS = 3
"""With fewer, the conditions of rest leave hardly anything to choose."""


@dataclass(frozen=True, slots=True)
class FourierTrajectory:
    r"""Finite Fourier series of every joint.

    ``q(t) = q_0 + sum_l a_l / (w l) sin(w l t) - b_l / (w l) cos(w l t)`` with ``w = 2 pi / duration`` (J. Swevers et
    al., Optimal robot excitation and identification, 1997). Nothing of it lies above the highest harmonic, so that a
    low-pass above that leaves it whole.

    Attributes
    ----------
    duration : of one period [s]
    harmonics : (L,) whole multiples of the base frequency
    offset : (n,) q_0, the mean position [rad or m]
    sine : (n, L) a [rad/s or m/s]
    cosine : (n, L) b [rad/s or m/s]
    """

    duration: float
    harmonics: IntArray
    offset: FloatArray
    sine: FloatArray
    cosine: FloatArray

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration at ``time`` (N,), each (N, n)."""
        bases = fourier_bases(self.duration, self.harmonics, time)
        coefficients = np.hstack([self.sine, self.cosine]).T
        position, velocity, acceleration = (basis @ coefficients for basis in bases)
        return self.offset + position, velocity, acceleration

    def scaled(self, factor: float) -> FourierTrajectory:
        """The same with smaller or larger amplitudes about the same mean position."""
        return replace(self, sine=factor * self.sine, cosine=factor * self.cosine)


def fourier_bases(duration: float, harmonics: IntArray, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What one unit of every coefficient (a, then b) adds to position, velocity and acceleration, each (N, 2 L)."""
    frequency = 2.0 * np.pi / duration * harmonics
    phase = np.outer(time, frequency)
    sine, cosine = np.sin(phase), np.cos(phase)
    return (
        np.hstack([sine / frequency, -cosine / frequency]),
        np.hstack([cosine, sine]),
        np.hstack([-sine * frequency, cosine * frequency]),
    )


def rest_basis(harmonics: IntArray) -> FloatArray:
    """Coefficients (a, then b) with neither velocity nor acceleration at the start: ``sum a = 0``, ``sum l b = 0``.

    Returns
    -------
    (2 L, 2 L - 2) orthonormal columns. As the series is periodic, its end is at rest too.
    """
    zero = np.zeros(harmonics.size)
    conditions = np.array([np.hstack([np.ones(harmonics.size), zero]), np.hstack([zero, harmonics])])
    return np.asarray(null_space(conditions))


def choose_harmonics(duration: float, bandwidth: float, count: int) -> IntArray:
    """``count`` multiples of the base frequency, evenly spread up to the bandwidth.

    Parameters
    ----------
    duration : of one period [s]
    bandwidth : highest frequency [Hz]
    count : how many; at most as many as there are

    Raises
    ------
    ConfigError
        When fewer than :data:`MINIMUM_HARMONICS` fit.
    """
    highest = int(np.floor(bandwidth * duration * (1.0 + 1e-9)))
    if min(highest, count) < MINIMUM_HARMONICS:
        raise ConfigError(
            f"{count} harmonics below {bandwidth:g} Hz in {duration:g} s: {highest} fit, at least {MINIMUM_HARMONICS} "
            f"are needed; choose a longer duration (from {MINIMUM_HARMONICS / bandwidth:g} s on), a higher bandwidth "
            "or more harmonics"
        )
    return np.unique(np.round(np.linspace(1, highest, min(count, highest))).astype(np.int64))
