"""Conversion of flat ROS parameters to the tree of dataclasses, and the list of all parameters."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from friction_estimator.config.robot import FootConfig
from friction_estimator.config.root import Config
from friction_estimator.config.validation import Range, Validated, check_range
from friction_estimator.errors import ConfigError, choices

ParameterValue = bool | int | float | str | tuple[str, ...] | tuple[float, ...]

_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple[str, ...]: "a list of names",
    tuple[float, ...]: "a list of numbers",
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


def parameter_fields(feet_names: tuple[str, ...]) -> tuple[ParameterField, ...]:
    """Every parameter of a robot whose feet have these names, in the order of the YAML."""
    return tuple(_leaves(Config, "", feet_names))


def config_from_parameters(parameters: Mapping[str, Any]) -> Config:
    """Build a validated configuration from flat dotted parameters, as in the ROS YAML.

    Parameters
    ----------
    parameters : e.g. ``{"feet.names": ["l_foot"], "feet.l_foot.frame": "l_sole", "momentum.gain": 30.0}``

    Raises
    ------
    ConfigError
        For an unknown key (named, with the nearest valid one), a wrong type or a value out of range.
    """
    feet_names = tuple(checked_value(_FEET_NAMES, parameters.get("feet.names", ())))
    known = {item.name: item for item in parameter_fields(feet_names)}
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ConfigError("; ".join(_unknown_key_message(key, list(known)) for key in unknown))
    values = {name: checked_value(item, parameters[name]) for name, item in known.items() if name in parameters}
    feet = tuple(FootConfig(name=name, **_section(values, f"feet.{name}.")) for name in feet_names)
    return _build(Config, values, "", feet=feet)


def _unknown_key_message(key: str, known: list[str]) -> str:
    """Name a key and the nearest valid one; without a near one the parameters of its section, or all sections."""
    near = difflib.get_close_matches(key, known, n=1)
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
    hints = get_type_hints(section)
    arguments = dict(extra)
    for item in dataclasses.fields(section):
        if item.name in extra:
            continue
        if "range" in item.metadata:
            if prefix + item.name in values:
                arguments[item.name] = values[prefix + item.name]
        else:
            arguments[item.name] = _build(hints[item.name], values, f"{prefix}{item.name}.")
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
