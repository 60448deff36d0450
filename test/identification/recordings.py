"""A two-joint recording with known mechanics, which tests damage."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import Motion, Treatment
from friction_estimator.identification.recording.zero_phase import make_parallel_filter
from friction_estimator.types import FloatArray, IntArray
from test import arm

JOINTS = ("hip", "knee")
FREQUENCIES = np.array([[0.31, 0.83, 1.7], [0.23, 0.97, 1.4]])  # Hz
AMPLITUDES = np.array([[0.6, 0.25, 0.08], [0.8, 0.2, 0.1]])  # rad
INERTIA, GRAVITY = np.array([0.8, 0.3]), np.array([9.0, 4.0])
COULOMB, VISCOUS = np.array([3.0, 2.0]), np.array([1.5, 0.8])


def exact_motion(time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity, acceleration (N, 2) of sums of sines."""
    omega = 2.0 * np.pi * FREQUENCIES
    angle = omega * time[:, None, None] + np.array([[0.1, 1.0, 2.0], [0.7, 0.2, 1.5]])
    return (
        np.sum(AMPLITUDES * np.sin(angle), axis=2),
        np.sum(AMPLITUDES * omega * np.cos(angle), axis=2),
        np.sum(-AMPLITUDES * omega**2 * np.sin(angle), axis=2),
    )


def torque(position: FloatArray, velocity: FloatArray, acceleration: FloatArray) -> FloatArray:
    """Inertia, gravity, Coulomb and viscous friction, joint by joint."""
    friction = COULOMB * np.sign(velocity) + VISCOUS * velocity
    return INERTIA * acceleration + GRAVITY * np.sin(position) + friction


def recording(
    rate: float = 500.0, duration: float = 20.0, encoder: float = 2e-4, noise: float = 0.05, with_velocity: bool = True
) -> JointLog:
    """Log with encoder steps [rad], velocity noise of 0.01 rad/s and torque noise [N m]."""
    rng = np.random.default_rng(5)
    time = np.arange(int(duration * rate)) / rate
    position, velocity, acceleration = exact_motion(time)
    effort = torque(position, velocity, acceleration) + noise * rng.normal(size=position.shape)
    measured = velocity + 0.01 * rng.normal(size=velocity.shape) if with_velocity else None
    stepped = np.round(position / encoder) * encoder if encoder else position
    return JointLog("walk", JOINTS, time, stepped, measured, effort)


def parallel_filter(columns: FloatArray, motion: Motion, cutoff_hz: float | None = None) -> tuple[FloatArray, IntArray]:
    """Columns (N, ...) behind the filter of a motion, and which samples (K,) stay."""
    design = make_parallel_filter(motion, cutoff_hz)
    return design.apply(columns), design.kept


def cutoff(hz: float) -> Treatment:
    """Differentiated velocity behind a low-pass, compared where that is flat."""
    return Treatment(hz, hz / 2.0)


def arm_recording(
    seed: int,
    seconds: float = 15.0,
    late: float = 0.0,
    constant: float = 0.0,
    kind: str = "effort",
    rate: float = 250.0,
    encoder: float = 1e-4,
    masses: float = 1.0,
) -> JointLog:
    """The arm of `test.arm` on sums of sines, with a torque that is late [s] and has a constant part [N m].

    Parameters
    ----------
    kind : ``effort``, or ``friction`` alone
    encoder : standard deviation of the position [rad]
    masses : true masses over those of the URDF
    """
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / rate)
    phase = rng.uniform(0.0, 2.0 * np.pi, (3, 2))
    omega = 2.0 * np.pi * np.array([[0.2, 0.3], [0.5, 0.4], [0.9, 1.1]])
    amplitude = np.array([[0.7, 0.8], [0.3, 0.4], [0.1, 0.1]])

    def states(at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        angle = omega[:, None] * at[None, :, None] + phase[:, None]
        return (
            (amplitude[:, None] * np.sin(angle)).sum(axis=0),
            (amplitude[:, None] * omega[:, None] * np.cos(angle)).sum(axis=0),
            -(amplitude[:, None] * omega[:, None] ** 2 * np.sin(angle)).sum(axis=0),
        )

    q, v, a = states(time - late)
    torque = arm.COULOMB * np.sign(v) + arm.VISCOUS * v + constant
    if kind == "effort":
        torque = torque + masses * FixedBaseModel(arm.URDF, arm.JOINTS).torque(q, v, a) + 0.1 * a
    torque = torque + arm.NOISE * rng.standard_normal(torque.shape)
    position = states(time)[0] + encoder * rng.standard_normal(torque.shape)
    inputs = {"friction": torque} if kind == "friction" else {}
    return JointLog(f"arm {seed}", arm.JOINTS, time, position, effort=torque if not inputs else None, inputs=inputs)
