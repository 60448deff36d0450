"""Parameters of the nodes beside the configuration: the nodes declare them, offline tools pass over them.

They may stand in the same YAML as the configuration, which offline tools read, too; hence their place is here, below
ROS.
"""

from __future__ import annotations

from friction_estimator.config import ParameterField, Range

_INPUTS_RELIABLE = ParameterField(
    "inputs_reliable",
    bool,
    False,
    Range("every message is needed: only reliable publishers are heard, and no joint sample is left out"),
)

_PLAYING = (
    ParameterField("publish_clock", bool, False, Range("publish /clock, for nodes with use_sim_time")),
    ParameterField("wait_for_subscribers", int, 0, Range("subscribers of joint_states to wait for", "", 0, 100)),
    ParameterField(
        "max_lead",
        float,
        0.0,
        Range(
            "how far it may run ahead of an estimator that cannot keep up; 0: it never waits, unless rate is 0",
            "s",
            0.0,
            10.0,
        ),
    ),
)

ESTIMATOR_FIELDS = (
    ParameterField(
        "parameters_file", str, "", Range("YAML with the identified parameters: read at start, written at the end")
    ),
    ParameterField("robot_description", str, "", Range("text of the URDF; empty: robot.urdf, else the topic")),
    ParameterField(
        "display.effort_fraction",
        float,
        0.01,
        Range("effort limits on robot_description_friction, as a part of the true ones (rviz)", "", 1e-6, 1.0),
    ),
    _INPUTS_RELIABLE,
)

SIMULATION_FIELDS = (
    ParameterField("scenario", str, "walk", Range("what the simulated robot does")),
    ParameterField("noise", str, "paper_std", Range("level of the sensor noise")),
    ParameterField("seed", int, 0, Range("seed of the noise; equal seeds give equal runs", "", 0, 2**31)),
    ParameterField("duration", float, 0.0, Range("simulated time after which it ends; 0: never", "s", 0.0, 1e6)),
    ParameterField("real_time_factor", float, 1.0, Range("simulated by real time; 0: no waiting", "", 0.0, 1e3)),
    *_PLAYING,
)

REPLAY_FIELDS = (
    ParameterField("bag", str, "", Range("rosbag2 to play")),
    ParameterField("rate", float, 1.0, Range("playing speed; 0: no waiting", "", 0.0, 1e3)),
    *_PLAYING,
)

RECORDER_FIELDS = (ParameterField("record_to", str, "", Range("rosbag2 to write")), _INPUTS_RELIABLE)

NODE_FIELDS = {
    "estimator_node": ESTIMATOR_FIELDS,
    "simulation_node": SIMULATION_FIELDS,
    "replay_node": REPLAY_FIELDS,
    "recorder_node": RECORDER_FIELDS,
}
"""Fields by executable."""

NODE_PARAMETERS = frozenset(item.name for fields in NODE_FIELDS.values() for item in fields)
"""Names of all of them."""
