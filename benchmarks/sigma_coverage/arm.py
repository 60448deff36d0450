"""A two-joint arm in a vertical plane, its motions, and friction of many shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from friction_estimator.identification.fixed_base_model import FixedBaseModel
from friction_estimator.identification.joint_log import Payload
from friction_estimator.types import FloatArray

JOINTS = ("shoulder", "elbow")
PERIOD = 0.005
DRIVE_INERTIA = np.array([0.3, 0.1])
OFFSET = np.array([0.5, -0.3])
HANGING = np.array([np.pi / 2.0, 0.0])
_LINK = (
    '<link name="{0}"><inertial><origin xyz="{1} 0.01 0.02"/><mass value="{2}"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>'
)
_JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3} 0 0"/>'
    '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="99" velocity="9"/></joint>'
)
URDF = (
    '<robot name="arm"><link name="base"/>'
    + _LINK.format("upper", 0.2, 4.0)
    + _LINK.format("lower", 0.15, 2.5)
    + '<link name="hand"/>'
    + _JOINT.format("shoulder", "base", "upper", 0.0)
    + _JOINT.format("elbow", "upper", "lower", 0.4)
    + '<joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0.3 0 0"/></joint>'
    + "</robot>"
)


def model() -> FixedBaseModel:
    return FixedBaseModel(URDF, JOINTS)


def rigid_torque(motion: FloatArray, payload: Payload | None = None) -> FloatArray:
    """Torque behind friction (N, 2) of a motion (3, N, 2) [N m]."""
    q, v, a = motion
    return model().torque(q, v, a, payload) + DRIVE_INERTIA * a


def five_sines(seed: int, duration: float, speed: float, period: float = PERIOD) -> FloatArray:
    """Position, velocity, acceleration (3, N, 2) about the hanging arm."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration, period)[:, None, None]
    omega = 2.0 * np.pi * speed * np.array([0.1, 0.23, 0.37, 0.53, 0.71])
    size, phase = rng.uniform(0.15, 0.5, (2, 5)) / omega * omega[0] * 2.0, rng.uniform(0.0, 6.28, (2, 5))
    angle = omega * time + phase
    waves = size * np.sin(angle), size * omega * np.cos(angle), -size * omega**2 * np.sin(angle)
    motion = np.array([wave.sum(axis=2) for wave in waves])
    motion[0] += HANGING
    return motion


def point_to_point(seed: int, duration: float) -> FloatArray:
    """Minimum-jerk moves at three speeds, every joint by itself, with rests of 0.2 s: (3, N, 2)."""
    rng = np.random.default_rng(seed)
    count = int(duration / PERIOD)
    motion = np.zeros((3, count, 2))
    for joint in range(2):
        done, here = 0, 0.0
        while done < count:
            there, speed = rng.uniform(-1.2, 1.2), 1.5 * rng.choice([0.1, 0.3, 1.0])
            time = max(1.5 * abs(there - here) / speed, 0.4)
            x = np.arange(int(time / PERIOD)) * PERIOD / time
            move = np.array(
                [
                    10.0 * x**3 - 15.0 * x**4 + 6.0 * x**5,
                    (30.0 * x**2 - 60.0 * x**3 + 30.0 * x**4) / time,
                    (60.0 * x - 180.0 * x**2 + 120.0 * x**3) / time**2,
                ]
            )
            part = (there - here) * move + np.array([[here], [0.0], [0.0]])
            rest = np.repeat([[there], [0.0], [0.0]], int(0.2 / PERIOD), axis=1)
            part = np.hstack((part, rest))[:, : count - done]
            motion[:, done : done + part.shape[1], joint] = part
            done, here = done + part.shape[1], there
    motion[0] += HANGING
    return motion


MOTIONS: dict[str, Callable[[int], FloatArray]] = {
    "five sines, 20 s": lambda seed: five_sines(seed, 20.0, 1.0),
    "five sines, 40 s": lambda seed: five_sines(seed, 40.0, 1.0),
    "slow": lambda seed: five_sines(seed, 40.0, 0.4),
    "fast": lambda seed: five_sines(seed, 20.0, 2.0),
    "point to point": lambda seed: point_to_point(seed, 40.0),
}


def sine(hz: float, amplitude: float, duration: float, period: float) -> FloatArray:
    """The same sine in both joints, (3, N, 2)."""
    omega, time = 2.0 * np.pi * hz, np.arange(0.0, duration, period)[:, None] * np.ones(2)
    waves = np.sin(omega * time), omega * np.cos(omega * time), -(omega**2) * np.sin(omega * time)
    motion = amplitude * np.array(waves)
    motion[0] += HANGING
    return motion


COULOMB = np.array([5.0, 2.0])
VISCOUS = np.array([3.0, 1.0])
_STILL = 0.01
"""Of the top speed."""
_MOST = 0.95
_SPEEDS, _MOMENTS = 40, 500


@dataclass(frozen=True, slots=True)
class Moments:
    """What friction may depend on, in addition to the velocity.

    Attributes
    ----------
    position, load : (N, 2) [rad], torque behind friction [N m]
    time : (N, 1) from 0 to 1
    """

    position: FloatArray
    load: FloatArray
    time: FloatArray


Shape = Callable[[FloatArray, Moments], FloatArray]


def plain(v: FloatArray, _: Moments) -> FloatArray:
    return COULOMB * np.sign(v) + VISCOUS * v


SHAPES: dict[str, Shape] = {
    "right law": plain,
    "Stribeck effect, half of F_c over 0.1 rad/s": lambda v, m: (
        plain(v, m) + 0.5 * COULOMB * np.exp(-np.abs(v) / 0.1) * np.sign(v)
    ),
    "Stribeck effect, F_c over 0.3 rad/s, Gaussian": lambda v, m: (
        plain(v, m) + COULOMB * np.exp(-((v / 0.3) ** 2)) * np.sign(v)
    ),
    "viscous friction to the power 0.6": lambda v, _: COULOMB * np.sign(v) + VISCOUS * np.abs(v) ** 0.6 * np.sign(v),
    "viscous friction squared": lambda v, _: COULOMB * np.sign(v) + 0.6 * VISCOUS * v * np.abs(v),
    "position, F_c (1 + 0.4 cos q)": lambda v, m: plain(v, m) + 0.4 * COULOMB * np.cos(m.position) * np.sign(v),
    "position, F_c (1 + 0.3 sin 3q)": lambda v, m: plain(v, m) + 0.3 * COULOMB * np.sin(3.0 * m.position) * np.sign(v),
    "load, a tenth of it": lambda v, m: plain(v, m) + 0.1 * np.abs(m.load) * np.sign(v),
    "load where the motor drives, 15 %": lambda v, m: (
        plain(v, m) + 0.15 * np.maximum(m.load * np.sign(v), 0.0) * np.sign(v)
    ),
    "direction, 30 % more to one side": lambda v, m: plain(v, m) * np.where(v > 0.0, 1.3, 1.0),
    "time, falls from 130 % to 70 %": lambda v, m: plain(v, m) * (1.3 - 0.6 * m.time),
}


def nearest_law(shape: Shape, velocity: FloatArray, moments: Moments) -> FloatArray:
    """F_c and F_v (2, 2) of both joints: least squares over a uniform grid of speeds, up to what 95 % do not exceed.

    Friction at a speed is half of what lies between both directions, the mean over all moments of motion.
    """
    found = np.empty((2, 2))
    for joint in range(2):
        speed = np.abs(velocity[:, joint])
        moving = np.flatnonzero(speed > _STILL * speed.max())
        few = moving[np.linspace(0, moving.size - 1, _MOMENTS).astype(int)]
        then = Moments(moments.position[few], moments.load[few], moments.time[few])
        grid = (np.arange(_SPEEDS) + 0.5) / _SPEEDS * np.quantile(speed[moving], _MOST)
        friction = []
        for value in grid:
            v = np.full((_MOMENTS, 2), value)
            friction.append(0.5 * (shape(v, then) - shape(-v, then))[:, joint].mean())
        found[joint] = nnls(np.column_stack((np.ones(_SPEEDS), grid)), np.array(friction))[0]
    return found
