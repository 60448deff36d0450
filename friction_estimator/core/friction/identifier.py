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

    Attributes
    ----------
    law : the friction law
    frozen : True while nothing is learned
    residual_variance : (n,) variance of what the law does not explain [(N m)^2]
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
        self._samples = np.zeros(n)
        self._weight = np.zeros(n)
        self._error_sum = np.zeros(n)
        self._noise_sum = np.zeros(n)
        self._refresh_statistics()

    def regressor(self, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Regressor of the law at these velocities (n,) and motor torques (n,): (n, p)."""
        return self.law.regressor(velocity, effort)

    def learn(self, regressor: FloatArray, measured: FloatArray, noise: FloatArray, active: BoolArray) -> None:
        """Use one measurement of friction where ``active`` (eqs. 64-67), unless frozen.

        Parameters
        ----------
        regressor : (n, p)
        measured : (n,) friction [N m]
        noise : (n,) standard deviation of the white noise in it [N m]
        active : (n,)
        """
        if self.frozen or not active.any():
            return
        predicted = (regressor * self.parameters).sum(axis=1)
        variance = noise**2 + self.residual_variance + self.parameter_variance(regressor)
        limit = np.where(active, self._config.outlier_gate * np.sqrt(variance), 0.0)
        cut = predicted + np.clip(np.where(active, measured - predicted, 0.0), -limit, limit)
        error = self._least_squares.step(regressor, cut, active)
        keep = 1.0 - 1.0 / self._config.residual_window
        self._samples = np.where(active, self._config.forgetting * self._samples + 1.0, self._samples)
        self._weight = np.where(active, keep * self._weight + 1.0, self._weight)
        self._error_sum = np.where(active, keep * self._error_sum + error**2, self._error_sum)
        self._noise_sum = np.where(active, keep * self._noise_sum + noise**2, self._noise_sum)
        self._refresh_statistics()

    def predict(self, regressor: FloatArray) -> ModelledFriction:
        """The law at a regressor (n, p), and how far it may be off.

        Noise of the measurements averages out over the samples, as P_RLS says. What the law cannot represent does not:
        its variance counts in full, and more where the law is asked outside of what it has seen.
        """
        friction = (regressor * self.parameters).sum(axis=1)
        return ModelledFriction(friction, np.sqrt(self.residual_variance + self.parameter_variance(regressor)))

    def parameter_variance(self, regressor: FloatArray) -> FloatArray:
        """Variance of the law's prediction at a regressor (n, p) from its parameters alone, (n,) [(N m)^2]."""
        spread = np.einsum("ni,nij,nj->n", regressor, self._least_squares.covariance, regressor)
        return np.asarray(self._covariance_scale * spread)

    def lag_variance(self, regressor: FloatArray, delayed: FloatArray) -> FloatArray:
        """Squared error of a friction that is as far behind as ``delayed`` is behind ``regressor``, (n,) [(N m)^2].

        What the law knows of the change, how well it knows it, and all that it does not represent, since nothing tells
        how fast that part changes. Zero for an observer without lag, whose ``delayed`` is ``regressor`` itself.
        """
        if delayed is regressor:
            return np.zeros(len(self._joint_names))
        behind = regressor - delayed
        known = (behind * self.parameters).sum(axis=1) ** 2
        return np.asarray(known + self.parameter_variance(behind) + self.residual_variance)

    @property
    def parameters(self) -> FloatArray:
        """Identified parameters, (n, p)."""
        return self._least_squares.parameters

    @property
    def parameters_sigma(self) -> FloatArray:
        """Their standard deviations, (n, p)."""
        diagonal = np.diagonal(self._least_squares.covariance, axis1=1, axis2=2)
        return np.sqrt(self._covariance_scale[:, None] * diagonal)

    def _refresh_statistics(self) -> None:
        """Update what depends on the sums of squares.

        ``residual_variance`` is what the law does not explain: the mean squared error less the variance of the
        measurements, never below the uncertainty of that difference; one, the scale of P_RLS, before any data.
        """
        weight = np.maximum(self._weight, 1.0)
        error, noise = self._error_sum / weight, self._noise_sum / weight
        unexplained = np.maximum(error - noise, np.minimum(error, noise) * np.sqrt(2.0 / weight))
        self.residual_variance: FloatArray = np.where(self._weight > 0.0, unexplained, 1.0)
        self._measurement_variance: FloatArray = noise
        # from P_RLS to the covariance of the parameters: noise, plus what never averages out
        self._covariance_scale: FloatArray = noise + np.maximum(self._samples, 1.0) * self.residual_variance

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
            covariance=self._covariance_scale[:, None, None] * self._least_squares.covariance,
            residual_variance=self.residual_variance,
            measurement_variance=self._measurement_variance,
            samples=self._samples.copy(),
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
        least_squares = self._least_squares
        least_squares.parameters = least_squares.parameters.copy()  # estimates that left hold the present arrays
        least_squares.covariance = least_squares.covariance.copy()
        least_squares.parameters[here] = identified.values[there]
        self._samples = _replaced(self._samples, here, identified.samples[there])
        weight = np.minimum(identified.samples[there], self._config.residual_window)
        self._weight = _replaced(self._weight, here, weight)
        self._noise_sum = _replaced(self._noise_sum, here, weight * identified.measurement_variance[there])
        error = identified.measurement_variance[there] + identified.residual_variance[there]
        self._error_sum = _replaced(self._error_sum, here, weight * error)
        self._refresh_statistics()
        scale = self._covariance_scale[here]
        least_squares.covariance[here] = identified.covariance[there] / scale[:, None, None]


def _replaced(values: FloatArray, rows: list[int], new: FloatArray) -> FloatArray:
    result = values.copy()
    result[rows] = new
    return result
