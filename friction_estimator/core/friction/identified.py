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
    covariance : (n, p, p)
    residual_variance : (n,) variance of measured minus modelled friction [(N m)^2]
    """

    law: str
    parameter_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    residual_variance: FloatArray
