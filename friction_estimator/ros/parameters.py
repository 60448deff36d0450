"""ROS parameters from the fields of the configuration: declared with type, range and description, and checked.

ROS silently ignores parameters that no node declares, such as misspelt ones. Here an unknown override is an error, and
the values are checked by :func:`friction_estimator.config.config_from_parameters`, the
same function that reads the YAML offline.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from friction_estimator.config import (
    Config,
    ParameterField,
    ParameterValue,
    checked_value,
    config_from_parameters,
    parameter_fields,
)
from friction_estimator.errors import ConfigError
from friction_estimator.io.node_parameters import NODE_PARAMETERS

CHANGEABLE = frozenset({"output.slow_rate", "compensation.gain"})
"""Parameters that may change while the node runs. Others would need new filters, so they are read-only."""

_TYPES = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
    tuple[str, ...]: Parameter.Type.STRING_ARRAY,
    tuple[float, ...]: Parameter.Type.DOUBLE_ARRAY,
}


def read_parameters(node: Node, own: Sequence[ParameterField]) -> tuple[Config, dict[str, Any]]:
    """Declare the parameters of the configuration and of the node itself, and return their checked values.

    Parameters
    ----------
    node : uses the overrides from the command line and parameter files
    own : parameters of this node that are not in the configuration

    Raises
    ------
    ConfigError
        For an unknown name, a wrong type or a value that is not allowed.
    """
    overrides = _overrides(node)
    own_names = {item.name for item in own}
    others = NODE_PARAMETERS - own_names
    robot = {name: value for name, value in overrides.items() if name not in own_names | others}
    _refuse_unknown(robot, own_names | others)
    config = config_from_parameters(robot)
    own_values = {item.name: checked_value(item, overrides.get(item.name, item.default)) for item in own}
    fields = parameter_fields(tuple(foot.name for foot in config.feet))
    for item in fields:
        _declare(node, item, _value_of(config, item.name))
    for item in own:
        _declare(node, item, own_values[item.name])
    return config, own_values


def on_change(node: Node, config: Config, apply: Callable[[str, float], None]) -> None:
    """Call ``apply(name, value)`` when one of the :data:`CHANGEABLE` parameters changes to an allowed value."""

    def check(parameters: list[Parameter]) -> SetParametersResult:
        changes = [item for item in parameters if item.name in CHANGEABLE]
        try:
            for item in changes:
                section, key = item.name.split(".")
                dataclasses.replace(getattr(config, section), **{key: float(item.value)})
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        for item in changes:
            apply(item.name, float(item.value))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(check)


def _overrides(node: Node) -> dict[str, Any]:
    """Overrides that are not ROS's own (``use_sim_time``, QoS overrides)."""
    # rclpy has no public function for the overrides of undeclared parameters
    overrides: Mapping[str, Parameter] = node._parameter_overrides
    return {
        name: item.value
        for name, item in overrides.items()
        if not node.has_parameter(name) and not name.startswith("qos_overrides.") and item.value is not None
    }


def _refuse_unknown(robot: Mapping[str, Any], own_names: set[str]) -> None:
    """Refuse a misspelt parameter of the node; the configuration refuses its unknown ones."""
    sections = {item.name.split(".")[0] for item in parameter_fields(())}
    for name in robot:
        near = difflib.get_close_matches(name, own_names, n=1)
        if name.split(".")[0] not in sections and near:
            raise ConfigError(f"unknown parameter {name!r} (did you mean {near[0]!r}?)")


def _value_of(config: Config, name: str) -> ParameterValue:
    """Value of a dotted parameter in a configuration."""
    if name == "feet.names":
        return tuple(foot.name for foot in config.feet)
    head, *rest = name.split(".")
    if head == "feet":
        feet = {foot.name: foot for foot in config.feet}
        value: ParameterValue = getattr(feet[rest[0]], rest[1])
    else:
        value = attrgetter(name)(config)
    return value


def _declare(node: Node, item: ParameterField, value: ParameterValue) -> None:
    unset = isinstance(value, tuple) and not value  # ROS cannot infer the type of an empty list
    node.declare_parameter(
        item.name,
        _TYPES[item.kind] if unset else (list(value) if isinstance(value, tuple) else value),
        _descriptor(item),
        ignore_override=True,  # the value was read, converted and checked before
    )


def _descriptor(item: ParameterField) -> ParameterDescriptor:
    limits = item.range
    unit = f" [{limits.unit}]" if limits.unit else ""
    descriptor = ParameterDescriptor(description=limits.description + unit, read_only=item.name not in CHANGEABLE)
    if limits.choices:
        descriptor.additional_constraints = "one of: " + ", ".join(limits.choices)
    if math.isfinite(limits.low) or math.isfinite(limits.high):
        if item.kind is float:
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=limits.low, to_value=limits.high, step=0.0)
            ]
        elif item.kind is int:
            descriptor.integer_range = [IntegerRange(from_value=int(limits.low), to_value=int(limits.high), step=0)]
    return descriptor
