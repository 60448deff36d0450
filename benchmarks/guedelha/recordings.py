"""Forward dynamics of coupled motors with stiction, and recordings of it at 100 Hz, as on the iCub."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pinocchio as pin

from benchmarks.guedelha.limbs import Mechanism
from benchmarks.shared.coupling import joint_velocity
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.laws.published import STRIBECK_VELOCITY
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


EVERY = 10
"""Steps of the simulation per sample: 100 Hz."""
ENCODER = 2.0 * np.pi / 2**16
"""Resolution of the joint encoders [rad]."""
TORQUE_NOISE = 0.1
"""Of the torque estimated from force-torque sensors, standard deviation [N m]."""

FULL_DURATION = 60.0
"""Of a recording in which the hand takes its time [s]."""
PACES = (0.0, 0.01, 0.02, 0.05, 0.12, 0.25)
"""Frequencies of the hand's motion in it, from rest to brisk [Hz]."""
TRIANGLES, HIGHEST_PWM = 2, 40.0
"""How often the PWM of each motor goes up and down, and how far [%]."""


@dataclass(frozen=True)
class Study:
    """One limb, what was recorded of it, and the courses behind the recordings."""

    mechanism: Mechanism
    free: JointLog
    driven: JointLog
    driven_course: Course


def make_study(mechanism: Mechanism, duration: float, seed: int) -> Study:
    """Lead the joints by hand with PWM = 0, then drive the motors one after another against the hand."""
    rng = np.random.default_rng(seed)
    free = simulate(mechanism, _lead(mechanism, duration, rng), np.zeros((round(duration / STEP), _size(mechanism))))
    pwm = _triangles(mechanism, duration)
    driven = simulate(mechanism, _resist(mechanism, len(pwm)), pwm)
    return Study(mechanism, record(mechanism, free, rng), record(mechanism, driven, rng, "driven"), driven)


def record(mechanism: Mechanism, course: Course, rng: np.random.Generator, name: str = "free") -> JointLog:
    """Sample, round and add noise."""
    at = slice(None, None, EVERY)
    torque = course.joint_torque[at]
    return JointLog(
        name,
        mechanism.coupling.joint_names,
        course.time[at],
        np.round(course.position[at] / ENCODER) * ENCODER,
        inputs=MappingProxyType(
            {"joint_torque": torque + TORQUE_NOISE * rng.normal(size=torque.shape), "pwm": course.pwm[at]}
        ),
    )


def _size(mechanism: Mechanism) -> int:
    return len(mechanism.coupling.joint_names)


def _lead(mechanism: Mechanism, duration: float, rng: np.random.Generator) -> Hand:
    """To and fro at changing pace, motors out of step with one another; a shorter recording is in more of a hurry."""
    n, time = _size(mechanism), STEP * np.arange(round(duration / STEP))
    motors = np.zeros((time.size, n))
    for k in range(n):
        paces = rng.permutation(np.resize(PACES, 12)) * (FULL_DURATION / duration)
        pace = np.interp(time, np.linspace(0.0, 1.1 * duration, 12), 2.0 * np.pi * paces)
        amplitude = 0.30 + 0.05 * np.sin(0.11 * time + k)
        motors[:, k] = amplitude * np.sin(np.cumsum(pace) * STEP)
    return Hand(joint_velocity(mechanism.coupling, motors), np.full(n, 150.0), np.full(n, 10.0))


def _resist(mechanism: Mechanism, samples: int) -> Hand:
    """Hold the joints where they are: the motors push against it and move slowly."""
    n = _size(mechanism)
    return Hand(np.zeros((samples, n)), np.full(n, 200.0), np.full(n, 5.0))


def _triangles(mechanism: Mechanism, duration: float) -> FloatArray:
    """PWM [%]: one motor after another goes up and down slowly, the others stay at zero (section 3.4.2)."""
    n = _size(mechanism)
    each = round(duration / STEP) // n
    phase = np.linspace(0.0, TRIANGLES, each, endpoint=False)
    triangle = 2.0 / np.pi * np.arcsin(np.sin(2.0 * np.pi * phase))
    pwm = np.zeros((each * n, n))
    for k in range(n):
        pwm[k * each : (k + 1) * each, k] = HIGHEST_PWM * triangle
    return pwm
