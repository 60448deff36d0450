"""All of it: what one robot's YAML says."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.base import AttitudeConfig, BaseStateConfig, ContactPhaseConfig
from friction_estimator.config.friction import CompensationConfig, IdentifierConfig, TrustConfig
from friction_estimator.config.kalman import KalmanConfig
from friction_estimator.config.observers import ConstrainedConfig, FbseConfig, MomentumConfig
from friction_estimator.config.robot import FootConfig, ImuConfig, RobotConfig, SensorNoise, SynchronizerConfig
from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError

OBSERVER_NAMES = ("kalman", "fbse", "momentum", "constrained")
"""What ``Config.observer`` may name: the Kalman stage, or one of the table in ``estimation.observers``."""

STAGES = ("all", "base_state", "friction")
"""What ``Config.stages`` may name: the whole pipeline, or one of the two parts that can run as nodes of their own."""


@dataclass(frozen=True, slots=True)
class OutputConfig(Validated):
    """How often the slow topics leave."""

    slow_rate: float = parameter(50.0, "rate of the topics that do not come with every joint sample", "Hz", 0.1, 1e4)
    joint_states_topic: str = parameter("joint_states", "topic of the sensor_msgs/JointState input")


@dataclass(frozen=True, slots=True)
class Config(Validated):
    """All of it: what one robot's YAML says."""

    robot: RobotConfig = RobotConfig()
    imu: ImuConfig = ImuConfig()
    feet: tuple[FootConfig, ...] = ()
    observer: str = parameter("kalman", "how friction is measured", choices=OBSERVER_NAMES)
    stages: str = parameter(
        "all",
        "what is estimated: all; base_state: base state and contact phase only; friction: all but these. "
        "graph:=split of the launch file starts one node for each of the last two",
        choices=STAGES,
    )
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
    def has_base_state(self) -> bool:
        """Whether base state and contact phase are estimated for others."""
        return self.stages != "friction"

    @property
    def has_friction(self) -> bool:
        """Whether friction is estimated."""
        return self.stages != "base_state"

    @property
    def has_compensation(self) -> bool:
        """Whether the torque that cancels friction is computed."""
        return self.has_friction and self.compensation.enabled

    @property
    def needs_commands(self) -> bool:
        """Whether desired velocities are subscribed to, for compensation."""
        return self.has_compensation and self.compensation.velocity == "desired"

    @property
    def friction_law(self) -> str:
        """Name of the law of all joints that ``identifier.joint_laws`` does not name."""
        return self.identifier.law or ("six_slope_load" if self.observer == "kalman" else "coulomb_viscous")

    def __post_init__(self) -> None:
        Validated.__post_init__(self)
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
        if self.needs_commands and commands in ("", self.output.joint_states_topic):
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
