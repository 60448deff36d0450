"""ROS parameters from the fields of the configuration, and the URDF of the robot that one of them or a topic gives.

ROS silently ignores parameters that no node declares, such as misspelt ones. Here an unknown override is an error, and
the values are checked by :func:`friction_estimator.config.config_from_parameters`, the
same function that reads the YAML offline. rviz gets a copy of the URDF with smaller effort limits.
"""

from __future__ import annotations

import dataclasses
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_policy_name_from_kind
from std_msgs.msg import String

from friction_estimator.config import (
    Config,
    ParameterField,
    ParameterValue,
    checked_value,
    config_from_parameters,
    parameter_fields,
)
from friction_estimator.errors import ConfigError, FrictionEstimatorError
from friction_estimator.io.node_parameters import NODE_PARAMETERS
from friction_estimator.io.robot import find_urdf, read_urdf
from friction_estimator.robot.urdf import parse_urdf
from friction_estimator.ros.middleware import LATCHED, parameter_overrides

ROBOT_DESCRIPTION = "robot_description"
"""Topic of the URDF."""


def find_robot_description(text: str, file: str) -> str:
    """URDF from the parameters, empty when neither is set.

    Parameters
    ----------
    text : parameter ``robot_description``
    file : parameter ``robot.urdf``

    Raises
    ------
    RobotModelError
        When the file or the text is not a URDF.
    """
    if text:
        parse_urdf(text, f"in the parameter {ROBOT_DESCRIPTION}")
        return text
    return read_urdf(find_urdf(file, (Path.cwd(),))) if file else ""


def follow_robot_description(node: Node, use: Callable[[str], None]) -> None:
    """Call ``use(urdf_xml)`` with every usable message on ``robot_description``; log the errors in others."""

    def receive(message: String) -> None:
        try:
            parse_urdf(message.data, f"on {subscription.topic_name}")
            use(message.data)
        except FrictionEstimatorError as error:
            node.get_logger().error(f"{error}; waiting for another message")

    def mismatch(event: Any) -> None:
        node.get_logger().error(
            f"a publisher of {subscription.topic_name} offers another QoS "
            f"({qos_policy_name_from_kind(event.last_policy_kind)}), so its URDF does not arrive: publish it transient "
            "local, as robot_state_publisher does, or set the parameter robot.urdf"
        )

    events = SubscriptionEventCallbacks(incompatible_qos=mismatch)
    subscription = node.create_subscription(String, ROBOT_DESCRIPTION, receive, LATCHED, event_callbacks=events)


def friction_urdf(urdf_xml: str, effort_fraction: float) -> str:
    """Scale the effort limit of every joint in a URDF.

    rviz draws every effort relative to the effort limit of its joint. Friction is about a hundredth of the limit, so it
    is visible with reduced limits only.

    Parameters
    ----------
    urdf_xml : text of a URDF
    effort_fraction : new limit divided by old limit, such as 0.01

    Raises
    ------
    RobotModelError
        When the text is not XML.
    """
    robot = parse_urdf(urdf_xml)
    for limit in robot.iterfind("joint/limit"):
        limit.set("effort", repr(float(limit.get("effort", "0")) * effort_fraction))
    return ElementTree.tostring(robot, encoding="unicode")


_CHANGEABLE = frozenset({"output.slow_rate", "compensation.gain"})
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
    of_nodes = NODE_PARAMETERS.union(item.name for item in own)
    robot = {name: value for name, value in overrides.items() if name not in of_nodes}
    config = config_from_parameters(robot, of_nodes)
    own_values = {item.name: checked_value(item, overrides.get(item.name, item.default)) for item in own}
    fields = parameter_fields(tuple(foot.name for foot in config.feet))
    for item in fields:
        _declare(node, item, _value_of(config, item.name))
    for item in own:
        _declare(node, item, own_values[item.name])
    return config, own_values


def on_change(node: Node, config: Config, apply: Callable[[str, float], None]) -> None:
    """Call ``apply(name, value)`` when one of the :data:`_CHANGEABLE` parameters changes to an allowed value."""

    def check(parameters: list[Parameter]) -> SetParametersResult:
        changes = [item for item in parameters if item.name in _CHANGEABLE]
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
    return {
        name: item.value
        for name, item in parameter_overrides(node).items()
        if not node.has_parameter(name) and not name.startswith("qos_overrides.") and item.value is not None
    }


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
    descriptor = ParameterDescriptor(description=limits.description + unit, read_only=item.name not in _CHANGEABLE)
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
