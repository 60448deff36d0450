"""Measured friction of joints that share motors, as friction of the motors: of these it is a function of velocity."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from friction_estimator.core.coupling import Coupling
from friction_estimator.core.types import FloatArray
from friction_estimator.identification.friction_curve.samples import FRICTION, SIGMA
from friction_estimator.identification.recording.motion import Motion


def at_motors(motion: Motion, coupling: Coupling) -> Motion:
    """The same motion, of the motors (Guedelha et al. 2017, eqs. 33-34).

    Parameters
    ----------
    motion : of all joints of the coupling
    coupling : joints without one have a motor of their own

    Returns
    -------
    motion : ``T^-1`` of what moves, ``T^T`` of what pulls; friction is missing where that of one joint of a motor is.
        Standard deviations take the errors of the joints for independent. Other inputs are left out
    """
    columns = [motion.joint_names.index(joint) for joint in coupling.joint_names]
    inputs = {}
    if FRICTION in motion.inputs:
        inputs[FRICTION] = _pulled(motion.inputs[FRICTION][:, columns], coupling.matrix)
    if SIGMA in motion.inputs:
        inputs[SIGMA] = np.sqrt(_pulled(motion.inputs[SIGMA][:, columns] ** 2, coupling.matrix**2))
    position, velocity, acceleration = (
        coupling.motor_velocity(moved[:, columns]) for moved in (motion.position, motion.velocity, motion.acceleration)
    )
    return replace(
        motion,
        joint_names=coupling.motor_names,
        effort=None if motion.effort is None else _pulled(motion.effort[:, columns], coupling.matrix),
        inputs=MappingProxyType(inputs),
        position=position,
        velocity=velocity,
        acceleration=acceleration,
    )


def _pulled(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """``values @ matrix`` (N, n), NaN only where a value that counts is."""
    missing = np.isnan(values)
    return np.where(missing @ (matrix != 0.0), np.nan, np.nan_to_num(values) @ matrix)
