"""Arguments of ``biped.launch.py``, and the parameters of the nodes that follow from them; this module needs no ROS.

A parameter has the value of the first of these that sets it: a given launch argument, ``params_file``, the launch file,
the YAML of the robot, the default of the node.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from friction_estimator.config import ParameterField
from friction_estimator.errors import ConfigError
from friction_estimator.io.node_parameters import MAX_LEAD, NODE_FIELDS
from friction_estimator.io.robot import Robot, load_robot, read_node_parameters, read_robot_parameters


@dataclass(frozen=True, slots=True)
class LaunchArgument:
    """Name, default and description of one argument of the launch file."""

    # as `--show-args` shows them
    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()  # valid values; empty: any
    node: str = ""  # executable to whose parameter the value goes; empty: none
    parameter: str = ""  # name of that parameter


def _of_node(node: str, parameter: str, when: str = "", name: str = "") -> LaunchArgument:
    """Argument with default and description of a node's parameter."""
    item = _field(node, parameter)
    unit = f" Unit: {item.range.unit}." if item.range.unit else ""
    description = f"{item.range.description}{unit}{when}"
    return LaunchArgument(name or parameter, str(item.default), description, (), node, parameter)


def _field(node: str, parameter: str) -> ParameterField:
    return next(item for item in NODE_FIELDS[node] if item.name == parameter)


_SIMULATION, _BAG = " Used with source:=simulation.", " Used with source:=bag."
_SWITCH = ("true", "false")

ARGUMENTS = (
    LaunchArgument(
        "source",
        "simulation",
        "Origin of the sensor data: simulated biped, real robot, or rosbag2.",
        ("simulation", "robot", "bag"),
    ),
    LaunchArgument("robot", "suralp", "Robot: a name in config/robots, or the path of a YAML."),
    LaunchArgument(
        "params_file", "", "YAML with parameters of the nodes, which replace those of the robot. Empty: no such file."
    ),
    _of_node("estimator_node", "identified_parameters"),
    LaunchArgument(
        "graph",
        "single",
        "single: one node for the whole pipeline. split: base state and friction as two nodes, each in one process.",
        ("single", "split"),
    ),
    LaunchArgument("namespace", "", "Namespace of all nodes and topics. Empty: none."),
    LaunchArgument(
        "use_sim_time", "false", "Use the time on /clock, which simulation and bag player then publish.", _SWITCH
    ),
    LaunchArgument("log_level", "info", "Log level of all nodes.", ("debug", "info", "warn", "error", "fatal")),
    LaunchArgument("rviz", "false", "Start rviz2 with the view config/rviz/friction.rviz.", _SWITCH),
    _of_node("recorder_node", "record_to", " Empty: nothing is recorded.", name="record"),
    _of_node("replay_node", "bag", _BAG),
    _of_node("replay_node", "rate", _BAG),
    *(_of_node("simulation_node", name, _SIMULATION) for name in ("scenario", "noise", "seed", "duration")),
    _of_node("simulation_node", "real_time_factor", _SIMULATION),
)


class LaunchRequest:
    """The values of the launch arguments, and the parameters of the nodes.

    Parameters
    ----------
    values : text of every argument
    given : names of the arguments that the user set
    frames : whether robot_state_publisher is installed, which also subscribes to ``joint_states``

    Attributes
    ----------
    robot : the robot, with the parameters of ``params_file``

    Raises
    ------
    ConfigError, RobotModelError
        When an argument, a file or a parameter in it cannot be used.
    """

    def __init__(self, values: Mapping[str, str], given: Collection[str], frames: bool = False) -> None:
        self._values, self._frames = values, frames
        file = values["params_file"]
        if file and not Path(file).is_file():
            raise ConfigError(f"params_file:={file}: there is no such file")
        if values["source"] == "bag" and not values["bag"]:
            raise ConfigError("source:=bag needs bag:=PATH, the rosbag2 to play")
        self._given = {
            argument: _parsed(argument, values[argument.name])
            for argument in ARGUMENTS
            if argument.parameter and argument.name in given
        }
        self.robot: Robot = load_robot(values["robot"], read_robot_parameters(Path(file)) if file else {})
        self._file = read_node_parameters(Path(file)) if file else {}
        self.use_sim_time = (
            values["use_sim_time"] == "true" if "use_sim_time" in given else bool(self._file.get("use_sim_time", False))
        )

    @property
    def estimators(self) -> dict[str, dict[str, Any]]:
        """Parameters of each estimator node, by its name, in addition to those of :meth:`parameters`."""
        if self._values["graph"] == "single":
            return {"friction_estimator": {}}
        return {"base_state": {"stages": "base_state"}, "friction_estimator": {"stages": "friction"}}

    @property
    def publishes_frames(self) -> bool:
        """Whether robot_state_publisher is started: a real robot has its own, and it needs the URDF as a file."""
        return self._frames and self._values["source"] != "robot" and bool(self.robot.urdf_xml)

    def _subscribers(self) -> int:
        """Number of subscribers of the joint states for which simulation and bag player wait."""
        others = self.publishes_frames and self.robot.config.output.joint_states_topic == "joint_states"
        return len(self.estimators) + bool(self._values["record"]) + others

    def parameters(self, node: str) -> dict[str, Any]:
        """Parameters of a node (name of its executable) that replace those in the YAML of the robot.

        They do not contain those of ``params_file``, and contradict them only where the user set an argument.
        """
        known = {
            "inputs_reliable": self._values["source"] != "robot",
            "publish_clock": self.use_sim_time,
            "wait_for_subscribers": self._subscribers(),
            "max_lead": MAX_LEAD,
        }
        own = {item.name for item in NODE_FIELDS[node]} - {*self._file}
        parameters: dict[str, Any] = {name: value for name, value in known.items() if name in own}
        parameters["use_sim_time"] = self.use_sim_time
        if self.robot.urdf_path is not None:
            parameters["robot.urdf"] = str(
                self.robot.urdf_path
            )  # a node cannot resolve a path that is relative to the YAML
        given = {item.parameter: value for item, value in self._given.items() if item.node == node}
        return {**parameters, **given}


def unknown_arguments(words: Iterable[str]) -> list[str]:
    """One sentence for each unknown ``NAME:=VALUE`` of a command line, because launch ignores unknown arguments."""
    known = [argument.name for argument in ARGUMENTS]
    sentences = []
    for name in sorted({word.partition(":=")[0] for word in words if ":=" in word} - {*known}):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"its arguments are {', '.join(known)}"
        sentences.append(f"biped.launch.py has no argument {name!r}: {hint}")
    return sentences


def _parsed(argument: LaunchArgument, text: str) -> Any:
    """Value of the type of the node's parameter; the node checks the range."""
    kind = _field(argument.node, argument.parameter).kind
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{argument.name}:={text} is not {expected}") from None
