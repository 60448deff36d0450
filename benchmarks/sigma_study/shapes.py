"""Friction of many shapes, and the law F_c sgn(dq) + F_v dq that is nearest to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from friction_estimator.types import FloatArray

COULOMB = np.array([5.0, 2.0])
VISCOUS = np.array([3.0, 1.0])
_STILL = 0.01
"""Of the top speed."""
_MOST = 0.95
_SPEEDS, _MOMENTS = 40, 500


@dataclass(frozen=True, slots=True)
class Moments:
    """What friction may depend on, besides the velocity.

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
