"""Parameters of the nodes that are not part of the configuration: the nodes declare them, offline tools skip them.

A YAML may set them together with the configuration, and offline tools read the same YAML: hence this place below ROS.
"""

from __future__ import annotations

from friction_estimator.config import ParameterField, Range

MAX_LEAD = 0.5
"""Lead of simulator and bag player over an estimator that cannot keep up, in launch file and demo [s]."""

_INPUTS_RELIABLE = ParameterField(
    "inputs_reliable",
    bool,
    False,
    Range(
        "True for simulators and bag players: subscribe to reliable publishers only, and use every joint sample. "
        "False: a node that is late skips joint samples."
    ),
)

_PLAYING = (
    ParameterField("publish_clock", bool, False, Range("Publish /clock, for nodes with use_sim_time.")),
    ParameterField(
        "wait_for_subscribers",
        int,
        0,
        Range("Number of subscribers of the joint states that must be connected before the start.", "", 0, 100),
    ),
    ParameterField(
        "max_lead",
        float,
        0.0,
        Range("Largest lead over an estimator that cannot keep up. 0: no limit, except at rate 0.", "s", 0.0, 10.0),
    ),
)

ESTIMATOR_FIELDS = (
    ParameterField(
        "autostart",
        bool,
        True,
        Range("Configure and activate the node when it starts. False: a manager of ROS 2 life cycles does it."),
    ),
    ParameterField(
        "identified_parameters",
        str,
        "",
        Range("YAML of the identified parameters. The node reads it at the start and writes it at the end."),
    ),
    ParameterField(
        "save_period",
        float,
        60.0,
        Range("Interval at which the identified parameters are saved. 0: only at the end.", "s", 0.0, 1e6),
    ),
    ParameterField(
        "robot_description",
        str,
        "",
        Range("Text of the URDF. Empty: the file in robot.urdf, or else the topic robot_description."),
    ),
    ParameterField(
        "mob_net_model",
        str,
        "",
        Range("Model that the verb train wrote: the external torque is that of MOB-Net. Empty: of the friction stage."),
    ),
    ParameterField(
        "external_torque_source",
        str,
        "mob_net",
        Range(
            "External torque where mob_net_model is set: of MOB-Net, of the observer, or of both by their errors.",
            choices=("mob_net", "kalman", "fused"),
        ),
    ),
    ParameterField(
        "collision_thresholds",
        str,
        "",
        Range("YAML that the verb collisions wrote: collisions are detected. Empty: they are not."),
    ),
    ParameterField(
        "collision_reaction",
        str,
        "none",
        Range(
            "Footsteps after a collision: none, back on the own footprints, or along the force, which needs MOB-Net.",
            choices=("none", "rewind", "compliant"),
        ),
    ),
    ParameterField(
        "collision_step_length",
        float,
        0.1,
        Range("Length of the footsteps after a collision. A swinging foot goes no faster than with it.", "m", 0.0, 1.0),
    ),
    ParameterField(
        "display.effort_fraction",
        float,
        0.01,
        Range("Scale of the effort limits in robot_description_friction, which rviz shows.", "", 1e-6, 1.0),
    ),
    _INPUTS_RELIABLE,
)

SIMULATION_FIELDS = (
    ParameterField("scenario", str, "walk", Range("Scenario of the simulated robot, such as walk, slope or push.")),
    ParameterField("noise", str, "paper_std", Range("Sensor noise level: clean, paper, paper_std or realistic.")),
    ParameterField(
        "seed",
        int,
        0,
        Range("Random seed of the sensor noise. The same seed gives the same noise.", "", 0, 2**31),
    ),
    ParameterField("duration", float, 0.0, Range("Simulated time until the end. 0: one hour.", "s", 0.0, 1e6)),
    ParameterField(
        "real_time_factor",
        float,
        1.0,
        Range("Simulated time per real time. 0: as fast as possible.", "", 0.0, 1e3),
    ),
    *_PLAYING,
)

REPLAY_FIELDS = (
    ParameterField("bag", str, "", Range("Path of the rosbag2 to replay.")),
    ParameterField(
        "rate",
        float,
        1.0,
        Range("Recorded time per real time. 0: as fast as possible.", "", 0.0, 1e3),
    ),
    *_PLAYING,
)

RECORDER_FIELDS = (ParameterField("record_to", str, "", Range("Path of the rosbag2 to write.")), _INPUTS_RELIABLE)

NODE_FIELDS = {
    "estimator_node": ESTIMATOR_FIELDS,
    "simulation_node": SIMULATION_FIELDS,
    "replay_node": REPLAY_FIELDS,
    "recorder_node": RECORDER_FIELDS,
}
"""Fields by name of the executable."""

NODE_PARAMETERS = frozenset(item.name for fields in NODE_FIELDS.values() for item in fields)
"""Names of the fields of all nodes."""
