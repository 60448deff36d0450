"""Parameters of a robot and of all stages: one frozen dataclass per stage, with unit, range and description.

The parameter YAML of the ROS node is a flat mapping ``{"momentum.gain": 30.0, ...}``. :func:`config_from_parameters`
builds and validates a :class:`Config` from it, and refuses unknown keys by name.
:func:`parameter_fields` lists the same fields for the node, which declares its ROS parameters from them.
"""

from friction_estimator.config.estimation import (
    AttitudeConfig,
    BaseStateConfig,
    CompensationConfig,
    ConstrainedConfig,
    FbseConfig,
    IdentifierConfig,
    KalmanConfig,
    MomentumConfig,
    SynchronizerConfig,
)
from friction_estimator.config.robot import (
    CouplingConfig,
    FootConfig,
    ImuConfig,
    RobotConfig,
    SensorNoise,
)
from friction_estimator.config.root import (
    OBSERVERS,
    Config,
    OutputConfig,
    ParameterField,
    ParameterValue,
    checked_value,
    config_from_parameters,
    parameter_fields,
)
from friction_estimator.config.validation import Range

__all__ = [
    "AttitudeConfig",
    "BaseStateConfig",
    "CompensationConfig",
    "Config",
    "ConstrainedConfig",
    "CouplingConfig",
    "FbseConfig",
    "FootConfig",
    "IdentifierConfig",
    "ImuConfig",
    "KalmanConfig",
    "MomentumConfig",
    "OBSERVERS",
    "OutputConfig",
    "ParameterField",
    "ParameterValue",
    "Range",
    "RobotConfig",
    "SensorNoise",
    "SynchronizerConfig",
    "checked_value",
    "config_from_parameters",
    "parameter_fields",
]
