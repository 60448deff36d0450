"""A two-joint recording with known mechanics: what the tests of the way in damage in many ways."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.joint_log import JointLog, Motion
from friction_estimator.identification.recording.filters import make_parallel_filter
from friction_estimator.types import FloatArray, IntArray

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
