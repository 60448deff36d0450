"""The identifier stage: the friction law of every joint, learned while it can be measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.config import IdentifierConfig
from friction_estimator.core.friction.coulomb_viscous import CoulombViscous
from friction_estimator.core.friction.identified import IdentifiedParameters, common_rows
from friction_estimator.core.friction.joint_laws import JointLaws, laws_of_joints
from friction_estimator.core.friction.recursive_least_squares import RecursiveLeastSquares
from friction_estimator.core.motor_side import MotorSide
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
    config : laws, phases, forgetting
    joint_names : (n)
    motors : that move them, whose friction is learned; None: every joint has its own

    Attributes
    ----------
    laws : the friction laws of the motors
    frozen : True while nothing is learned
    residual_variance : (n,) variance of what the law does not explain, motor by motor [(N m)^2]
    consistency : (n,) squared error of the newest prediction over its variance; NaN before a joint has learned
    """

    def __init__(self, config: IdentifierConfig, joint_names: tuple[str, ...], motors: MotorSide | None = None) -> None:
        self._config = config
        self._motors = motors or MotorSide.of(None, joint_names)
        names = self._motors.names
        self.laws = JointLaws(laws_of_joints(config.law or CoulombViscous.name, config.joint_laws, names))
        self.frozen = False
        self.forget()

    def forget(self) -> None:
        """Drop everything that was learned."""
        n = len(self._motors.names)
        # Table II means F_c and F_v; columns with another unit (load) are scaled as their priors are
        relative_std = self.laws.prior_std / CoulombViscous.prior_std[0]
        initial_variance: FloatArray = self._config.initial_covariance * relative_std**2
        self._least_squares = RecursiveLeastSquares(initial_variance, self._config.forgetting)
        self.consistency: FloatArray = np.full(n, np.nan)
        self._samples = np.zeros(n)
        self._weight = np.zeros(n)
        self._error_sum = np.zeros(n)
        self._noise_sum = np.zeros(n)
        self._refresh_statistics()

    def regressor(self, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Regressor of the laws at these velocities (n,) and motor torques (n,) of the joints: (n, p), by motor."""
        return self.laws.regressor(self._motors.velocity(velocity), self._motors.torque(effort))

    def learn(self, regressor: FloatArray, measured: FloatArray, noise: FloatArray, active: BoolArray) -> None:
        """Use one measurement of friction where ``active`` (eqs. 64-67), unless frozen.

        Parameters
        ----------
        regressor : (n, p)
        measured : (n,) friction of the joints [N m]
        noise : (n,) standard deviation of the white noise in it [N m]
        active : (n,)
        """
        if self.frozen or not active.any():
            return
        if self._motors.couples:
            measured = self._motors.torque(np.where(active, measured, 0.0))
            noise = self._motors.torque_std(np.where(active, noise, 0.0))
            active = self._motors.all(active)
        predicted = (regressor * self.parameters).sum(axis=1)
        variance = noise**2 + self.residual_variance + self.parameter_variance(regressor)
        self.consistency = np.where(active, (measured - predicted) ** 2 / variance, self.consistency)
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
        """Friction of the joints by the law at a regressor (n, p), and how far it may be off.

        Noise of the measurements averages out over the samples, as P_RLS says. What the law cannot represent does not:
        its variance counts in full, and more where the law is asked outside of what it has seen.
        """
        friction = (regressor * self.parameters).sum(axis=1)
        variance = self.residual_variance + self.parameter_variance(regressor)
        return ModelledFriction(self._motors.at_joints(friction), np.sqrt(self._motors.variance_at_joints(variance)))

    def parameter_variance(self, regressor: FloatArray) -> FloatArray:
        """Variance [(N m)^2] of the motors' friction at a regressor (n, p) from its parameters alone, (n,)."""
        spread = np.einsum("ni,nij,nj->n", regressor, self._least_squares.covariance, regressor)
        return np.maximum(self._covariance_scale * spread, 0.0)  # rounding, where parameters cancel

    def lag_variance(self, regressor: FloatArray, delayed: FloatArray) -> FloatArray:
        """Squared error of the joints' friction as far behind as ``delayed`` is behind ``regressor``, (n,) [(N m)^2].

        What the law knows of the change, how well it knows it, and all that it does not represent, since nothing tells
        how fast that part changes. Zero for an observer without lag, whose ``delayed`` is ``regressor`` itself.
        """
        if delayed is regressor:
            return np.zeros(len(self._motors.names))
        behind = regressor - delayed
        at_joints, variance_at_joints = self._motors.at_joints, self._motors.variance_at_joints
        known = at_joints((behind * self.parameters).sum(axis=1)) ** 2
        variance = variance_at_joints(self.parameter_variance(behind))
        return np.asarray(known + variance + variance_at_joints(self.residual_variance))

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
        """F_c of every joint that moves alone (n,) [N m]."""
        return self._motors.coulomb_at_joints(self.laws.coulomb(self.parameters))

    @property
    def coulomb_sigma(self) -> FloatArray:
        """Its standard deviation (n,) [N m]."""
        variance = self.parameter_variance(self.laws.coulomb_weights)
        return np.asarray(np.sqrt(self._motors.variance_at_joints(variance)))

    @property
    def viscous(self) -> FloatArray:
        """F_v of every joint that moves alone (n,) [N m s/rad]."""
        return self._motors.viscous_at_joints(self.laws.viscous(self.parameters))

    @property
    def viscous_sigma(self) -> FloatArray:
        """Its standard deviation (n,) [N m s/rad]."""
        variance = self.parameter_variance(self.laws.viscous_weights)
        return np.asarray(np.sqrt(self._motors.viscous_variance_at_joints(variance)))

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
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
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        weight = np.minimum(identified.samples[there], self._config.residual_window)
        error = identified.measurement_variance[there] + identified.residual_variance[there]
        self._samples = _replaced(self._samples, here, identified.samples[there])
        self._weight = _replaced(self._weight, here, weight)
        self._noise_sum = _replaced(self._noise_sum, here, weight * identified.measurement_variance[there])
        self._error_sum = _replaced(self._error_sum, here, weight * error)
        self._refresh_statistics()
        p = min(self.laws.parameter_count, identified.values.shape[1])  # the rest is padding on both sides
        least_squares, scale = self._least_squares, self._covariance_scale[here, None, None]
        values, covariance = np.zeros_like(self.parameters[here]), np.zeros_like(least_squares.covariance[here])
        values[:, :p] = identified.values[there, :p]
        covariance[:, :p, :p] = identified.covariance[there, :p, :p] / scale
        least_squares.parameters = _replaced(least_squares.parameters, here, values)
        least_squares.covariance = _replaced(least_squares.covariance, here, covariance)


def _replaced(values: FloatArray, rows: list[int], new: FloatArray) -> FloatArray:
    """A copy with new rows: estimates that left hold the old array."""
    result = values.copy()
    result[rows] = new
    return result
