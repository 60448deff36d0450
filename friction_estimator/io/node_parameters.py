"""Parameters of the nodes that are not part of the configuration: the nodes declare them, offline tools skip them.

A YAML may set them together with the configuration, and offline tools read the same YAML: hence this place below ROS.
"""

from __future__ import annotations

from friction_estimator.config import ParameterField, Range

MAX_LEAD = 0.5
"""Lead of simulator and bag player over an estimator that cannot keep up, in launch file and demo [s]."""


def _flag(name: str, default: bool, text: str) -> ParameterField:
    return ParameterField(name, bool, default, Range(text))


def _text(name: str, text: str, default: str = "", choices: tuple[str, ...] = ()) -> ParameterField:
    return ParameterField(name, str, default, Range(text, choices=choices))


def _number(name: str, default: float, text: str, unit: str, low: float, high: float) -> ParameterField:
    return ParameterField(name, type(default), default, Range(text, unit, low, high))


_INPUTS_RELIABLE = _flag(
    "inputs_reliable",
    False,
    "True for simulators and bag players: subscribe to reliable publishers only, and use every joint sample. "
    "False: a node that is late skips joint samples.",
)

_PLAYING = (
    _flag("publish_clock", False, "Publish /clock, for nodes with use_sim_time."),
    _number(
        "wait_for_subscribers",
        0,
        "Number of subscribers of the joint states that must be connected before the start.",
        "", 0, 100,
    ),
    _number(
        "max_lead",
        0.0,
        "Longest time that the node may run ahead of an estimator that cannot keep up. 0: no limit, except at rate 0.",
        "s", 0.0, 10.0,
    ),
)  # fmt: skip

ESTIMATOR_FIELDS = (
    _flag(
        "autostart",
        True,
        "Configure and activate the node when it starts. False: a manager of ROS 2 life cycles does it.",
    ),
    _text(
        "identified_parameters",
        "YAML of the identified parameters. The node reads it at the start and writes it at the end.",
    ),
    _number(
        "save_period",
        60.0,
        "Interval at which the identified parameters are saved. 0: only at the end.",
        "s", 0.0, 1e6,
    ),
    _text(
        "robot_description", "Text of the URDF. Empty: the file in robot.urdf, or else the topic robot_description."
    ),
    _text(
        "mob_net_model",
        "File of a MOB-Net, written by the verb train, whose external torque is published. "
        "Empty: that of the friction stage is published.",
    ),
    _flag(
        "mob_net_fused",
        False,
        "Weight the external torque of MOB-Net (mob_net_model) and that of the friction stage by their errors.",
    ),
    _text("collision_thresholds", "YAML that the verb collisions wrote: collisions are detected. Empty: they are not."),
    _text(
        "collision_reaction",
        "Footsteps after a collision: none, rewind (the robot's last footprints in reverse order), or compliant "
        "(along the force, needs MOB-Net).",
        "none",
        ("none", "rewind", "compliant"),
    ),
    _number(
        "collision_step_length",
        0.1,
        "Length of the footsteps after a collision. It also limits how far a foot that swings at that time still goes.",
        "m", 0.0, 1.0,
    ),
    _number(
        "display.effort_fraction",
        0.01,
        "Factor on the effort limits in robot_description_friction: rviz scales its arrows with these.",
        "", 1e-6, 1.0,
    ),
    _INPUTS_RELIABLE,
)  # fmt: skip

SIMULATION_FIELDS = (
    _text("scenario", "Scenario of the simulated robot, such as walk, slope or push.", "walk"),
    _text("noise", "Sensor noise level: clean, paper, paper_std or realistic.", "paper_std"),
    _number("seed", 0, "Random seed of the sensor noise. The same seed gives the same noise.", "", 0, 2**31),
    _number("duration", 0.0, "Simulated time until the end. 0: one hour.", "s", 0.0, 1e6),
    _number("real_time_factor", 1.0, "Simulated time per real time. 0: as fast as possible.", "", 0.0, 1e3),
    *_PLAYING,
)

REPLAY_FIELDS = (
    _text("bag", "Path of the rosbag2 to replay."),
    _number("rate", 1.0, "Recorded time per real time. 0: as fast as possible.", "", 0.0, 1e3),
    *_PLAYING,
)

RECORDER_FIELDS = (_text("record_to", "Path of the rosbag2 to write."), _INPUTS_RELIABLE)

NODE_FIELDS = {
    "estimator_node": ESTIMATOR_FIELDS,
    "simulation_node": SIMULATION_FIELDS,
    "replay_node": REPLAY_FIELDS,
    "recorder_node": RECORDER_FIELDS,
}
"""Fields by name of the executable."""

NODE_PARAMETERS = frozenset(item.name for fields in NODE_FIELDS.values() for item in fields)
"""Names of the fields of all nodes."""
