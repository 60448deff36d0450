"""Formats by name: the registry of exporters.

A new format is one file with a function decorated by :func:`register_exporter`, and one import in
``export/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from friction_estimator.config.coupling import Coupling
from friction_estimator.errors import ConfigError, choices
from friction_estimator.io.export.joint_friction import JointFriction


@dataclass(frozen=True, slots=True)
class Job:
    """What an exporter works from.

    Attributes
    ----------
    joints : friction of every joint
    origin : lines that say where the numbers come from, for comments
    model : text of the model that is changed, empty when there is none
    controller : name of the controller whose parameters are written
    coupling : of the motors among ``joints`` that move several joints together; None: there are none

    Raises
    ------
    ConfigError
        When the friction of one of these motors is missing.
    """

    joints: tuple[JointFriction, ...]
    origin: tuple[str, ...] = ()
    model: str = ""
    controller: str = "joint_trajectory_controller"
    coupling: Coupling | None = None

    def __post_init__(self) -> None:
        named = [joint.joint for joint in self.joints]
        missing = [motor for motor in self.motor_names if motor not in named]
        if missing:
            raise ConfigError(
                f"there is no friction of the motor {choices(missing)}, which moves joints together with others; "
                f"there is that of {choices(named)}"
            )

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Motors that move several joints together."""
        return () if self.coupling is None else self.coupling.motor_names

    @property
    def alone(self) -> tuple[JointFriction, ...]:
        """Friction that belongs to one joint."""
        return tuple(joint for joint in self.joints if joint.joint not in self.motor_names)

    @property
    def moved(self) -> tuple[str, ...]:
        """Joints (n) in the order of ``joints``: where that is a motor, the joint at its place."""
        coupling = self.coupling
        place = {} if coupling is None else dict(zip(coupling.motor_names, coupling.joint_names, strict=True))
        return tuple(place.get(joint.joint, joint.joint) for joint in self.joints)


@dataclass(frozen=True, slots=True)
class Export:
    """What it makes.

    Attributes
    ----------
    text : of the file
    warnings : what the format could not say, one sentence each
    """

    text: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Format:
    export: Callable[[Job], Export]
    model: str


_FORMATS: dict[str, _Format] = {}


def register_exporter(name: str, model: str = "") -> Callable[[Callable[[Job], Export]], Callable[[Job], Export]]:
    """Function decorator: make a format available under a name.

    Parameters
    ----------
    model : what kind of model the exporter changes, in words; empty when it needs none
    """

    def register(export: Callable[[Job], Export]) -> Callable[[Job], Export]:
        _FORMATS[name] = _Format(export, model)
        return export

    return register


def exporter_names() -> tuple[str, ...]:
    """Names of all formats."""
    return tuple(sorted(_FORMATS))


def needs_model(name: str) -> bool:
    """Whether a format is a change of a given model."""
    return bool(_format(name).model)


def export_friction(name: str, job: Job) -> Export:
    """Write friction in one of the formats.

    Raises
    ------
    ConfigError
        When there is no such format, or the model is missing or superfluous.
    RobotModelError
        When the model cannot be read or has none of the joints.
    """
    chosen = _format(name)
    if chosen.model and not job.model:
        raise ConfigError(f"the format {name!r} changes a model: give {chosen.model} with --model")
    if job.model and not chosen.model:
        changing = choices(other for other, one in _FORMATS.items() if one.model)
        raise ConfigError(f"the format {name!r} takes no model; those that change one are {changing}")
    return chosen.export(job)


def _format(name: str) -> _Format:
    if name not in _FORMATS:
        raise ConfigError(f"unknown format {name!r}; the formats are {choices(_FORMATS)}")
    return _FORMATS[name]
