"""What is recorded of a simulated limb: encoders and torque estimates at 100 Hz, as on the iCub."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from benchmarks.guedelha.robots import Mechanism
from benchmarks.guedelha.stiction import STEP, Course, Hand, simulate
from friction_estimator.identification.joint_log import JointLog
from friction_estimator.types import FloatArray

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
    return Hand(mechanism.coupling.joint_velocity(motors), np.full(n, 150.0), np.full(n, 10.0))


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
