"""Motors that are moved by hand, as formulas: exact motion, friction of the law, and noise when asked for."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from benchmarks.shared.coupling import joint_torque, joint_velocity
from friction_estimator.config.robot import Coupling
from friction_estimator.identification.curves.drive import FREE_OFFSET, INERTIA
from friction_estimator.identification.curves.problem import CurveSamples, ExtraColumn
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.identification.recording.motion import Motion
from friction_estimator.laws import make_law
from friction_estimator.types import FloatArray

PERIOD = 0.01
STRIBECK = np.array([0.6, 12.0, 1.3, 1.9])
"""K_c, K_v, sigma+, sigma- [N m, N m s/rad]."""


def swing(time: FloatArray, phase: float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity and acceleration of a slow and a fast swing whose sum never repeats."""
    parts = [(0.08, 0.31), (0.12, 1.13), (0.03, 2.05)]
    q, dq, ddq = (np.zeros_like(time) for _ in range(3))
    for k, (amplitude, omega) in enumerate(parts):
        angle = omega * time + phase + k
        q += amplitude * np.sin(angle)
        dq += amplitude * omega * np.cos(angle)
        ddq -= amplitude * omega**2 * np.sin(angle)
    return q, dq, ddq


def motor_samples(
    law: str,
    parameters: FloatArray,
    inertia: float = 0.0,
    offset: float = 0.0,
    noise: float = 0.0,
    seed: int = 0,
    columns: tuple[ExtraColumn, ...] = (),
) -> CurveSamples:
    """Sixty seconds of one motor that is not driven; ``torque = offset - friction - I domega``."""
    time = PERIOD * np.arange(6000)
    _, velocity, acceleration = swing(time)
    friction = make_law(law).torque(parameters[None], velocity) + inertia * acceleration - offset
    white = noise * np.random.default_rng(seed).normal(size=time.size)
    signals = {INERTIA: acceleration, FREE_OFFSET: -np.ones_like(time)}
    extra = np.column_stack([np.zeros((time.size, 0)), *(signals[column] for column in columns)])
    return CurveSamples(
        velocity, friction + white, None, (time // 1.0).astype(np.intp), columns=columns, extra_columns=extra
    )


def as_motion(samples: CurveSamples) -> Motion:
    """The motion of one motor with these samples."""
    column = samples.velocity[:, None]
    return Motion(
        name="free", joint_names=("motor",), period=PERIOD, time=PERIOD * np.arange(column.size), position=0.0 * column,
        velocity=column, acceleration=0.0 * column, effort=None, inputs={"friction": samples.friction[:, None]},
        segment=samples.segment, payload=None, digest="", choices=(),
    )  # fmt: skip


def joint_log(
    coupling: Coupling,
    parameters: FloatArray,
    gain: FloatArray,
    pwm: float = 0.0,
    kind: str = "pwm",
    offset: float = 0.0,
    inertia: float = 0.0,
    name: str = "free",
    noise: float = 0.05,
    duration: float = 30.0,
) -> JointLog:
    """A recording of coupled joints; every motor has the asymmetric Stribeck law with its row of parameters (n, 4).

    Motors are driven with ``pwm`` times a sine while somebody leads them, so that drive and velocity are independent.
    """
    rng = np.random.default_rng(len(name))
    time = PERIOD * np.arange(round(duration / PERIOD))
    n = len(coupling.motor_names)
    moved = [np.stack(signals, axis=1) for signals in zip(*(swing(time, 1.7 * k) for k in range(n)), strict=True)]
    drive = pwm * np.sin(0.77 * time[:, None] + np.arange(n))
    friction = np.stack(
        [make_law("asymmetric_stribeck").torque(parameters[k : k + 1], moved[1][:, k]) for k in range(n)], axis=1
    )
    torque = joint_torque(coupling, gain * drive + offset - friction - inertia * moved[2])
    return JointLog(
        name,
        coupling.joint_names,
        time,
        joint_velocity(coupling, moved[0]),
        inputs=MappingProxyType({"joint_torque": torque + noise * rng.normal(size=torque.shape), kind: drive}),
    )
