"""A parameter with unit, range and description, and the check of it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from friction_estimator.errors import ConfigError, choices


@dataclass(frozen=True, slots=True)
class Range:
    """Description, unit and allowed values of one parameter; lives in the metadata of a dataclass field."""

    description: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()


def parameter(
    default: Any,
    description: str,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Dataclass field with the metadata that validation, ROS declaration and docs need."""
    return field(default=default, metadata={"range": Range(description, unit, low, high, choices)})


@dataclass(frozen=True, slots=True)
class Validated:
    """Section of the configuration: checks each field against its :class:`Range` when it is built."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            limits: Range | None = item.metadata.get("range")
            if limits is not None:
                _check(item.name, getattr(self, item.name), limits)


def _check(name: str, value: Any, limits: Range) -> None:
    if limits.choices and value not in limits.choices:
        raise ConfigError(f"{name} = {value!r} is not valid; choose one of {choices(limits.choices)}")
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if not limits.low <= number <= limits.high:
            unit = f" {limits.unit}" if limits.unit else ""
            raise ConfigError(f"{name} = {number}{unit} is out of range [{limits.low:g}, {limits.high:g}]{unit}")
