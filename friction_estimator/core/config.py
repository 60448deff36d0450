"""Every number that somebody may want to tune: one frozen dataclass a stage, with unit, range and description.

The parameter YAML of the ROS node, seen as a flat mapping ``{"contact_phase.debounce": 0.01, ...}``, is the only way
in: :func:`config_from_parameters` builds and validates a :class:`Config`, refusing unknown keys by name.
:func:`parameter_fields` lists the same fields for the node, which declares its ROS parameters from them.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

from friction_estimator.core.exceptions import ConfigError, choices

ParameterValue = bool | int | float | str | tuple[str, ...] | tuple[float, ...]

OBSERVER_NAMES = ("kalman", "fbse", "momentum", "constrained")
"""What ``Config.observer`` may name: the Kalman stage, or one of the table in ``core.observers``."""


@dataclass(frozen=True, slots=True)
class Range:
    """Description, unit and allowed values of one parameter; lives in the metadata of a dataclass field."""

    description: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()


def parameter(
    default: Any,
    description: str,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Dataclass field with the metadata that validation, ROS declaration and docs need."""
    return field(default=default, metadata={"range": Range(description, unit, low, high, choices)})


class _Validated:
    """Checks each field against its :class:`Range` when the dataclass is built."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            limits: Range | None = item.metadata.get("range")
            if limits is not None:
                _check(item.name, getattr(self, item.name), limits)


def _check(name: str, value: Any, limits: Range) -> None:
    if limits.choices and value not in limits.choices:
        raise ConfigError(f"{name} = {value!r} is not valid; choose one of {choices(limits.choices)}")
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if not limits.low <= number <= limits.high:
            unit = f" {limits.unit}" if limits.unit else ""
            raise ConfigError(f"{name} = {number}{unit} is out of range [{limits.low:g}, {limits.high:g}]{unit}")


@dataclass(frozen=True, slots=True)
class RobotConfig(_Validated):
    """Which robot: its URDF and the joints whose friction is wanted."""

    urdf: str = parameter(
        "", "URDF file: a path, package://..., or a file name of this package's urdf/; empty: robot_description"
    )
    joints: tuple[str, ...] = parameter(
        (), "joints to estimate, the others are locked; none given: every movable joint"
    )
    armature: tuple[float, ...] = parameter(
        (),
        "rotor inertia reflected to the joint, one value for each of robot.joints; none given: zero",
        "kg m^2",
        0.0,
        1e3,
    )
    max_velocity: float = parameter(100.0, "joint velocities beyond are refused as glitches", "rad/s", 1e-3, 1e6)
    max_effort: float = parameter(1e4, "motor torques beyond are refused as glitches", "N m", 1e-3, 1e9)
    fixed_base: bool = parameter(False, "True for an arm bolted to the ground: no base state, momentum observer only")


@dataclass(frozen=True, slots=True)
class ImuConfig(_Validated):
    """The inertial measurement unit on the trunk."""

    frame: str = parameter("imu_link", "URDF frame of the IMU")
    topic: str = parameter("imu/data", "topic of the sensor_msgs/Imu messages")
    max_rate: float = parameter(100.0, "angular rates beyond are refused as glitches", "rad/s", 1e-3, 1e6)
    max_specific_force: float = parameter(2000.0, "readings beyond are refused as glitches", "m/s^2", 1e-3, 1e6)


@dataclass(frozen=True, slots=True)
class FootConfig(_Validated):
    """One foot with a force/torque sensor."""

    name: str
    frame: str = parameter("", "URDF frame of the sole, in and about which the wrench is given")
    topic: str = parameter("", "topic of the geometry_msgs/WrenchStamped messages; empty: <foot name>/wrench")
    flip: bool = parameter(False, "True when the sensor reports the wrench of the foot on the ground")
    max_force: float = parameter(1e5, "forces [N] and moments [N m] beyond are refused as glitches", "", 1e-3, 1e9)
    contact: str = parameter(
        "surface",
        "surface: the standing foot neither moves nor turns; point: it may turn",
        choices=("surface", "point"),
    )
    phase: str = parameter("", "name of the phase in which only this foot stands; empty: the name of the foot")
    sole_size: tuple[float, ...] = parameter(
        (),
        "length and width of the sole about its frame, for the simulation of feet that the URDF draws as meshes only",
        "m",
        1e-3,
        10.0,
    )

    @property
    def wrench_topic(self) -> str:
        """Topic of the wrench messages."""
        return self.topic or f"{self.name}/wrench"

    @property
    def support_name(self) -> str:
        """Name of the contact phase in which only this foot stands."""
        return self.phase or self.name


@dataclass(frozen=True, slots=True)
class SensorNoise(_Validated):
    """Standard deviations of the sensors: where every published sigma starts.

    Noise is white, one draw a sample; biases and gains are constant, so no filter averages them out.
    """

    position_std: float = parameter(1e-7, "joint position", "rad", 0.0, 1.0)
    velocity_std: float = parameter(2e-3, "joint velocity", "rad/s", 0.0, 10.0)
    effort_std: float = parameter(0.0, "motor torque", "N m", 0.0, 1e3)
    specific_force_std: float = parameter(1e-4, "accelerometer", "m/s^2", 0.0, 10.0)
    angular_velocity_std: float = parameter(5e-3, "gyroscope", "rad/s", 0.0, 10.0)
    force_std: float = parameter(1.0, "foot force", "N", 0.0, 1e3)
    moment_std: float = parameter(0.1, "foot moment", "N m", 0.0, 1e3)
    specific_force_bias_std: float = parameter(0.0, "constant bias of the accelerometer", "m/s^2", 0.0, 10.0)
    angular_velocity_bias_std: float = parameter(0.0, "constant bias of the gyroscope", "rad/s", 0.0, 1.0)
    force_bias_std: float = parameter(0.0, "constant bias of the foot force", "N", 0.0, 1e3)
    moment_bias_std: float = parameter(0.0, "constant bias of the foot moment", "N m", 0.0, 1e3)
    force_gain_std: float = parameter(0.0, "relative gain error of the foot sensors", "", 0.0, 1.0)
    effort_gain_std: float = parameter(0.0, "relative gain error of the motor torque", "", 0.0, 1.0)
    velocity_cutoff: float = parameter(
        0.0,
        "joint velocities are differentiated positions behind a first-order low-pass of this frequency, and tell "
        "the kalman observer nothing new; 0: readings of their own",
        "Hz",
        0.0,
        1e6,
    )
    sigma_rate: float = parameter(50.0, "how often these are propagated to the friction", "Hz", 0.1, 1e4)


@dataclass(frozen=True, slots=True)
class SynchronizerConfig(_Validated):
    """How samples of different sensors become one frame."""

    max_wait: float = parameter(
        0.005, "a joint sample waits this long (header time) for the other sensors", "s", 0.0, 1.0
    )
    stale_periods: float = parameter(
        3.0,
        "a gap of a sensor is bridged up to this many of its usual periods, and held for half as long",
        "",
        1.0,
        1e3,
    )
    stale_after: float = parameter(0.1, "a sensor silent for longer than this is never used", "s", 1e-3, 10.0)
    reset_after: float = parameter(
        0.5, "a gap or a jump back of the joint-state clock by more than this restarts the filters", "s", 1e-2, 60.0
    )


@dataclass(frozen=True, slots=True)
class AttitudeConfig(_Validated):
    """Gravity Kalman filter and quaternion extended Kalman filter (Hashlamon & Erbatur 2014, section 3)."""

    acceleration_std: float = parameter(0.5, "linear acceleration of the trunk", "m/s^2", 1e-6, 100.0)
    acceleration_time: float = parameter(0.2, "correlation time of that acceleration", "s", 1e-3, 100.0)
    vibration_std: float = parameter(
        1.0, "acceleration beside it that lasts for one sample only: impacts, vibration", "m/s^2", 0.0, 100.0
    )
    acceleration_bias_std: float = parameter(0.02, "accelerometer bias at the start", "m/s^2", 0.0, 10.0)
    gyro_bias_std: float = parameter(0.01, "gyroscope bias at the start", "rad/s", 0.0, 1.0)
    gyro_bias_walk: float = parameter(1e-5, "random walk of the gyroscope bias", "rad/s/sqrt(s)", 0.0, 1.0)
    silent_rate: float = parameter(0.5, "how fast the trunk may turn while the IMU is silent", "rad/s", 0.0, 100.0)
    angular_acceleration_cutoff: float = parameter(8.0, "low-pass of the differentiated gyroscope", "Hz", 0.1, 1e3)


@dataclass(frozen=True, slots=True)
class ContactPhaseConfig(_Validated):
    """Hysteresis and debounce on the normal force of each foot."""

    on_fraction: float = parameter(0.03, "a foot lands above this part of the weight", "", 0.0, 1.0)
    off_fraction: float = parameter(0.015, "a foot has left below this part of the weight", "", 0.0, 1.0)
    debounce: float = parameter(0.008, "the threshold must stay crossed for this long", "s", 0.0, 1.0)
    sign_suspect_after: float = parameter(
        0.2, "a foot pulled to the ground for this long has its sensor flipped, probably", "s", 0.0, 60.0
    )
    settle: float = parameter(0.05, "after landing the foot is not yet taken as resting (FBSE)", "s", 0.0, 1.0)

    def __post_init__(self) -> None:
        _Validated.__post_init__(self)
        if self.off_fraction > self.on_fraction:
            raise ConfigError(
                f"off_fraction = {self.off_fraction} must not exceed on_fraction = {self.on_fraction}: "
                "without hysteresis the contact would chatter"
            )


@dataclass(frozen=True, slots=True)
class BaseStateConfig(_Validated):
    """Adaptive Kalman filter on the linear inverted pendulum (eqs. 7-33, Table II)."""

    process_noise: float = parameter(1.0, "Q_0: initial process covariance, times the identity", "", 0.0, 1e6)
    measurement_noise: float = parameter(1e-4, "R_0: initial measurement covariance, times the identity", "", 0.0, 1e6)
    initial_covariance: float = parameter(10.0, "P_0, times the identity", "", 0.0, 1e6)
    measurement_window: float = parameter(1000.0, "N_R of eqs. 20-23", "samples", 2.0, 1e7)
    process_window: float = parameter(5000.0, "N_Q of eqs. 27-31", "samples", 2.0, 1e7)
    method: str = parameter(
        "odometry",
        "lipm: the printed filter alone; odometry: the standing feet also measure base position and velocity, and hold "
        "the heading",
        choices=("lipm", "odometry"),
    )
    landing_std: float = parameter(0.003, "how far a foot settles or slips while it lands", "m", 0.0, 1.0)
    twist_std: float = parameter(
        0.1,
        "odometry: how far a sole twists about the vertical, a random walk over the way the robot makes; lightly "
        "loaded ones twist more",
        "rad/sqrt(m)",
        0.0,
        10.0,
    )
    twist_gate: float = parameter(3.0, "soles this many sigma from their heading have twisted", "", 0.5, 1e6)
    rest_speed: float = parameter(0.001, "at rest soles twist as if the robot moved this fast", "m/s", 0.0, 1.0)
    rotation_std: float = parameter(0.002, "error of the rotation of a sole by the joints", "rad", 1e-6, 1.0)


@dataclass(frozen=True, slots=True)
class FbseConfig(_Validated):
    """Foot-base sensor estimation (section 5)."""

    base_angular_acceleration: str = parameter(
        "minimum_norm",
        "minimum_norm: eqs. 42 and 46 as printed; gyro: the differentiated, low-passed gyroscope fills the null space",
        choices=("minimum_norm", "gyro"),
    )
    angular_acceleration_std: float = parameter(
        0.3, "how far the base angular acceleration may be from the value used", "rad/s^2", 0.0, 1e3
    )


@dataclass(frozen=True, slots=True)
class MomentumConfig(_Validated):
    """Discrete momentum observer (Lim et al. 2024, section 3.2), driven by the IMU."""

    gain: float = parameter(30.0, "K_0: bandwidth of the observer", "rad/s", 0.1, 1e4)
    input_hold: str = parameter(
        "forward",
        "forward: torque, wrench and specific force stamped t act until the next sample; "
        "trapezoid: they are samples of continuous signals",
        choices=("forward", "trapezoid"),
    )


@dataclass(frozen=True, slots=True)
class ConstrainedConfig(_Validated):
    """Constrained dynamics (Egle 2021, chapters 5-7): friction from joint accelerations, without force sensors."""

    signal: str = parameter(
        "position",
        "what is differentiated: position twice, as in the thesis; velocity once",
        choices=("position", "velocity"),
    )
    differences: str = parameter(
        "central",
        "central: in the middle of the window (eqs. 6.2, 7.7), half a window late; "
        "backward: at its newest sample (eq. 6.3), without delay but with a phase error",
        choices=("central", "backward"),
    )
    window: int = parameter(51, "L: samples that the polynomial is fitted to; odd for central", "samples", 2, 2001)
    order: int = parameter(4, "of the polynomial (eq. 7.1), below the window", "", 1, 8)
    trim_start: float = parameter(0.1, "after any foot has landed or left nothing is measured", "s", 0.0, 10.0)
    trim_end: float = parameter(
        0.05, "nor before; known afterwards only, so the estimate is at least this much late", "s", 0.0, 10.0
    )
    position_controlled: tuple[str, ...] = parameter(
        (), "joints that a position controller holds: no acceleration (eq. 5.4c), and their friction is not measured"
    )
    double_support: str = parameter(
        "unavailable",
        "limbs of feet that stand together share torque in a way that accelerations do not tell: unavailable, or "
        "regularised: the least friction (eq. 6.1)",
        choices=("unavailable", "regularised"),
    )
    regularisation: float = parameter(1e-8, "Lambda / W of eq. 6.1", "(rad/s^2)^2/(N m)^2", 0.0, 1e6)
    friction_std: float = parameter(2.0, "size of friction that eq. 6.1 may miss", "N m", 0.0, 1e6)
    motion_frequency: float = parameter(
        10.0,
        "highest frequency of the motion (section 7.1.2): what the differences miss there, sigma covers",
        "Hz",
        0.0,
        1e3,
    )
    max_sigma: float = parameter(
        1.5, "friction less certain than this is not given: standing limbs, mostly", "N m", 0.0, 1e9
    )

    def __post_init__(self) -> None:
        _Validated.__post_init__(self)
        if self.differences == "central" and self.window % 2 == 0:
            raise ConfigError(f"window = {self.window} has no middle: choose an odd one for central differences")
        lowest = 2 if self.signal == "position" else 1
        if not lowest <= self.order < self.window:
            raise ConfigError(
                f"order = {self.order} must be from {lowest} (signal: {self.signal}) to {self.window - 1} (window - 1)"
            )


@dataclass(frozen=True, slots=True)
class KalmanConfig(_Validated):
    """Calibrating Kalman filter of every limb."""

    window: float = parameter(0.01, "readings are gathered for this long before the filter uses them", "s", 1e-3, 1.0)
    jerk_densities: tuple[float, ...] = parameter(
        (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e7, 1e9),
        "white jerk of the joint-motion filters that run side by side",
        "rad^2/s^5",
        1e-9,
        1e12,
    )
    motion_memory: float = parameter(0.1, "over which these filters are compared", "s", 1e-3, 10.0)
    law_walk: float = parameter(
        1e-4, "random walk of the law's parameters, relative to their prior: wear, temperature", "1/sqrt(s)", 0.0, 1.0
    )
    calibration_walk: float = parameter(
        5e-3, "random walk of the errors of model and sensors, relative to their prior", "1/sqrt(s)", 0.0, 1.0
    )
    mismatch_time: float = parameter(0.2, "correlation time of what the law misses", "s", 1e-3, 1e3)
    mismatch_std: float = parameter(0.1, "size of what the law misses, before it is adapted", "N m", 0.0, 1e3)
    mismatch_floor: float = parameter(0.01, "and at least", "N m", 0.0, 1e3)
    mismatch_memory: float = parameter(3.0, "over which its size is adapted", "s", 1e-2, 1e4)
    link_mass_std: float = parameter(0.1, "relative error of each link's mass; 0: masses are right", "", 0.0, 1.0)
    link_com_std: float = parameter(0.005, "error of each link's centre of mass an axis; 0: right", "m", 0.0, 1.0)
    force_bias_std: float = parameter(
        2.0, "bias of the foot forces, unless sensors.force_bias_std is larger; 0 in both: none", "N", 0.0, 1e3
    )
    moment_bias_std: float = parameter(0.1, "bias of the foot moments, likewise", "N m", 0.0, 1e3)
    force_gain_std: float = parameter(0.01, "relative gain error of the foot sensors, likewise", "", 0.0, 1.0)
    effort_gain_std: float = parameter(0.01, "relative gain error of each motor torque, likewise", "", 0.0, 1.0)
    specific_force_bias_std: float = parameter(0.02, "bias of the accelerometer, likewise", "m/s^2", 0.0, 10.0)
    least_velocity: float = parameter(
        0.02,
        "a limb whose joints are all slower teaches nothing: the same equation over and over",
        "rad/s",
        0.0,
        10.0,
    )
    instant_std: float = parameter(
        0.2,
        "while the velocity leaves the friction of a standing leg's joint this uncertain, it is measured at once",
        "N m",
        0.0,
        1e6,
    )
    innovation_gate: float = parameter(
        2.5, "normalised innovation squared of one joint beyond which a window was a blow", "", 1.0, 1e6
    )
    longest_blow: float = parameter(0.25, "blows for longer than this mean that the law is wrong", "s", 0.0, 1e3)
    relearn_ratio: float = parameter(0.2, "then the law is as uncertain as this part of its prior", "", 0.0, 1.0)
    disturbance_gain: float = parameter(
        40.0, "bandwidth of the observer of external torques, pushes", "rad/s", 0.1, 1e4
    )
    disturbance_gate: float = parameter(5.0, "external torques beyond this many sigma are noticed", "", 1.0, 1e6)
    disturbance_ratio: float = parameter(
        3.0, "external torques beyond so many times the friction are pushes", "", 0.1, 1e6
    )
    smallest_push: float = parameter(1.0, "and external torques below this are none", "N m", 0.0, 1e6)
    longest_push: float = parameter(0.5, "pushes for longer than this mean that the law is wrong", "s", 0.0, 1e3)
    push_settle: float = parameter(0.03, "after a push the law alone speaks for so much longer", "s", 0.0, 10.0)
    change_time: float = parameter(
        0.025, "blows of the same direction for this long mean that friction has changed", "s", 0.0, 1e3
    )
    change_ratio: float = parameter(0.5, "then each parameter may have changed by this part", "", 0.0, 10.0)


@dataclass(frozen=True, slots=True)
class IdentifierConfig(_Validated):
    """Recursive least squares per joint (section 6, eqs. 57-67, Table II)."""

    law: str = parameter(
        "",
        "friction law of every joint, linear in its parameters; "
        "empty: five_slope_load for kalman, else coulomb_viscous",
    )
    joint_laws: tuple[str, ...] = parameter(
        (), "joints with another law: entries joint=law, the joint a name or a pattern such as *_knee"
    )
    phases: str = parameter(
        "stance",
        "stance: only joints of a standing limb adapt, as printed; all: whenever measured",
        choices=("stance", "all"),
    )
    initial_covariance: float = parameter(10.0, "P_RLS_0 of F_c and F_v, times the identity", "", 0.0, 1e6)
    outlier_gate: float = parameter(
        10.0, "errors of more than this many sigma are cut to that: a glitch then cannot spoil the law", "", 1.0, 1e6
    )
    forgetting: float = parameter(1.0, "forgetting factor a sample; 1 never forgets, as printed", "", 0.9, 1.0)
    residual_window: float = parameter(
        2000.0, "window of the residual variance behind the law's sigma", "samples", 2.0, 1e7
    )


@dataclass(frozen=True, slots=True)
class CompensationConfig(_Validated):
    """Feed-forward torque that cancels the identified friction (section 7.4)."""

    enabled: bool = parameter(False, "publish friction_compensation: torque to add to the motor command")
    velocity: str = parameter(
        "measured",
        "velocity at which the law is asked; desired: free of noise and delay, but a resting or pushed joint gets none",
        choices=("measured", "desired"),
    )
    desired_topic: str = parameter("joint_commands", "topic of the sensor_msgs/JointState with desired velocities")
    gain: float = parameter(1.0, "part of the friction that is cancelled; may change at run time", "", 0.0, 1.0)
    limit: float = parameter(
        10.0, "largest torque of a joint; the effort limit of the URDF holds as well", "N m", 0.0, 1e9
    )
    fade_velocity: float = parameter(
        0.01,
        "from this speed down the torque fades to zero, against chatter; a measured velocity: from 3 sigma at least",
        "rad/s",
        0.0,
        100.0,
    )
    max_relative_sigma: float = parameter(
        1.0,
        "a joint whose law has a sigma above this part of its torque gets none; all of it below half of that",
        "",
        1e-6,
        1e6,
    )
    slew_rate: float = parameter(500.0, "fastest change of the torque", "N m/s", 1e-3, 1e12)
    timeout: float = parameter(
        0.1, "joint states or desired velocities silent for longer: zero torque", "s", 1e-3, 10.0
    )

    @property
    def needs_commands(self) -> bool:
        """True when desired velocities are listened to."""
        return self.enabled and self.velocity == "desired"


@dataclass(frozen=True, slots=True)
class TrustConfig(_Validated):
    """When an estimate should not be believed."""

    period: float = parameter(0.01, "one estimate in so long is looked at", "s", 1e-4, 10.0)
    memory: float = parameter(10.0, "over which the estimates are judged", "s", 0.1, 1e6)
    evidence: float = parameter(1.0, "samples of so long are needed for a verdict", "s", 0.0, 1e3)
    slowest: float = parameter(
        0.02, "a joint moves above this speed, and above 3 sigma of a measured velocity", "rad/s", 0.0, 100.0
    )
    unlearned: float = parameter(
        0.5, "a law of whose parameters none has a sigma below this part of its prior is not known", "", 0.0, 1.0
    )
    passivity_gate: float = parameter(3.0, "friction against the velocity beyond so many sigma drives", "", 0.0, 1e3)
    driving_share: float = parameter(0.05, "part of the moving time in which friction may drive", "", 0.0, 1.0)
    calibration_ratio: float = parameter(
        1.0, "errors of model and sensors may explain so many times the torque of friction", "", 0.0, 1e6
    )
    known: float = parameter(
        0.3, "a law is that of the start, to compare with, once its sigma is below this part of it", "", 0.0, 1.0
    )
    drift_ratio: float = parameter(0.25, "part of its torque by which a law may change", "", 0.0, 1e3)
    drift_gate: float = parameter(1.0, "and so many sigma of its torque", "", 0.0, 1e3)
    confidence: float = parameter(0.999, "of the chi-square band of the mean innovation", "", 0.5, 0.999999)
    consistency_slack: float = parameter(1.15, "and so many times its end may be reached", "", 1.0, 1e3)
    largest_innovation: float = parameter(5.0, "innovations count with so many sigma at most: a blow", "", 1.0, 1e3)
    disturbed_share: float = parameter(0.1, "part of the time in which pushes may stop the learning", "", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class OutputConfig(_Validated):
    """How often the slow topics leave."""

    slow_rate: float = parameter(50.0, "rate of all topics but joint_friction and its sigma", "Hz", 0.1, 1e4)
    joint_states_topic: str = parameter("joint_states", "topic of the sensor_msgs/JointState input")


@dataclass(frozen=True, slots=True)
class Config(_Validated):
    """All of it: what one robot's YAML says."""

    robot: RobotConfig = RobotConfig()
    imu: ImuConfig = ImuConfig()
    feet: tuple[FootConfig, ...] = ()
    observer: str = parameter("kalman", "how friction is measured", choices=OBSERVER_NAMES)
    sensors: SensorNoise = SensorNoise()
    synchronizer: SynchronizerConfig = SynchronizerConfig()
    attitude: AttitudeConfig = AttitudeConfig()
    contact_phase: ContactPhaseConfig = ContactPhaseConfig()
    base_state: BaseStateConfig = BaseStateConfig()
    fbse: FbseConfig = FbseConfig()
    momentum: MomentumConfig = MomentumConfig()
    constrained: ConstrainedConfig = ConstrainedConfig()
    kalman: KalmanConfig = KalmanConfig()
    identifier: IdentifierConfig = IdentifierConfig()
    compensation: CompensationConfig = CompensationConfig()
    trust: TrustConfig = TrustConfig()
    output: OutputConfig = OutputConfig()

    @property
    def friction_law(self) -> str:
        """Name of the law of all joints that ``identifier.joint_laws`` does not name."""
        return self.identifier.law or ("five_slope_load" if self.observer == "kalman" else "coulomb_viscous")

    def __post_init__(self) -> None:
        _Validated.__post_init__(self)
        names = [foot.name for foot in self.feet]
        if len(set(names)) != len(names):
            raise ConfigError(f"two feet share a name in feet.names = {names}")
        for foot in self.feet:
            if not foot.frame:
                raise ConfigError(f"feet.{foot.name}.frame is missing: give the URDF frame of the sole")
        for label, values in (
            ("frame", [foot.frame for foot in self.feet]),
            ("topic", [foot.wrench_topic for foot in self.feet]),
        ):
            if len(set(values)) != len(values):
                raise ConfigError(f"two feet share a {label}: {', '.join(values)}; each foot has its own sensor")
        commands = self.compensation.desired_topic
        if self.compensation.needs_commands and commands in ("", self.output.joint_states_topic):
            raise ConfigError(
                f"compensation.desired_topic = {commands!r} must name the topic of the commands; "
                "or set compensation.velocity: measured"
            )
        if self.observer == "fbse" and self.robot.fixed_base:
            raise ConfigError("observer 'fbse' needs a floating base; with robot.fixed_base set observer: momentum")
        if self.observer == "fbse" and not self.feet:
            raise ConfigError("observer 'fbse' needs at least one foot; set feet.names, or observer: momentum")
        if self.observer == "constrained" and not self.feet and not self.robot.fixed_base:
            raise ConfigError("observer 'constrained' needs at least one foot; set feet.names, or observer: momentum")


@dataclass(frozen=True, slots=True)
class ParameterField:
    """One leaf of the configuration: what the ROS node declares."""

    name: str
    kind: type
    default: ParameterValue
    range: Range


def _leaves(section: type, prefix: str) -> Iterator[ParameterField]:
    hints = get_type_hints(section)
    for item in dataclasses.fields(section):
        limits = item.metadata.get("range")
        hint = hints[item.name]
        if limits is not None:
            yield ParameterField(prefix + item.name, hint, item.default, limits)  # type: ignore[arg-type]
        elif dataclasses.is_dataclass(hint):
            yield from _leaves(hint, f"{prefix}{item.name}.")  # type: ignore[arg-type]


_FEET_NAMES = ParameterField("feet.names", tuple[str, ...], (), Range("names of the feet that carry a force sensor"))


def parameter_fields(feet_names: tuple[str, ...]) -> tuple[ParameterField, ...]:
    """Every parameter of a robot whose feet have these names, in YAML order."""
    fields = [*_leaves(Config, ""), _FEET_NAMES]
    for name in feet_names:
        fields += _leaves(FootConfig, f"feet.{name}.")
    return tuple(fields)


def config_from_parameters(parameters: Mapping[str, Any]) -> Config:
    """Build a validated configuration from flat dotted parameters, as in the ROS YAML.

    Parameters
    ----------
    parameters : e.g. ``{"feet.names": ["l_foot"], "feet.l_foot.frame": "l_sole", "momentum.gain": 30.0}``

    Raises
    ------
    ConfigError
        For an unknown key (named, with the nearest valid one), a wrong type or a value out of range.
    """
    feet_names = tuple(_convert(_FEET_NAMES, parameters.get("feet.names", ())))
    known = {item.name: item for item in parameter_fields(feet_names)}
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ConfigError(_unknown_keys_message(unknown, list(known)))
    values = {name: _convert(item, parameters[name]) for name, item in known.items() if name in parameters}
    feet = tuple(FootConfig(name=name, **_section(values, f"feet.{name}.")) for name in feet_names)
    return _build(Config, values, "", feet=feet)


def _unknown_keys_message(unknown: list[str], known: list[str]) -> str:
    lines = []
    for key in unknown:
        near = difflib.get_close_matches(key, known, n=1)
        lines.append(f"unknown parameter {key!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    sections = {name.split(".")[0] for name in known}
    return "; ".join(lines) + f". The sections are {choices(sections)}"


def _section(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}


_Section = TypeVar("_Section")


def _build(section: type[_Section], values: Mapping[str, Any], prefix: str, **extra: Any) -> _Section:
    hints = get_type_hints(section)
    arguments = dict(extra)
    for item in dataclasses.fields(section):  # type: ignore[arg-type]
        if item.name in extra:
            continue
        if "range" in item.metadata:
            if prefix + item.name in values:
                arguments[item.name] = values[prefix + item.name]
        else:
            arguments[item.name] = _build(hints[item.name], values, f"{prefix}{item.name}.")
    try:
        return section(**arguments)
    except ConfigError as error:
        raise ConfigError(f"in section {prefix.rstrip('.')!r}: {error}" if prefix else str(error)) from None


def _convert(item: ParameterField, value: Any) -> Any:
    """Check the type of one YAML value and return it as the dataclass wants it."""
    if item.kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if item.kind in (bool, int, str) and type(value) is item.kind:
        return value
    if item.kind == tuple[str, ...] and _is_list_of(value, str):
        return tuple(value)
    if item.kind == tuple[float, ...] and _is_list_of(value, (int, float)):
        return tuple(float(number) for number in value)
    wanted = getattr(item.kind, "__name__", str(item.kind)) if isinstance(item.kind, type) else str(item.kind)
    if item.kind in (tuple[str, ...], tuple[float, ...]):
        wanted = "list of names" if item.kind == tuple[str, ...] else "list of numbers"
    raise ConfigError(f"{item.name} = {value!r} has the wrong type: expected a {wanted}")


def _is_list_of(value: Any, kinds: Any) -> bool:
    return (
        not isinstance(value, (str, bytes, bool, int, float))
        and hasattr(value, "__iter__")
        and all(isinstance(element, kinds) and not isinstance(element, bool) for element in value)
    )
