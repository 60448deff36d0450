"""Joint 3 of a Staubli RX130L: motion, friction and forward integration (Hamon et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, sin

import numpy as np

from friction_estimator.identification.joint_log import JointLog, Payload
from friction_estimator.types import GRAVITY, FloatArray

PERIOD = 4e-3
"""Of the controller and the recording [s]."""
RANGE = 2.4
"""Of the joint, both ways [rad]."""
PEAKS = (0.01, 0.03, 0.08, 0.2, 0.5, 1.2)
"""Peak velocities [rad/s]."""
ACCELERATION = 4.0
"""[rad/s^2]"""
_SHARE = 0.6
"""Round trips grow with this power of the velocity, so the time at a velocity falls with its power of -0.4."""


def reference_motion(slowest: float = PEAKS[0]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Positions, velocities, accelerations of one experiment, (K,) each; peaks below ``slowest`` are left out."""
    peaks = [peak for peak in PEAKS if peak >= slowest]
    passes: list[FloatArray] = []
    for peak in peaks:
        for trip in range(round((peak / peaks[0]) ** _SHARE)):
            speed = (_sinusoid if trip % 2 else _trapezoid)(peak)
            passes += [speed, -speed]
    speed = np.concatenate(passes)
    return np.cumsum(speed) * PERIOD - RANGE, speed, np.gradient(speed, PERIOD)


def _sinusoid(peak: float) -> FloatArray:
    """From rest at one end to rest at the other, velocity half a period of a sine."""
    duration = np.pi * RANGE / peak
    return _whole(peak * np.sin(np.pi * np.arange(0.0, duration, PERIOD) / duration))


def _trapezoid(peak: float) -> FloatArray:
    """From rest to rest at constant speed, with constant accelerations."""
    rise = np.arange(0.0, max(peak / ACCELERATION, 0.05), PERIOD)
    hold = np.ones(round((2.0 * RANGE / peak - rise[-1]) / PERIOD))
    ramp = rise / rise[-1]
    return _whole(peak * np.concatenate((ramp, hold, ramp[::-1])))


def _whole(speed: FloatArray) -> FloatArray:
    """The same shape over exactly the range."""
    return np.asarray(speed * 2.0 * RANGE / (speed.sum() * PERIOD))


ARM_LENGTH = 1.277
"""L_a, from the joint to the payload [m]."""


@dataclass(frozen=True)
class Quadrant:
    """Products of eq. 43 of one sign of the power; what fades does so with exp(-|dq| / q_s).

    Attributes
    ----------
    inertia, inertia_fading : a J, b J [kg m^2]
    moment, moment_fading : a M X, b M X [kg m]
    payload, payload_fading : a, b: what the payload's torque counts
    dry : c [N m]
    """

    inertia: float
    inertia_fading: float
    moment: float
    moment_fading: float
    payload: float
    payload_fading: float
    dry: float

    def inertia_and_weight(self, mass: float, cosine: float, fading: float) -> tuple[float, float]:
        """Torque for one rad/s^2 [kg m^2] and against gravity [N m], with a payload of this mass [kg]."""
        carried = (self.payload + self.payload_fading * fading) * mass * ARM_LENGTH
        inertia = self.inertia + self.inertia_fading * fading + carried * ARM_LENGTH
        return inertia, (self.moment + self.moment_fading * fading + carried) * GRAVITY * cosine


@dataclass(frozen=True)
class Truth:
    """A joint: both quadrants, F_V [N m s/rad], tau_off [N m] and q_s [rad/s]."""

    motor: Quadrant
    generator: Quadrant
    viscous: float = 48.139
    offset: float = 9.950
    stribeck_velocity: float = 0.03

    def acceleration(
        self, torque: float, cosine: float, velocity: float, direction: float, mass: float
    ) -> tuple[float, float]:
        """Acceleration of the joint that slides in a direction, and the load's share of the motor torque.

        Between the dry frictions of both quadrants nothing gets through, and the arm falls freely.
        """
        fading = exp(-abs(velocity) / self.stribeck_velocity)
        rest = torque - self.viscous * velocity - self.offset
        quadrant = self.motor
        load = rest - quadrant.dry * direction
        if load * direction < 0.0:
            quadrant = self.generator
            load = min((rest - quadrant.dry * direction) * direction, 0.0) * direction
        inertia, weight = quadrant.inertia_and_weight(mass, cosine, fading)
        return (load - weight) / inertia, load


AS_PUBLISHED = Truth(
    Quadrant(32.420, 0.0, 22.204, 1.621, 0.942, 0.240, 21.152),
    Quadrant(29.294, 0.0, 19.432, -1.798, 0.915, -0.266, 15.588),
)
"""Table II. The products contradict each other: a_m / a_g is 1.11 for J, 1.14 for M X, 1.03 for the payload."""


def shared_factors(
    inertia: float = 30.9,
    moment: float = 20.82,
    motor: tuple[float, float] = (1.067, 0.15),
    generator: tuple[float, float] = (0.933, -0.17),
) -> Truth:
    """The nearest joint that can be: one J, one M X and one pair of factors (a, b) a quadrant."""
    quadrants = (
        Quadrant(a * inertia, b * inertia, a * moment, b * moment, a, b, dry)
        for (a, b), dry in ((motor, AS_PUBLISHED.motor.dry), (generator, AS_PUBLISHED.generator.dry))
    )
    return Truth(*quadrants)


JOINT = "joint_3"
PAYLOADS = (0.0, 3.4584, 8.0)
"""[kg]; the third is missing in our copy of the paper. The joint carries at most 10."""
URDF = f"""<robot name="rx130l_arm"><link name="upper"/>
<link name="arm"><inertial><origin xyz="0.694 0 0"/><mass value="30"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="4.0" iyz="0" izz="4.0"/></inertial></link>
<joint name="{JOINT}" type="revolute"><parent link="upper"/><child link="arm"/><axis xyz="0 -1 0"/>
<limit lower="-2.4" upper="2.4" effort="900" velocity="1.3"/></joint>
<link name="flange"/><joint name="end" type="fixed"><parent link="arm"/><child link="flange"/>
<origin xyz="{ARM_LENGTH} 0 0"/></joint></robot>"""

_STEPS = 2
"""Integration steps per sample."""
_STIFFNESS, _DAMPING = 3e4, 2e3
"""Of the controller: 5 Hz with the arm [N m/rad, N m s/rad]."""


@dataclass(frozen=True)
class Sensors:
    """What makes a simulated recording real.

    Attributes
    ----------
    resolution : of the position [rad]
    torque_noise : of the current reference, standard deviation, white at the sampling rate [N m]
    ripple : amplitude of a torque that follows the gear's teeth, which is in no model [N m]
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
        for sign in (1.0, -1.0):
            if truth.acceleration(torque, cosine, 0.0, sign, mass)[0] * sign > 0.0:
                direction = sign
        if direction == 0.0:
            return position, 0.0
    faster = velocity + step * truth.acceleration(torque, cosine, velocity, direction, mass)[0]
    if faster * direction < 0.0:
        faster = 0.0
    return position + step * faster, faster
