"""Friction observers by name. A new one is one file, one line in the table below, its name in ``OBSERVER_NAMES``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from friction_estimator.config import Config
from friction_estimator.errors import ConfigError, choices
from friction_estimator.estimation.observers.fbse import FootBaseSensorEstimation
from friction_estimator.estimation.observers.momentum import MomentumObserver
from friction_estimator.reference.constrained import ConstrainedDynamicsObserver
from friction_estimator.robot.model import RobotModel
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


_OBSERVERS: dict[str, Callable[[Config, RobotModel], Observer]] = {
    "fbse": FootBaseSensorEstimation,
    "momentum": MomentumObserver,
    "constrained": ConstrainedDynamicsObserver,
}


def make_observer(config: Config, robot: RobotModel) -> Observer:
    """Create the observer that ``config.observer`` names.

    Raises
    ------
    ConfigError
        When there is no observer of that name.
    """
    if config.observer not in _OBSERVERS:
        raise ConfigError(f"unknown observer {config.observer!r}; the observers are {choices(_OBSERVERS)}")
    return _OBSERVERS[config.observer](config, robot)
