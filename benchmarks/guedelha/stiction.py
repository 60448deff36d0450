"""Forward dynamics of coupled motors with true stiction: at rest friction is whatever holds, up to its static value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from benchmarks.guedelha.robots import Mechanism
from friction_estimator.laws.linear import STRIBECK_VELOCITY
from friction_estimator.types import FloatArray

STEP = 1e-3
SWEEPS = 200
SOLVED = 1e-10
"""Velocities that change less in a sweep are solved [rad/s]."""


@dataclass(frozen=True)
class Hand:
    """Somebody who leads the joints: a spring and a damper to where they shall be.

    Attributes
    ----------
    target : (N, n) positions of the joints at every step [rad]
    stiffness, damping : (n,) [N m/rad, N m s/rad]
    """

    target: FloatArray
    stiffness: FloatArray
    damping: FloatArray


@dataclass(frozen=True)
class Course:
    """What happened, at every step.

    Attributes
    ----------
    time : (N,) [s]
    position : (N, n) of the joints [rad]
    joint_torque : (N, n) what the transmission passes on to the joints [N m]
    motor_velocity, friction, pwm : (N, n) of the motors [rad/s, N m, %]
    """

    time: FloatArray
    position: FloatArray
    joint_torque: FloatArray
    motor_velocity: FloatArray
    friction: FloatArray
    pwm: FloatArray


def simulate(mechanism: Mechanism, hand: Hand, pwm: FloatArray) -> Course:
    """Integrate ``(T^T M T + I) domega = K u + tau_0 + T^T (tau_hand - h) - friction`` step by step.

    tau_0 is a current that flows with PWM = 0, too. Springs, dampers and viscous friction are implicit. Dry friction is
    the box that holds a motor at rest while it can, found by projected Gauss-Seidel over the motors.
    """
    T, n = mechanism.coupling.matrix, len(mechanism.coupling.joint_names)
    data, drive = mechanism.model.createData(), mechanism.gain * pwm + mechanism.offset
    coulomb, viscous, plus, minus = mechanism.friction.T
    q, omega = hand.target[0].copy(), np.zeros(n)
    hand_matrix = T.T @ np.diag(hand.damping + STEP * hand.stiffness) @ T + np.diag(viscous)
    rows = [np.empty_like(pwm) for _ in range(4)]
    target_velocity = np.gradient(hand.target, STEP, axis=0)
    for k in range(len(pwm)):
        dq = T @ omega
        M = pin.crba(mechanism.model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.nle(mechanism.model, data, q, dq)
        A = (T.T @ M @ T + np.diag(mechanism.inertia)) / STEP
        pulled = hand.stiffness * (hand.target[k] - q) + hand.damping * target_velocity[k]
        c = A @ omega + drive[k] + T.T @ (pulled - h)
        fading = np.exp(-np.abs(omega) / STRIBECK_VELOCITY)
        upper, lower = coulomb + (plus - coulomb) * fading, coulomb + (minus - coulomb) * fading
        after, dry = held(A + hand_matrix, c, omega, upper, lower)
        friction = dry + viscous * after
        tau = drive[k] - friction - mechanism.inertia * (after - omega) / STEP
        q_after = q + STEP * (T @ after)
        for row, value in zip(rows, (0.5 * (q + q_after), np.linalg.solve(T.T, tau), after, friction), strict=True):
            row[k] = value
        q, omega = q_after, after
    return Course(STEP * (0.5 + np.arange(len(pwm))), rows[0], rows[1], rows[2], rows[3], pwm)


def held(
    B: FloatArray, c: FloatArray, guess: FloatArray, upper: FloatArray, lower: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Velocities and dry friction with ``B omega + dry = c``: dry is at its bound where omega is not zero."""
    omega, diagonal = guess.copy(), np.diag(B)
    for _ in range(SWEEPS):
        before = omega.copy()
        for i in range(omega.size):
            push = c[i] - B[i] @ omega + diagonal[i] * omega[i]
            omega[i] = (push - min(max(push, -lower[i]), upper[i])) / diagonal[i]
        if np.abs(omega - before).max() < SOLVED:
            break
    return omega, c - B @ omega
