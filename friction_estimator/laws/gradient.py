"""How the torque of any law changes with its parameters and with the load."""

from __future__ import annotations

import numpy as np

from friction_estimator.laws.law import FrictionLaw
from friction_estimator.types import FloatArray

_STEP, _SMALL = 1e-5, 1e-2
"""Relative step of the differences, and the value below which it is no longer relative."""


def torque_gradient(law: FrictionLaw, values: FloatArray, velocity: FloatArray, load: FloatArray | None) -> FloatArray:
    """Derivative of the torque by the parameters, by central differences.

    Parameters
    ----------
    law, values : any law and its parameters (p,)
    velocity, load : (N,) [rad/s], [N m]

    Returns
    -------
    (N, p)
    """
    columns = np.empty((velocity.size, values.size))
    for k, value in enumerate(values):
        step = np.zeros(values.size)
        step[k] = _STEP * max(abs(value), _SMALL)
        above, below = (law.torque((values + sign * step)[None, :], velocity, load) for sign in (1.0, -1.0))
        columns[:, k] = (above - below) / (2.0 * step[k])
    return columns


def load_slope(law: FrictionLaw, values: FloatArray, velocity: FloatArray, load: FloatArray) -> FloatArray:
    """Derivative of the torque by the load, by central differences that never change the sign of the load.

    At zero load, where laws jump or have a corner, it is zero.

    Parameters
    ----------
    law, values : any law that depends on the load, and its parameters (p,)
    velocity, load : (N,) [rad/s], [N m]

    Returns
    -------
    (N,)
    """
    above, below = (law.torque(values[None, :], velocity, (1.0 + sign * _STEP) * load) for sign in (1.0, -1.0))
    step = 2.0 * _STEP * load
    return np.divide(above - below, step, out=np.zeros_like(load), where=load != 0.0)
