"""Start the estimator with its surroundings: simulated biped, real robot or bag; robot_state_publisher, rviz, recorder.

    ros2 launch friction_estimator biped.launch.py                                  the built-in biped walks
    ros2 launch friction_estimator biped.launch.py source:=bag bag:=walk            a rosbag2 is played
    ros2 launch friction_estimator biped.launch.py source:=robot robot:=my.yaml     your robot publishes

All topic names are relative, so `namespace:=robot1` moves everything.
"""

from __future__ import annotations

from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from friction_estimator.core.exceptions import ConfigError
from friction_estimator.files.resources import robot_file, share_directory
from friction_estimator.files.robot import Robot, load_robot

PACKAGE = "friction_estimator"

_MAX_LEAD = 0.5
"""How far simulator and bag player may be ahead of the estimator on a slow machine [s]."""

ARGUMENTS = (
    ("source", "simulation", "where the sensors come from", ("simulation", "robot", "bag")),
    ("robot", "suralp", "YAML of the robot: a name of config/robots or a path", ()),
    ("params_file", "", "YAML with parameters that override those of the robot", ()),
    ("parameters_file", "", "YAML of the identified parameters: read at start, written at the end", ()),
    ("namespace", "", "namespace of all nodes and topics", ()),
    ("use_sim_time", "false", "follow /clock, which simulation and bag player then publish", ("true", "false")),
    ("log_level", "info", "log level of all nodes", ("debug", "info", "warn", "error", "fatal")),
    ("rviz", "false", "start rviz2 with config/rviz/friction.rviz", ("true", "false")),
    ("record", "", "directory of a rosbag2 to record; empty: nothing is recorded", ()),
    ("bag", "", "source:=bag: rosbag2 to play", ()),
    ("rate", "1.0", "source:=bag: playing speed; 0: as fast as it goes", ()),
    ("scenario", "walk", "source:=simulation: what the robot does", ()),
    ("noise", "paper_std", "source:=simulation: level of the sensor noise", ()),
    ("seed", "0", "source:=simulation: seed of the noise", ()),
    ("duration", "0.0", "source:=simulation: simulated time after which all ends [s]; 0: never", ()),
    ("real_time_factor", "1.0", "source:=simulation: simulated by real time; 0: as fast as it goes", ()),
)


def generate_launch_description() -> LaunchDescription:
    """Arguments first, then the nodes, which depend on their values."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description, choices=list(choices) or None)
        for name, default, description, choices in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=_nodes)])


def _nodes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    value = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    robot = load_robot(value["robot"])
    actions: list[LaunchDescriptionEntity] = [
        _node(
            "estimator_node",
            PACKAGE,
            value,
            robot,
            {"parameters_file": value["parameters_file"], "inputs_reliable": value["source"] != "robot"},
        )
    ]
    source = _source(value, robot)
    if source is not None:
        actions += [source, RegisterEventHandler(OnProcessExit(target_action=source, on_exit=[Shutdown()]))]
    if value["record"]:
        own = {"record_to": value["record"], "inputs_reliable": value["source"] != "robot"}
        actions.append(_node("recorder_node", "recorder", value, robot, own))
    return [*actions, *_robot_state_publisher(value, robot), *_rviz(value)]


def _node(executable: str, name: str, value: dict[str, str], robot: Robot, own: dict[str, Any]) -> Node:
    """One node of this package: the YAML of the robot, what the launch file knows better, the user's own YAML."""
    known: dict[str, Any] = {"use_sim_time": value["use_sim_time"] == "true", **own}
    if robot.urdf_path is not None:
        known["robot.urdf"] = str(robot.urdf_path)  # a path relative to the YAML means nothing to a node
    parameters: list[Any] = [str(robot_file(value["robot"])), known]
    if value["params_file"]:
        parameters.append(value["params_file"])
    return Node(
        package=PACKAGE,
        executable=executable,
        name=name,
        namespace=value["namespace"],
        parameters=parameters,
        ros_arguments=["--log-level", value["log_level"]],
        output="screen",
        emulate_tty=True,
    )


def _source(value: dict[str, str], robot: Robot) -> Node | None:
    """Simulator or bag player; nothing for a real robot, which publishes itself."""
    common = {
        "publish_clock": value["use_sim_time"] == "true",
        "wait_for_subscribers": 2 if value["record"] else 1,
        "max_lead": _MAX_LEAD,
    }
    if value["source"] == "simulation":
        own = {
            "scenario": value["scenario"],
            "noise": value["noise"],
            "seed": int(value["seed"]),
            "duration": float(value["duration"]),
            "real_time_factor": float(value["real_time_factor"]),
            **common,
        }
        return _node("simulation_node", "simulation", value, robot, own)
    if value["source"] == "bag":
        if not value["bag"]:
            raise ConfigError("source:=bag needs bag:=PATH, the rosbag2 to play")
        own = {"bag": value["bag"], "rate": float(value["rate"]), **common}
        return _node("replay_node", "replay", value, robot, own)
    return None


def _robot_state_publisher(value: dict[str, str], robot: Robot) -> list[LaunchDescriptionEntity]:
    """Joint frames for rviz. A robot brings its own publisher; without an URDF file there is nothing to publish."""
    if value["source"] == "robot" or not robot.urdf_xml:
        return []
    if not _installed("robot_state_publisher"):
        return [LogInfo(msg="robot_state_publisher is not installed: no joint frames on /tf")]
    return [
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            namespace=value["namespace"],
            parameters=[
                {
                    "robot_description": ParameterValue(robot.urdf_xml, value_type=str),
                    "use_sim_time": value["use_sim_time"] == "true",
                }
            ],
            ros_arguments=["--log-level", value["log_level"]],
        )
    ]


def _rviz(value: dict[str, str]) -> list[LaunchDescriptionEntity]:
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
            parameters=[{"use_sim_time": value["use_sim_time"] == "true"}],
        )
    ]


def _installed(package: str) -> bool:
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True
