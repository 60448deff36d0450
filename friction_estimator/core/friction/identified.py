"""The identified parameters of one robot, as they are saved and restored."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class IdentifiedParameters:
    """Parameters of one friction law for every joint.

    Attributes
    ----------
    law : name of the friction law
    parameter_names : (p) names of the columns
    joint_names : (n) names of the rows
    values : (n, p) in SI units
    covariance : (n, p, p) of the values, in SI units
    residual_variance : (n,) variance of what the law does not explain [(N m)^2]
    measurement_variance : (n,) variance of the noise in the measured friction [(N m)^2]
    samples : (n,) how many measurements the values rest on
    """

    law: str
    parameter_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    residual_variance: FloatArray
    measurement_variance: FloatArray
    samples: FloatArray
