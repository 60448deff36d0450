"""Friction of the laws at the motion of one frame, with what the newest window left of their law error.

The velocity is known to a standard deviation only, so the friction of a law is its mean over the uncertain velocity.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from friction_estimator.estimation.kalman.limb_estimates import LimbEstimates
from friction_estimator.estimation.kalman.limb_state import UNIFORM_VARIANCE, stick_probability
from friction_estimator.estimation.motion.joint_motion import JointMotion
from friction_estimator.kernels.compiler import kernel
from friction_estimator.kernels.records import record
from friction_estimator.laws.joint_laws import LawTable, MeanFriction, advance_strain, expected_friction
from friction_estimator.linear_algebra import bilinear
from friction_estimator.robot.transmission import MotorTable
from friction_estimator.types import FloatArray, Matrix, Vector

_SAMPLING_SKEW = 0.3e-3
"""Time by which velocity and torque of a message may be apart [s]: within it, the friction of a joint that sticks turns
around when it stops hard."""


@record
class PreslidingMemory(NamedTuple):
    """State of the presliding model, carried from one frame to the next."""

    velocity: Vector  # (n,) of the joints [rad/s]
    # (n, s) Dahl strains of the motors, and how much of them is still that of the start, which is unknown
    strain: Matrix
    initial_strain_weight: Matrix

    @staticmethod
    def initial(joints: int, distances: int) -> PreslidingMemory:
        """Memory before the first frame, of n joints and s presliding distances."""
        shape = joints, distances
        return PreslidingMemory(np.zeros(joints), np.zeros(shape), np.ones(shape))


@record
class LawAtMotion(NamedTuple):
    """Friction of the laws at the motion of a frame; fields (n,), of the joints where nothing else is written."""

    regressor: Matrix  # (n, p) mean over the uncertain velocity, motor by motor
    velocity_std: Vector  # with what the velocity changes within the time by which readings may be apart [rad/s]
    torque: Vector  # [N m]
    motor_friction_variance: Vector  # of the motors' friction from their uncertain velocity [(N m)^2]
    # of the torque, from its parameters and from the uncertain velocity [(N m)^2]
    variance: Vector
    velocity_variance: Vector
    # friction of this direction beyond the mean of both directions [N m], [(N m)^2]
    asymmetric_friction: Vector
    asymmetric_friction_variance: Vector
    law_error: Vector  # of the newest window, as far as it is left [N m]
    friction_variance: Vector  # of torque plus law error, from both estimates [(N m)^2]
    law_error_variance: Vector  # of the law error while nothing is measured [(N m)^2]
    stick_variance: Vector  # the part of that which motors at standstill have more [(N m)^2]
    stick_friction: Vector  # largest friction that may hold the joint now; next to zero for one that moves [N m]

    @staticmethod
    def zeros(joints: int, parameters: int) -> LawAtMotion:
        """Record of zeros for n joints and p parameters of a law."""
        return LawAtMotion(np.zeros((joints, parameters)), *np.zeros((len(LawAtMotion._fields) - 1, joints)))


@record
class _MotorSide(NamedTuple):
    """Motion and friction on the motor side of the transmission; every field (n,)."""

    # of the motors [rad/s], [rad/s], [N m]
    velocity: Vector
    velocity_std: Vector
    load: Vector
    # friction of the law, and its variance from the uncertain velocity [N m], [(N m)^2]
    torque: Vector
    variance: Vector
    # part of the law error of the newest window that is left, as a motor leaves its standstill
    law_error_decay: Vector
    added_variance: Vector  # of the law error of a motor that has come to a standstill since that window [(N m)^2]
    law_error_variance: Vector  # of the law error now [(N m)^2]
    stick_friction: Vector  # largest friction that may hold the motor now; next to zero for one that moves [N m]


@kernel
def _uncertain_velocity(
    motion: JointMotion, estimates: LimbEstimates, dt: float, previous_velocity: FloatArray, std: FloatArray
) -> None:
    """Write the standard deviation of the velocities (n,), whose values of the frame before are replaced.

    A joint whose friction is free at rest gets what the velocity changes within the time that velocity and torque of a
    message may be apart.
    """
    for joint in range(std.size):
        std[joint] = motion.velocity_std[joint]
        if dt > 0.0 and estimates.law_error.stick_variance_ratio[joint] > 0.0:
            change = (motion.velocity[joint] - previous_velocity[joint]) * (_SAMPLING_SKEW / dt)
            std[joint] = math.sqrt(std[joint] ** 2 + change * change)
        previous_velocity[joint] = motion.velocity[joint]


@kernel
def _motion_of_motors(
    motors: MotorTable,
    velocity: FloatArray,
    std: FloatArray,
    effort: FloatArray,
    dt: float,
    memory: PreslidingMemory,
    motor_side: _MotorSide,
) -> None:
    """Write velocity, its standard deviation and load of the motors, and advance their strains."""
    n, g = motors.group.shape
    for motor in range(n):
        for a in range(g):
            joint = motors.group[motor, a]
            if a > 0 and joint == motor:  # the group has fewer motors
                break
            motor_side.velocity[motor] += velocity[joint] * motors.to_joints[joint, motor]
            motor_side.load[motor] += effort[joint] * motors.matrix[joint, motor]
            motor_side.velocity_std[motor] += (std[joint] * motors.to_joints[joint, motor]) ** 2
        motor_side.velocity_std[motor] = math.sqrt(motor_side.velocity_std[motor])
        advance_strain(memory.strain[motor], memory.initial_strain_weight[motor], motor_side.velocity[motor] * dt)


@kernel
def ripple_wave(motors: MotorTable, position: FloatArray, ripples: FloatArray) -> FloatArray:
    """Sine and cosine (n, 2) of motor position times ripples per turn (n,); (n, 0) without ripple."""
    n = position.size
    wave = np.empty((n, 2 * min(ripples.size, 1)))
    for motor in range(n):
        if ripples.size > 0:
            angle = 0.0
            for joint in range(n):
                angle += ripples[motor] * position[joint] * motors.to_joints[joint, motor]
            wave[motor, 0], wave[motor, 1] = math.sin(angle), math.cos(angle)
    return wave


@kernel
def _friction_at_standstill(estimates: LimbEstimates, motor_side: _MotorSide) -> None:
    """Write what may hold the motors now, the variance of their law error, and how much of it is still theirs."""
    error = estimates.law_error
    for motor in range(motor_side.velocity.size):
        window_variance = error.variance[motor]
        motor_side.stick_friction[motor] = estimates.dry_friction[motor] * stick_probability(
            motor_side.velocity[motor], motor_side.velocity_std[motor]
        )
        present = (
            error.sliding_variance[motor] + error.stick_variance_ratio[motor] * motor_side.stick_friction[motor] ** 2
        )
        motor_side.law_error_variance[motor] = present
        if present < window_variance:  # the motor has left its rest
            motor_side.law_error_decay[motor] = math.sqrt(present / window_variance)
        else:
            motor_side.law_error_decay[motor] = 1.0
            motor_side.added_variance[motor] = present - window_variance


@kernel
def _map_to_joints(motors: MotorTable, estimates: LimbEstimates, motor_side: _MotorSide, out: LawAtMotion) -> None:
    """Write torques and variances of the joints from those of their motors, but for the uncertainty of the law."""
    n, g = motors.group.shape
    for joint in range(n):
        for a in range(g):
            motor, share = motors.group[joint, a], motors.weights[joint, a]
            square, present = share * share, motor_side.law_error_variance[motor]
            out.torque[joint] += share * motor_side.torque[motor]
            out.law_error[joint] += share * motor_side.law_error_decay[motor] * estimates.law_error.value[motor]
            out.velocity_variance[joint] += square * motor_side.variance[motor]
            out.law_error_variance[joint] += square * present
            out.stick_variance[joint] += square * (present - estimates.law_error.sliding_variance[motor])
            out.stick_friction[joint] += abs(share) * motor_side.stick_friction[motor]
            out.friction_variance[joint] += square * motor_side.added_variance[motor]


@kernel
def _quadratic_form(phi: FloatArray, P: FloatArray) -> float:
    """``phi^T P phi`` of a regressor (p,) and the first p rows and columns of a symmetric P, of which half is read."""
    total = 0.0
    for i in range(phi.size):
        product = P[i, i] * phi[i]
        for j in range(i):
            product += 2.0 * P[i, j] * phi[j]
        total += phi[i] * product
    return total


@kernel
def _law_variance(motors: MotorTable, covariance: FloatArray, motor_side: _MotorSide, out: LawAtMotion) -> None:
    """Write the variance of the law's torque by its regressor, and add that of law and law error together.

    With the blocks P of the motors that act on a joint, ``[phi_a; k_a]^T P_ab [phi_b; k_b]`` with the parts k of the
    law error that are left.
    """
    (n, g), phi = motors.group.shape, out.regressor
    p, part = phi.shape[1], motor_side.law_error_decay
    for joint in range(n):
        for a in range(g):
            for b in range(g):
                share = motors.weights[joint, a] * motors.weights[joint, b]
                if share != 0.0:
                    one, other = motors.group[joint, a], motors.group[joint, b]
                    P = covariance[joint, a * (p + 1) : (a + 1) * (p + 1), b * (p + 1) : (b + 1) * (p + 1)]
                    law = _quadratic_form(phi[one], P) if a == b else bilinear(phi[one], P[:p, :p], phi[other])
                    cross = part[one] * part[other] * P[p, p]
                    for i in range(p):
                        cross += part[other] * phi[one, i] * P[i, p]
                        cross += part[one] * P[p, i] * phi[other, i]
                    out.variance[joint] += share * law
                    out.friction_variance[joint] += share * (law + cross)
        out.variance[joint] = max(out.variance[joint], 0.0)
        out.friction_variance[joint] = max(out.friction_variance[joint], 0.0)


@kernel
def _asymmetric_friction(motors: MotorTable, estimates: LimbEstimates, out: LawAtMotion) -> None:
    """Write the difference of the friction between the directions, in proportion to torques beyond dry friction."""
    constant = estimates.constant
    for joint in range(out.torque.size):
        dry_friction, size = 0.0, abs(out.torque[joint])
        for a in range(motors.group.shape[1]):
            dry_friction += abs(motors.weights[joint, a]) * estimates.dry_friction[motors.group[joint, a]]
        growth = size / dry_friction if size > dry_friction > 0.0 else 1.0
        out.asymmetric_friction[joint] = growth * constant.asymmetric_friction[joint]
        out.asymmetric_friction_variance[joint] = growth * growth * constant.asymmetric_friction_variance[joint]


@kernel
def law_at_motion(
    laws: LawTable,
    motors: MotorTable,
    estimates: LimbEstimates,
    motion: JointMotion,
    effort: FloatArray,
    dt: float,
    wave: FloatArray,
    memory: PreslidingMemory,
    out: LawAtMotion,
) -> None:
    """Write friction and variances of the laws at the motion of a frame.

    Parameters
    ----------
    laws, motors : constants: laws of the motors, and maps between motors and joints
    estimates : parameters of the laws, and all else that the newest window has left
    effort : (n,) readings of the joints [N m]
    dt : time since the frame before [s]
    wave : (n, 2) of :func:`ripple_wave`; (n, 0) without ripple
    memory : state of presliding, in place
    out : output, whose fields are zero before
    """
    work = np.zeros((9, effort.size))
    motor_side = _MotorSide(work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7], work[8])
    _uncertain_velocity(motion, estimates, dt, memory.velocity, out.velocity_std)
    _motion_of_motors(motors, motion.velocity, out.velocity_std, effort, dt, memory, motor_side)
    mean = MeanFriction(out.regressor, motor_side.torque, motor_side.variance)
    expected_friction(
        laws, estimates.parameters, motor_side.velocity, motor_side.load, motor_side.velocity_std, memory.strain, wave,
        mean,
    )  # fmt: skip
    unknown = memory.initial_strain_weight
    first = out.regressor.shape[1] - unknown.shape[1]
    for motor in range(effort.size):
        error = 0.0
        for k in range(unknown.shape[1]):
            error += unknown[motor, k] * estimates.parameters[motor, first + k]
        motor_side.variance[motor] += UNIFORM_VARIANCE * error * error
        out.motor_friction_variance[motor] = motor_side.variance[motor]
    _friction_at_standstill(estimates, motor_side)
    _map_to_joints(motors, estimates, motor_side, out)
    _law_variance(motors, estimates.covariance, motor_side, out)
    _asymmetric_friction(motors, estimates, out)
