"""The identified parameters of one robot, as they are saved and restored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.errors import ConfigError
from friction_estimator.laws.law import make_law
from friction_estimator.types import FloatArray


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
    velocity_range : (n, 2) speeds between which the joint was in motion [rad/s], NaN where unknown; None: all unknown
    """

    joint_names: tuple[str, ...]
    law_names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    residual_variance: FloatArray
    measurement_variance: FloatArray
    samples: FloatArray
    velocity_range: FloatArray | None = None

    @property
    def parameter_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the columns that each joint (n) uses."""
        return tuple(make_law(name).parameter_names for name in self.law_names)


def parameters_sigma(identified: IdentifiedParameters) -> FloatArray:
    """Standard deviations of the values, (n, p)."""
    return np.sqrt(np.diagonal(identified.covariance, axis1=1, axis2=2))


def common_rows(
    identified: IdentifiedParameters, joint_names: tuple[str, ...], law_names: tuple[str, ...]
) -> tuple[list[int], list[int]]:
    """Rows here and there of the joints that both have, with the same law.

    Parameters
    ----------
    joint_names, law_names : (n) of the robot here

    Raises
    ------
    ConfigError
        When there are none, or their laws differ.
    """
    saved = {name: row for row, name in enumerate(identified.joint_names)}
    here = [row for row, name in enumerate(joint_names) if name in saved]
    there = [saved[joint_names[row]] for row in here]
    if not here:
        raise ConfigError(
            f"the parameters are those of the joints {', '.join(identified.joint_names)}; "
            f"this robot has {', '.join(joint_names)}"
        )
    differences = [
        f"{joint_names[mine]}: {identified.law_names[other]!r}, not {law_names[mine]!r}"
        for mine, other in zip(here, there, strict=True)
        if identified.law_names[other] != law_names[mine]
    ]
    if differences:
        raise ConfigError(
            "the parameters belong to other friction laws than identifier.law and identifier.joint_laws name "
            f"({'; '.join(differences)})"
        )
    return here, there
