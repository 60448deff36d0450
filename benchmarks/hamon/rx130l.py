"""Joint 3 of a Staubli RX130L, integrated forward through load- and velocity-dependent friction with stiction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from friction_estimator.core.joint_log import JointLog, Payload
from friction_estimator.core.types import GRAVITY, FloatArray

JOINT = "joint_3"
ARM_LENGTH = 1.277
"""L_a, from the joint to the payload [m]."""
PAYLOADS = (0.0, 3.4584, 8.0)
"""[kg]; the text that we have of the print has lost the third. The joint carries at most 10."""
URDF = f"""<robot name="rx130l_arm"><link name="upper"/>
<link name="arm"><inertial><origin xyz="0.694 0 0"/><mass value="30"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="4.0" iyz="0" izz="4.0"/></inertial></link>
<joint name="{JOINT}" type="revolute"><parent link="upper"/><child link="arm"/><axis xyz="0 -1 0"/>
<limit lower="-2" upper="2" effort="900" velocity="1.3"/></joint>
<link name="flange"/><joint name="end" type="fixed"><parent link="arm"/><child link="flange"/>
<origin xyz="{ARM_LENGTH} 0 0"/></joint></robot>"""

PERIOD = 1e-3
_PEAKS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.6, 0.9, 1.2)
"""Peak velocities [rad/s]."""
_STEPS = 5
"""Integration steps a sample."""


@dataclass(frozen=True)
class Truth:
    """Parameters like those of Table II, made consistent: one J and one M X for both quadrants."""

    inertia: float = 30.9
    first_moment: float = 20.82
    alpha_motor: float = 0.067
    alpha_generator: float = 0.067
    gamma_alpha_motor: float = 0.15
    gamma_alpha_generator: float = 0.17
    beta_motor: float = 21.15
    beta_generator: float = 15.59
    viscous: float = 48.1
    offset: float = 9.95
    stribeck_velocity: float = 0.03


@dataclass(frozen=True)
class Sensors:
    """What makes a simulated recording real.

    Attributes
    ----------
    resolution : of the position [rad]
    torque_noise : of the current reference, standard deviation, white at the sampling rate [N m]
    ripple : amplitude of a torque that follows the gear's teeth, which no model knows [N m]
    ripple_speed : how much it grows with the speed [N m s/rad]
    ripple_waves : of two such torques [1/rad]
    """

    resolution: float = 1e-5
    torque_noise: float = 10.0
    ripple: float = 5.5
    ripple_speed: float = 33.0
    ripple_waves: tuple[float, float] = (25.0, 41.0)

    def unknown_torque(self, position: float, velocity: float) -> float:
        """What acts on the joint and is in no model [N m]."""
        waves = sum(np.sin(wave * position) for wave in self.ripple_waves)
        return float((self.ripple + self.ripple_speed * abs(velocity)) * waves)


def output_torque(truth: Truth, motor_torque: float, velocity: float, direction: float) -> float:
    """tau_out that a motor torque leaves while the joint slides (Hamon et al. 2010, eq. 25, solved for tau_out)."""
    fading = np.exp(-abs(velocity) / truth.stribeck_velocity)
    rest = motor_torque - truth.viscous * velocity - truth.offset
    driving = (rest - truth.beta_motor * direction) / (1.0 + truth.alpha_motor + truth.gamma_alpha_motor * fading)
    if driving * direction > 0.0:
        return driving
    driven = (rest - truth.beta_generator * direction) / (
        1.0 - truth.alpha_generator - truth.gamma_alpha_generator * fading
    )
    return min(driven * direction, 0.0) * direction  # between the two dry frictions nothing gets through


def reference_motion(seed: int, duration: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sinusoids and trapezoids of the velocity, slow and fast, (K,) positions, velocities, accelerations."""
    rng = np.random.default_rng(seed)
    pieces: list[FloatArray] = []
    place = 0.0
    while sum(piece.size for piece in pieces) * PERIOD < duration:
        for peak in rng.permutation(_PEAKS):
            reach = float(rng.uniform(1.0, 2.0)) if peak > 0.2 else float(rng.uniform(3.0, 8.0) * peak)
            way = -1.0 if place > 0.0 else 1.0
            shape = _sinusoid if rng.random() < 0.5 else _trapezoid
            pieces.append(shape(float(peak), reach, way if peak > 0.2 else float(rng.choice([-1.0, 1.0]))))
            place += float(pieces[-1].sum()) * PERIOD
    speed = np.concatenate(pieces)
    return np.cumsum(speed) * PERIOD, speed, np.gradient(speed, PERIOD)


def record(truth: Truth, sensors: Sensors, payload: float, seed: int, duration: float) -> JointLog:
    """One experiment: a controller moves the joint through friction, sensors write it down."""
    reference = reference_motion(seed, duration)
    inertia = truth.inertia + payload * ARM_LENGTH**2
    moment = truth.first_moment + payload * ARM_LENGTH
    rng = np.random.default_rng(seed + 1000)
    wish = np.column_stack(reference)
    position, velocity = float(wish[0, 0]), 0.0
    log = np.empty((len(wish), 2))
    for k, (q, dq, ddq) in enumerate(wish):
        unknown = sensors.unknown_torque(position, velocity)
        feedback = 6e3 * (q - position) + 600.0 * (dq - velocity)
        torque = inertia * ddq + moment * GRAVITY * np.cos(q) + truth.viscous * dq + truth.offset + feedback
        log[k] = position, torque
        for _ in range(_STEPS):
            step = PERIOD / _STEPS
            load = moment * GRAVITY * np.cos(position)
            position, velocity = _advance(truth, torque - unknown, load, inertia, position, velocity, step)
    log[:, 0] = np.round(log[:, 0] / sensors.resolution) * sensors.resolution
    log[:, 1] += sensors.torque_noise * rng.normal(size=len(log))
    time = np.arange(len(log)) * PERIOD
    body = disk(payload) if payload else None
    return JointLog(f"{payload:g} kg", (JOINT,), time, log[:, :1], None, log[:, 1:], payload=body)


def disk(mass: float, radius: float = 0.12, thickness: float = 0.05) -> Payload:
    """The additional mass at the flange (eqs. 32 and 33)."""
    across = mass * (radius**2 / 4.0 + thickness**2 / 12.0)
    return Payload("flange", mass, np.zeros(3), np.diag([mass * radius**2 / 2.0, across, across]))


def _advance(
    truth: Truth, torque: float, load: float, inertia: float, position: float, velocity: float, step: float
) -> tuple[float, float]:
    """One step of semi-implicit Euler; a joint that comes to rest sticks until the torque breaks it away."""
    direction = np.sign(velocity)
    if direction == 0.0:
        for way in (1.0, -1.0):
            if (output_torque(truth, torque, 0.0, way) - load) * way > 0.0:
                direction = way
        if direction == 0.0:
            return position, 0.0
    acceleration = (output_torque(truth, torque, velocity, direction) - load) / inertia
    faster = velocity + step * acceleration
    if faster * direction < 0.0:
        faster = 0.0
    return position + step * faster, faster


def _sinusoid(peak: float, reach: float, way: float) -> FloatArray:
    """From rest to rest, velocity half a period of a sine."""
    duration = max(np.pi * reach / (2.0 * peak), 0.4)
    return np.asarray(way * peak * np.sin(np.pi * np.arange(0.0, duration, PERIOD) / duration))


def _trapezoid(peak: float, reach: float, way: float) -> FloatArray:
    """From rest to rest at constant speed, with constant accelerations."""
    ramp = max(peak / 4.0, 0.05)
    rise = np.arange(0.0, ramp, PERIOD) / ramp
    hold = np.ones(int(max(reach / peak - ramp, 0.1) / PERIOD))
    return np.asarray(way * peak * np.concatenate((rise, hold, rise[::-1])))
