"""Start the estimator with its surroundings: simulated biped, real robot or bag; robot_state_publisher, rviz, recorder.

    ros2 launch friction_estimator biped.launch.py                                  the built-in biped walks
    ros2 launch friction_estimator biped.launch.py source:=bag bag:=walk            a rosbag2 is played
    ros2 launch friction_estimator biped.launch.py source:=robot robot:=my.yaml     your robot publishes
    ros2 launch friction_estimator biped.launch.py graph:=split                     base state in a node of its own

All topic names are relative, so `namespace:=robot1` moves everything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix, get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from friction_estimator.errors import FrictionEstimatorError
from friction_estimator.io.resources import robot_file, share_directory
from friction_estimator.ros.launch_arguments import ARGUMENTS, LaunchRequest, unknown_arguments

PACKAGE = "friction_estimator"

_SOURCES = {"simulation": ("simulation_node", "simulation"), "bag": ("replay_node", "replay")}
"""Executable and name of what publishes the sensors; a real robot does it itself."""


def generate_launch_description() -> LaunchDescription:
    """Arguments first, then the nodes, which depend on their values."""
    given: set[str] = set()
    declared = [
        DeclareLaunchArgument(
            item.name,
            default_value=item.default,
            description=item.description,
            choices=list(item.choices) or None,
        )
        for item in ARGUMENTS
    ]
    before = OpaqueFunction(function=lambda context: given.update(context.launch_configurations))
    return LaunchDescription([before, *declared, OpaqueFunction(function=_nodes, args=[given])])


def _nodes(context: LaunchContext, given: set[str]) -> list[LaunchDescriptionEntity]:
    value = {item.name: LaunchConfiguration(item.name).perform(context) for item in ARGUMENTS}
    request = LaunchRequest(value, given, frames=_installed("robot_state_publisher"))
    nodes = [_node("estimator_node", name, value, request, own) for name, own in request.estimators.items()]
    if value["source"] in _SOURCES:
        nodes.append(_node(*_SOURCES[value["source"]], value, request))
    if value["record"]:
        nodes.append(_node("recorder_node", "recorder", value, request))
    return [
        *(LogInfo(msg=f"warning: {text}") for text in unknown_arguments(context.argv)),
        *(RegisterEventHandler(OnProcessExit(target_action=node, on_exit=_ended)) for node in nodes),
        *nodes,
        *_robot_state_publisher(value, request),
        *_rviz(value, request),
    ]


def _ended(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """All end with the first that ends.

    Raises
    ------
    FrictionEstimatorError
        When it failed: only so comes `ros2 launch` to an exit code.
    """
    if context.is_shutdown:
        return []
    if event.returncode:
        raise FrictionEstimatorError(f"{event.process_name} ended with exit code {event.returncode}, see above")
    return [Shutdown()]


def _node(
    executable: str, name: str, value: dict[str, str], request: LaunchRequest, own: Mapping[str, Any] | None = None
) -> Node:
    """One node of this package: YAML of the robot, what the launch file knows better, the user's YAML, ``own``."""
    parameters: list[Any] = [str(robot_file(value["robot"])), request.parameters(executable)]
    if value["params_file"]:
        parameters.append(value["params_file"])
    if own:
        parameters.append(own)
    return Node(
        **_program(executable),
        name=name,
        namespace=value["namespace"],
        parameters=parameters,
        ros_arguments=["--log-level", value["log_level"]],
        output="screen",
        emulate_tty=True,
    )


def _program(executable: str) -> dict[str, Any]:
    """How to start a node. An installation made by pip has no executables where ROS looks, in lib/<package>."""
    try:
        installed = Path(get_package_prefix(PACKAGE), "lib", PACKAGE, executable).is_file()
    except PackageNotFoundError:  # the launch file was named by its path
        installed = False
    if installed:
        return {"package": PACKAGE, "executable": executable}
    module = ["-m", f"{PACKAGE}.ros.executables", executable]
    return {"executable": sys.executable, "arguments": module, "exec_name": executable}


def _robot_state_publisher(value: dict[str, str], request: LaunchRequest) -> list[LaunchDescriptionEntity]:
    """Joint frames for rviz."""
    if not request.publishes_frames:
        missing = value["source"] != "robot" and not _installed("robot_state_publisher")
        return [LogInfo(msg="robot_state_publisher is not installed: no joint frames on /tf")] if missing else []
    return [
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            namespace=value["namespace"],
            parameters=[
                {
                    "robot_description": ParameterValue(request.robot.urdf_xml, value_type=str),
                    "use_sim_time": request.use_sim_time,
                }
            ],
            ros_arguments=["--log-level", value["log_level"]],
        )
    ]


def _rviz(value: dict[str, str], request: LaunchRequest) -> list[LaunchDescriptionEntity]:
    if value["rviz"] != "true":
        return []
    if not _installed("rviz2"):
        return [LogInfo(msg="rviz2 is not installed: rviz:=true is ignored")]
    return [
        Node(
            package="rviz2",
            executable="rviz2",
            namespace=value["namespace"],
            arguments=["-d", str(share_directory() / "config" / "rviz" / "friction.rviz")],
            parameters=[{"use_sim_time": request.use_sim_time}],
        )
    ]


def _installed(package: str) -> bool:
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True
