"""The identifier stage: the friction law of every joint, learned while it can be measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import IdentifierConfig
from friction_estimator.core.exceptions import ConfigError
from friction_estimator.core.friction.identified import IdentifiedParameters
from friction_estimator.core.friction.law import make_linear_law
from friction_estimator.core.friction.recursive_least_squares import RecursiveLeastSquares
from friction_estimator.core.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class ModelledFriction:
    """What the law says.

    Attributes
    ----------
    friction : (n,) [N m] at the present velocity
    sigma : (n,) standard deviation of that prediction [N m]
    """

    friction: FloatArray
    sigma: FloatArray


class FrictionIdentifier:
    """Recursive least squares on the measured friction, and the predictions of the law.

    Parameters
    ----------
    config : law, phases, forgetting
    joint_names : (n)
    """

    def __init__(self, config: IdentifierConfig, joint_names: tuple[str, ...]) -> None:
        self._config = config
        self._joint_names = joint_names
        self.law = make_linear_law(config.law)
        self.frozen = False
        self.forget()

    def forget(self) -> None:
        """Drop everything that was learned."""
        n, p = len(self._joint_names), len(self.law.parameter_names)
        self._least_squares = RecursiveLeastSquares(n, p, self._config.initial_covariance, self._config.forgetting)
        self._residual_sum = np.zeros(n)
        self._residual_weight = np.zeros(n)

    def regressor(self, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Regressor of the law at these velocities (n,) and motor torques (n,): (n, p)."""
        return self.law.regressor(velocity, effort)

    def learn(self, regressor: FloatArray, measured: FloatArray, active: BoolArray) -> None:
        """Use one measurement of friction where ``active`` (eqs. 64-67), unless frozen."""
        if self.frozen or not active.any():
            return
        error = self._least_squares.step(regressor, np.where(active, measured, 0.0), active)
        keep = 1.0 - 1.0 / self._config.residual_window
        weight = np.where(active, keep * self._residual_weight + 1.0, self._residual_weight)
        self._residual_sum = np.where(active, keep * self._residual_sum + error**2, self._residual_sum)
        self._residual_weight = weight

    def predict(self, regressor: FloatArray) -> ModelledFriction:
        """The law at a regressor (n, p), with the spread of what it did not explain so far."""
        friction = (regressor * self.parameters).sum(axis=1)
        spread = np.einsum("ni,nij,nj->n", regressor, self._least_squares.covariance, regressor)
        variance = self.residual_variance
        return ModelledFriction(friction, np.sqrt(variance * (1.0 + spread)))

    @property
    def parameters(self) -> FloatArray:
        """Identified parameters, (n, p)."""
        return self._least_squares.parameters

    @property
    def parameters_sigma(self) -> FloatArray:
        """Their standard deviations, (n, p): ``sqrt(residual variance * diag P_RLS)``."""
        diagonal = np.diagonal(self._least_squares.covariance, axis1=1, axis2=2)
        return np.sqrt(self.residual_variance[:, None] * diagonal)

    @property
    def residual_variance(self) -> FloatArray:
        """Variance of measured minus modelled friction, (n,); one [N m]^2, the scale of P_RLS, before any data."""
        weight = self._residual_weight
        return np.where(weight > 0.0, self._residual_sum / np.maximum(weight, 1.0), 1.0)

    @property
    def coulomb(self) -> FloatArray:
        """F_c of every joint (n,) [N m]."""
        return self.parameters[:, self.law.coulomb_column]

    @property
    def viscous(self) -> FloatArray:
        """F_v of every joint (n,) [N m s/rad]."""
        return self.parameters[:, self.law.viscous_column]

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        return IdentifiedParameters(
            law=self.law.name,
            parameter_names=self.law.parameter_names,
            joint_names=self._joint_names,
            values=self.parameters.copy(),
            covariance=self._least_squares.covariance.copy(),
            residual_variance=self.residual_variance.copy(),
        )

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to another friction law, or to none of these joints.
        """
        if identified.law != self.law.name or identified.parameter_names != self.law.parameter_names:
            raise ConfigError(
                f"the parameters are those of the law {identified.law!r}, but identifier.law is {self.law.name!r}"
            )
        rows = [
            (self._joint_names.index(name), row)
            for row, name in enumerate(identified.joint_names)
            if name in self._joint_names
        ]
        if not rows:
            raise ConfigError(
                f"the parameters are those of the joints {', '.join(identified.joint_names)}; "
                f"this robot has {', '.join(self._joint_names)}"
            )
        here, there = (list(side) for side in zip(*rows, strict=True))
        for target, source in (
            (self._least_squares.parameters, identified.values),
            (self._least_squares.covariance, identified.covariance),
        ):
            target[here] = source[there]
        weight = self._config.residual_window
        self._residual_weight[here] = weight
        self._residual_sum[here] = weight * identified.residual_variance[there]
