"""Friction curves whose law is known, with noise that remembers."""

from __future__ import annotations

import numpy as np

from friction_estimator.identification.curves.problem import CurveSamples
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

PERIOD = 2e-3
KNEE = np.array([0.2, 1.0, 0.2, 0.2, 1.0, 40.0])
"""F_v, F_c, S, v_s, tau_os, a of Egle 2021, Table 6.1."""


def sway(top_speed: float, duration: float = 8.0) -> FloatArray:
    """Velocity (N,) that often turns, at many amplitudes up to about ``top_speed`` [rad/s]."""
    time = np.arange(0.0, duration, PERIOD)
    return top_speed * np.sin(2 * np.pi * time / 1.1) * np.cos(2 * np.pi * time / 3.7)


def coloured(rng: np.random.Generator, size: int, memory: int = 25) -> FloatArray:
    """Noise (size,) of unit variance that is correlated over ``memory`` samples."""
    return np.convolve(rng.standard_normal(size + memory - 1), np.full(memory, memory**-0.5), "valid")


def curve(law: str, parameters: FloatArray, top_speed: float, noise: float = 0.0, seed: int = 0) -> CurveSamples:
    """What one joint shows of a law, in segments of one second."""
    velocity = sway(top_speed)
    load = 20.0 * np.cos(np.linspace(0.0, 30.0, velocity.size))
    friction = make_law(law).torque(np.asarray(parameters)[None, :], velocity, load)
    friction = friction + noise * coloured(np.random.default_rng(seed), velocity.size)
    return CurveSamples(velocity, friction, load, np.arange(velocity.size) // round(1.0 / PERIOD))


def as_motion(curves: dict[str, CurveSamples], late: int = 0) -> Motion:
    """One experiment of several joints; friction comes ``late`` samples later."""
    samples = list(curves.values())
    velocity, friction, load = (
        np.stack([getattr(one, name) for one in samples], axis=1) for name in ("velocity", "friction", "load")
    )
    measured = np.full_like(friction, np.nan)
    measured[late:] = friction[: friction.shape[0] - late]
    time = PERIOD * np.arange(velocity.shape[0])
    nothing = np.zeros_like(velocity)
    return Motion(
        name="walk", joint_names=tuple(curves), period=PERIOD, time=time, position=nothing, velocity=velocity,
        acceleration=nothing, effort=load, inputs={"friction": measured}, segment=samples[0].segment, payload=None,
        digest="d1", choices=("cut-off 20 Hz, given",),
    )  # fmt: skip
