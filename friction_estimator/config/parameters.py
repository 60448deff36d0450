"""Between flat parameters, as ROS knows them, and the tree of dataclasses."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from friction_estimator.config.robot import FootConfig
from friction_estimator.config.root import Config
from friction_estimator.config.validation import Range, Validated
from friction_estimator.errors import ConfigError, choices

ParameterValue = bool | int | float | str | tuple[str, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ParameterField:
    """One leaf of the configuration: what the ROS node declares."""

    name: str
    kind: type
    default: ParameterValue
    range: Range


def _leaves(section: type[Validated], prefix: str) -> Iterator[ParameterField]:
    hints = get_type_hints(section)
    for item in dataclasses.fields(section):
        limits, hint = item.metadata.get("range"), hints[item.name]
        default: Any = item.default
        if limits is not None:
            yield ParameterField(prefix + item.name, hint, default, limits)
        elif isinstance(hint, type) and issubclass(hint, Validated):
            yield from _leaves(hint, f"{prefix}{item.name}.")


_FEET_NAMES = ParameterField("feet.names", tuple[str, ...], (), Range("names of the feet that carry a force sensor"))


def parameter_fields(feet_names: tuple[str, ...]) -> tuple[ParameterField, ...]:
    """Every parameter of a robot whose feet have these names, in YAML order."""
    fields = [*_leaves(Config, ""), _FEET_NAMES]
    for name in feet_names:
        fields += _leaves(FootConfig, f"feet.{name}.")
    return tuple(fields)


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
    feet_names = tuple(_convert(_FEET_NAMES, parameters.get("feet.names", ())))
    known = {item.name: item for item in parameter_fields(feet_names)}
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ConfigError(_unknown_keys_message(unknown, list(known)))
    values = {name: _convert(item, parameters[name]) for name, item in known.items() if name in parameters}
    feet = tuple(FootConfig(name=name, **_section(values, f"feet.{name}.")) for name in feet_names)
    return _build(Config, values, "", feet=feet)


def _unknown_keys_message(unknown: list[str], known: list[str]) -> str:
    lines = []
    for key in unknown:
        near = difflib.get_close_matches(key, known, n=1)
        lines.append(f"unknown parameter {key!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    sections = {name.split(".")[0] for name in known}
    return "; ".join(lines) + f". The sections are {choices(sections)}"


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
    try:
        return section(**arguments)
    except ConfigError as error:
        raise ConfigError(f"in section {prefix.rstrip('.')!r}: {error}" if prefix else str(error)) from None


def _convert(item: ParameterField, value: Any) -> Any:
    """Check the type of one YAML value and return it as the dataclass wants it."""
    if item.kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if item.kind in (bool, int, str) and type(value) is item.kind:
        return value
    if item.kind == tuple[str, ...] and _is_list_of(value, str):
        return tuple(value)
    if item.kind == tuple[float, ...] and _is_list_of(value, (int, float)):
        return tuple(float(number) for number in value)
    wanted = getattr(item.kind, "__name__", str(item.kind)) if isinstance(item.kind, type) else str(item.kind)
    if item.kind in (tuple[str, ...], tuple[float, ...]):
        wanted = "list of names" if item.kind == tuple[str, ...] else "list of numbers"
    raise ConfigError(f"{item.name} = {value!r} has the wrong type: expected a {wanted}")


def _is_list_of(value: Any, kinds: Any) -> bool:
    return (
        not isinstance(value, (str, bytes, bool, int, float))
        and hasattr(value, "__iter__")
        and all(isinstance(element, kinds) and not isinstance(element, bool) for element in value)
    )
