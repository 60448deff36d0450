"""Recursive least squares of every motor's friction law (Hashlamon & Erbatur 2014, section 6), and its predictions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.config import IdentifierConfig
from friction_estimator.estimation.visited_velocities import VisitedVelocities
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered, buffered_zeros, record
from friction_estimator.laws.identified import IdentifiedParameters, common_rows
from friction_estimator.laws.joint_laws import JointLaws, laws_of_joints, regressor_of_motors
from friction_estimator.laws.linear import COULOMB_VISCOUS
from friction_estimator.linear_algebra import DIVERGENCE_LIMIT, bilinear, dot, is_bounded, is_covariance
from friction_estimator.robot.transmission import MotorTable, Transmission
from friction_estimator.types import BoolArray, Flags, FloatArray, LawEstimate, Matrix, Tensor, Vector

_OUTLIER_GATE = 10.0
"""Errors of more than this many standard deviations are cut to that: a glitch then cannot spoil the law."""
_RESIDUAL_WINDOW = 2000.0
"""Window of the residual variance from which the law's standard deviation follows [samples]."""


@record
class IdentifierState(NamedTuple):
    """Identified friction laws of n motors, with the statistics of their errors."""

    parameters: Matrix  # (n, p) of the laws
    covariance: Tensor  # (n, p, p) P_RLS, in units of the measurement variance
    # (n,) number of samples that are not forgotten, and of those in the window of the residual
    samples: Vector
    weight: Vector
    # (n,) sums over that window [(N m)^2]
    squared_error: Vector
    squared_noise: Vector
    # (n,) of the law error: the mean squared error less the variance of the measurements, never below the
    # uncertainty of that difference; one, the scale of P_RLS, before any data
    residual_variance: Vector
    measurement_variance: Vector  # (n,) [(N m)^2]
    scale: Vector  # (n,) from P_RLS to the covariance: noise, plus what never averages out
    # (n,) squared error of the newest prediction over its variance; NaN before the first one of a joint
    nis: Vector


@record
class IdentifierTable(NamedTuple):
    """Constants of the identification."""

    # (n, p) diagonals of P_RLS_0, 10 everywhere in Table II; zero where a law has no such parameter, which then
    # stays exactly zero as long as its regressor does
    initial_variance: Matrix
    motors: MotorTable  # maps between motors and joints
    forgetting: float  # factor per sample; 1 never forgets, as published


@kernel
def _quadratic_form(phi: FloatArray, P: FloatArray) -> float:
    """``phi^T P phi``, not below zero by rounding, where parameters cancel."""
    return max(bilinear(phi, P, phi), 0.0)


@kernel
def recursive_least_squares(
    theta: FloatArray, P: FloatArray, initial_variance: FloatArray, phi: FloatArray, measured: float, forgetting: float
) -> float:
    """Update the parameters of ``y = phi^T theta`` of one motor in place; return the residual before (eq. 65).

    Parameters
    ----------
    theta : (p,) Phi, zero at first (Table II)
    P : (p, p) P_RLS, in units of the measurement variance
    initial_variance : (p,) diagonal of P_RLS_0
    phi : (p,)
    forgetting : factor per sample
    """
    p = theta.size
    P_phi = np.empty(p)
    for i in range(p):
        P_phi[i] = dot(P[i], phi)
    innovation = forgetting + dot(phi, P_phi)
    error = measured - dot(phi, theta)  # eq. 65
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


@entry_point
def _update_statistics(state: IdentifierState) -> None:
    """Update what depends on the sums of squares."""
    for motor in range(state.weight.size):
        weight = max(state.weight[motor], 1.0)
        error, noise = state.squared_error[motor] / weight, state.squared_noise[motor] / weight
        unexplained = max(error - noise, min(error, noise) * math.sqrt(2.0 / weight))
        state.residual_variance[motor] = unexplained if state.weight[motor] > 0.0 else 1.0
        state.measurement_variance[motor] = noise
        state.scale[motor] = noise + max(state.samples[motor], 1.0) * state.residual_variance[motor]


_UPDATED, _NO_MOTOR_UPDATED = -1, -2
"""Results of :func:`_update_laws` besides the number of a motor."""


@entry_point
def _update_laws(
    state: IdentifierState,
    table: IdentifierTable,
    regressor: Matrix,
    measured: Vector,
    noise: Vector,
    active: Flags,
) -> int:
    """Use one measurement of friction for the motors all of whose joints are ``active``.

    A motor whose parameters would not be finite afterwards keeps those of before, and is returned.

    Returns
    -------
    Number of the motor that failed, else ``_UPDATED`` or ``_NO_MOTOR_UPDATED``
    """
    learned, p, keep, motors = False, state.parameters.shape[1], 1.0 - 1.0 / _RESIDUAL_WINDOW, table.motors
    old_theta, old_P = np.empty(p), np.empty((p, p))
    for motor in range(len(state.parameters)):
        known = True
        for joint in motors.group[motor]:
            known = known and active[joint]
        if not known:
            continue
        learned = True
        torque, noise_variance = 0.0, 0.0
        for joint in range(measured.size):
            share = motors.matrix[joint, motor]
            if share != 0.0:
                torque += share * measured[joint]
                noise_variance += (share * noise[joint]) ** 2
        phi, theta, P = regressor[motor], state.parameters[motor], state.covariance[motor]
        old_theta[:], old_P[:] = theta, P
        predicted = dot(phi, theta)
        variance = noise_variance + state.residual_variance[motor] + state.scale[motor] * _quadratic_form(phi, P)
        error, limit = torque - predicted, _OUTLIER_GATE * math.sqrt(variance)
        state.nis[motor] = error * error / variance
        if error > limit:
            torque = predicted + limit
        elif error < -limit:
            torque = predicted - limit
        error = recursive_least_squares(theta, P, table.initial_variance[motor], phi, torque, table.forgetting)
        squared_error = keep * state.squared_error[motor] + error * error
        squared_noise = keep * state.squared_noise[motor] + noise_variance
        if not (
            is_bounded(theta)
            and is_covariance(P)
            and squared_error <= DIVERGENCE_LIMIT
            and squared_noise <= DIVERGENCE_LIMIT
        ):
            theta[:], P[:] = old_theta, old_P
            return motor
        state.samples[motor] = table.forgetting * state.samples[motor] + 1.0
        state.weight[motor] = keep * state.weight[motor] + 1.0
        state.squared_error[motor], state.squared_noise[motor] = squared_error, squared_noise
    if not learned:
        return _NO_MOTOR_UPDATED
    _update_statistics(state)
    return _UPDATED


@entry_point
def predict_friction(
    state: IdentifierState, to_joints: Matrix, regressor: Matrix, friction: Vector, sigma: Vector
) -> None:
    """Write the friction of the joints by the identified laws of the motors, and its standard deviation.

    Noise of the measurements averages out over the samples, as P_RLS has it. What the law cannot represent does not:
    its variance counts in full, and more where the regressor is outside of what was seen.

    Parameters
    ----------
    state : identified laws of n motors
    to_joints : (n, n) torques at the joints from those of the motors
    regressor : (n, p) of the laws, motor by motor
    friction, sigma : (n,) output: friction torque of the joints and its standard deviation [N m]
    """
    n = friction.size
    friction[:] = 0.0
    sigma[:] = 0.0
    for motor in range(n):
        phi = regressor[motor]
        torque = dot(phi, state.parameters[motor])
        variance = state.residual_variance[motor] + state.scale[motor] * _quadratic_form(phi, state.covariance[motor])
        for joint in range(n):
            share = to_joints[joint, motor]
            if share != 0.0:
                friction[joint] += share * torque
                sigma[joint] += share * share * variance
    for joint in range(n):
        sigma[joint] = math.sqrt(sigma[joint])


@entry_point
def _write_law_estimate(
    state: IdentifierState,
    to_joints: Matrix,
    coulomb_rows: Matrix,
    viscous_rows: Matrix,
    parameters_sigma: Matrix,
    out: Matrix,
) -> None:
    """Write the other fields of :class:`LawEstimate`: ``parameters_sigma`` (n, p), the others into rows of ``out``.

    Parameters
    ----------
    coulomb_rows, viscous_rows : (n, p) of :class:`VisitedVelocities`
    out : (5, n) F_c, F_v, their standard deviations and their covariance, of every joint that moves alone
    """
    n, p = state.parameters.shape
    out[:] = 0.0
    coulomb, viscous, coulomb_sigma, viscous_sigma, cross = out[0], out[1], out[2], out[3], out[4]
    for motor in range(n):
        theta, P, scale = state.parameters[motor], state.covariance[motor], state.scale[motor]
        c, v = coulomb_rows[motor], viscous_rows[motor]
        for i in range(p):
            parameters_sigma[motor, i] = math.sqrt(scale * max(P[i, i], 0.0))
        for joint in range(n):
            share = abs(to_joints[joint, motor])
            if share != 0.0:
                coulomb[joint] += share * dot(c, theta)
                viscous[joint] += share**2 * dot(v, theta)
                coulomb_sigma[joint] += share**2 * scale * _quadratic_form(c, P)
                viscous_sigma[joint] += share**4 * scale * _quadratic_form(v, P)
                cross[joint] += share**3 * scale * bilinear(c, P, v)
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
    law : the identified laws as they are published; the same object until they change
    nis : (n,) squared error of the newest prediction over its variance; NaN before the first one of a joint
    visited : velocities at which the laws were identified
    """

    def __init__(
        self, config: IdentifierConfig, joint_names: tuple[str, ...], motors: Transmission | None = None
    ) -> None:
        self._motors = motors or Transmission.from_coupling(None, joint_names)
        names = self._motors.names
        self.laws = JointLaws(laws_of_joints(config.law or COULOMB_VISCOUS.name, config.joint_laws, names))
        self.visited = VisitedVelocities(self.laws)
        # Table II means F_c and F_v; columns with another unit (load) are scaled as their priors are
        relative_std = self.laws.prior_std / COULOMB_VISCOUS.prior_std[0]
        initial_variance: FloatArray = config.initial_covariance * relative_std**2
        self._table_buffer, self._table = buffered(
            IdentifierTable(initial_variance, self._motors.table, config.forgetting)
        )
        self.reset_to_prior()

    def reset_to_prior(self) -> None:
        """Drop all identified parameters."""
        initial_variance = self._table.initial_variance
        n, p = initial_variance.shape
        self.buffer, state = buffered_zeros(
            IdentifierState, parameters=(n, p), covariance=(n, p, p), samples=n, weight=n, squared_error=n,
            squared_noise=n, residual_variance=n, measurement_variance=n, scale=n, nis=n,
        )  # fmt: skip
        self.state = state
        state.covariance[:], state.nis[:] = initial_variance[:, :, None] * np.eye(p), np.nan
        _update_statistics(self.buffer)
        self.visited.reset_to_prior()
        self._publish()

    def regressor(self, velocity: FloatArray, effort: FloatArray) -> FloatArray:
        """Regressor of the laws at these velocities (n,) and motor torques (n,) of the joints: (n, p), by motor."""
        laws, motors, regressor = self.laws, self._motors, np.empty(self.state.parameters.shape)
        regressor_of_motors(laws.table_buffer, motors.matrix, motors.to_joints, velocity, effort, regressor)
        return regressor

    def learn(self, regressor: FloatArray, measured: FloatArray, noise: FloatArray, active: BoolArray) -> None:
        """Update the laws by one measurement of friction, for motors where ``active`` (eqs. 64-67).

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
        outcome = _update_laws(self.buffer, self._table_buffer, regressor, measured, noise, active)
        if outcome == _UPDATED:
            self._publish()
        elif outcome != _NO_MOTOR_UPDATED:
            if failed_names := self.reset_failed_laws():
                raise FloatingPointError(f"the friction law of {failed_names} was not finite, and begins anew")
            raise FloatingPointError(f"the measured friction of {self._motors.names[outcome]} was not finite")

    def reset_failed_laws(self) -> str:
        """Reset every law that is not finite to its prior; returns the names of their motors."""
        state = self.state
        failed = [
            motor
            for motor, P in enumerate(state.covariance)
            if not (is_covariance(P) and all(np.abs(one[motor]).max() <= DIVERGENCE_LIMIT for one in state[:6]))
        ]
        if failed:
            for one in state[:6]:  # the others follow
                one[failed] = 0.0
            initial_variance, p = self._table.initial_variance[failed, :, None], state.parameters.shape[1]
            state.covariance[failed], state.nis[failed] = initial_variance * np.eye(p), np.nan
        _update_statistics(self.buffer)
        self._publish()
        return ", ".join(self._motors.names[motor] for motor in failed)

    def _publish(self) -> None:
        """Rebuild ``law`` and ``nis`` from copies of the state."""
        state, visited = self.state, self.visited
        sigma, out = np.empty(state.parameters.shape), np.empty((5, len(state.scale)))
        _write_law_estimate(self.buffer, self._motors.to_joints, visited.rows[0], visited.rows[1], sigma, out)
        coulomb, viscous, coulomb_sigma, viscous_sigma, covariance = out
        self.law = LawEstimate(
            parameters=state.parameters.copy(),
            parameters_sigma=sigma,
            coulomb=coulomb,
            viscous=viscous,
            coulomb_sigma=coulomb_sigma,
            viscous_sigma=viscous_sigma,
            coulomb_viscous_covariance=covariance,
            velocity_range=visited.velocity_range.copy(),
            known=visited.known,
        )
        self.nis = state.nis.copy()

    @property
    def identified(self) -> IdentifiedParameters:
        """Identified parameters, to keep over a restart."""
        state = self.state
        return IdentifiedParameters(
            joint_names=self._motors.names,
            law_names=self.laws.law_names,
            values=state.parameters.copy(),
            covariance=state.scale[:, None, None] * state.covariance,
            residual_variance=state.residual_variance.copy(),
            measurement_variance=state.measurement_variance.copy(),
            samples=state.samples.copy(),
            velocity_range=self.visited.velocity_range.copy(),
        )

    def restore(self, identified: IdentifiedParameters) -> None:
        """Start from parameters of an earlier run; joints that it does not name keep their present ones.

        Raises
        ------
        ConfigError
            When the parameters belong to other friction laws, or to none of these joints.
        """
        state = self.state
        here, there = common_rows(identified, self._motors.names, self.laws.law_names)
        samples, noise = identified.samples[there], identified.measurement_variance[there]
        weight = np.minimum(samples, _RESIDUAL_WINDOW)
        error = noise + identified.residual_variance[there]
        state.samples[here], state.weight[here] = samples, weight
        state.squared_error[here], state.squared_noise[here] = weight * error, weight * noise
        _update_statistics(self.buffer)
        p = min(self.laws.parameter_count, identified.values.shape[1])  # the rest is padding on both sides
        state.parameters[here], state.covariance[here] = 0.0, 0.0
        state.parameters[here, :p] = identified.values[there, :p]
        state.covariance[here, :p, :p] = identified.covariance[there, :p, :p] / state.scale[here, None, None]
        self.visited.restore(identified, here, there)
        self._publish()
