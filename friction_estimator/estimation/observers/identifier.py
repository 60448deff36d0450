"""Recursive least squares of every motor's friction law (Hashlamon & Erbatur 2014, section 6), and its predictions."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.config import IdentifierConfig
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.laws.joint_laws import (
    IdentifiedParameters,
    JointLaws,
    common_rows,
    laws_of_joints,
    regressor_of_motors,
)
from friction_estimator.laws.linear import COULOMB_VISCOUS
from friction_estimator.linear_algebra import LARGEST, bounded, is_covariance
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import BoolArray, FloatArray, IntArray, LawEstimate

_OUTLIER_GATE = 10.0
"""Errors of more than this many standard deviations are cut to that: a glitch then cannot spoil the law."""
_RESIDUAL_WINDOW = 2000.0
"""Window of the residual variance from which the law's standard deviation follows [samples]."""


@kernel
def _dot(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for i in range(left.size):
        total += left[i] * right[i]
    return total


@kernel
def _cross(left: FloatArray, P: FloatArray, right: FloatArray) -> float:
    """``left^T P right``."""
    total = 0.0
    for i in range(left.size):
        total += left[i] * _dot(P[i], right)
    return total


@kernel
def _spread(phi: FloatArray, P: FloatArray) -> float:
    """``phi^T P phi``, not below zero by rounding, where parameters cancel."""
    return max(_cross(phi, P, phi), 0.0)


@kernel
def recursive_least_squares(
    theta: FloatArray, P: FloatArray, initial_variance: FloatArray, phi: FloatArray, measured: float, forgetting: float
) -> float:
    """Update the parameters of ``y = phi^T theta`` of one motor in place; return the residual before (eq. 65).

    Parameters
    ----------
    theta : (p,) Phi, zero at first (Table II)
    P : (p, p) P_RLS, in units of the measurement variance
    initial_variance : (p,) diagonal of P_RLS_0, 10 everywhere in Table II; zero where the law has no such parameter,
        which then stays exactly zero as long as its regressor does
    phi : (p,)
    forgetting : factor per sample; 1 never forgets, as published
    """
    p = theta.size
    P_phi = np.empty(p)
    for i in range(p):
        P_phi[i] = _dot(P[i], phi)
    innovation = forgetting + _dot(phi, P_phi)
    error = measured - _dot(phi, theta)  # eq. 65
    wound_up = False
    for i in range(p):
        theta[i] += P_phi[i] / innovation * error  # eqs. 64, 66
        if (P[i, i] - P_phi[i] * P_phi[i] / innovation) / forgetting > initial_variance[i]:
            wound_up = True
    if forgetting < 1.0 and wound_up:  # what is not excited is not forgotten: no parameter gets worse than at the start
        return error
    # eq. 67, K phi^T P as a product that is symmetric to the last bit: forgetting amplifies the rest
    for i in range(p):
        for j in range(p):
            P[i, j] = (P[i, j] - P_phi[i] * P_phi[j] / innovation) / forgetting
    return error


@kernel("M M")
def refresh_statistics(sums: FloatArray, statistics: FloatArray) -> None:
    """Update what depends on the sums of squares.

    The residual variance is that of the law's model error: the mean squared error less the variance of the
    measurements, never below the uncertainty of that difference; one, the scale of P_RLS, before any data.

    Parameters
    ----------
    sums : (4, n) samples; weight of the window, and its sums of squared errors and squared noise
    statistics : (3, n) output: residual variance, measurement variance [(N m)^2], scale from P_RLS to the covariance
    """
    for motor in range(sums.shape[1]):
        weight = max(sums[1, motor], 1.0)
        error, noise = sums[2, motor] / weight, sums[3, motor] / weight
        unexplained = max(error - noise, min(error, noise) * math.sqrt(2.0 / weight))
        statistics[0, motor] = unexplained if sums[1, motor] > 0.0 else 1.0
        statistics[1, motor] = noise
        # noise, plus what never averages out
        statistics[2, motor] = noise + max(sums[0, motor], 1.0) * statistics[0, motor]


LEARNED, NOTHING_LEARNED = -1, -2


@kernel("M T M M V M M IM M V V B f8 f8 f8")
def learn_laws(
    parameters: FloatArray,
    covariance: FloatArray,
    sums: FloatArray,
    statistics: FloatArray,
    consistency: FloatArray,
    initial_variance: FloatArray,
    matrix: FloatArray,
    group: IntArray,
    regressor: FloatArray,
    measured: FloatArray,
    noise: FloatArray,
    active: BoolArray,
    forgetting: float,
    outlier_gate: float,
    residual_window: float,
) -> int:
    """Use one measurement of friction for the motors all of whose joints are ``active``.

    A motor whose parameters would not be finite afterwards keeps those of before, and is returned.

    Parameters
    ----------
    parameters, covariance, sums, statistics, consistency : state of :class:`FrictionIdentifier`, changed in place
    matrix, group : of the motors
    regressor, measured, noise, active : of :meth:`FrictionIdentifier.learn`

    Returns
    -------
    Number of the motor that failed, else ``LEARNED`` or ``NOTHING_LEARNED``
    """
    learned, p = False, parameters.shape[1]
    old_theta, old_P, old_sums = np.empty(p), np.empty((p, p)), np.empty(len(sums))
    for motor in range(len(parameters)):
        known = True
        for joint in group[motor]:
            known = known and active[joint]
        if not known:
            continue
        learned = True
        torque, noise_variance = 0.0, 0.0
        for joint in range(len(matrix)):
            share = matrix[joint, motor]
            if share != 0.0:
                torque += share * measured[joint]
                noise_variance += (share * noise[joint]) ** 2
        phi, theta, P = regressor[motor], parameters[motor], covariance[motor]
        old_theta[:], old_P[:], old_sums[:] = theta, P, sums[:, motor]
        predicted = _dot(phi, theta)
        variance = noise_variance + statistics[0, motor] + statistics[2, motor] * _spread(phi, P)
        error, limit = torque - predicted, outlier_gate * math.sqrt(variance)
        consistency[motor] = error * error / variance
        if error > limit:
            torque = predicted + limit
        elif error < -limit:
            torque = predicted - limit
        error = recursive_least_squares(theta, P, initial_variance[motor], phi, torque, forgetting)
        keep = 1.0 - 1.0 / residual_window
        sums[0, motor] = forgetting * sums[0, motor] + 1.0
        sums[1, motor] = keep * sums[1, motor] + 1.0
        sums[2, motor] = keep * sums[2, motor] + error * error
        sums[3, motor] = keep * sums[3, motor] + noise_variance
        if not (bounded(theta) and is_covariance(P) and bounded(sums[:, motor])):
            theta[:], P[:], sums[:, motor] = old_theta, old_P, old_sums
            return motor
    if not learned:
        return NOTHING_LEARNED
    refresh_statistics(sums, statistics)
    return LEARNED


@kernel("M T M M M V V")
def predict_friction(
    parameters: FloatArray,
    covariance: FloatArray,
    statistics: FloatArray,
    to_joints: FloatArray,
    regressor: FloatArray,
    friction: FloatArray,
    sigma: FloatArray,
) -> None:
    """Write the friction of the joints (n,) by the laws at a regressor (n, p), and its standard deviation (n,).

    Noise of the measurements averages out over the samples, as P_RLS has it. What the law cannot represent does not:
    its variance counts in full, and more where the regressor is outside of what was seen.
    """
    n = friction.size
    friction[:] = 0.0
    sigma[:] = 0.0
    for motor in range(n):
        phi = regressor[motor]
        torque = _dot(phi, parameters[motor])
        variance = statistics[0, motor] + statistics[2, motor] * _spread(phi, covariance[motor])
        for joint in range(n):
            share = to_joints[joint, motor]
            if share != 0.0:
                friction[joint] += share * torque
                sigma[joint] += share * share * variance
    for joint in range(n):
        sigma[joint] = math.sqrt(sigma[joint])


@kernel("M T M M M M M M")
def describe_laws(
    parameters: FloatArray,
    covariance: FloatArray,
    statistics: FloatArray,
    to_joints: FloatArray,
    coulomb_rows: FloatArray,
    viscous_rows: FloatArray,
    parameters_sigma: FloatArray,
    out: FloatArray,
) -> None:
    """Write the other fields of :class:`LawEstimate`: ``parameters_sigma`` (n, p), the others into rows of ``out``.

    Parameters
    ----------
    coulomb_rows, viscous_rows : (n, p) of :class:`VisitedVelocities`
    out : (5, n) F_c, F_v, their standard deviations and their covariance, of every joint that moves alone
    """
    n, p = parameters.shape
    out[:] = 0.0
    coulomb, viscous, coulomb_sigma, viscous_sigma, cross = out[0], out[1], out[2], out[3], out[4]
    for motor in range(n):
        theta, P, scale = parameters[motor], covariance[motor], statistics[2, motor]
        c, v = coulomb_rows[motor], viscous_rows[motor]
        for i in range(p):
            parameters_sigma[motor, i] = math.sqrt(scale * max(P[i, i], 0.0))
        for joint in range(n):
            share = abs(to_joints[joint, motor])
            if share != 0.0:
                coulomb[joint] += share * _dot(c, theta)
                viscous[joint] += share**2 * _dot(v, theta)
                coulomb_sigma[joint] += share**2 * scale * _spread(c, P)
                viscous_sigma[joint] += share**4 * scale * _spread(v, P)
                cross[joint] += share**3 * scale * _cross(c, P, v)
    for joint in range(n):
        coulomb_sigma[joint] = math.sqrt(coulomb_sigma[joint])
        viscous_sigma[joint] = math.sqrt(viscous_sigma[joint])


class FrictionIdentifier:
    """The friction law of every motor, identified while friction can be measured.

    Parameters
    ----------
    config : laws, phases, forgetting
    joint_names : (n)
    motors : that move them, whose friction is identified; None: one motor for each joint

    Attributes
    ----------
    laws : the friction laws of the motors
    frozen : True while identification pauses
    law : the identified laws as they are published; the same object until they change
    consistency : (n,) squared error of the newest prediction over its variance; NaN before the first one of a joint
    visited : velocities at which the laws were identified
    """

    def __init__(
        self, config: IdentifierConfig, joint_names: tuple[str, ...], motors: Transmission | None = None
    ) -> None:
        self._forgetting = config.forgetting
        self._motors = motors or Transmission.of(None, joint_names)
        names = self._motors.names
        self.laws = JointLaws(laws_of_joints(config.law or COULOMB_VISCOUS.name, config.joint_laws, names))
        self.visited = VisitedVelocities(self.laws)
        # Table II means F_c and F_v; columns with another unit (load) are scaled as their priors are
        relative_std = self.laws.prior_std / COULOMB_VISCOUS.prior_std[0]
        self._initial_variance: FloatArray = config.initial_covariance * relative_std**2
        self.frozen = False
        self.forget()

    def forget(self) -> None:
        """Drop all identified parameters."""
        n, p = self._initial_variance.shape
        self._parameters = np.zeros((n, p))
        self._covariance = self._initial_variance[:, :, None] * np.eye(p)
        self._sums, self._statistics, self._newest_consistency = np.zeros((4, n)), np.empty((3, n)), np.full(n, np.nan)
        refresh_statistics(self._sums, self._statistics)
        self.visited.forget()
        self._publish()

    @property
    def state(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The first arguments of :func:`predict_friction`; they change with every call of :meth:`learn`."""
        return self._parameters, self._covariance, self._statistics, self._motors.to_joints

    def regressor(self, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Regressor of the laws at these velocities (n,) and motor torques (n,) of the joints: (n, p), by motor."""
        laws, motors, regressor = self.laws, self._motors, np.empty(self._parameters.shape)
        regressor_of_motors(laws.table, motors.matrix, motors.to_joints, velocity, effort, regressor)
        return regressor

    def learn(self, regressor: FloatArray, measured: FloatArray, noise: FloatArray, active: BoolArray) -> None:
        """Use one measurement of friction where ``active`` (eqs. 64-67), unless frozen.

        Parameters
        ----------
        regressor : (n, p)
        measured : (n,) friction of the joints [N m]
        noise : (n,) standard deviation of the white noise in it [N m]
        active : (n,)

        Raises
        ------
        FloatingPointError
            When the measurement, or the law of a motor, was not finite. That law begins anew then.
        """
        if self.frozen:
            return
        outcome = learn_laws(
            self._parameters,
            self._covariance,
            self._sums,
            self._statistics,
            self._newest_consistency,
            self._initial_variance,
            self._motors.matrix,
            self._motors.group,
            regressor,
            measured,
            noise,
            active,
            self._forgetting,
            _OUTLIER_GATE,
            _RESIDUAL_WINDOW,
        )
        if outcome == LEARNED:
            self._publish()
        elif outcome != NOTHING_LEARNED:
            if mended := self.mend():
                raise FloatingPointError(f"the friction law of {mended} was not finite, and begins anew")
            raise FloatingPointError(f"the measured friction of {self._motors.names[outcome]} was not finite")

    def mend(self) -> str:
        """Let every law begin anew that is not finite; the names of their motors, empty where there is none."""
        failed = [
            motor
            for motor, covariance in enumerate(self._covariance)
            if not (
                is_covariance(covariance) and np.abs([*self._parameters[motor], *self._sums[:, motor]]).max() <= LARGEST
            )
        ]
        if failed:
            self._parameters[failed], self._sums[:, failed], self._newest_consistency[failed] = 0.0, 0.0, np.nan
            self._covariance[failed] = self._initial_variance[failed, :, None] * np.eye(self._parameters.shape[1])
            refresh_statistics(self._sums, self._statistics)
            self._publish()
        return ", ".join(self._motors.names[motor] for motor in failed)

    def _publish(self) -> None:
        """Rebuild ``law`` and ``consistency`` from copies of the state."""
        sigma, out, visited = np.empty(self._parameters.shape), np.empty((5, len(self._parameters))), self.visited
        describe_laws(*self.state, visited.rows[0], visited.rows[1], sigma, out)
        self.law = LawEstimate(
            self._parameters.copy(), sigma, out[0], out[1], out[2], out[3], out[4], visited.velocity_range.copy()
        )
        self.consistency = self._newest_consistency.copy()

    @property
    def identified(self) -> IdentifiedParameters:
        """What is worth keeping over a restart."""
        residual_variance, measurement_variance, scale = self._statistics.copy()
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
            values=self._parameters.copy(),
            covariance=scale[:, None, None] * self._covariance,
            residual_variance=residual_variance,
            measurement_variance=measurement_variance,
            samples=self._sums[0].copy(),
            velocity_range=self.visited.velocity_range.copy(),
        )

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        samples, noise = identified.samples[there], identified.measurement_variance[there]
        weight = np.minimum(samples, _RESIDUAL_WINDOW)
        error = noise + identified.residual_variance[there]
        self._sums[:, here] = samples, weight, weight * error, weight * noise
        refresh_statistics(self._sums, self._statistics)
        p = min(self.laws.parameter_count, identified.values.shape[1])  # the rest is padding on both sides
        scale = self._statistics[2, here, None, None]
        self._parameters[here], self._covariance[here] = 0.0, 0.0
        self._parameters[here, :p] = identified.values[there, :p]
        self._covariance[here, :p, :p] = identified.covariance[there, :p, :p] / scale
        self.visited.restore(identified, here, there)
        self._publish()
