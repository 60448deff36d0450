"""Start the estimator with a simulated biped, a real robot or a bag; robot_state_publisher, rviz and a recorder.

    ros2 launch friction_estimator biped.launch.py                                  the built-in biped walks
    ros2 launch friction_estimator biped.launch.py source:=bag bag:=walk            a rosbag2 is played
    ros2 launch friction_estimator biped.launch.py source:=robot robot:=my.yaml     your robot publishes
    ros2 launch friction_estimator biped.launch.py graph:=split                     base state in a separate node

All topic names are relative, so that `namespace:=robot1` applies to everything.
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
from friction_estimator.io.robot import robot_file, share_directory
from friction_estimator.ros.launch_arguments import ARGUMENTS, LaunchRequest, unknown_arguments

PACKAGE = "friction_estimator"

_SOURCES = {"simulation": ("simulation_node", "simulation"), "bag": ("replay_node", "replay")}
"""Executable and name of the node that publishes the sensor data; a real robot has its own drivers."""


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, then start the nodes, which depend on their values."""
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
    """End all nodes when one of them ends.

    Raises
    ------
    FrictionEstimatorError
        When the node failed, because `ros2 launch` then ends with an exit code.
    """
    if context.is_shutdown:
        return []
    if event.returncode:
        raise FrictionEstimatorError(
            f"{event.process_name} ended with exit code {event.returncode}; its error is above"
        )
    return [Shutdown()]


def _node(
    executable: str, name: str, value: dict[str, str], request: LaunchRequest, own: Mapping[str, Any] | None = None
) -> Node:
    """One node of this package, with parameters of robot, launch file, ``params_file`` and ``own``, in this order."""
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
    """Executable of a node: pip does not install executables in lib/<package>, where ROS looks for them."""
    try:
        installed = Path(get_package_prefix(PACKAGE), "lib", PACKAGE, executable).is_file()
    except PackageNotFoundError:  # the launch file was started by its path
        installed = False
    if installed:
        return {"package": PACKAGE, "executable": executable}
    module = ["-m", f"{PACKAGE}.ros.executables", executable]
    return {"executable": sys.executable, "arguments": module, "exec_name": executable}


def _robot_state_publisher(value: dict[str, str], request: LaunchRequest) -> list[LaunchDescriptionEntity]:
    """Node that publishes the joint frames for rviz."""
    if not request.publishes_frames:
        missing = value["source"] != "robot" and not _installed("robot_state_publisher")
        return (
            [LogInfo(msg="robot_state_publisher is not installed, so /tf has no joint frames; install the ROS package")]
            if missing
            else []
        )
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
        return [LogInfo(msg="rviz2 is not installed: rviz:=true is ignored; install the ROS package rviz2")]
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
