"""Every topic that this package writes: relative name, type, what it holds and when it leaves.

Inputs come from the configuration: ``output.joint_states_topic``, ``imu.topic`` and ``feet.<name>.topic``.

One scalar per joint travels as the ``effort`` of a ``sensor_msgs/JointState``, joints by name. Whether the friction of
a joint was measured or modelled is such a scalar too: ``joint_friction/measured`` is 1 where the observer spoke and 0
where the friction law did, from its stamp until the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from friction_estimator.config import Config

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
WRENCH = "geometry_msgs/msg/WrenchStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
STRING = "std_msgs/msg/String"
MARKERS = "visualization_msgs/msg/MarkerArray"
TRANSFORMS = "tf2_msgs/msg/TFMessage"


class When(Enum):
    """When a topic leaves."""

    SAMPLE = "with every joint sample"
    SLOW = "at output.slow_rate"
    CHANGE = "at output.slow_rate and whenever it changes"
    DISPLAY = "at 10 Hz, for the eye"


@dataclass(frozen=True, slots=True)
class Topic:
    """One output topic.

    Attributes
    ----------
    name : relative name, so that a namespace works
    type : message type, ``package/msg/Name``
    when : when it leaves
    description : what it holds, with unit
    """

    name: str
    type: str
    when: When
    description: str


FRICTION = Topic(
    "joint_friction", JOINT_STATE, When.SAMPLE, "friction torque [N m]; position and velocity echo the input"
)
SIGMA = Topic("joint_friction/sigma", JOINT_STATE, When.SAMPLE, "its standard deviation [N m]")
MEASURED = Topic(
    "joint_friction/measured", JOINT_STATE, When.CHANGE, "1 where the friction was measured, 0 where the law spoke"
)
MODEL = Topic("joint_friction/model", JOINT_STATE, When.SLOW, "what the identified law predicts [N m]")
COULOMB = Topic("joint_friction/coulomb", JOINT_STATE, When.SLOW, "F_c [N m]")
VISCOUS = Topic("joint_friction/viscous", JOINT_STATE, When.SLOW, "F_v [N m s/rad]")
COULOMB_SIGMA = Topic("joint_friction/coulomb/sigma", JOINT_STATE, When.SLOW, "standard deviation of F_c [N m]")
VISCOUS_SIGMA = Topic("joint_friction/viscous/sigma", JOINT_STATE, When.SLOW, "standard deviation of F_v [N m s/rad]")
EXTERNAL_TORQUE = Topic(
    "external_torque", JOINT_STATE, When.SLOW, "external torque, foot wrenches and friction removed [N m]; NaN: unknown"
)
EXTERNAL_TORQUE_SIGMA = Topic("external_torque/sigma", JOINT_STATE, When.SLOW, "standard deviation of that [N m]")
BASE_STATE = Topic("base_state", ODOMETRY, When.SLOW, "estimated pose and twist of the base, with covariance")
CONTACT_PHASE = Topic("contact_phase", STRING, When.CHANGE, "double_support, left_support, right_support, flight, ...")
FRICTION_MARKERS = Topic(
    "joint_friction/markers", MARKERS, When.DISPLAY, "rviz: one coloured arc a joint, with the friction torque"
)

OUTPUTS = (
    FRICTION,
    SIGMA,
    MEASURED,
    MODEL,
    COULOMB,
    VISCOUS,
    COULOMB_SIGMA,
    VISCOUS_SIGMA,
    EXTERNAL_TORQUE,
    EXTERNAL_TORQUE_SIGMA,
    BASE_STATE,
    CONTACT_PHASE,
    FRICTION_MARKERS,
)
"""What the estimator says. ``/diagnostics`` is the node's own affair and not in this table."""

OF_BASE = (BASE_STATE, CONTACT_PHASE)
"""Those that need no friction."""

BASE_TRANSFORM = Topic("/tf", TRANSFORMS, When.SLOW, "estimated pose of the base, as the transform from odom")
"""Leaves only where tf2_msgs is installed; every apt installation of ROS 2 has it, the wheels of pip do not."""

COMPENSATION = Topic(
    "friction_compensation", JOINT_STATE, When.SAMPLE, "torque to add to the motor command, against friction [N m]"
)
"""Leaves only with ``compensation.enabled``; zero torque is the last message before silence."""


def output_topics(config: Config) -> tuple[Topic, ...]:
    """Topics of the estimator with this configuration, without ``/tf``."""
    if not config.has_friction:
        return OF_BASE
    topics = tuple(topic for topic in OUTPUTS if config.has_base_state or topic not in OF_BASE)
    return (*topics, COMPENSATION) if config.has_compensation else topics


TRUTH_PREFIX = "ground_truth/"
TRUE_FRICTION = Topic(
    "ground_truth/joint_friction", JOINT_STATE, When.SAMPLE, "true friction torque [N m], stamped like the joint states"
)
TRUE_EXTERNAL_TORQUE = Topic(
    "ground_truth/external_torque",
    JOINT_STATE,
    When.SLOW,
    "true torque of all forces but the ground's on the feet [N m]",
)
TRUE_BASE_STATE = Topic("ground_truth/base_state", ODOMETRY, When.SLOW, "true pose and twist of the base")
TRUE_CONTACT_PHASE = Topic("ground_truth/contact_phase", STRING, When.CHANGE, "which feet touch the ground")


def true_wrench(foot_name: str) -> Topic:
    """Topic with the noiseless wrench of one foot."""
    return Topic(
        f"{TRUTH_PREFIX}{foot_name}/wrench", WRENCH, When.SLOW, "noiseless wrench of the ground on the foot, sole frame"
    )


def truth_topics(foot_names: Iterable[str]) -> tuple[Topic, ...]:
    """Everything that only a simulator can say."""
    return (TRUE_FRICTION, TRUE_EXTERNAL_TORQUE, TRUE_BASE_STATE, TRUE_CONTACT_PHASE, *map(true_wrench, foot_names))
