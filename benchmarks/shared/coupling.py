"""Velocities and torques of coupled joints and motors by the matrix of a coupling alone (Guedelha et al. 2017).

The package maps them with ``Transmission``; these four lines simulate recordings, and check it independently.
"""

from __future__ import annotations

import numpy as np

from friction_estimator.config.robot import Coupling
from friction_estimator.types import FloatArray


def motor_velocity(coupling: Coupling, joint_velocity: FloatArray) -> FloatArray:
    """``T^-1 dq`` (..., n) of velocities, accelerations or displacements of the joints (..., n), eq. 33."""
    return np.asarray(joint_velocity @ np.linalg.inv(coupling.matrix).T)


def joint_velocity(coupling: Coupling, motor_velocity: FloatArray) -> FloatArray:
    """``T omega`` (..., n) of velocities, accelerations or displacements of the motors (..., n), eqs. 11, 33."""
    return np.asarray(motor_velocity @ coupling.matrix.T)


def motor_torque(coupling: Coupling, joint_torque: FloatArray) -> FloatArray:
    """``T^T tau`` (..., n) [N m]: torques of the joints (..., n) at their motors, section 3.4.2."""
    return np.asarray(joint_torque @ coupling.matrix)


def joint_torque(coupling: Coupling, motor_torque: FloatArray) -> FloatArray:
    """``T^-T tau`` (..., n) [N m]: torques of the motors (..., n) at the joints, eqs. 12, 34."""
    return np.asarray(motor_torque @ np.linalg.inv(coupling.matrix))
