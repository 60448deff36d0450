"""What every friction observer offers, whatever its method."""

from __future__ import annotations

from typing import Protocol

from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, MeasuredFriction, SensorFrame


class Observer(Protocol):
    """Measures friction without a friction law."""

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Use one frame with everything the stages before made of it."""
        ...

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """Delay a signal (n, ...) as the observer delays friction, so that both can be compared.

        The identity for observers without lag. To be called once a step, with the same kind of signal.
        """
        ...

    def reset(self) -> None:
        """Begin anew with the next frame."""
        ...
