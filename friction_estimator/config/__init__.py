"""Parameters of a robot and of all stages: one frozen dataclass per stage, with unit, range and description.

The parameter YAML of the ROS node is a flat mapping ``{"momentum.gain": 30.0, ...}``. :func:`config_from_parameters`
builds and validates a :class:`Config` from it, and refuses unknown keys by name.
:func:`parameter_fields` lists the same fields for the node, which declares its ROS parameters from them.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

from friction_estimator.config.estimation import (
    AttitudeConfig,
    BaseStateConfig,
    CompensationConfig,
    ConstrainedConfig,
    FbseConfig,
    IdentifierConfig,
    KalmanConfig,
    MomentumConfig,
    SynchronizerConfig,
)
from friction_estimator.config.robot import CouplingConfig, FootConfig, ImuConfig, RobotConfig, SensorNoise
from friction_estimator.config.validation import Range, Validated, advanced, check_range, check_topic, parameter
from friction_estimator.errors import ConfigError, choices

__all__ = [
    "AttitudeConfig",
    "BaseStateConfig",
    "CompensationConfig",
    "Config",
    "ConstrainedConfig",
    "CouplingConfig",
    "FbseConfig",
    "FootConfig",
    "IdentifierConfig",
    "ImuConfig",
    "KalmanConfig",
    "MomentumConfig",
    "OBSERVERS",
    "OutputConfig",
    "ParameterField",
    "ParameterValue",
    "Range",
    "RobotConfig",
    "SensorNoise",
    "SynchronizerConfig",
    "checked_value",
    "config_from_parameters",
    "parameter_fields",
]

OBSERVERS = {
    "kalman": "",
    "two_stage": "",
    "fbse": "friction_estimator.estimation.observers.fbse.FootBaseSensorEstimation",
    "momentum": "friction_estimator.estimation.observers.momentum.MomentumObserver",
    "constrained": "friction_estimator.baselines.constrained.ConstrainedDynamicsObserver",
}
"""Class of each observer by its name in ``Config.observer``; empty: the Kalman stage. A new observer is a line here."""

STAGES = ("all", "base_state", "friction")
"""Values of ``Config.stages``: the whole pipeline, or one of the two parts that can run as separate nodes."""


@dataclass(frozen=True, slots=True)
class OutputConfig(Validated):
    """Topics in and out."""

    slow_rate: float = parameter(
        50.0, "Rate of the topics that are not published with every joint sample.", "Hz", 0.1, 1e4
    )
    joint_states_topic: str = parameter("joint_states", "Topic of the joint states (sensor_msgs/JointState).")


@dataclass(frozen=True, slots=True)
class Config(Validated):
    """The whole configuration of one robot."""

    robot: RobotConfig = RobotConfig()
    imu: ImuConfig = ImuConfig()
    feet: tuple[FootConfig, ...] = ()
    sensors: SensorNoise = SensorNoise()
    observer: str = parameter(
        "kalman",
        f"Friction observer: {', '.join(OBSERVERS)}. kalman is most accurate; two_stage is not complete yet.",
        choices=tuple(OBSERVERS),
    )
    stages: str = advanced(
        "all",
        "Stages that run. base_state: base state and contact phase only. friction: all others. graph:=split starts "
        "a node for each.",
        choices=STAGES,
    )
    identifier: IdentifierConfig = IdentifierConfig()
    kalman: KalmanConfig = KalmanConfig()
    compensation: CompensationConfig = CompensationConfig()
    output: OutputConfig = OutputConfig()
    synchronizer: SynchronizerConfig = SynchronizerConfig()
    attitude: AttitudeConfig = AttitudeConfig()
    base_state: BaseStateConfig = BaseStateConfig()
    fbse: FbseConfig = FbseConfig()
    momentum: MomentumConfig = MomentumConfig()
    constrained: ConstrainedConfig = ConstrainedConfig()

    @property
    def has_base_state(self) -> bool:
        """Whether base state and contact phase are estimated for others."""
        return self.stages != "friction"

    @property
    def has_friction(self) -> bool:
        """Whether friction is estimated."""
        return self.stages != "base_state"

    @property
    def has_compensation(self) -> bool:
        """Whether the torque that cancels friction is computed."""
        return self.has_friction and self.compensation.enabled

    @property
    def needs_commands(self) -> bool:
        """Whether desired velocities are subscribed to, for compensation."""
        return self.has_compensation and self.compensation.velocity == "desired"

    @property
    def friction_law(self) -> str:
        """Name of the law of all joints that ``identifier.joint_laws`` does not name."""
        calibrates = self.observer in ("kalman", "two_stage")
        return self.identifier.law or ("six_slope_load" if calibrates else "coulomb_viscous")

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
        names = [foot.name for foot in self.feet]
        if len(set(names)) != len(names):
            raise ConfigError(f"feet.names = {names} has a name twice; each foot needs its own")
        for foot in self.feet:
            if not foot.frame:
                raise ConfigError(f"feet.{foot.name}.frame is missing: give the URDF frame of the sole")
        for label, values in (
            ("frame", [foot.frame for foot in self.feet]),
            ("topic", [foot.wrench_topic for foot in self.feet]),
        ):
            if len(set(values)) != len(values):
                raise ConfigError(f"two feet share a {label}: {', '.join(values)}; each foot has its own sensor")
        check_topic("output.joint_states_topic", self.output.joint_states_topic)
        check_topic("imu.topic", self.imu.topic)
        for foot in self.feet:
            check_topic(f"feet.{foot.name}.topic", foot.wrench_topic)
        commands = self.compensation.desired_topic
        if self.needs_commands and commands in ("", self.output.joint_states_topic):
            raise ConfigError(
                f"compensation.desired_topic = {commands!r} must name the topic of the commands; "
                "or set compensation.velocity: measured"
            )
        if commands:
            check_topic("compensation.desired_topic", commands)
        if self.observer == "fbse" and self.robot.fixed_base:
            raise ConfigError("observer 'fbse' needs a floating base; with robot.fixed_base set observer: momentum")
        if self.observer == "fbse" and not self.feet:
            raise ConfigError("observer 'fbse' needs at least one foot; set feet.names, or observer: momentum")
        if self.observer == "constrained" and not self.feet and not self.robot.fixed_base:
            raise ConfigError("observer 'constrained' needs at least one foot; set feet.names, or observer: momentum")


ParameterValue = bool | int | float | str | tuple[str, ...] | tuple[float, ...]

_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple[str, ...]: "a list of names, as in [left, right]",
    tuple[float, ...]: "a list of numbers, as in [0.1, 0.2]",
}
"""Types of parameters, in the words of an error message."""


@dataclass(frozen=True, slots=True)
class ParameterField:
    """One parameter of the configuration, as the ROS node declares it."""

    name: str
    kind: type
    default: ParameterValue
    range: Range


_FEET_NAMES = ParameterField("feet.names", tuple[str, ...], (), Range("Names of the feet that have a force sensor."))


def _leaves(section: type[Validated], prefix: str, feet_names: tuple[str, ...] = ()) -> Iterator[ParameterField]:
    hints = get_type_hints(section)
    for item in dataclasses.fields(section):
        limits, hint = item.metadata.get("range"), hints[item.name]
        default: Any = item.default
        if limits is not None:
            yield ParameterField(prefix + item.name, hint, default, limits)
        elif isinstance(hint, type) and issubclass(hint, Validated):
            yield from _leaves(hint, f"{prefix}{item.name}.")
        elif item.name == "feet":
            yield _FEET_NAMES
            for name in feet_names:
                yield from _leaves(FootConfig, f"feet.{name}.")


@cache
def parameter_fields(feet_names: tuple[str, ...]) -> tuple[ParameterField, ...]:
    """Every parameter of a robot whose feet have these names, in the order of the YAML."""
    return tuple(_leaves(Config, "", feet_names))


def config_from_parameters(parameters: Mapping[str, Any], others: Iterable[str] = ()) -> Config:
    """Build a validated configuration from flat dotted parameters, as in the ROS YAML.

    Parameters
    ----------
    parameters : e.g. ``{"feet.names": ["l_foot"], "feet.l_foot.frame": "l_sole", "momentum.gain": 30.0}``
    others : names that are no part of the configuration, of which an unknown key may be a misspelt one

    Raises
    ------
    ConfigError
        For an unknown key (named, with the nearest valid one), a wrong type or a value out of range.
    """
    feet_names = tuple(checked_value(_FEET_NAMES, parameters.get("feet.names", ())))
    known = {item.name: item for item in parameter_fields(feet_names)}
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ConfigError("; ".join(_unknown_key_message(key, list(known), others) for key in unknown))
    values = {name: checked_value(item, parameters[name]) for name, item in known.items() if name in parameters}
    feet = tuple(FootConfig(name=name, **_section(values, f"feet.{name}.")) for name in feet_names)
    return _build(Config, values, "", feet=feet)


def _unknown_key_message(key: str, known: list[str], others: Iterable[str]) -> str:
    """Name a key and the nearest valid one; without a near one the parameters of its section, or all sections."""
    near = difflib.get_close_matches(key, [*known, *others], n=1)
    if near:
        return f"unknown parameter {key!r} (did you mean {near[0]!r}?)"
    section = key.split(".")[0]
    siblings = [name for name in known if name.split(".")[0] == section]
    if siblings:
        return f"unknown parameter {key!r}; the parameters of {section!r} are {choices(siblings)}"
    return f"unknown parameter {key!r}; the sections are {choices({name.split('.')[0] for name in known})}"


def _section(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}


_Section = TypeVar("_Section", bound=Validated)


def _build(section: type[_Section], values: Mapping[str, Any], prefix: str, **extra: Any) -> _Section:
    arguments = dict(extra)
    for item in dataclasses.fields(section):
        if item.name in extra:
            continue
        if "range" in item.metadata:
            if prefix + item.name in values:
                arguments[item.name] = values[prefix + item.name]
        elif isinstance(item.default, Validated):
            arguments[item.name] = _build(type(item.default), values, f"{prefix}{item.name}.")
    return section(**arguments)


def checked_value(item: ParameterField, value: Any) -> Any:
    """Return one value of a YAML or a ROS parameter in the type of its field.

    Raises
    ------
    ConfigError
        For a wrong type or a value out of range; the message names parameter, value and what is valid.
    """
    converted = _typed(item.kind, value)
    if converted is None:
        raise ConfigError(f"{item.name} = {value!r} has the wrong type: expected {_KINDS[item.kind]}")
    check_range(item.name, converted, item.range)
    return converted


def _typed(kind: Any, value: Any) -> Any:
    """Return the value as this type; None when it is of another one."""
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind in (bool, int, str) and type(value) is kind:
        return value
    if kind == tuple[str, ...] and _is_list_of(value, str):
        return tuple(value)
    if kind == tuple[float, ...] and _is_list_of(value, (int, float)):
        return tuple(float(number) for number in value)
    return None


def _is_list_of(value: Any, kinds: Any) -> bool:
    return (
        not isinstance(value, (str, bytes, bool, int, float))
        and hasattr(value, "__iter__")
        and all(isinstance(element, kinds) and not isinstance(element, bool) for element in value)
    )
