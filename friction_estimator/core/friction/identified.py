"""The identified parameters of one robot, as they are saved and restored."""

from __future__ import annotations

from dataclasses import dataclass

from friction_estimator.core.friction.law import make_law
from friction_estimator.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class IdentifiedParameters:
    """Parameters of every joint's friction law, padded with zeros to the law with most parameters.

    Attributes
    ----------
    joint_names : (n) names of the rows
    law_names : (n) name of the friction law of every joint
    values : (n, p) in SI units
    covariance : (n, p, p) of the values, in SI units
    residual_variance : (n,) variance of what the law does not explain [(N m)^2]
    measurement_variance : (n,) variance of the noise in the measured friction [(N m)^2]
    samples : (n,) how many measurements the values rest on
    """

    joint_names: tuple[str, ...]
    law_names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    residual_variance: FloatArray
    measurement_variance: FloatArray
    samples: FloatArray

    @property
    def parameter_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the columns that each joint (n) uses."""
        return tuple(make_law(name).parameter_names for name in self.law_names)
