"""A motion of joints that share motors, said of the motors: of their velocity friction is a function."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from friction_estimator.identification.recording.motion import FRICTION, SIGMA, TEMPERATURE, Motion
from friction_estimator.robot.transmission import Transmission
from friction_estimator.types import FloatArray


def at_motors(motion: Motion, motors: Transmission) -> Motion:
    """The same motion, of the motors (Guedelha et al. 2017, eqs. 33-34).

    Parameters
    ----------
    motion : of the joints (n)
    motors : of these joints

    Returns
    -------
    motion : ``T^-1`` of what moves, ``T^T`` of what pulls; a torque is missing where that of one joint of a motor is.
        Standard deviations take the errors of the joints for independent. Temperatures are those of the motors already,
        the column of a joint that of the motor at its place. Other inputs are left out
    """
    if not motors.couples:
        return replace(motion, joint_names=motors.names)
    said = {
        FRICTION: lambda torque: _pulled(torque, motors.matrix),
        SIGMA: lambda sigma: np.sqrt(_pulled(sigma**2, motors.matrix**2)),
        TEMPERATURE: lambda warmth: warmth,
    }
    return replace(
        motion,
        joint_names=motors.names,
        effort=None if motion.effort is None else _pulled(motion.effort, motors.matrix),
        inputs=MappingProxyType({kind: said[kind](values) for kind, values in motion.inputs.items() if kind in said}),
        position=motors.velocity(motion.position),
        velocity=motors.velocity(motion.velocity),
        acceleration=motors.velocity(motion.acceleration),
    )


def _pulled(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """``values @ matrix`` (N, n), NaN only where a value that counts is."""
    missing = np.isnan(values)
    return np.where(missing @ (matrix != 0.0), np.nan, np.nan_to_num(values) @ matrix)
