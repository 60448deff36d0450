"""The whole configuration: the parameters in one robot's YAML."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.config.estimation import (
    AttitudeConfig,
    BaseStateConfig,
    CompensationConfig,
    ContactPhaseConfig,
    DiagnosisConfig,
    IdentifierConfig,
    SynchronizerConfig,
)
from friction_estimator.config.observers import ConstrainedConfig, FbseConfig, KalmanConfig, MomentumConfig
from friction_estimator.config.robot import FootConfig, ImuConfig, RobotConfig, SensorNoise
from friction_estimator.config.validation import Validated, parameter
from friction_estimator.errors import ConfigError

OBSERVER_NAMES = ("kalman", "fbse", "momentum", "constrained")
"""Values of ``Config.observer``: the Kalman stage, or an observer of the table in ``estimation.observers``."""

STAGES = ("all", "base_state", "friction")
"""Values of ``Config.stages``: the whole pipeline, or one of the two parts that can run as separate nodes."""


@dataclass(frozen=True, slots=True)
class OutputConfig(Validated):
    """Topics in and out."""

    slow_rate: float = parameter(
        50.0, "Rate of the topics that are not published with every joint sample.", "Hz", 0.1, 1e4
    )
    joint_states_topic: str = parameter("joint_states", "Topic of the joint states (sensor_msgs/JointState).")


@dataclass(frozen=True, slots=True)
class Config(Validated):
    """The whole configuration of one robot."""

    robot: RobotConfig = RobotConfig()
    imu: ImuConfig = ImuConfig()
    feet: tuple[FootConfig, ...] = ()
    sensors: SensorNoise = SensorNoise()
    observer: str = parameter(
        "kalman",
        "Method that measures friction: kalman, the most accurate one, or the published methods fbse, momentum and "
        "constrained.",
        choices=OBSERVER_NAMES,
    )
    stages: str = parameter(
        "all",
        "Stages that run. base_state: base state and contact phase only. friction: all others. graph:=split starts "
        "a node for each.",
        choices=STAGES,
        advanced=True,
    )
    identifier: IdentifierConfig = IdentifierConfig()
    kalman: KalmanConfig = KalmanConfig()
    compensation: CompensationConfig = CompensationConfig()
    output: OutputConfig = OutputConfig()
    synchronizer: SynchronizerConfig = SynchronizerConfig()
    attitude: AttitudeConfig = AttitudeConfig()
    contact_phase: ContactPhaseConfig = ContactPhaseConfig()
    base_state: BaseStateConfig = BaseStateConfig()
    fbse: FbseConfig = FbseConfig()
    momentum: MomentumConfig = MomentumConfig()
    constrained: ConstrainedConfig = ConstrainedConfig()
    diagnosis: DiagnosisConfig = DiagnosisConfig()

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
            raise ConfigError(f"feet.names = {names} has a name twice; each foot needs its own")
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
