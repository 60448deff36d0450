"""The two ways from sampled positions to band-limited position, velocity and acceleration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from friction_estimator.identification.recording import filters
from friction_estimator.types import FloatArray

METHODS = ("butterworth", "savitzky_golay")

Derived = tuple[FloatArray, FloatArray, FloatArray]


class Differentiator(Protocol):
    """Turns even samples into band-limited position, velocity and acceleration."""

    @property
    def edge(self) -> int:
        """How many samples at each end are wrong."""

    @property
    def reason(self) -> str:
        """What it does, in a sentence."""

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """Position, velocity and acceleration (N, n); from the measured velocity (N, n) where it is given."""


def make_differentiator(method: str, period: float, cutoff_hz: float, order: int) -> Differentiator:
    """Differentiator with its -3 dB frequency [Hz] for samples of this period [s]."""
    if method == "butterworth":
        return Butterworth(period, cutoff_hz, order)
    return SavitzkyGolay(period, cutoff_hz, order, filters.half_window(period, cutoff_hz, order))


@dataclass(frozen=True, slots=True)
class Butterworth:
    """Butterworth forward and backward, then central differences (Hamon et al. 2010, §IV.B; Egle 2021, §7.1.2)."""

    period: float
    cutoff_hz: float
    order: int

    @property
    def edge(self) -> int:
        """See the protocol."""
        return filters.low_pass_edge(self.period, self.cutoff_hz, self.order) + 2 * filters.HALF_STENCIL

    @property
    def reason(self) -> str:
        """See the protocol."""
        return (
            f"Butterworth of order {self.order} forward and backward, central differences, "
            f"{self.edge * self.period:.3g} s cut off at each edge"
        )

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """See the protocol."""
        smooth = filters.low_pass(position, self.period, self.cutoff_hz, self.order)
        if velocity is None:
            speed = filters.central_difference(smooth, self.period)
        else:
            speed = filters.low_pass(velocity, self.period, self.cutoff_hz, self.order)
        return smooth, speed, filters.central_difference(speed, self.period)


@dataclass(frozen=True, slots=True)
class SavitzkyGolay:
    """Polynomials through moving windows (Egle 2021, §7.1.1)."""

    period: float
    cutoff_hz: float
    order: int
    edge: int

    @property
    def reason(self) -> str:
        """See the protocol."""
        return (
            f"Savitzky-Golay of order {self.order}, window of {2 * self.edge + 1} samples, "
            f"{self.edge * self.period:.3g} s cut off at each edge"
        )

    def derive(self, position: FloatArray, velocity: FloatArray | None) -> Derived:
        """See the protocol."""

        def fit(signal: FloatArray, derivative: int) -> FloatArray:
            return filters.savitzky_golay(signal, self.period, self.edge, self.order, derivative)

        if velocity is None:
            return fit(position, 0), fit(position, 1), fit(position, 2)
        return fit(position, 0), fit(velocity, 0), fit(velocity, 1)
