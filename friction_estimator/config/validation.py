"""One parameter with unit, range and description, and the check of its value."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from friction_estimator.errors import ConfigError, choices


@dataclass(frozen=True, slots=True)
class Range:
    """Description, unit and allowed values of one parameter; lives in the metadata of a dataclass field."""

    description: str  # a sentence that stands alone, as in `ros2 param describe`
    unit: str = ""  # empty without one
    low: float = -math.inf  # smallest valid number
    high: float = math.inf  # largest valid number
    choices: tuple[str, ...] = ()  # valid names; empty: any
    advanced: bool = False  # True for a parameter that few robots need; the documentation lists those last


def parameter(
    default: Any,
    description: str,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    *,
    is_advanced: bool = False,
) -> Any:
    """Dataclass field with the metadata that validation, ROS declaration and docs need.

    Parameters
    ----------
    default : its type is that of the parameter
    description : a sentence that stands alone
    unit : empty without one
    low, high : smallest and largest valid number
    choices : valid names; empty: any
    is_advanced : True for a parameter that few robots need
    """
    return field(default=default, metadata={"range": Range(description, unit, low, high, choices, is_advanced)})


advanced = partial(parameter, is_advanced=True)
"""A :func:`parameter` that few robots need."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Section of the configuration: checks each field against its :class:`Range` when it is built."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            limits: Range | None = item.metadata.get("range")
            if limits is not None:
                check_range(item.name, getattr(self, item.name), limits)


def check_range(name: str, value: Any, limits: Range) -> None:
    """Raise ConfigError for a value, or an element of it, that the range does not allow."""
    if limits.choices and value not in limits.choices:
        raise ConfigError(f"{name} = {value!r} is not valid; choose one of {choices(limits.choices)}")
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if not limits.low <= number <= limits.high:
            unit = f" {limits.unit}" if limits.unit else ""
            raise ConfigError(f"{name} = {number}{unit} is out of range [{limits.low:g}, {limits.high:g}]{unit}")


_TOPIC = re.compile(r"(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_LONGEST_TOPIC = 200
"""DDS allows 255 characters; a namespace may come before the name."""


def check_topic(parameter: str, topic: str) -> None:
    """Refuse a name that ROS refuses as the name of a topic.

    Raises
    ------
    ConfigError
        When it is such a name.
    """
    if not _TOPIC.fullmatch(topic) or len(topic) > _LONGEST_TOPIC:
        raise ConfigError(
            f"{parameter} = {topic!r} is no name of a ROS topic: words of a-z, A-Z, 0-9 and _ that do not begin "
            f"with a digit, joined by /, at most {_LONGEST_TOPIC} characters"
        )


def check_name(what: str, name: object) -> None:
    """Refuse an empty name, and one with a line break or another character that is not printed.

    Names of joints and links are written into C headers, XML and YAML files.

    Raises
    ------
    ConfigError
        When it is such a name.
    """
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ConfigError(f"{what} is {name!r}; names are one line of printed characters, without control characters")
