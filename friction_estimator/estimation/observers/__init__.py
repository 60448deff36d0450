"""Interface of friction observers. A new one is one file and one line in ``OBSERVERS`` of ``config/__init__.py``."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from friction_estimator.config import OBSERVERS, Config
from friction_estimator.errors import ConfigError
from friction_estimator.robot.model import RobotModel
from friction_estimator.types import Attitude, ContactPhase, Dynamics, FloatArray, MeasuredFriction, SensorFrame


class Observer(Protocol):
    """Measures friction without a friction law."""

    def step(self, frame: SensorFrame, attitude: Attitude, phase: ContactPhase, dynamics: Dynamics) -> MeasuredFriction:
        """Measure friction in one frame, from the results of the stages before."""
        ...

    def filter(self, signal: FloatArray, dt: float) -> FloatArray:
        """Delay a signal (n, ...) as the observer delays friction, so that both can be compared.

        The identity for observers without lag. To be called once a step, with the same kind of signal.
        """
        ...

    def reset(self) -> None:
        """Begin anew with the next frame."""
        ...


def make_observer(config: Config, robot: RobotModel) -> Observer:
    """Create the observer that ``config.observer`` names.

    Raises
    ------
    ConfigError
        When the configuration names the Kalman stage, which is no observer of this kind.
    """
    module, _, name = OBSERVERS[config.observer].rpartition(".")
    if not module:
        raise ConfigError(f"observer {config.observer!r} has a friction stage of its own and no class in OBSERVERS")
    return cast(Observer, getattr(import_module(module), name)(config, robot))
