"""Every topic of this package: relative name, type, content and when it is published.

One scalar per joint is published as the ``effort`` of a ``sensor_msgs/JointState``, joints by name. So is whether the
friction of a joint is measured: ``joint_friction/measured`` is 1 where the friction comes from the observer and 0 where
it comes from the friction law. It holds from its stamp until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from friction_estimator.config import Config

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
WRENCH = "geometry_msgs/msg/WrenchStamped"
_POSES = "geometry_msgs/msg/PoseArray"
ODOMETRY = "nav_msgs/msg/Odometry"
STRING = "std_msgs/msg/String"
MARKERS = "visualization_msgs/msg/MarkerArray"
TRANSFORMS = "tf2_msgs/msg/TFMessage"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"

BASE_FRAME = "base_link"
ODOM_FRAME = "odom"
"""World of the base state. Its origin is below the robot at the start, and it drifts; hence not ``map`` (REP-105)."""


class When(Enum):
    """When a topic is published."""

    SAMPLE = "with every joint sample"
    SLOW = "at output.slow_rate"
    CHANGE = "at output.slow_rate and whenever it changes"
    DISPLAY = "at 10 Hz, for display"


@dataclass(frozen=True, slots=True)
class Topic:
    """Name, type, content and time of publishing of one topic."""

    name: str  # relative name, so that a namespace works
    type: str  # message type, `package/msg/Name`
    when: When  # when it is published
    description: str  # its content, with unit
    parameter: str = ""  # of an input: configuration parameter that holds the name


def sensor_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of joint states, IMU and feet."""
    inputs = [(config.output.joint_states_topic, JOINT_STATE, "joint states", "output.joint_states_topic")]
    inputs.append((config.imu.topic, IMU, "IMU", "imu.topic"))
    inputs += [(foot.wrench_topic, WRENCH, "foot wrench", f"feet.{foot.name}.topic") for foot in config.feet]
    return tuple(Topic(name, kind, When.SAMPLE, content, parameter) for name, kind, content, parameter in inputs)


def input_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of the sensors that this robot needs, and of the commands if friction compensation uses them."""
    topics = tuple(topic for topic in sensor_topics(config) if not (config.robot.fixed_base and topic.type == IMU))
    if not config.needs_commands:
        return topics
    name, parameter = config.compensation.desired_topic, "compensation.desired_topic"
    return (*topics, Topic(name, JOINT_STATE, When.SAMPLE, "desired joint velocities", parameter))


def _joints(name: str, when: When, description: str) -> Topic:
    return Topic(name, JOINT_STATE, when, description)


FRICTION = _joints("joint_friction", When.SAMPLE, "friction torque [N m]; position and velocity echo the input")
SIGMA = _joints("joint_friction/sigma", When.SAMPLE, "standard deviation of the friction torque [N m]")
MEASURED = _joints(
    "joint_friction/measured", When.CHANGE, "1: measurements determine the friction, 0: the identified law alone does"
)
VALID = _joints(
    "joint_friction/valid",
    When.CHANGE,
    "1: the friction may be used, 0: a sensor is wrong or silent, or the law is new; reasons are in /diagnostics",
)
MODEL = _joints("joint_friction/model", When.SLOW, "friction torque of the identified law [N m]")
COULOMB = _joints("joint_friction/coulomb", When.SLOW, "Coulomb friction F_c over the velocities so far [N m]")
VISCOUS = _joints("joint_friction/viscous", When.SLOW, "viscous friction F_v over the velocities so far [N m s/rad]")
COULOMB_SIGMA = _joints("joint_friction/coulomb/sigma", When.SLOW, "standard deviation of F_c [N m]")
VISCOUS_SIGMA = _joints("joint_friction/viscous/sigma", When.SLOW, "standard deviation of F_v [N m s/rad]")
EXTERNAL_TORQUE = _joints(
    "external_torque", When.SLOW, "external torque without foot wrenches and friction [N m]; NaN: unknown"
)
EXTERNAL_TORQUE_SIGMA = _joints("external_torque/sigma", When.SLOW, "standard deviation of the external torque [N m]")
BASE_STATE = Topic("base_state", ODOMETRY, When.SLOW, "estimated pose and twist of the base, with covariance")
CONTACT_PHASE = Topic("contact_phase", STRING, When.CHANGE, "double_support, left_support, right_support, flight, ...")
FRICTION_MARKERS = Topic(
    "joint_friction/markers", MARKERS, When.DISPLAY, "rviz: one coloured arc a joint, with the friction torque"
)

SCALARS = {
    "sigma": SIGMA,
    "measured": MEASURED,
    "valid": VALID,
    "model": MODEL,
    "law.coulomb": COULOMB,
    "law.viscous": VISCOUS,
    "law.coulomb_sigma": COULOMB_SIGMA,
    "law.viscous_sigma": VISCOUS_SIGMA,
    "external_torque": EXTERNAL_TORQUE,
    "external_torque_sigma": EXTERNAL_TORQUE_SIGMA,
}
"""Topics whose efforts are a field of :class:`FrictionEstimate`, by that field."""
OUTPUTS = (FRICTION, *SCALARS.values(), BASE_STATE, CONTACT_PHASE, FRICTION_MARKERS)
"""Topics of the estimator. ``/diagnostics`` is published by the node and not in this table."""

OF_BASE = (BASE_STATE, CONTACT_PHASE)
"""Topics that need no friction stage."""

BASE_TRANSFORM = Topic("/tf", TRANSFORMS, When.SLOW, "estimated pose of the base, as the transform from odom")
"""Published where tf2_msgs is installed: in every apt installation of ROS 2, but not with its pip wheels."""

COMPENSATION = _joints(
    "friction_compensation", When.SAMPLE, "torque to add to the motor command against friction [N m]"
)
"""Published with ``compensation.enabled`` only; the last message has zero torque."""

COLLISION = Topic(
    "collision", DIAGNOSTICS, When.CHANGE, "one message for each collision: limb, joint, signal and its threshold"
)
"""Published with the parameter ``collision_thresholds`` of the node only."""
NODE_STATUS = Topic("/diagnostics", DIAGNOSTICS, When.SLOW, "state of the nodes, once a second")
COLLISION_WRENCH = Topic(
    "collision/wrench", WRENCH, When.SAMPLE, "while a limb collides: unexpected wrench, in and about the base frame"
)
LIMB_WRENCH = Topic(
    "collision/limb_wrench", WRENCH, When.SAMPLE, "the same wrench in and about the sole frame of the limb that is hit"
)
"""Published with the parameters ``collision_thresholds`` and ``mob_net_model`` of the node only."""
FOOTSTEPS = Topic(
    "collision/footsteps", _POSES, When.CHANGE, "footsteps after a collision, in the sole frame of the foot that stands"
)
"""Published with the parameters ``collision_thresholds`` and ``collision_reaction`` of the node only."""


def output_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of the estimator with this configuration, without ``/tf``."""
    if not config.has_friction:
        return OF_BASE
    topics = tuple(topic for topic in OUTPUTS if config.has_base_state or topic not in OF_BASE)
    return (*topics, COMPENSATION) if config.has_compensation else topics


def result_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of the estimator that are recorded: all but the markers for rviz."""
    return tuple(topic for topic in output_topics(config) if topic is not FRICTION_MARKERS)


TRUTH_PREFIX = "ground_truth/"
TRUE_FRICTION = _joints(
    "ground_truth/joint_friction", When.SAMPLE, "true friction torque [N m], stamped like the joint states"
)
TRUE_EXTERNAL_TORQUE = _joints(
    "ground_truth/external_torque", When.SLOW, "true torque of all forces except those of the ground on the feet [N m]"
)
TRUE_BASE_STATE = Topic("ground_truth/base_state", ODOMETRY, When.SLOW, "true pose and twist of the base")
TRUE_CONTACT_PHASE = Topic("ground_truth/contact_phase", STRING, When.CHANGE, "name of the feet that touch the ground")


def true_wrench(foot_name: str) -> Topic:
    """Topic with the noiseless wrench of one foot."""
    return Topic(f"{TRUTH_PREFIX}{foot_name}/wrench", WRENCH, When.SLOW, "wrench of the ground on the foot, sole frame")


def truth_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of ground truth, which only a simulator publishes."""
    wrenches = (true_wrench(foot.name) for foot in config.feet)
    return (TRUE_FRICTION, TRUE_EXTERNAL_TORQUE, TRUE_BASE_STATE, TRUE_CONTACT_PHASE, *wrenches)
