"""Joint 3 of a Staubli RX130L, integrated forward through load- and velocity-dependent friction with stiction."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, sin

import numpy as np

from benchmarks.hamon.trajectory import PERIOD
from benchmarks.hamon.truth import ARM_LENGTH, Truth
from friction_estimator.identification.joint_log import JointLog, Payload
from friction_estimator.types import FloatArray

JOINT = "joint_3"
PAYLOADS = (0.0, 3.4584, 8.0)
"""[kg]; the text that we have of the print has lost the third. The joint carries at most 10."""
URDF = f"""<robot name="rx130l_arm"><link name="upper"/>
<link name="arm"><inertial><origin xyz="0.694 0 0"/><mass value="30"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="4.0" iyz="0" izz="4.0"/></inertial></link>
<joint name="{JOINT}" type="revolute"><parent link="upper"/><child link="arm"/><axis xyz="0 -1 0"/>
<limit lower="-2.4" upper="2.4" effort="900" velocity="1.3"/></joint>
<link name="flange"/><joint name="end" type="fixed"><parent link="arm"/><child link="flange"/>
<origin xyz="{ARM_LENGTH} 0 0"/></joint></robot>"""

_STEPS = 2
"""Integration steps a sample."""
_STIFFNESS, _DAMPING = 3e4, 2e3
"""Of the controller: 5 Hz with the arm [N m/rad, N m s/rad]."""


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
    ripple_speed: float = 27.0
    ripple_waves: tuple[float, float] = (25.0, 41.0)

    def unknown_torque(self, position: float, velocity: float) -> float:
        """What acts on the joint and is in no model [N m]."""
        waves = sum(sin(wave * position) for wave in self.ripple_waves)
        return (self.ripple + self.ripple_speed * abs(velocity)) * waves


def record(
    truth: Truth, sensors: Sensors, payload: float, seed: int, motion: tuple[FloatArray, FloatArray, FloatArray]
) -> JointLog:
    """One experiment: a controller moves the joint through friction, sensors write it down."""
    position, velocity = float(motion[0][0]), 0.0
    inertia, moment = truth.motor.inertia_and_weight(payload, 1.0, 0.0)
    positions, torques = np.empty(len(motion[0])), np.empty(len(motion[0]))
    driving = inertia * motion[2] + moment * np.cos(motion[0]) + truth.viscous * motion[1] + truth.offset
    for k, (q, dq, known) in enumerate(zip(motion[0].tolist(), motion[1].tolist(), driving.tolist(), strict=True)):
        torque = known + _STIFFNESS * (q - position) + _DAMPING * (dq - velocity)
        positions[k], torques[k] = position, torque
        felt = torque - sensors.unknown_torque(position, velocity)
        for _ in range(_STEPS):
            position, velocity = _advance(truth, felt, payload, position, velocity, PERIOD / _STEPS)
    positions = np.round(positions / sensors.resolution) * sensors.resolution
    torques += sensors.torque_noise * np.random.default_rng(seed).normal(size=len(torques))
    time = np.arange(len(torques)) * PERIOD
    body = disk(payload) if payload else None
    return JointLog(f"{payload:g} kg", (JOINT,), time, positions[:, None], None, torques[:, None], payload=body)


def disk(mass: float, radius: float = 0.12, thickness: float = 0.05) -> Payload:
    """The additional mass at the flange (eqs. 32 and 33)."""
    across = mass * (radius**2 / 4.0 + thickness**2 / 12.0)
    return Payload("flange", mass, np.zeros(3), np.diag([mass * radius**2 / 2.0, across, across]))


def _advance(
    truth: Truth, torque: float, mass: float, position: float, velocity: float, step: float
) -> tuple[float, float]:
    """One step of semi-implicit Euler; a joint that comes to rest sticks until the torque breaks it away."""
    cosine = cos(position)
    direction = float(np.sign(velocity))
    if direction == 0.0:
        for way in (1.0, -1.0):
            if truth.acceleration(torque, cosine, 0.0, way, mass)[0] * way > 0.0:
                direction = way
        if direction == 0.0:
            return position, 0.0
    faster = velocity + step * truth.acceleration(torque, cosine, velocity, direction, mass)[0]
    if faster * direction < 0.0:
        faster = 0.0
    return position + step * faster, faster
