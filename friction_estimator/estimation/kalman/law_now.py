"""The identified law at the present velocity, which is known to a standard deviation only."""

from __future__ import annotations

import math

import numpy as np

from friction_estimator.compiled import kernel
from friction_estimator.estimation.kalman.joint_motion import JointMotion
from friction_estimator.estimation.kalman.limb_bank import LimbEstimates
from friction_estimator.laws.joint_laws import QUADRATURE_NODES, QUADRATURE_WEIGHTS, JointLaws, expected_friction
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray, IntArray, record

# Rows of LawNow.terms
REGRESSOR_VARIANCE, TORQUE, MODEL_ERROR, LAW_VARIANCE = range(4)
VELOCITY_VARIANCE, FRICTION_VARIANCE, MODEL_ERROR_VARIANCE = range(4, 7)


@record(frozen=True, slots=True)
class LawNow:
    """The law at the present velocity, which is known to a standard deviation only.

    Attributes
    ----------
    regressor : (n, p) mean over the uncertain velocity, motor by motor
    terms : (7, n) rows as named at the top of this file: variance of the motors' torque from the uncertain velocity;
        torque and model error of the joints [N m]; variance of the torque from its parameters, variance from the
        uncertain velocity, variance of torque plus model error from both estimates, and variance of the model error
        while nothing is measured [(N m)^2]
    """

    regressor: FloatArray
    terms: FloatArray


@kernel("IT M M V V T V V V M M IM M V V M M")
def law_at_motion(
    codes: IntArray,
    scales: FloatArray,
    parameters: FloatArray,
    model_error: FloatArray,
    model_error_variance: FloatArray,
    covariance: FloatArray,
    velocity: FloatArray,
    velocity_std: FloatArray,
    effort: FloatArray,
    from_joints: FloatArray,
    to_joints: FloatArray,
    group: IntArray,
    weights: FloatArray,
    nodes: FloatArray,
    node_weights: FloatArray,
    phi: FloatArray,
    out: FloatArray,
) -> None:
    """Write the fields of :class:`LawNow`: the regressor ``phi`` (n, p) and the terms ``out`` (7, n).

    Parameters
    ----------
    codes, scales : of the laws
    parameters, model_error, model_error_variance, covariance : of :class:`LimbEstimates`
    velocity, velocity_std, effort : (n,) of the joints
    from_joints, to_joints, group, weights : ``matrix``, ``to_joints``, ``group``, ``weights`` of the motors
    """
    n, g = group.shape
    p = scales.shape[1]
    at_motors, std, load = np.zeros(n), np.zeros(n), np.zeros(n)
    for motor in range(n):
        for a in range(g):
            joint = group[motor, a]
            if a > 0 and joint == motor:  # the group has fewer motors
                break
            at_motors[motor] += velocity[joint] * to_joints[joint, motor]
            load[motor] += effort[joint] * from_joints[joint, motor]
            std[motor] += (velocity_std[joint] * to_joints[joint, motor]) ** 2
        std[motor] = math.sqrt(std[motor])
    phi[:], motor_torque, motor_variance = expected_friction(
        codes, scales, parameters, at_motors, load, std, nodes, node_weights
    )
    out[:] = 0.0
    variance, torque, missed, law_variance = out[REGRESSOR_VARIANCE], out[TORQUE], out[MODEL_ERROR], out[LAW_VARIANCE]
    velocity_variance, full = out[VELOCITY_VARIANCE], out[FRICTION_VARIANCE]
    missed_variance = out[MODEL_ERROR_VARIANCE]
    variance[:] = motor_variance
    for joint in range(n):
        for a in range(g):
            motor, share = group[joint, a], weights[joint, a]
            torque[joint] += share * motor_torque[motor]
            missed[joint] += share * model_error[motor]
            velocity_variance[joint] += share * share * motor_variance[motor]
            missed_variance[joint] += share * share * model_error_variance[motor]
        P = covariance[joint]
        for a in range(g):
            for b in range(g):
                share = weights[joint, a] * weights[joint, b]
                if share != 0.0:
                    left, right = phi[group[joint, a]], phi[group[joint, b]]
                    rows, columns = a * (p + 1), b * (p + 1)
                    law, cross = 0.0, P[rows + p, columns + p]
                    for i in range(p):
                        product = 0.0
                        for j in range(p):
                            product += P[rows + i, columns + j] * right[j]
                        law += left[i] * product
                        cross += left[i] * P[rows + i, columns + p] + P[rows + p, columns + i] * right[i]
                    law_variance[joint] += share * law
                    full[joint] += share * (law + cross)
        law_variance[joint] = max(law_variance[joint], 0.0)
        full[joint] = max(full[joint], 0.0)


def law_now(
    laws: JointLaws, motors: Transmission, estimates: LimbEstimates, motion: JointMotion, effort: FloatArray
) -> LawNow:
    """Evaluate the laws of the motors for a motion of the joints and their motor torques (n,)."""
    phi, out = np.empty(laws.scales.shape), np.empty((7, effort.size))
    law_at_motion(
        laws.codes,
        laws.scales,
        estimates.parameters,
        estimates.model_error,
        estimates.model_error_variance,
        estimates.covariance,
        motion.velocity,
        motion.velocity_std,
        effort,
        motors.matrix,
        motors.to_joints,
        motors.group,
        motors.weights,
        QUADRATURE_NODES,
        QUADRATURE_WEIGHTS,
        phi,
        out,
    )
    return LawNow(phi, out)
