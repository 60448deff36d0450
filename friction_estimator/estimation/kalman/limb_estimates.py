"""Estimates of all joints after the newest window, as every frame uses them, from the filters of the limbs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.kalman.law_bounds import project_onto_bounds
from friction_estimator.estimation.kalman.limb_equations import FilterTable, LimbBalance, LimbMemory, WindowFit
from friction_estimator.estimation.kalman.limb_state import UNIFORM_VARIANCE, Limb
from friction_estimator.kernels.compiler import entry_point, kernel
from friction_estimator.kernels.records import buffered, from_buffer, record
from friction_estimator.linear_algebra import bilinear, is_bounded, is_covariance
from friction_estimator.types import FloatArray, IntArray, Matrix, Tensor, Vector

_ASYMMETRIES = 0.0, 0.25, 0.5, 1.0, 1.5, 2.0
_ASYMMETRY_WEIGHTS = 0.5, 0.113, 0.145, 0.12, 0.074, 0.048
"""Differences of the friction between the directions, over their prior, and their probabilities."""
_OFFSET_SHARES = 0.1, 0.5
"""Part of the torque sensors that have an offset: few or many, as likely."""
_OFFSET_TAKEN_FOR_FRICTION = 0.15
"""Constant errors of model and sensors that are taken for friction, over the dry friction: what is found on random
robots without any difference between the directions."""
_MIN_LIKELIHOOD, _MIN_VARIANCE = 1e-300, 1e-12
"""Lower bounds that keep logarithms and quotients finite."""
_MIN_OFFSET_INFORMATION = 0.01
"""Part of the variance of an offset that data must have taken away before it counts."""


@record
class LawErrorEstimate(NamedTuple):
    """Law error of the laws, motor by motor; every field (n,)."""

    value: Vector  # at the end of the window [N m]
    variance: Vector  # of it before a measurement, at the speed of the motor in the window [(N m)^2]
    sliding_variance: Vector  # ... and of a motor that moves [(N m)^2]
    stick_variance_ratio: Vector  # what a motor at rest has more, over the square of its `dry_friction`


@record
class CalibrationEstimate(NamedTuple):
    """Errors of model and sensors."""

    # (n,) torque of all [N m], [(N m)^2]
    torque: Vector
    variance: Vector
    without_wrenches: Vector  # (n,) the torque of all but the wrenches, which are calibrated apart [N m]
    # (k, 6)
    wrench_bias: Matrix
    wrench_gain: Matrix


@record
class ConstantTorque(NamedTuple):
    """Torque that law and model lack at all times; every field (n,)."""

    # [N m], [(N m)^2]
    offset: Vector
    offset_variance: Vector
    # part of it that is dry friction which differs between the directions, see split_offset [N m], [(N m)^2]
    asymmetric_friction: Vector
    asymmetric_friction_variance: Vector


@record
class CoulombViscous(NamedTuple):
    """Coulomb and viscous friction of each joint that moves alone; every field (n,)."""

    # [N m], [N m s/rad]
    coulomb: Vector
    viscous: Vector
    coulomb_sigma: Vector
    viscous_sigma: Vector
    covariance: Vector  # of both [(N m)^2 s/rad]


@record
class LimbEstimates(NamedTuple):
    """Estimates of all joints after the newest window. Never changed once they are published."""

    # (n, p) of the friction laws, motor by motor, within their bounds
    parameters: Matrix
    parameters_sigma: Matrix
    # (n, g (p + 1), g (p + 1)) of parameters and law error of the g motors that act on each joint; g = 1 without
    # coupling
    covariance: Tensor
    law_error: LawErrorEstimate
    calibration: CalibrationEstimate
    constant: ConstantTorque
    coulomb_viscous: CoulombViscous
    dry_friction: Vector  # (n,) largest friction that may hold a motor at rest [N m]
    nis: Vector  # (n,) normalised innovation squared: over its variance; NaN before the first window
    measured_at: Vector  # (n,) since the restart, when a window was last used [s]


def empty_estimates(n: int, p: int, k: int, g: int) -> LimbEstimates:
    """Estimates before any window, of n joints, p parameters, k feet, and g motors that act on each joint."""
    return LimbEstimates(
        np.zeros((n, p)),
        np.zeros((n, p)),
        np.zeros((n, g * (p + 1), g * (p + 1))),
        LawErrorEstimate(*np.zeros((4, n))),
        CalibrationEstimate(*np.zeros((3, n)), *np.zeros((2, k, 6))),
        ConstantTorque(*np.zeros((4, n))),
        CoulombViscous(*np.zeros((5, n))),
        np.zeros(n),
        np.full(n, np.nan),
        np.full(n, -math.inf),
    )


class EstimateBuffers:
    """Estimates that all frames read, and the next ones, which are written until they are published.

    Parameters
    ----------
    empty : estimates before any window

    Attributes
    ----------
    published, published_buffer : estimates for the frames, and the buffer behind them
    next, next_buffer : ... and those that are written now
    """

    def __init__(self, empty: LimbEstimates) -> None:
        self.next_buffer, self.next = buffered(empty)
        self.publish()

    def publish(self) -> None:
        """Publish the next estimates, and begin those after them with a copy."""
        self.published_buffer, self.published = self.next_buffer, self.next
        self.next_buffer = self.published_buffer.copy()
        self.next = from_buffer(LimbEstimates, self.next_buffer)


@kernel
def _weighted_row(rows: FloatArray, weights: FloatArray, group: IntArray, out: FloatArray) -> None:
    """Write the vector (g (p + 1),) whose product with a joint's parameters is ``sum_g weights_g rows[group_g]``."""
    p = rows.shape[1]
    out[:] = 0.0
    for a in range(group.size):
        for i in range(p):
            out[a * (p + 1) + i] = weights[a] * rows[group[a], i]


@kernel
def _gather_motors(limb: Limb, memory: LimbMemory, fit: WindowFit, table: FilterTable, out: LimbEstimates) -> None:
    """Write parameters within their bounds, law error, and their covariance joint by joint."""
    state, P, law, delta = memory.state, memory.covariance, table.first_state.law, table.first_state.law_error
    (m, g), p, error = limb.group.shape, out.parameters.shape[1], out.law_error
    for a in range(m):
        joint, covariance, group = limb.joints[a], out.covariance[limb.joints[a]], limb.group[a]
        for b in range(g):
            for c in range(g):
                for i in range(p + 1):
                    left = law + group[b] * p + i if i < p else delta + group[b]
                    for j in range(p + 1):
                        right = law + group[c] * p + j if j < p else delta + group[c]
                        covariance[b * (p + 1) + i, c * (p + 1) + j] = P[left, right]
        for i in range(p):
            out.parameters[joint, i] = state[law + a * p + i]
            out.parameters_sigma[joint, i] = math.sqrt(max(P[law + a * p + i, law + a * p + i], 0.0))
        project_onto_bounds(out.parameters[joint], covariance[:p, :p], table.bounds[a])
        sliding = memory.law_error_variance[a]
        error.value[joint], error.sliding_variance[joint] = state[delta + a], sliding
        error.variance[joint] = sliding + fit.stick_variance[a]
        error.stick_variance_ratio[joint] = UNIFORM_VARIANCE * fit.free_at_rest[a]


@kernel
def _write_calibration(
    limb: Limb,
    memory: LimbMemory,
    fit: WindowFit,
    table: FilterTable,
    columns: FloatArray,
    time: float,
    out: LimbEstimates,
) -> None:
    """Write what a limb's calibration explains, and how well its window fitted, into its rows of the estimates.

    Parameters
    ----------
    columns : (m, size) torque per unit of every state; nothing is written where they are not finite
    time : end of the window [s]
    """
    if not is_bounded(columns):
        return
    x, P, first_state = memory.state, memory.covariance, table.first_state
    (m, size), calibration = columns.shape, table.first_state.links
    for a in range(m):
        joint, product = limb.joints[a], np.zeros(size - calibration)
        torque, variance, without_wrenches = 0.0, 0.0, 0.0
        for i in range(calibration, size):
            factor, row = columns[a, i], P[i, calibration:]
            if factor != 0.0:
                torque += factor * x[i]
                is_wrench_state = first_state.foot_bias <= i < first_state.effort_gain  # foot_bias and foot_gain
                if not is_wrench_state:
                    without_wrenches += factor * x[i]
                for j in range(product.size):
                    product[j] += factor * row[j]
        for j in range(product.size):
            variance += product[j] * columns[a, calibration + j]
        out.calibration.torque[joint], out.calibration.variance[joint] = torque, variance
        out.calibration.without_wrenches[joint] = without_wrenches
        out.nis[joint], out.measured_at[joint] = fit.nis[a], time
        own = first_state.effort_offset + a
        out.constant.offset[joint], out.constant.offset_variance[joint] = x[own], P[own, own]
    for number in range(limb.feet.size):
        for axis in range(6):
            out.calibration.wrench_bias[limb.feet[number], axis] = x[first_state.foot_bias + 6 * number + axis]
            out.calibration.wrench_gain[limb.feet[number], axis] = x[first_state.foot_gain + 6 * number + axis]


@entry_point
def write_limb_estimates(
    limb: Limb,
    memory: LimbMemory,
    fit: WindowFit,
    table: FilterTable,
    balance: LimbBalance,
    measured_at: float,
    coulomb_viscous_rows: Tensor,
    out: LimbEstimates,
) -> bool:
    """Write a limb's law and law error, and all that follows from them, into its rows of the estimates.

    Parameters
    ----------
    balance, measured_at : of the newest window that was used, and its end [s]; NaN where it is known already
    coulomb_viscous_rows : (2, n, p) F_c and F_v of every motor by its parameters, of :class:`VisitedVelocities`

    Returns
    -------
    False, and only the calibration is written, where the state is not finite or has no covariance
    """
    if not math.isnan(measured_at):
        _write_calibration(limb, memory, fit, table, balance.force_columns, measured_at, out)
    (m, g), p = limb.group.shape, out.parameters.shape[1]
    is_valid = is_bounded(memory.state) and is_covariance(memory.covariance) and is_bounded(memory.law_error_variance)
    if not (is_valid and is_bounded(fit.stick_variance)):
        return False
    _gather_motors(limb, memory, fit, table, out)
    limb_coulomb, limb_viscous = coulomb_viscous_rows[0][limb.joints], coulomb_viscous_rows[1][limb.joints]
    line = out.coulomb_viscous
    along_coulomb, along_viscous = np.empty(g * (p + 1)), np.empty(g * (p + 1))
    for a in range(m):
        joint = limb.joints[a]
        coulomb, viscous, covariance = 0.0, 0.0, out.covariance[joint]
        for b in range(m):
            share, parameters = limb.to_joints[a, b], out.parameters[limb.joints[b]]
            if share != 0.0:
                for i in range(p):
                    coulomb += abs(share) * limb_coulomb[b, i] * parameters[i]
                    viscous += share**2 * limb_viscous[b, i] * parameters[i]
        _weighted_row(limb_coulomb, np.abs(limb.weights[a]), limb.group[a], along_coulomb)
        _weighted_row(limb_viscous, limb.weights[a] ** 2, limb.group[a], along_viscous)
        line.coulomb[joint], line.viscous[joint] = coulomb, viscous
        line.coulomb_sigma[joint] = math.sqrt(max(bilinear(along_coulomb, covariance, along_coulomb), 0.0))
        line.viscous_sigma[joint] = math.sqrt(max(bilinear(along_viscous, covariance, along_viscous), 0.0))
        line.covariance[joint] = bilinear(along_coulomb, covariance, along_viscous)
    return True


@kernel
def _explain_offset(
    value: float, error_variance: float, asymmetry_variance: float, offset_variance: float, share: float
) -> tuple[float, float, float]:
    """Evidence of a constant torque, and the mean of the friction in it with the mean of its square.

    The torque is friction of one direction, and with a probability the offset of a sensor, too.

    Parameters
    ----------
    value, error_variance : constant torque, and variance of its error
    asymmetry_variance, offset_variance : priors of the friction, and of an offset
    share : probability that the sensor has an offset
    """
    without, with_offset = error_variance + asymmetry_variance, error_variance + asymmetry_variance + offset_variance
    p_0 = (1.0 - share) * math.exp(-0.5 * value * value / without) / math.sqrt(without)
    p_1 = max(share * math.exp(-0.5 * value * value / with_offset) / math.sqrt(with_offset), _MIN_LIKELIHOOD)
    mean, square = 0.0, 0.0
    for probability, variance in ((p_0 / (p_0 + p_1), without), (p_1 / (p_0 + p_1), with_offset)):
        friction = asymmetry_variance / variance * value
        mean += probability * friction
        square += probability * (friction * friction + asymmetry_variance * (1.0 - asymmetry_variance / variance))
    return p_0 + p_1, mean, square


@entry_point
def split_offset(out: LimbEstimates, dry: Vector, offset_std: Vector, asymmetry_std: float) -> None:
    """Write the part of the constant torques that is friction.

    Dry friction that differs between the directions is a constant torque while a joint slides, and so is the offset of
    a torque sensor: no motion separates them. But the motors of a robot are alike, and few sensors have an offset. So
    the friction of one direction differs from the mean by ``N(0, (a F)^2)`` with one ``a`` for all joints, which their
    constant torques show (empirical Bayes): it is zero, or a multiple of the prior up to two, with the weights of a
    half-Cauchy density (Gelman 2006). Errors of model and sensors pass for a part of the friction, too; this
    adds to their covariance.

    Parameters
    ----------
    dry : (n,) dry friction of the joints [N m]
    offset_std : (n,) prior of the torque sensors' errors [N m]
    asymmetry_std : prior of ``a``; zero: both directions have the same friction
    """
    constant = out.constant
    n, shares, cases = dry.size, len(_OFFSET_SHARES), len(_ASYMMETRIES) * len(_OFFSET_SHARES)
    means, squares = np.zeros((cases, n)), np.zeros((cases, n))
    log_evidence, taken_for_friction = np.zeros(cases), np.zeros(n)
    for case in range(cases):
        scale, share = _ASYMMETRIES[case // shares] * asymmetry_std, _OFFSET_SHARES[case % shares]
        log_evidence[case] = math.log(_ASYMMETRY_WEIGHTS[case // shares])
        for joint in range(n):
            asymmetry_variance, prior = (scale * dry[joint]) ** 2, offset_std[joint] ** 2
            information = 1.0 - constant.offset_variance[joint] / prior if prior > 0.0 else 0.0
            if not information > _MIN_OFFSET_INFORMATION:
                squares[case, joint] = asymmetry_variance
                continue
            taken_for_friction[joint] = information * (_OFFSET_TAKEN_FOR_FRICTION * dry[joint]) ** 2
            error_variance = constant.offset_variance[joint] / information  # without the prior, as the torque
            error_variance += taken_for_friction[joint] + _MIN_VARIANCE
            evidence, means[case, joint], squares[case, joint] = _explain_offset(
                constant.offset[joint] / information, error_variance, asymmetry_variance, prior, share
            )
            log_evidence[case] += math.log(evidence)
    weights = np.exp(log_evidence - log_evidence.max())
    weights /= weights.sum()
    for joint in range(n):
        mean, square = 0.0, 0.0
        for case in range(cases):
            mean += weights[case] * means[case, joint]
            square += weights[case] * squares[case, joint]
        extra_variance = taken_for_friction[joint] if asymmetry_std > 0.0 else 0.0
        constant.asymmetric_friction[joint] = mean
        constant.asymmetric_friction_variance[joint] = square - mean * mean + extra_variance
